#ifndef KEVIN_EVAL_CPU_RUNNER_SOURCE_HPP
#define KEVIN_EVAL_CPU_RUNNER_SOURCE_HPP

#include <string_view>

namespace kevin::cpu {

/// The runner's program: small, without LibTorch, compiled once by the system's compiler, so that users of a
/// header-only library need no second binary.
///
/// It is trusted until it loads a candidate, and confines itself before that: at the start it gives up all capabilities
/// and, by Landlock, every file; right before dlopen it installs the seccomp program, which then also holds for the
/// candidate's constructors. After dlopen nothing in the process is trusted.
///
/// Files in memory stay reachable under a Landlock ruleset without rules, since they lie on no mounted file system: the
/// candidate is loaded from /proc/self/fd/N. The libraries it may need (libm, libmvec, libstdc++, libgcc_s) are in
/// place already, where the loader finds them by name.
inline constexpr std::string_view runner_source = R"runner(
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include <dlfcn.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

namespace {

enum Kind : std::uint32_t { idle = 1, prepare = 2, load = 3, launch = 4 };
struct Request {
  std::uint64_t nonce;
  std::uint32_t kind;
  std::uint32_t count;
};
enum Status : std::uint32_t { ok = 0, threw = 1, out_of_memory = 2, load_failed = 3, confine_failed = 4, fault = 5, ready = 6 };
struct Reply {
  std::uint64_t nonce;
  std::uint32_t status;
  std::uint32_t detail;
  char text[240];
};
struct Buffer {
  std::uint64_t mapped;
  std::uint64_t offset;
  std::uint64_t bytes;
  std::uint64_t writable;
};
constexpr int control = 3;
constexpr int ruleset = 4;
constexpr std::size_t max_buffers = 128;
constexpr std::size_t guard = std::size_t{1} << 20;

Buffer headers[max_buffers];
void* pointers[max_buffers];
std::size_t buffers = 0;
void* kernel = nullptr;
std::uint64_t nonce = 0;

void answer(std::uint32_t status, std::uint32_t detail = 0, const char* text = nullptr) {
  Reply reply;
  reply.nonce = nonce;
  reply.status = status;
  reply.detail = detail;
  std::size_t size = offsetof(Reply, text);
  if (text != nullptr) {
    std::memset(reply.text, 0, sizeof reply.text);
    std::strncpy(reply.text, text, sizeof reply.text - 1);
    size = sizeof reply;
  }
  if (write(control, &reply, size) < 0) _exit(1);
}

std::uintptr_t stack_top = 0;
std::uintptr_t stack_size = 0;

// Tells where an invalid access went, then lets the process die of it. Runs on a stack of its own.
void on_fault(int, siginfo_t* info, void* context) {
  const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  const auto* machine = &static_cast<const ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  const auto stack = static_cast<std::uintptr_t>(machine->gregs[REG_RSP]);
  const std::uint32_t store = (machine->gregs[REG_ERR] & 2) != 0 ? 2 : 0;
  const bool fetch = (machine->gregs[REG_ERR] & 16) != 0;
#else
  const auto stack = static_cast<std::uintptr_t>(machine->sp);
  const std::uint32_t store = 0;
  const bool fetch = address == static_cast<std::uintptr_t>(machine->pc);
#endif
  std::uint32_t where = 0;
  for (std::size_t i = 0; i < buffers; ++i) {
    const auto start = reinterpret_cast<std::uintptr_t>(pointers[i]);
    const auto map = start - headers[i].offset;
    if (address < map - guard || address >= map + headers[i].mapped + guard) continue;
    where = static_cast<std::uint32_t>(16 * (i + 1)) + store;
    if (address >= start + headers[i].bytes) where += 1;
    else if (address >= start) where += 4;
  }
  const bool near_top = (address > stack ? address - stack : stack - address) < 65536;
  const bool too_deep = stack < stack_top && stack_top - stack > stack_size - 65536 && address < stack_top && address >= stack;
  if (where == 0 && !fetch && address != 0 && (near_top || too_deep)) where = 1;
  answer(fault, where);
  // the standard action is in force again (SA_RESETHAND): returning repeats the access
}

void watch_faults() {
  rlimit limit{};
  getrlimit(RLIMIT_STACK, &limit);
  stack_size = limit.rlim_cur;
  stack_top = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  static unsigned char stack[65536];
  stack_t alternative{};
  alternative.ss_sp = stack;
  alternative.ss_size = sizeof stack;
  sigaltstack(&alternative, nullptr);
  struct sigaction action{};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | static_cast<int>(SA_RESETHAND);
  sigaction(SIGSEGV, &action, nullptr);
  sigaction(SIGBUS, &action, nullptr);
}

// Everything that can be given up before a candidate is there.
int confine_early() {
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return errno;
  struct { std::uint32_t version; int pid; } header = {0x20080522, 0};
  const std::uint32_t none[6] = {};
  if (syscall(SYS_capset, &header, none) != 0) return errno;
  if (syscall(446 /* landlock_restrict_self */, ruleset, 0) != 0) return errno;
  close(ruleset);
  return 0;
}

int confine(int program) {
  static sock_filter filter[4096];
  const ssize_t size = pread(program, filter, sizeof filter, 0);
  if (size <= 0 || static_cast<std::size_t>(size) == sizeof filter) return EINVAL;
  close(program);
  sock_fprog loaded{};
  loaded.len = static_cast<unsigned short>(static_cast<std::size_t>(size) / sizeof(sock_filter));
  loaded.filter = filter;
  return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &loaded) == 0 ? 0 : errno;
}

// Maps each buffer between inaccessible guards. Returns errno.
int map_buffers(const int* files) {
  for (std::size_t i = 0; i < buffers; ++i) {
    const std::size_t size = headers[i].mapped;
    void* room = mmap(nullptr, size + 2 * guard, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED) return errno;
    char* place = static_cast<char*>(room) + guard;
    const int protection = headers[i].writable != 0 ? PROT_READ | PROT_WRITE : PROT_READ;
    if (mmap(place, size, protection, MAP_SHARED | MAP_FIXED | MAP_POPULATE, files[i], 0) == MAP_FAILED) return errno;
    pointers[i] = place + headers[i].offset;
    close(files[i]);
  }
  return 0;
}

int object_file = -1;

void take_over(std::size_t count) {
  if (count > max_buffers) return answer(confine_failed, E2BIG);
  iovec io{headers, count * sizeof(Buffer)};
  alignas(cmsghdr) static char ancillary[CMSG_SPACE((max_buffers + 2) * sizeof(int))];
  msghdr message{};
  message.msg_iov = &io;
  message.msg_iovlen = 1;
  message.msg_control = ancillary;
  message.msg_controllen = sizeof ancillary;
  const ssize_t size = recvmsg(control, &message, MSG_CMSG_CLOEXEC);
  const cmsghdr* rights = CMSG_FIRSTHDR(&message);
  if (size < 0 || rights == nullptr || rights->cmsg_len != CMSG_LEN((count + 2) * sizeof(int))) return answer(confine_failed, EPROTO);
  int files[max_buffers + 2];
  std::memcpy(files, CMSG_DATA(rights), (count + 2) * sizeof(int));
  buffers = count;
  if (const int error = map_buffers(files + 2)) return answer(confine_failed, static_cast<std::uint32_t>(error));
  object_file = files[0];
  if (const int error = confine(files[1])) return answer(confine_failed, static_cast<std::uint32_t>(error));
  answer(ok);
}

void load_candidate() {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/self/fd/%d", object_file);
  void* object = dlopen(path, RTLD_NOW | RTLD_LOCAL);  // from here on nothing is trusted
  if (object != nullptr) kernel = dlsym(object, "kernel");
  if (kernel == nullptr) return answer(load_failed, 0, dlerror());
  close(object_file);
  answer(ok);
}

template <std::size_t... I>
void call_with(std::index_sequence<I...>) {
  reinterpret_cast<void (*)(decltype(static_cast<void>(I), static_cast<void*>(nullptr))...)>(kernel)(pointers[I]...);
}
template <std::size_t N>
void call() {
  call_with(std::make_index_sequence<N>{});
}
using Call = void (*)();
template <std::size_t... N>
Call caller(std::size_t count, std::index_sequence<N...>) {
  static constexpr Call table[] = {&call<N>...};
  return table[count];
}

}  // namespace

