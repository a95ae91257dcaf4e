#ifndef KEVIN_EVAL_PROCESS_HPP
#define KEVIN_EVAL_PROCESS_HPP

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <linux/filter.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kevin/eval/detail/child_setup.hpp"
#include "kevin/eval/spawn_options.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/process/v2/posix/vfork_launcher.hpp>
#include <boost/process/v2/process.hpp>
#include <boost/system/system_error.hpp>

namespace kevin::eval {

namespace detail {
/// Kills the process group that `pid`, a child not yet reaped, leads, and reaps `pid`.
inline void kill_and_reap(pid_t pid) noexcept {
  ::kill(-pid, SIGKILL);
  ::kill(pid, SIGKILL);  // it may have died or been stopped before it had a group of its own
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
}
}  // namespace detail

/// How a process ended.
struct ExitStatus {
  bool signaled = false;  ///< killed by a signal
  int code = 0;           ///< the exit code, or the signal's number
  friend bool operator==(const ExitStatus&, const ExitStatus&) = default;
};

/// A child process that leads a process group of its own. Destruction kills the whole group and reaps the child.
/// Waiting sleeps on a pidfd: no polling, no SIGCHLD handler, no thread. One thread at a time may use a Child.
/// The host program must not reap children it does not know (waitpid(-1), SIGCHLD set to SIG_IGN): a child reaped
/// by somebody else is reported as Error(worker_lost).
class Child {
 public:
  Child() = default;
  Child(Child&& other) noexcept
      : pid_(std::exchange(other.pid_, -1)),
        pidfd_(std::move(other.pidfd_)),
        status_(std::exchange(other.status_, {})) {}
  Child& operator=(Child&& other) noexcept {
    if (this != &other) {
      finish();
      pid_ = std::exchange(other.pid_, -1);
      pidfd_ = std::move(other.pidfd_);
      status_ = std::exchange(other.status_, {});
    }
    return *this;
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() { finish(); }

  /// The process id, also after it ended; -1 of a default-constructed or moved-from Child.
  [[nodiscard]] pid_t pid() const noexcept { return pid_; }

  /// The pidfd, readable once the process has ended: for a poll loop of the caller's. -1 after it was reaped.
  [[nodiscard]] int descriptor() const noexcept { return pidfd_.get(); }

  /// SIGKILL to the whole process group. Nothing happens once the child has been reaped.
  void kill() noexcept {
    // Until it is reaped the child's number, which is the group's number too, cannot be given to anybody else.
    if (pid_ > 0 && pidfd_) ::kill(-pid_, SIGKILL);
  }

  /// Waits until the child ended or `deadline` passed; nullopt = still running. When the child ended, whatever is
  /// left of its process group is killed before it is reaped. Error(worker_lost) when somebody else reaped it.
  [[nodiscard]] std::optional<ExitStatus> wait_until(std::chrono::steady_clock::time_point deadline) {
    if (!pidfd_) return status_;
    for (;;) {
      const auto now = std::chrono::steady_clock::now();
      const std::int64_t ns =
          deadline <= now ? 0 : std::chrono::duration_cast<std::chrono::nanoseconds>(deadline - now).count();
      const timespec wait{static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
      pollfd p{pidfd_.get(), POLLIN, 0};
      const int ready = ::ppoll(&p, 1, &wait, nullptr);
      if (ready > 0) return reap();
      if (ready == 0 && ns == 0) return std::nullopt;
      if (ready < 0 && errno != EINTR) detail::throw_errno("waiting for a child process");
    }
  }

  /// Waits without a limit.
  ExitStatus wait() {
    for (;;) {
      if (const auto status = wait_until(std::chrono::steady_clock::now() + std::chrono::hours(24))) return *status;
      if (pid_ < 0) throw Error(ErrorCode::order, "wait() on a Child that holds no process");
    }
  }

  /// Whether the process has not ended yet.
  [[nodiscard]] bool running() { return pidfd_ && !wait_until(std::chrono::steady_clock::time_point{}); }

 private:
  friend Child spawn(const SpawnOptions&);
  Child(pid_t pid, Descriptor pidfd) : pid_(pid), pidfd_(std::move(pidfd)) {}

  std::optional<ExitStatus> reap() {
    kill();  // members of the group that outlived their leader
    siginfo_t info{};
    int result = 0;
    while ((result = ::waitid(static_cast<idtype_t>(P_PID), static_cast<id_t>(pid_), &info, WEXITED)) < 0 &&
           errno == EINTR) {
    }
    pidfd_.reset();
    if (result < 0) {
      status_ = ExitStatus{true, SIGKILL};
      throw Error(ErrorCode::worker_lost,
                  "child process " + std::to_string(pid_) +
                      " was reaped by another part of this program: do not ignore SIGCHLD and do not call waitpid(-1)");
    }
    status_ = ExitStatus{info.si_code != CLD_EXITED, info.si_status};
    return status_;
  }

  void finish() noexcept {
    if (!pidfd_) return;
    detail::kill_and_reap(pid_);
    pidfd_.reset();
  }

  pid_t pid_ = -1;
  Descriptor pidfd_;
  std::optional<ExitStatus> status_;
};

/// Starts `options.program` (a path, no PATH search) as leader of a new session and process group.
///
/// Trap: the child is killed when the THREAD that called spawn ends (PR_SET_PDEATHSIG works by thread), not only
/// when the process does. Spawn long-lived children from a thread that lives as long as they do.
///
/// Throws Error(not_found) when program or directory do not exist or may not be executed, Error(resource) when the
/// system refuses anything else; the text names the step and the errno text.
[[nodiscard]] inline Child spawn(const SpawnOptions& options) {
  namespace bp = boost::process::v2;
  detail::ChildSetup setup(options);
  bp::posix::vfork_launcher launcher;
  boost::asio::io_context context;
  boost::system::error_code error;
  pid_t pid = -1;
  {
    // In a vfork child a signal handler of ours would run on memory shared with the parent.
    const detail::BlockedSignals blocked;
    try {
      auto process = launcher(context.get_executor(), error, options.program.c_str(), options.arguments, setup);
      pid = process.id();
      static_cast<void>(process.detach());  // from here on Child looks after it: Boost.Process knows no process groups
    } catch (const boost::system::system_error& e) {  // its own pidfd could not be opened or registered
      error = e.code();
      if (launcher.pid > 0) detail::kill_and_reap(launcher.pid);
    }
  }
  if (pid <= 0) detail::throw_errno("starting " + options.program.string() + ": vfork or pidfd_open", error.value());
  const detail::SetupFailure failure = setup.result();
  Descriptor pidfd(failure.error == 0 ? static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)) : -1);
  if (!pidfd) {
    const int pidfd_error = errno;
    detail::kill_and_reap(pid);
    if (failure.error == 0) detail::throw_errno("starting " + options.program.string() + ": pidfd_open", pidfd_error);
    setup.throw_failure(failure);
  }
  return Child(pid, std::move(pidfd));
}

}  // namespace kevin::eval

#endif  // KEVIN_EVAL_PROCESS_HPP
