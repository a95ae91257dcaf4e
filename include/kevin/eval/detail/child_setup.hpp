#ifndef KEVIN_EVAL_DETAIL_CHILD_SETUP_HPP
#define KEVIN_EVAL_DETAIL_CHILD_SETUP_HPP

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <boost/system/error_code.hpp>

#include "kevin/eval/descriptor.hpp"
#include "kevin/eval/spawn_options.hpp"

namespace kevin::eval::detail {

/// Blocks every signal in this thread for as long as it lives.
class BlockedSignals {
 public:
  BlockedSignals() noexcept {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &old_);
  }
  ~BlockedSignals() { ::pthread_sigmask(SIG_SETMASK, &old_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  sigset_t old_{};
};

/// A step between fork and exec, in the order they are taken.
enum class SetupStep : int {
  session,
  parent_death,
  descriptors,
  directory,
  cpus,
  limits,
  privileges,
  landlock,
  seccomp,
  exec
};

/// What the child reports through the status pipe when it could not reach exec. error = 0: it did.
struct SetupFailure {
  SetupStep step = SetupStep::exec;
  int error = 0;
};

/// The initialiser given to Boost.Process' launcher: on_exec_setup runs in the child, on the parent's memory (vfork),
/// and therefore makes system calls only: no allocation, no lock, no exception. It executes the program itself
/// instead of returning to the launcher, because the stock launchers leave a failed child with exit(), which would
/// run the parent's destructors and exit handlers a second time, and close descriptors one by one.
class ChildSetup {
 public:
  explicit ChildSetup(const SpawnOptions& options) : options_(options), parent_(::getpid()) {
    for (const std::string& variable : options.environment) environment_.push_back(variable.c_str());
    environment_.push_back(nullptr);

    int pipe[2];
    if (::pipe2(pipe, O_CLOEXEC) != 0) throw_errno("starting " + options.program.string() + ": pipe");
    read_end_.reset(pipe[0]);
    write_end_.reset(pipe[1]);

    for (int standard = 0; standard < 3; ++standard) {
      if (std::none_of(options.descriptors.begin(), options.descriptors.end(),
                       [&](const auto& pair) { return pair.second == standard; })) {
        if (!null_) null_.reset(::open("/dev/null", O_RDWR | O_CLOEXEC));
        if (!null_) throw_errno("opening /dev/null");
        descriptors_.push_back({null_.get(), standard});
      }
    }
    descriptors_.insert(descriptors_.end(), options.descriptors.begin(), options.descriptors.end());
    for (const auto& [from, to] : descriptors_) {
      if (from < 0 || to < 0) throw Error(ErrorCode::bad_input, "spawn: a negative descriptor number");
      first_free_ = std::max(first_free_, to + 1);
    }
    // From here on only the child's own copies matter; it needs room to hold each source twice.
    moved_.resize(descriptors_.size());

    CPU_ZERO(&cpus_);
    for (const int cpu : options.cpus) {
      if (cpu < 0 || cpu >= CPU_SETSIZE)
        throw Error(ErrorCode::bad_input, "spawn: no processor " + std::to_string(cpu));
      CPU_SET(static_cast<unsigned>(cpu), &cpus_);
    }
    filter_.len = static_cast<unsigned short>(options.seccomp.size());
    filter_.filter = const_cast<sock_filter*>(options.seccomp.data());
  }

  template <class Launcher, class Path>
  boost::system::error_code on_exec_setup(Launcher&, const Path& program, const char* const*& arguments) {
    SetupFailure failure;
    const auto check = [&](SetupStep step, bool ok) {
      if (ok || failure.error != 0) return ok;
      failure.step = step;
      failure.error = errno;
      return false;
    };
    int status = ::fcntl(write_end_.get(), F_DUPFD_CLOEXEC, first_free_);
    if (check(SetupStep::descriptors, status >= 0) && check(SetupStep::session, start_session()) &&
        check(SetupStep::parent_death, follow_parent()) && check(SetupStep::descriptors, place_descriptors()) &&
        check(SetupStep::directory, options_.directory.empty() || ::chdir(options_.directory.c_str()) == 0) &&
        check(SetupStep::cpus, options_.cpus.empty() || ::sched_setaffinity(0, sizeof cpus_, &cpus_) == 0) &&
        check(SetupStep::limits, set_limits()) && check(SetupStep::privileges, drop_privileges()) &&
        check(SetupStep::landlock, options_.landlock_ruleset < 0 || restrict_files()) &&
        check(SetupStep::seccomp,
              filter_.len == 0 || ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter_) == 0)) {
      ::execve(program.c_str(), const_cast<char* const*>(arguments), const_cast<char* const*>(environment_.data()));
      static_cast<void>(check(SetupStep::exec, false));
    }
    if (status < 0) status = write_end_.get();
    static_cast<void>(!::write(status, &failure, sizeof failure));
    ::_exit(127);
  }

  /// In the parent after the launcher returned: how far the child came. Blocks until it executed or gave up.
  [[nodiscard]] SetupFailure result() {
    write_end_.reset();
    SetupFailure failure;
    ssize_t count = 0;
    while ((count = ::read(read_end_.get(), &failure, sizeof failure)) < 0 && errno == EINTR) {
    }
    read_end_.reset();
    return count == sizeof failure ? failure : SetupFailure{};
  }

  [[noreturn]] void throw_failure(const SetupFailure& failure) const {
    static constexpr std::array<std::string_view, 10> names{"setsid",
                                                            "PR_SET_PDEATHSIG",
                                                            "passing descriptors",
                                                            "changing to the directory",
                                                            "setting processors",
                                                            "setrlimit",
                                                            "no_new_privs",
                                                            "landlock_restrict_self",
                                                            "installing the seccomp filter",
                                                            "execve"};
    std::string text = "starting " + options_.program.string() + ": ";
    text += names[static_cast<std::size_t>(failure.step)];
    if (failure.step == SetupStep::directory) text += ' ' + options_.directory.string();
    const bool missing =
        (failure.step == SetupStep::exec || failure.step == SetupStep::directory) &&
        (failure.error == ENOENT || failure.error == EACCES || failure.error == ENOTDIR || failure.error == ENOEXEC);
    throw Error(missing ? ErrorCode::not_found : ErrorCode::resource, text + ": " + errno_text(failure.error));
  }

 private:
  static bool start_session() noexcept {
    for (int number = 1; number < NSIG; ++number) {
      struct sigaction standard {};
      standard.sa_handler = SIG_DFL;
      ::sigaction(number, &standard, nullptr);  // refused for SIGKILL, SIGSTOP and the C library's own: fine
    }
    sigset_t none;
    ::sigemptyset(&none);
    const bool ok = ::setsid() >= 0;
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    return ok;
  }

  [[nodiscard]] bool follow_parent() const noexcept {
    if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return false;
    if (::getppid() == parent_) return true;
    errno = ESRCH;  // the parent died before the call: nobody would ever end this child
    return false;
  }

  /// Every source is first copied above all targets, so that no target overwrites a source still needed.
  bool place_descriptors() noexcept {
    for (std::size_t i = 0; i < descriptors_.size(); ++i) {
      moved_[i] = ::fcntl(descriptors_[i].first, F_DUPFD_CLOEXEC, first_free_);
      if (moved_[i] < 0) return false;
    }
    if (options_.landlock_ruleset >= 0) {
      ruleset_ = ::fcntl(options_.landlock_ruleset, F_DUPFD_CLOEXEC, first_free_);
      if (ruleset_ < 0) return false;
    }
    if (::syscall(SYS_close_range, 0U, ~0U, 4U /* CLOSE_RANGE_CLOEXEC, Linux 5.11 */) != 0) return false;
    for (std::size_t i = 0; i < descriptors_.size(); ++i) {
      if (::dup2(moved_[i], descriptors_[i].second) < 0) return false;
    }
    return true;
  }

  [[nodiscard]] bool set_limits() const noexcept {
    const Limits& l = options_.limits;
    return (l.core_dumps || set_limit(RLIMIT_CORE, 0, 0)) &&
           (l.file_size == 0 || set_limit(RLIMIT_FSIZE, l.file_size, 0)) &&
           (l.cpu_seconds == 0 || set_limit(RLIMIT_CPU, l.cpu_seconds, 1)) &&
           (l.stack == 0 || set_limit(RLIMIT_STACK, l.stack, 0)) &&
           (l.open_files == 0 || set_limit(RLIMIT_NOFILE, l.open_files, 0)) &&
           (l.address_space == 0 || set_limit(RLIMIT_AS, l.address_space, 0));
  }

  template <class Resource>
  static bool set_limit(Resource resource, std::uint64_t value, std::uint64_t margin) noexcept {
    rlimit limit{};
    if (::getrlimit(resource, &limit) != 0) return false;
    limit.rlim_max = std::min<rlim_t>(limit.rlim_max, value + margin);
    limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, value);
    return ::setrlimit(resource, &limit) == 0;
  }

  [[nodiscard]] bool drop_privileges() const noexcept {
    if (options_.landlock_ruleset < 0 && filter_.len == 0) return true;
    return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
  }

  [[nodiscard]] bool restrict_files() const noexcept {
    return ::syscall(446 /* landlock_restrict_self */, ruleset_, 0) == 0;
  }

  const SpawnOptions& options_;
  pid_t parent_;
  std::vector<const char*> environment_;
  std::vector<std::pair<int, int>> descriptors_;
  std::vector<int> moved_;
  int first_free_ = 3;
  int ruleset_ = -1;
  Descriptor read_end_;
  Descriptor write_end_;
  Descriptor null_;
  cpu_set_t cpus_{};
  sock_fprog filter_{};
};

}  // namespace kevin::eval::detail

#endif  // KEVIN_EVAL_DETAIL_CHILD_SETUP_HPP