int main(int argc, char** argv) {
  watch_faults();
  // candidates may be linked to it (vector forms of sin, exp, ...); other libraries are linked to this program
  if (dlopen("libmvec.so.1", RTLD_NOW | RTLD_LOCAL) == nullptr) errno = 0;
  // the first process to end when memory runs out
  if (const int file = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC); file >= 0) {
    if (write(file, "1000", 4) < 0) errno = 0;
    close(file);
  }
  const int error = confine_early();
  // giving up capabilities may have cancelled it
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || argc < 2 || getppid() != std::atoi(argv[1])) _exit(1);
  answer(error == 0 ? ready : confine_failed, static_cast<std::uint32_t>(error));
  Call function = nullptr;
  for (;;) {
    Request request;
    if (read(control, &request, sizeof request) != static_cast<ssize_t>(sizeof request)) _exit(0);
    nonce = request.nonce;
    if (request.kind == prepare) {
      take_over(request.count);
      continue;
    }
    if (request.kind == load) {
      load_candidate();
      function = caller(buffers, std::make_index_sequence<max_buffers + 1>{});
      continue;
    }
    std::uint32_t status = ok;
    if (request.kind == launch) {
      try {
        function();
      } catch (const std::bad_alloc&) {
        status = out_of_memory;
      } catch (...) {
        status = threw;
      }
    }
    answer(status);
  }
}
)runner";

}  // namespace kevin::cpu

#endif  // KEVIN_EVAL_CPU_RUNNER_SOURCE_HPP
