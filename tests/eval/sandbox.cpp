#include "kevin/eval/sandbox.hpp"

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <dlfcn.h>
#include <doctest/doctest.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>

#include "kevin/eval/process.hpp"

namespace {

using namespace kevin::eval;
namespace fs = std::filesystem;

struct End {
  bool signaled;
  int code;
};

/// Runs `body` in a forked child behind the runner's walls; its result is the exit code. Works in a doctest binary
/// because nothing in the child uses doctest.
template <class Body>
End confined(int threads, Body body, bool files = true) {
  const LandlockRuleset rules = landlock({}, {});
  const pid_t pid = ::fork();
  REQUIRE(pid >= 0);
  if (pid == 0) {
    for (const int number : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTERM})
      ::signal(number, SIG_DFL);  // doctest's
    int code = 120;
    try {
      const auto filter = runner_seccomp(threads, ::getpid());
      if (files) rules.restrict_self();
      install_seccomp(filter);
      code = body();
    } catch (...) {
      code = 121;
    }
    ::_exit(code);
  }
  int status = 0;
  REQUIRE(::waitpid(pid, &status, 0) == pid);
  return {WIFSIGNALED(status), WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status)};
}

template <class Body>
bool refused(Body body, int error = EPERM) {
  const End end = confined(1, [&] {
    errno = 0;
    const long result = static_cast<long>(body());
    if (result != -1) return 1;
    return errno == error ? 0 : errno;
  });
  INFO("exit code (1 = it worked, else errno) " << end.code);
  CHECK_FALSE(end.signaled);
  CHECK(end.code == 0);
  return !end.signaled && end.code == 0;
}

/// A shared object made by the system's compiler, in memory.
int shared_object(const std::string& source) {
  const fs::path folder = fs::temp_directory_path() / ("kevin-test-" + std::to_string(::getpid()));
  fs::create_directories(folder);
  std::ofstream(folder / "a.cpp") << source;
  SpawnOptions options;
  options.program = "/bin/sh";
  options.arguments = {"-c", "c++ -std=c++20 -O1 -shared -fPIC -pthread -o a.so a.cpp"};
  options.environment = {"PATH=/usr/local/bin:/usr/bin:/bin"};
  options.directory = folder;
  REQUIRE(spawn(options).wait() == ExitStatus{false, 0});
  std::ifstream in(folder / "a.so", std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(in)), {});
  const int fd = static_cast<int>(::memfd_create("object", MFD_CLOEXEC));
  REQUIRE(::write(fd, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
  fs::remove_all(folder);
  return fd;
}

}  // namespace

TEST_CASE("this machine can confine candidates") { CHECK_NOTHROW(require_sandbox()); }

