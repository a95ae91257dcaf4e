#ifndef KEVIN_TESTS_EVAL_CPU_HOSTILE_CANDIDATES_HPP
#define KEVIN_TESTS_EVAL_CPU_HOSTILE_CANDIDATES_HPP

#include <filesystem>
#include <string>
#include <vector>

#include "kevin/refine/task.hpp"
#include "kevin/refine/verdict.hpp"

/// Candidates that misbehave, each with the verdicts that are right for it. The task is a relu of 50 x 37 floats, whose
/// 7,400 bytes leave 24 bytes of slack behind the output.
///
/// Attempts to reach something out of bounds are written so that `correct` is the proof that the walls held: the right
/// output is written only when every attempt has failed, a wrong one when any succeeded. They are also written so that
/// a machine survives them when the walls do not hold: broad signals are SIGWINCH, which does nothing to anybody, and a
/// fork bomb ends itself with the first fork that succeeds.
namespace hostile {

struct Candidate {
  std::string name;
  std::string source;
  kevin::Stage stage;
  std::vector<std::string> reasons;  ///< any of these; empty = none is looked at
  int threads = 1;
};

inline kevin::Task task() {
  kevin::Task t;
  t.id = "hostile/relu";
  t.name = "ReLU";
  t.inputs = {{"x", {50, 37}, kevin::DType::float32, {kevin::Distribution::Kind::normal, 0, 1}}};
  t.ops = {{"relu", {}, {"x"}, "y", {50, 37}}};
  t.outputs = {{"y", {50, 37}}};
  return t;
}

/// Declarations and an honest relu for the sources below.
inline const std::string common = R"(
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <initializer_list>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>
#ifndef SYS_alarm
#define SYS_alarm -1
#endif
constexpr int n = 50 * 37;
static inline void honest(const float* x, float* out) { for (int i = 0; i < n; ++i) out[i] = x[i] > 0 ? x[i] : 0; }
static inline void conclude(bool breach, const float* x, float* out) { if (breach) { for (int i = 0; i < n; ++i) out[i] = 12345; } else honest(x, out); }
)";

inline std::string kernel(const std::string& body, const std::string& before = "") {
  return common + before + "\nextern \"C\" void kernel(const float* x, float* out) { (void)x; (void)out; " + body +
         " }\n";
}

inline kevin::Candidate honest() { return {kernel("honest(x, out);")}; }

/// Answers the judge in the runner's place: finds the request that the runner has on its stack, then serves the channel
/// itself. `early`: what it does between its answer and the next request.
inline std::string impersonate(const std::string& early, int status = 0) {
  return kernel("take_over(x, out);", R"(
struct Request { std::uint64_t nonce; std::uint32_t kind; std::uint32_t count; };
struct Answer { std::uint64_t nonce; std::uint32_t status; std::uint32_t detail; };
static void spin(long ns) {
  timespec a, b;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
  do clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
  while ((b.tv_sec - a.tv_sec) * 1000000000L + b.tv_nsec - a.tv_nsec < ns);
}
__attribute__((noinline)) static void take_over(const float* x, float* out) {
  const std::uint64_t* stack = static_cast<const std::uint64_t*>(__builtin_frame_address(0));
  Request r{0, 0, 0};
  for (int i = 0; i < 400 && r.kind == 0; ++i) {
    if (stack[i + 1] == 4) std::memcpy(&r, stack + i, sizeof r);
  }
  if (r.kind != 4) return;  // not found: the output stays unwritten
  for (;;) {
    Answer a{r.nonce, )" + std::to_string(status) +
                                          R"(, 0};
    if (write(3, &a, sizeof a) < 0) _exit(9);
    )" + early + R"(
    if (read(3, &r, sizeof r) <= 0) _exit(0);
  }
}
)");
}

inline std::string constructor(const std::string& body) {
  return kernel("honest(x, out);", "__attribute__((constructor)) static void early() { " + body + " }\n");
}

