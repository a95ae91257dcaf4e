#ifndef KEVIN_EVAL_SANDBOX_HPP
#define KEVIN_EVAL_SANDBOX_HPP

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <string>
#include <vector>

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kevin/core/error.hpp"
#include "kevin/eval/landlock.hpp"
#include "kevin/eval/seccomp.hpp"

namespace kevin::eval {

/// The system calls that computing needs, and no other: everything else fails with EPERM, foreign ABIs kill.
/// To be installed by a runner on itself (execve is not among them) before candidate code is loaded.
///
/// Nothing in it can sleep but read() and, with several threads, futex: a judge that sees the process' only thread
/// blocked in read on the control descriptor knows that nothing of the candidate runs or will run. So no sleeping,
/// polling, timers, signals or signal handlers. Files are Landlock's business: openat is allowed because the loader
/// needs it.
///
/// `threads` > 1 allows threads (never processes); otherwise starting one fails with EAGAIN, and waiting in futex kills
/// the process: nobody is there who could wake it, so it is a deadlock or, with a time-out, a sleep that no processor
/// time would show. To kill and not to refuse: a lock that cannot wait would spin until the limit. clone3 hides its
/// flags behind a pointer that a filter cannot follow, so it is "not available" and the C library falls back to clone.
/// `self`, the runner's own process id, lets abort() end the process by SIGABRT; with 0 it ends by SIGSEGV instead.
[[nodiscard]] inline std::vector<sock_filter> runner_seccomp(int threads, pid_t self = 0) {
  using enum SeccompAction;
  SeccompFilter filter(deny);
  for (const char* name : {"read",
                           "write",
                           "writev",
                           "pread64",
                           "lseek",
                           "close",
                           "openat",
                           "fstat",  // control messages, the loader
                           "mmap",
                           "munmap",
                           "mremap",
                           "madvise",
                           "brk",
                           "mprotect",  // memory; mprotect: relro
                           "sched_yield",
                           "sched_getaffinity",
                           "set_robust_list",
                           "rseq",  // threads and locks
                           "rt_sigprocmask",
                           "rt_sigreturn",  // thread start, abort
                           "clock_gettime",
                           "clock_getres",
                           "gettimeofday",
                           "time",
                           "getrandom",  // mostly answered by the vdso
                           "getpid",
                           "gettid",
                           "exit",
                           "exit_group",
                           "restart_syscall"}) {
    filter.add(allow, name);
  }
  constexpr std::uint64_t all = ~0ULL;
  filter.add(allow, "newfstatat", {{3, AT_EMPTY_PATH, AT_EMPTY_PATH}});  // fstat of the newer C libraries
  filter.add(allow, "prlimit64", {{2, all, 0}});                         // ask for limits, not set them
  if (self != 0) {
    const auto own = static_cast<std::uint64_t>(self);
    filter.add(allow, "tgkill", {{0, 0xffffffffU, own}, {2, 0xffffffffU, SIGABRT}});
  }
  filter.add(unavailable, "clone3");
  if (threads > 1) {
    constexpr std::uint64_t thread = CLONE_THREAD | CLONE_VM | CLONE_SIGHAND;
    filter.add(allow, "clone", {{0, thread, thread}});
    filter.add(allow, "futex");
  } else {
    filter.add(try_again, "clone");
    constexpr std::uint64_t operation = 0xffffffffU & ~std::uint64_t{FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME};
    for (const std::uint64_t wakes : {FUTEX_WAKE, FUTEX_WAKE_BITSET, FUTEX_WAKE_OP, FUTEX_REQUEUE, FUTEX_CMP_REQUEUE})
      filter.add(allow, "futex", {{1, operation, wakes}});
    constexpr int lock_pi2 = 13;  // younger than some machines' headers
    for (const std::uint64_t waits : {FUTEX_WAIT, FUTEX_WAIT_BITSET, FUTEX_WAIT_REQUEUE_PI, FUTEX_LOCK_PI, lock_pi2})
      filter.add(kill_process, "futex", {{1, operation, waits}});
    for (const int younger : {449, 455}) filter.add(kill_process, younger);  // futex_waitv, futex_wait
  }
  return filter.program();
}

/// Everything a compiler and its linker do, except what only an intruder would: network, other processes' memory
/// and signals, leaving the process group, kernel interfaces with a history (io_uring, bpf, userfaultfd, perf,
/// keys), mounts, namespaces, modules, clocks and the machine as a whole. Files are Landlock's business.
[[nodiscard]] inline std::vector<sock_filter> compiler_seccomp() {
  using enum SeccompAction;
  SeccompFilter filter(allow);
  for (const char* name : {"socket",
                           "socketpair",
                           "socketcall",
                           "bind",
                           "listen",
                           "accept",
                           "accept4",
                           "connect",
                           "sendto",
                           "sendmsg",
                           "sendmmsg",
                           "recvfrom",
                           "recvmsg",
                           "recvmmsg",
                           "ptrace",
                           "process_vm_readv",
                           "process_vm_writev",
                           "process_madvise",
                           "process_mrelease",
                           "pidfd_getfd",
                           "pidfd_open",
                           "pidfd_send_signal",
                           "kcmp",
                           "kill",
                           "tkill",
                           "rt_sigqueueinfo",
                           "rt_tgsigqueueinfo",
                           "setsid",
                           "setpgid",  // the group is what gets killed at the limit
                           "io_uring_setup",
                           "io_uring_enter",
                           "io_uring_register",
                           "io_setup",
                           "io_submit",
                           "bpf",
                           "userfaultfd",
                           "perf_event_open",
                           "keyctl",
                           "add_key",
                           "request_key",
                           "fanotify_init",
                           "inotify_init",
                           "inotify_init1",
                           "mount",
                           "umount",
                           "umount2",
                           "pivot_root",
                           "chroot",
                           "move_mount",
                           "open_tree",
                           "fsopen",
                           "fsconfig",
                           "fsmount",
                           "fspick",
                           "mount_setattr",
                           "statmount",
                           "listmount",
                           "open_by_handle_at",
                           "name_to_handle_at",
                           "quotactl",
                           "quotactl_fd",
                           "unshare",
                           "setns",
                           "init_module",
                           "finit_module",
                           "delete_module",
                           "kexec_load",
                           "kexec_file_load",
                           "reboot",
                           "swapon",
                           "swapoff",
                           "acct",
                           "syslog",
                           "sethostname",
                           "setdomainname",
                           "settimeofday",
                           "clock_settime",
                           "clock_adjtime",
                           "adjtimex",
                           "stime",
                           "iopl",
                           "ioperm",
                           "modify_ldt",
                           "vm86",
                           "vm86old",
                           "personality",
                           "lookup_dcookie",
                           "vhangup",
                           "nfsservctl",
                           "uselib",
                           "_sysctl",
                           "setuid",
                           "setgid",
                           "setreuid",
                           "setregid",
                           "setresuid",
                           "setresgid",
                           "setgroups",
                           "setfsuid",
                           "setfsgid",
                           "capset",
                           "mknod",
                           "mknodat",
                           "shmget",
                           "shmat",
                           "shmctl",
                           "semget",
                           "semop",
                           "semtimedop",
                           "semctl",
                           "msgget",
                           "msgsnd",
                           "msgrcv",
                           "msgctl",
                           "mq_open",
                           "mq_unlink",
                           "memfd_secret",
                           "sched_setaffinity",
                           "sched_setscheduler",
                           "sched_setparam",
                           "sched_setattr",
                           "setpriority",
                           "ioprio_set",
                           "migrate_pages",
                           "move_pages",
                           "mbind",
                           "set_mempolicy",
                           "set_mempolicy_home_node",
                           "timer_create",
                           "setitimer"}) {
    filter.add(deny, name);
  }
  for (const int young : {457, 458, 467}) filter.add(deny, young);  // statmount, listmount, open_tree_attr
  constexpr std::uint64_t namespaces =
      CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;
  for (std::uint64_t bit = 1; bit != 0 && bit <= namespaces; bit <<= 1) {
    if ((namespaces & bit) != 0) filter.add(deny, "clone", {{0, bit, bit}});
  }
  filter.add(unavailable, "clone3");  // its flags cannot be looked at
  return filter.program();
}

/// Throws Error(unsupported) that names precisely what this machine lacks to confine hostile code, and how to get
/// it. Nothing is weakened silently: without these the evaluator does not start.
inline void require_sandbox() {
#if !defined(__x86_64__) && !defined(__aarch64__)
  throw Error(ErrorCode::unsupported, "candidates can be confined on x86-64 and arm64 Linux only");
#endif
  std::string missing;
  const auto lack = [&](const std::string& text) { missing += (missing.empty() ? "" : "; ") + text; };
  const std::uint32_t action = static_cast<std::uint32_t>(SeccompAction::kill_process);
  if (::syscall(SYS_seccomp, 2 /* SECCOMP_GET_ACTION_AVAIL */, 0, &action) != 0) {
    lack("seccomp filters: Linux 4.14 or later with CONFIG_SECCOMP_FILTER is needed");
  }
  if (::syscall(SYS_close_range, ~0U, ~0U, 4U) != 0)
    lack("close_range with CLOSE_RANGE_CLOEXEC: Linux 5.11 or later is needed");
  const Descriptor self(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)));
  if (!self) lack("pidfd_open: Linux 5.3 or later is needed, and a container must not forbid it");
  const auto attempt = [&](auto&& make) {
    try {
      make();
    } catch (const Error& e) {
      const std::string text = e.what();
      lack(text.substr(text.find(": ") + 2));
    }
  };
  attempt([] { static_cast<void>(landlock({}, {})); });
  attempt([] { static_cast<void>(runner_seccomp(1)); });
  if (!missing.empty()) throw Error(ErrorCode::unsupported, "this machine cannot confine candidates: " + missing);
}

}  // namespace kevin::eval

#endif  // KEVIN_EVAL_SANDBOX_HPP