TEST_CASE("under the runner's walls honest compute code works") {
  const int fd = shared_object(R"(
    #include <cmath>
    #include <cstdlib>
    #include <mutex>
    #include <condition_variable>
    #include <stdexcept>
    #include <string>
    #include <thread>
    #include <vector>
    #include <algorithm>
    static std::vector<double> table(1000, 2.0);
    thread_local int per_thread = 3;
    extern "C" int exceptions() { try { throw std::runtime_error("x"); } catch (const std::exception& e) { return e.what()[0] == 'x'; } }
    extern "C" int memory() {
      std::vector<float> v(64 << 20, 1.0f);  // far above malloc's mmap threshold
      std::vector<std::string> s(1000, std::string(100, 'a'));
      void* p = std::aligned_alloc(64, 1 << 20); std::free(p);
      v.resize(80 << 20);
      std::sort(table.begin(), table.end());
      return v[5] == 1.0f && s[999].size() == 100 && std::sqrt(table[3]) > 1.4;
    }
    extern "C" int threads() {
      if (std::thread::hardware_concurrency() == 0) return 0;
      std::mutex m; std::condition_variable c; int done = 0;
      std::vector<std::thread> all;
      for (int i = 0; i < 4; ++i) all.emplace_back([&] { std::vector<int> local(100000, ++per_thread); std::lock_guard l(m); done += local[7] == 4; c.notify_one(); });
      { std::unique_lock l(m); c.wait(l, [&] { return done == 4; }); }
      for (auto& t : all) t.join();
      return 1;
    }
    extern "C" int no_threads() { try { std::thread t([] {}); t.join(); return 0; } catch (const std::system_error&) { return 1; } }
    extern "C" void aborts() { std::abort(); }
    extern "C" void terminates() noexcept { throw 1; }
  )");
  // as in the runner, libraries are loaded before the walls go up
  for (const char* library : {"libstdc++.so.6", "libm.so.6", "libgcc_s.so.1"})
    REQUIRE(::dlopen(library, RTLD_NOW) != nullptr);
  const auto call = [fd](const char* name) {
    void* handle = ::dlopen(("/proc/self/fd/" + std::to_string(fd)).c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
      std::fputs(::dlerror(), stderr);
      return 2;
    }
    auto* function = reinterpret_cast<int (*)()>(::dlsym(handle, name));
    return function ? (function() == 1 ? 0 : 1) : 3;
  };
  for (const char* name : {"exceptions", "memory", "no_threads"}) {
    CAPTURE(name);
    const End end = confined(1, [&] { return call(name); });
    CHECK_FALSE(end.signaled);
    CHECK(end.code == 0);
  }
  for (const char* name : {"exceptions", "threads"}) {
    CAPTURE(name);
    const End end = confined(4, [&] { return call(name); });
    CHECK_FALSE(end.signaled);
    CHECK(end.code == 0);
  }
  const End aborted = confined(1, [&] { return call("aborts"); });
  CHECK(aborted.signaled);
  CHECK(aborted.code == SIGABRT);
  const End terminated = confined(1, [&] {
    ::close(2);  // the library's "terminate called" message
    return call("terminates");
  });
  CHECK(terminated.signaled);
  CHECK(terminated.code == SIGABRT);
  ::close(fd);
}

TEST_CASE("under the runner's walls nothing can be waited for but a read and, with threads, a lock") {
  const timespec moment{0, 1000};
  CHECK(refused([&] { return ::syscall(SYS_nanosleep, &moment, nullptr); }));
  CHECK(refused([&] { return ::syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &moment, nullptr); }));
  CHECK(refused([] { return ::poll(nullptr, 0, 1); }));
  CHECK(refused([&] { return ::ppoll(nullptr, 0, &moment, nullptr); }));
  CHECK(refused([&] { return ::pselect(0, nullptr, nullptr, nullptr, &moment, nullptr); }));
  CHECK(refused([] { return ::syscall(SYS_epoll_create1, 0); }));
  CHECK(refused([] { return ::pause(); }));
  CHECK(refused([] { return ::syscall(SYS_timerfd_create, CLOCK_MONOTONIC, 0); }));
  CHECK(refused([] { return ::syscall(SYS_eventfd2, 0, 0); }));
  CHECK(refused([] {
    const itimerval soon{{0, 0}, {0, 1000}};
    return ::syscall(SYS_setitimer, ITIMER_REAL, &soon, nullptr);
  }));
  CHECK(refused([] {
    timer_t timer{};
    return ::syscall(SYS_timer_create, CLOCK_MONOTONIC, nullptr, &timer);
  }));
  CHECK(refused([] {
    siginfo_t info{};
    return ::waitid(P_ALL, 0, &info, WEXITED);
  }));
  CHECK(refused([] {
    struct sigaction action {};
    action.sa_handler = SIG_IGN;
    return ::sigaction(SIGSEGV, &action, nullptr);
  }));
}

TEST_CASE("under the runner's walls a single thread that waits in futex, in any of its forms, is killed") {
  static int word = 0;
  const auto futex = [](long operation) {
    const timespec moment{0, 1000};
    return static_cast<int>(::syscall(SYS_futex, &word, operation, 0, &moment, &word, ~0U));
  };
  for (const int waits : {FUTEX_WAIT, FUTEX_WAIT_BITSET, FUTEX_WAIT_REQUEUE_PI, FUTEX_LOCK_PI, 13 /* LOCK_PI2 */}) {
    for (const long flags : {0L, long{FUTEX_PRIVATE_FLAG}, long{FUTEX_CLOCK_REALTIME}, 1L << 40}) {
      CAPTURE(waits);
      CAPTURE(flags);
      const End end = confined(1, [&] { return futex(waits | flags); });
      CHECK(end.signaled);
      CHECK(end.code == SIGSYS);
    }
  }
  for (const long number : {449L /* futex_waitv */, 455L /* futex_wait */})
    CHECK(confined(1, [=] { return static_cast<int>(::syscall(number, 0, 0, 0, 0, 0)); }).code == SIGSYS);
  for (const int wakes : {FUTEX_WAKE, FUTEX_WAKE_BITSET})
    CHECK(confined(1, [&] { return futex(wakes | FUTEX_PRIVATE_FLAG); }).code == 0);
  CHECK(confined(2, [&] { return futex(FUTEX_WAIT) == -1 && errno == ETIMEDOUT ? 0 : 1; }).code == 0);
}