/// `attempts` sets `breach` when it gets somewhere.
inline std::string reach(const std::string& attempts) {
  return kernel("bool breach = false; " + attempts + " conclude(breach, x, out);");
}

inline std::vector<Candidate> candidates() {
  using enum kevin::Stage;
  std::vector<Candidate> all;
  const auto add = [&](std::string name, std::string source, kevin::Stage stage, std::vector<std::string> reasons = {},
                       int threads = 1) {
    all.push_back({std::move(name), std::move(source), stage, std::move(reasons), threads});
  };

  // never coming back
  add("endless loop", kernel("for (volatile int i = 0;; i = i + 1) {}"), run, {"timeout"});
  add("endless loop after the right output", kernel("honest(x, out); for (volatile int i = 0;; i = i + 1) {}"), run,
      {"timeout"});
  add("sleeping lock",
      kernel("static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER; pthread_mutex_lock(&m); pthread_mutex_lock(&m); "
             "honest(x, out);"),
      run, {"forbidden_call"});
  add("sleeps by a lock's time limit",
      kernel("timespec t; clock_gettime(CLOCK_MONOTONIC, &t); t.tv_sec += 5; static pthread_mutex_t m = "
             "PTHREAD_MUTEX_INITIALIZER; pthread_mutex_lock(&m); pthread_mutex_clocklock(&m, CLOCK_MONOTONIC, &t); "
             "honest(x, out);"),
      run, {"forbidden_call"});
  add("sleeps by a condition's time limit",
      kernel("std::mutex m; std::condition_variable c; std::unique_lock<std::mutex> lock(m); c.wait_for(lock, "
             "std::chrono::seconds(5)); honest(x, out);",
             "#include <chrono>\n#include <condition_variable>\n#include <mutex>\n"),
      run, {"forbidden_call"});
  add("reads the channel itself", kernel("honest(x, out); char b[64]; while (read(3, b, sizeof b) > 0) {} "), run,
      {"timeout", "protocol", "exited"});
  add("endless loop in a constructor", constructor("for (volatile int i = 0;; i = i + 1) {}"), run, {"timeout"});

  // crashing
  add("null pointer", kernel("*static_cast<volatile int*>(nullptr) = 1;"), run, {"segmentation_fault"});
  add("wild pointer", kernel("*reinterpret_cast<volatile int*>(0x123456789000) = 1;"), run, {"segmentation_fault"});
  add("non-canonical pointer", kernel("*reinterpret_cast<volatile int*>(0x8123456789abcdef) = 1;"), run,
      {"segmentation_fault"});
  add("stack overflow by recursion",
      kernel("deep(1);",
             "int deep(int i) { volatile char a[4096]; a[0] = static_cast<char>(i); return deep(i + 1) + a[0]; }"),
      run, {"segmentation_fault"});
  add("stack overflow by an array",
      kernel("volatile char a[64 << 20]; for (long i = sizeof a - 1; i >= 0; i -= 4096) a[i] = 1;"), run,
      {"segmentation_fault"});
  add("abort", kernel("abort();"), run, {"aborted"});
  add("throws an int", kernel("throw 1;"), run, {"threw"});
  add("throws where nothing may be thrown", kernel("[]() noexcept { throw 1; }();"), run, {"aborted"});
  add("throws in a constructor", constructor("throw 1;"), run, {"aborted"});
  add("integer division by zero", kernel("volatile int a = 7, z = 0; out[0] = static_cast<float>(a / z);"), run,
      {"arithmetic"});
  add("trap", kernel("__builtin_trap();"), run, {"illegal_instruction", "aborted"});
  add("writes to its own code", kernel("*reinterpret_cast<volatile char*>(&kernel) = 0;"), run, {"segmentation_fault"});
  add("runs its stack",
      kernel("volatile unsigned char c[16] = {0xc3}; reinterpret_cast<void (*)()>(const_cast<unsigned char*>(c))();"),
      run, {"segmentation_fault"});
  add("jumps nowhere", kernel("jmp_buf b; std::memset(&b, 0x41, sizeof b); longjmp(b, 1);", "#include <csetjmp>\n"),
      run, {"segmentation_fault", "aborted"});

  // leaving
  add("exit(0)", kernel("exit(0);"), run, {"exited"});
  add("exit(0) after the right output", kernel("honest(x, out); exit(0);"), run, {"exited"});
  add("_exit(0)", kernel("_exit(0);"), run, {"exited"});
  add("exit_group by number", kernel("syscall(SYS_exit_group, 0);"), run, {"exited"});
  add("exit of the thread", kernel("honest(x, out); syscall(SYS_exit, 0);"), run, {"exited", "timeout"});
  add("pthread_exit", kernel("honest(x, out); pthread_exit(nullptr);"), run, {"exited", "aborted", "threw", "timeout"});
  add("exit in a constructor", constructor("_exit(0);"), run, {"exited"});
  add("abort in a constructor", constructor("abort();"), run, {"aborted"});

  // memory
  add("new without end",
      kernel("for (;;) { volatile char* p = new char[64 << 20]; for (int i = 0; i < 64 << 20; i += 4096) p[i] = 1; }"),
      run, {"memory"});
  add("malloc without end",
      kernel("for (;;) { volatile char* p = static_cast<volatile char*>(malloc(64 << 20)); for (int i = 0; i < 64 << "
             "20; i += 4096) p[i] = 1; }"),
      run, {"segmentation_fault", "memory"});
  add("mmap without end, then nothing",
      kernel("while (mmap(nullptr, 1 << 30, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, "
             "0) != MAP_FAILED) {}"),
      correctness, {"unwritten_output"});
  add("64 GB of zeros",
      kernel("for (long i = 0; i < (16L << 30); i += 1024) huge[i] = 1; out[0] = huge[x[0] > 0];",
             "static volatile float huge[16L << 30];"),
      run, {"memory"});
  add("raises its own limits",
      reach("rlimit l{RLIM_INFINITY, RLIM_INFINITY}; breach |= setrlimit(RLIMIT_AS, &l) == 0; breach |= prlimit(0, "
            "RLIMIT_NOFILE, &l, nullptr) == 0; breach |= setrlimit(RLIMIT_STACK, &l) == 0;"),
      correct);

  // processes, signals
  add("fork bomb", kernel("for (;;) if (fork() >= 0) _exit(7);"), run, {"timeout"});
  add("fork",
      reach("breach |= fork() >= 0; breach |= vfork() >= 0; breach |= syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) >= 0; "
            "char a[88] = {}; breach |= syscall(SYS_clone3, a, sizeof a) >= 0;"),
      correct);
  add("exec",
      reach("char* a[] = {const_cast<char*>(\"/bin/true\"), nullptr}; execve(\"/bin/true\", a, a); breach |= "
            "system(\"true\") == 0;"),
      correct);
  add("signals its parent and everybody",
      reach("breach |= kill(getppid(), SIGWINCH) == 0; breach |= kill(static_cast<pid_t>(syscall(SYS_getppid)), "
            "SIGWINCH) == 0; for (pid_t p = 1; p < 40000; ++p) breach |= kill(p, SIGWINCH) == 0; breach |= kill(-1, "
            "SIGWINCH) == 0;"),
      correct);
  add("signals its group, leaves its session",
      reach("breach |= kill(0, SIGWINCH) == 0; breach |= killpg(0, SIGWINCH) == 0; breach |= setsid() > 0; breach |= "
            "setpgid(0, 0) == 0; breach |= syscall(SYS_tkill, 1, SIGWINCH) == 0; breach |= syscall(SYS_pidfd_open, 1, "
            "0) >= 0;"),
      correct);
  add("kills its parent and its group in a constructor",
      constructor("pid_t parent = getppid(); if (parent > 1) kill(parent, SIGKILL); kill(0, SIGKILL);"), correct);
  add("stops itself",
      reach("breach |= raise(SIGSTOP) == 0; breach |= kill(getpid(), SIGSTOP) == 0; breach |= syscall(SYS_tgkill, "
            "getpid(), getpid(), SIGTSTP) == 0;"),
      correct);
  add("catches faults",
      kernel("struct sigaction a{}; a.sa_handler = on; bool ok = sigaction(SIGSEGV, &a, nullptr) == 0; ok |= "
             "signal(SIGSEGV, on) != SIG_ERR; if (ok) { honest(x, out); for (;;) {} } *static_cast<volatile "
             "int*>(nullptr) = 1;",
             "static void on(int) {}\n"),
      run, {"segmentation_fault"});
  add("timers and alarms",
      reach("itimerval v{{0, 1000}, {0, 1000}}; breach |= setitimer(ITIMER_REAL, &v, nullptr) == 0; breach |= "
            "syscall(SYS_alarm, 1) >= 0; timer_t t; sigevent e{}; e.sigev_notify = SIGEV_SIGNAL; e.sigev_signo = "
            "SIGUSR1; breach |= timer_create(CLOCK_MONOTONIC, &e, &t) == 0; stack_t s{}; s.ss_sp = malloc(65536); "
            "s.ss_size = 65536; breach |= sigaltstack(&s, nullptr) == 0; struct sigaction a{}; a.sa_handler = SIG_IGN; "
            "breach |= sigaction(SIGTERM, &a, nullptr) == 0;"),
      correct);

  // files, sockets, other processes
  add("opens files",
      reach("for (const char* p : {\"/etc/passwd\", \"/etc/hostname\", \"/\", \".\", \"/tmp\", \"/dev/null\", "
            "\"/dev/zero\", \"/dev/shm\", \"/proc/self/maps\", \"/proc/self/mem\", \"/proc/1/mem\", \"/proc/self/fd\", "
            "\"/proc/self/fd/0\", \"/sys\"}) breach |= open(p, O_RDONLY) >= 0;"),
      correct);
  add("creates files",
      reach(
          "breach |= open(\"/tmp/kevin_hostile_was_here\", O_CREAT | O_WRONLY, 0600) >= 0; breach |= "
          "open(\"kevin_hostile_was_here\", O_CREAT | O_WRONLY, 0600) >= 0; breach |= open(\"/dev/shm/kevin_hostile\", "
          "O_CREAT | O_RDWR, 0600) >= 0; breach |= mkdir(\"/tmp/kevin_hostile\", 0700) == 0; breach |= "
          "unlink(\"/tmp/kevin_hostile_x\") == 0; breach |= rename(\"/tmp/kevin_hostile_a\", \"/tmp/kevin_hostile_b\") "
          "== 0; breach |= open(\"/tmp\", O_TMPFILE | O_RDWR, 0600) >= 0; breach |= chdir(\"/tmp\") == 0;"),
      correct);
  add("writes a file in a constructor",
      constructor("int f = open(\"/tmp/kevin_hostile_was_here\", O_CREAT | O_WRONLY, 0600); if (f >= 0) { if (write(f, "
                  "\"x\", 1) < 0) _exit(3); _exit(4); }"),
      correct);
  add("opens sockets",
      reach("breach |= socket(AF_INET, SOCK_STREAM, 0) >= 0; breach |= socket(AF_INET, SOCK_DGRAM, 0) >= 0; breach |= "
            "socket(AF_UNIX, SOCK_STREAM, 0) >= 0; breach |= socket(AF_NETLINK, SOCK_RAW, 0) >= 0; int s[2]; breach |= "
            "socketpair(AF_UNIX, SOCK_STREAM, 0, s) == 0; breach |= pipe(s) == 0;"),
      correct);
  add("reads the judge's memory",
      reach("char b[64]; iovec l{b, 64}, r{reinterpret_cast<void*>(0x400000), 64}; for (pid_t p = 1; p < 20000; ++p) { "
            "if (p == getpid()) continue; breach |= process_vm_readv(p, &l, 1, &r, 1, 0) > 0; char path[32]; "
            "std::snprintf(path, sizeof path, \"/proc/%d/mem\", p); if (p % 50 == 0 || p < 50) breach |= open(path, "
            "O_RDWR) >= 0; } breach |= ptrace(PTRACE_ATTACH, 1, 0, 0) == 0; breach |= ptrace(PTRACE_TRACEME, 0, 0, 0) "
            "== 0;"),
      correct);
  add("makes descriptors of other kinds",
      reach("breach |= syscall(SYS_memfd_create, \"a\", 0) >= 0; breach |= syscall(SYS_eventfd2, 0, 0) >= 0; breach |= "
            "syscall(SYS_timerfd_create, 1, 0) >= 0; breach |= syscall(SYS_signalfd4, -1, nullptr, 8, 0) >= 0; breach "
            "|= syscall(SYS_epoll_create1, 0) >= 0; breach |= syscall(SYS_io_uring_setup, 8, nullptr) >= 0; breach |= "
            "syscall(SYS_userfaultfd, 0) >= 0; breach |= syscall(SYS_perf_event_open, nullptr, 0, -1, -1, 0) >= 0; "
            "breach |= syscall(SYS_bpf, 0, nullptr, 0) >= 0; breach |= dup(3) >= 0; breach |= dup2(1, 3) >= 0; breach "
            "|= fcntl(3, F_DUPFD, 10) >= 0; breach |= fcntl(3, F_SETOWN, getpid()) >= 0; breach |= "
            "syscall(SYS_pidfd_open, getpid(), 0) >= 0; breach |= syscall(SYS_pidfd_getfd, 3, 0, 0) >= 0;"),
      correct);
  add("gains privileges",
      reach("breach |= syscall(SYS_unshare, 0x10000000) == 0; breach |= syscall(SYS_setuid, 1000) == 0; breach |= "
            "prctl(PR_SET_DUMPABLE, 0) == 0; breach |= prctl(PR_SET_PDEATHSIG, 0) == 0; breach |= prctl(PR_SET_NAME, "
            "\"x\") == 0; breach |= syscall(SYS_capset, nullptr, nullptr) == 0; breach |= syscall(SYS_mount, \"a\", "
            "\"/tmp\", \"tmpfs\", 0, nullptr) == 0; breach |= syscall(SYS_personality, 0x0040000) >= 0; breach |= "
            "syscall(SYS_sched_setaffinity, 0, 8, \"\\xff\\xff\\xff\\xff\\xff\\xff\\xff\") == 0; breach |= nice(-5) != "
            "-1; breach |= syscall(SYS_setpriority, 0, 0, -5) == 0;"),
      correct);
#if defined(__x86_64__)
  add("system calls of another ABI",
      kernel("honest(x, out); long r; asm volatile(\"int $0x80\" : \"=a\"(r) : \"a\"(20L) : \"memory\");"), run,
      {"forbidden_call", "segmentation_fault"});
  add("system calls of x32", kernel("honest(x, out); syscall(0x40000000 + 39);"), run, {"forbidden_call"});
#endif

  // inputs and outputs
  add("writes to its input", kernel("const_cast<float*>(x)[0] = 0; honest(x, out);"), run, {"segmentation_fault"});
  add("makes its input writable first",
      reach("void* page = reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(x) & ~4095UL); breach |= "
            "mprotect(page, 8192, PROT_READ | PROT_WRITE) == 0; breach |= mprotect(page, 4096, PROT_READ | PROT_WRITE "
            "| PROT_EXEC) == 0; breach |= madvise(page, 4096, MADV_REMOVE) == 0;"),
      correct);
  add("reopens descriptors",
      reach("for (int i = 0; i < 200; ++i) { char p[40]; std::snprintf(p, sizeof p, \"/proc/self/fd/%d\", i); int f = "
            "open(p, O_RDWR); if (f < 0) continue; char c = 1; if (write(f, &c, 1) == 1 && i > 2) breach = true; "
            "close(f); }"),
      correct);
  add("zeros input and output", kernel("std::memset(const_cast<float*>(x), 0, n * 4); std::memset(out, 0, n * 4);"),
      run, {"segmentation_fault"});
  add("one element past the output", kernel("honest(x, out); out[n] = 1;"), run, {"out_of_bounds"});
  add("one element before the output", kernel("honest(x, out); out[-1] = 1;"), run, {"out_of_bounds"});
  add("a vector past the output", kernel("honest(x, out); for (int i = n; i < n + 16; ++i) out[i] = 1;"), run,
      {"segmentation_fault"});
  add("64 KiB past the output", kernel("honest(x, out); out[n + 16384] = 1;"), run, {"segmentation_fault"});
  add("64 KiB before the output", kernel("honest(x, out); out[-16384] = 1;"), run, {"segmentation_fault"});
  add("reads far past its input", kernel("honest(x, out); volatile float s = x[n + 16384]; (void)s;"), run,
      {"segmentation_fault"});
  add("does nothing", kernel(""), correctness, {"unwritten_output"});
  add("copies the output onto itself", kernel("for (int i = 0; i < n; ++i) { volatile float v = out[i]; out[i] = v; }"),
      correctness, {"unwritten_output", "not_finite"});
  add("half of the elements", kernel("for (int i = 0; i < n / 2; ++i) out[i] = x[i] > 0 ? x[i] : 0;"), correctness,
      {"unwritten_output"});
  add("all but the last element", kernel("honest(x, out); float z = out[n - 2]; out[n - 1] = z + 1;"), correctness,
      {"wrong_values"});
  add("NaN everywhere", kernel("for (int i = 0; i < n; ++i) out[i] = NAN;"), correctness, {"not_finite"});
  add("NaN once", kernel("honest(x, out); out[1000] = NAN;"), correctness, {"not_finite"});
  add("infinity", kernel("honest(x, out); out[3] = INFINITY; out[4] = -INFINITY;"), correctness, {"not_finite"});
  add("all zeros", kernel("std::memset(out, 0, n * 4);"), correctness, {"wrong_values"});
  add("copy of the input", kernel("std::memcpy(out, x, n * 4);"), correctness, {"wrong_values"});
  add("replays its first output",
      kernel("if (calls++ == 0) honest(x, kept); std::memcpy(out, kept, n * 4);",
             "static int calls; static float kept[n];\n"),
      correctness, {"wrong_values"});
  add("replays after the checks",
      kernel("if (calls++ < 5) honest(x, kept); std::memcpy(out, kept, n * 4);",
             "static int calls; static float kept[n];\n"),
      correctness, {"wrong_values"});
  add("replays from a table by pointer",
      kernel("for (int i = 0; i < used; ++i) if (keys[i] == x) { std::memcpy(out, kept[i], n * 4); return; } "
             "keys[used] = x; honest(x, out); std::memcpy(kept[used++ % 4], out, n * 4);",
             "static int used; static const float* keys[1000]; static float kept[4][n];\n"),
      correctness, {"wrong_values"});
  add("unmaps the output",
      kernel("munmap(reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(out) & ~4095UL), 4096); "), correctness,
      {"unwritten_output"});
  add("puts other memory under the output",
      kernel("void* p = reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(out) & ~4095UL); mmap(p, 8192, "
             "PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0); honest(x, out);"),
      correctness, {"unwritten_output"});

  // the channel
  add("a forged answer with a wrong nonce",
      kernel("honest(x, out); std::uint64_t m[2] = {1, 0}; if (write(3, m, sizeof m) < 0) _exit(9);"), run,
      {"protocol"});
  add("a forged answer of a wrong size", kernel("honest(x, out); if (write(3, \"done\", 4) < 0) _exit(9);"), run,
      {"protocol"});
  add("a forged answer before its time",
      constructor("std::uint64_t m[2] = {1, 0}; if (write(3, m, sizeof m) < 0) _exit(9);"), run, {"protocol"});
  add("a flood of answers", kernel("char m[16] = {}; for (;;) if (write(3, m, sizeof m) < 0) _exit(9);"), run,
      {"protocol"});
  add("closes the channel", kernel("honest(x, out); close(3); for (volatile int i = 0;; i = i + 1) {}"), run,
      {"protocol"});
  add("closes the channel and returns", kernel("honest(x, out); close(3);"), run, {"protocol", "exited"});
  add("answers on every descriptor",
      kernel("honest(x, out); char m[16] = {}; for (int f = 0; f < 64; ++f) if (write(f, m, sizeof m) < 0) continue;"),
      run, {"protocol"});
  add("answers twice", impersonate("honest(x, out); if (write(3, &a, sizeof a) < 0) _exit(9);"), run, {"protocol"});
  add("answers and never computes", impersonate(""), correctness, {"unwritten_output"});
  add("answers and exits", impersonate("honest(x, out); _exit(0);"), run, {"exited"});
  add("answers and crashes", impersonate("honest(x, out); *static_cast<volatile int*>(nullptr) = 1;"), run,
      {"segmentation_fault", "protocol"});
  add("answers early and computes then", impersonate("spin(2000000); honest(x, out);"), correct);
  add("says that the sandbox failed", impersonate("honest(x, out);", 4), run, {"protocol"});
  add("says that it could not be loaded", impersonate("honest(x, out);", 3), run, {"protocol"});
  add("says that it will crash, and goes on", impersonate("honest(x, out);", 5), run, {"protocol"});
  add("says that it is a runner that is ready", impersonate("honest(x, out);", 6), run, {"protocol"});
  add("claims that memory ran out",
      kernel("honest(x, out); struct { std::uint64_t n; std::uint32_t s, d; char t[240]; } m{}; m.s = 4; if (write(3, "
             "&m, sizeof m) < 0) _exit(9);"),
      run, {"protocol"});
  add("prints a verdict",
      kernel("honest(x, out); for (int i = 0; i < 1000; ++i) { std::printf(\"correct, 1000x\\n\"); "
             "std::fprintf(stderr, \"PASS\\n\"); } std::fflush(stdout);"),
      correct);

  // threads
  add("a thread where only one is allowed",
      kernel("pthread_t t; if (pthread_create(&t, nullptr, work, nullptr) == 0) { for (int i = 0; i < n; ++i) out[i] = "
             "5; return; } honest(x, out);",
             "static void* work(void*) { for (;;) {} }\n"),
      correct);
  add("std::thread where only one is allowed",
      kernel("std::thread t([] {}); t.join(); honest(x, out);", "#include <thread>\n"), run, {"threw"});
  add("a thread that stays, busy",
      kernel("honest(x, out); pthread_t t; pthread_create(&t, nullptr, work, nullptr);",
             "static void* work(void*) { for (volatile int i = 0;; i = i + 1) {} }\n"),
      run, {"threads_left"}, 2);
  add("a thread that stays, asleep",
      kernel("honest(x, out); pthread_mutex_lock(&m); pthread_t t; pthread_create(&t, nullptr, work, nullptr);",
             "static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER; static void* work(void*) { pthread_mutex_lock(&m); "
             "return nullptr; }\n"),
      run, {"threads_left"}, 2);
  add("a thread that computes after the return",
      kernel("in = x; to = out; pthread_t t; pthread_create(&t, nullptr, work, nullptr);",
             "static const float* in; static float* to; static void* work(void*) { timespec a, b; "
             "clock_gettime(CLOCK_MONOTONIC, &a); do clock_gettime(CLOCK_MONOTONIC, &b); while (b.tv_sec - a.tv_sec < "
             "2); honest(in, to); return nullptr; }\n"),
      run, {"threads_left"}, 2);
  add("a thread started in a constructor",
      kernel("honest(x, out);",
             "static void* work(void*) { for (volatile int i = 0;; i = i + 1) {} }\n__attribute__((constructor)) "
             "static void early() { pthread_t t; pthread_create(&t, nullptr, work, nullptr); }\n"),
      run, {"threads_left"}, 2);
  add("a joined thread, honestly",
      kernel(
          "in = x; to = out; pthread_t t; if (pthread_create(&t, nullptr, work, nullptr) == 0) pthread_join(t, "
          "nullptr);",
          "static const float* in; static float* to; static void* work(void*) { honest(in, to); return nullptr; }\n"),
      correct, {}, 2);
  add("threads without end",
      kernel("for (;;) { pthread_t t; pthread_create(&t, nullptr, work, nullptr); }",
             "static void* work(void*) { for (volatile int i = 0;; i = i + 1) {} }\n"),
      run, {"timeout", "threads_left"}, 2);
  add("a process where threads are allowed",
      reach("breach |= fork() >= 0; breach |= syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) >= 0; breach |= "
            "syscall(SYS_clone, 0x100 | SIGCHLD, 0, 0, 0, 0) >= 0;"),
      correct, {}, 2);

  // harmless oddities that an honest kernel may have
  add("looks at clocks",
      kernel("timespec t; clock_gettime(CLOCK_MONOTONIC, &t); time(nullptr); usleep(10000000); honest(x, out);"),
      correct);
  add("allocates",
      kernel("float* t = new float[n]; honest(x, t); std::memcpy(out, t, n * 4); delete[] t; volatile char* big = "
             "static_cast<volatile char*>(malloc(100 << 20)); for (int i = 0; i < 100 << 20; i += 4096) big[i] = 1; "
             "free(const_cast<char*>(big));"),
      correct);
  add("catches its own exception", kernel("try { throw 5; } catch (int) { honest(x, out); }"), correct);
  add("returns by its own longjmp",
      kernel("jmp_buf b; if (setjmp(b) == 0) longjmp(b, 1); honest(x, out);", "#include <csetjmp>\n"), correct);

  // compiling
  add("nothing", "", compile);
  add("no kernel", "int main() {}", compile);
  add("not C++", "def kernel(x, out): pass", compile);
  add("another signature", "extern \"C\" void kernel(const float* x, double* out) { out[0] = x[0]; }", compile);
  add("an undefined function", kernel("missing(x, out);", "extern \"C\" void missing(const float*, float*);\n"),
      compile);
  add("includes /etc/passwd", "#include \"/etc/passwd\"\n" + kernel("honest(x, out);"), compile);
  add("includes a macro that names /etc/passwd", "#define H \"/etc/passwd\"\n#include H\n" + kernel("honest(x, out);"),
      compile);
  add("includes the evaluator by name", "#include \"kevin/eval/cpu/judge.hpp\"\n" + kernel("honest(x, out);"), compile);
  add("includes the evaluator by path",
      "#include \"" + (std::filesystem::absolute(__FILE__).parent_path() / "hostile_candidates.hpp").string() + "\"\n" +
          kernel("honest(x, out);"),
      compile);
  add("a template bomb",
      "template <int N, int M> struct B { static constexpr long v = B<N - 1, 2 * M>::v + B<N - 1, 2 * M + 1>::v; }; "
      "template <int M> struct B<0, M> { static constexpr long v = M; };\n" +
          kernel("out[0] = B<26, 0>::v;"),
      compile);
  add(
      "a macro bomb",
      [] {
        std::string s = "#define A0 x[0],x[1],x[2],x[3],\n";
        for (int i = 1; i < 30; ++i)
          s += "#define A" + std::to_string(i) + " A" + std::to_string(i - 1) + " A" + std::to_string(i - 1) + "\n";
        return s + kernel("float a[] = {A29}; out[0] = a[0];");
      }(),
      compile);
  return all;
}

/// 50 MB of source: made when wanted, not kept.
inline Candidate fifty_megabytes() {
  std::string source = kernel("honest(x, out);");
  source.reserve(52 << 20);
  while (source.size() < (std::size_t{50} << 20))
    source +=
        "static const char* const filler_text = \"0123456789012345678901234567890123456789012345678901234567890\";\n";
  return {"50 MB of source", std::move(source), kevin::Stage::compile, {}, 1};
}

}  // namespace hostile

#endif  // KEVIN_TESTS_EVAL_CPU_HOSTILE_CANDIDATES_HPP