TEST_CASE("under the runner's walls no process can be made, replaced, looked at or hit") {
  const pid_t parent = ::getpid();
  CHECK(refused([] { return ::fork(); }, EAGAIN));
  CHECK(refused([] { return ::syscall(SYS_vfork); }));
  CHECK(refused([] { return ::syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr); }, EAGAIN));
  CHECK(refused(
      [] {
        std::array<std::uint64_t, 11> arguments{};
        return ::syscall(SYS_clone3, arguments.data(), sizeof arguments);
      },
      ENOSYS));
  CHECK(refused([] {
    char* const none[] = {nullptr};
    return ::execve("/bin/true", none, none);
  }));
  CHECK(refused([=] { return ::kill(parent, SIGKILL); }));
  CHECK(refused([] { return ::kill(0, SIGKILL); }));
  CHECK(refused([=] { return ::syscall(SYS_tgkill, parent, parent, SIGABRT); }));
  CHECK(refused([] { return ::syscall(SYS_tgkill, ::getpid(), ::gettid(), SIGSTOP); }));
  CHECK(refused([=] { return ::syscall(SYS_pidfd_open, parent, 0); }));
  CHECK(refused([=] { return ::ptrace(PTRACE_ATTACH, parent, nullptr, nullptr); }));
  CHECK(refused([=] { return ::syscall(SYS_process_vm_readv, parent, nullptr, 0, nullptr, 0, 0); }));
  CHECK(refused([=] { return ::syscall(SYS_setpgid, 0, parent); }));
  CHECK(refused([] { return ::syscall(SYS_setsid); }));
  CHECK(refused([] { return ::prctl(PR_SET_PDEATHSIG, 0); }));
  CHECK(refused([] {
    rlimit more{RLIM_INFINITY, RLIM_INFINITY};
    return ::setrlimit(RLIMIT_AS, &more);
  }));
  CHECK(confined(1, [] {
          rlimit limit{};
          return ::getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur > 0 ? 0 : 1;
        }).code == 0);
  // with threads allowed, a clone that is not a thread stays refused
  const End end = confined(4, [] {
    return ::syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr) == -1 && errno == EPERM ? 0 : 1;
  });
  CHECK(end.code == 0);
}

TEST_CASE("under the runner's walls no file, socket or kernel service can be reached") {
  for (const char* path : {"/etc/passwd", "/proc/self/maps", "/proc/self/mem", "/dev/null", "/dev/shm", ".", "/"}) {
    CAPTURE(path);
    CHECK(refused([=] { return ::open(path, O_RDONLY); }, EACCES));
  }
  CHECK(refused([] { return ::open("/tmp/kevin-never", O_CREAT | O_WRONLY, 0600); }, EACCES));
  CHECK_FALSE(fs::exists("/tmp/kevin-never"));
  CHECK(refused([] { return ::unlink("/tmp/x"); }));
  CHECK(refused([] { return ::socket(AF_INET, SOCK_STREAM, 0); }));
  CHECK(refused([] { return ::socket(AF_UNIX, SOCK_DGRAM, 0); }));
  CHECK(refused([] { return ::syscall(SYS_memfd_create, "x", 0); }));
  CHECK(refused([] {
    int ends[2];
    return ::pipe(ends);
  }));
  CHECK(refused([] { return ::dup(0); }));
  CHECK(refused([] { return ::syscall(SYS_io_uring_setup, 1, nullptr); }));
  CHECK(refused([] { return ::syscall(SYS_bpf, 0, nullptr, 0); }));
  CHECK(refused([] { return ::syscall(SYS_perf_event_open, nullptr, 0, 0, 0, 0); }));
  CHECK(refused([] { return ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, nullptr); }));
  CHECK(refused([] { return ::syscall(SYS_unshare, CLONE_NEWUSER); }));
  CHECK(refused([] { return ::syscall(SYS_shmget, 1, 4096, 0600); }));
  CHECK(refused([] { return ::syscall(100000); }));  // a call that no kernel has yet
}

#if defined(__x86_64__)
TEST_CASE("a system call of a foreign ABI kills the process") {
  const auto x32 = [] { return static_cast<int>(::syscall(0x40000000 | SYS_getpid)); };
  const End end = confined(1, x32);
  CHECK(end.signaled);
  CHECK(end.code == SIGSYS);
  const auto i386 = [] {
    long result = 20;  // getpid of i386
    __asm__ volatile("int $0x80" : "+a"(result)::"memory");
    return result > 0 ? 0 : 1;
  };
  const End old = confined(1, i386);
  CHECK(old.signaled);
}
#endif

TEST_CASE("the compiler's walls let processes and pipes be and refuse what only an intruder wants") {
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  REQUIRE(pid >= 0);
  if (pid == 0) {
    install_seccomp(compiler_seccomp());
    int failures = 0;
    const auto denied = [&](long result) { failures += !(result == -1 && errno == EPERM); };
    denied(::socket(AF_INET, SOCK_STREAM, 0));
    denied(::kill(parent, 0));
    denied(::setsid());
    denied(::setpgid(0, parent));
    denied(::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr));
    denied(::unshare(CLONE_NEWUSER));
    denied(::syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, nullptr, nullptr, nullptr, nullptr));
    denied(::syscall(SYS_io_uring_setup, 1, nullptr));
    denied(::syscall(SYS_bpf, 0, nullptr, 0));
    denied(::syscall(SYS_keyctl, 0));
    denied(::syscall(467, 0, 0, 0, 0, 0));
    int ends[2];
    failures += ::pipe(ends) != 0;
    const pid_t child = ::vfork();
    if (child == 0) ::_exit(7);
    int status = 0;
    failures += ::waitpid(child, &status, 0) != child || WEXITSTATUS(status) != 7;
    ::_exit(failures);
  }
  int status = 0;
  REQUIRE(::waitpid(pid, &status, 0) == pid);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("a Landlock ruleset opens exactly what it names") {
  const fs::path folder = fs::temp_directory_path() / ("kevin-landlock-" + std::to_string(::getpid()));
  fs::create_directories(folder / "read");
  fs::create_directories(folder / "write");
  fs::create_directories(folder / "other");
  for (const char* name : {"read", "write", "other"}) std::ofstream(folder / name / "file") << "text";
  const std::vector<fs::path> readable{folder / "read"};
  const std::vector<fs::path> writable{folder / "write"};
  const LandlockRuleset rules = landlock(readable, writable);
  const pid_t pid = ::fork();
  REQUIRE(pid >= 0);
  if (pid == 0) {
    rules.restrict_self();
    int failures = 0;
    const auto opens = [&](const fs::path& path, int flags) { return ::open(path.c_str(), flags, 0600) >= 0; };
    failures += !opens(folder / "read/file", O_RDONLY);
    failures += opens(folder / "read/file", O_WRONLY);
    failures += opens(folder / "read/new", O_WRONLY | O_CREAT);
    failures += ::truncate((folder / "read/file").c_str(), 0) == 0 && rules.abi() >= 3;
    failures += ::unlink((folder / "read/file").c_str()) == 0;
    failures += !opens(folder / "write/file", O_RDWR);
    failures += !opens(folder / "write/new", O_WRONLY | O_CREAT);
    failures += ::unlink((folder / "write/new").c_str()) != 0;
    failures += opens(folder / "other/file", O_RDONLY);
    failures += opens(folder / "read/../other/file", O_RDONLY);
    failures += ::link((folder / "other/file").c_str(), (folder / "write/link").c_str()) == 0;
    failures += opens("/etc/passwd", O_RDONLY);
    ::_exit(failures);
  }
  int status = 0;
  REQUIRE(::waitpid(pid, &status, 0) == pid);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  fs::remove_all(folder);
}

TEST_CASE("a rule for what does not exist is an error that names it") {
  const std::vector<fs::path> absent{"/no/such/folder"};
  CHECK_THROWS_WITH_AS(static_cast<void>(landlock(absent, {})), doctest::Contains("/no/such/folder"), kevin::Error);
}
