#ifndef KEVIN_EVAL_CPU_RUNNER_HPP
#define KEVIN_EVAL_CPU_RUNNER_HPP

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <sched.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "kevin/core/error.hpp"
#include "kevin/eval/cpu/process_watch.hpp"
#include "kevin/eval/cpu/runner_protocol.hpp"
#include "kevin/eval/memory_file.hpp"
#include "kevin/eval/process.hpp"
#include "kevin/eval/shared_buffer.hpp"
#include "kevin/eval/timing.hpp"

namespace kevin::cpu {

/// How a call of the runner ended, as the judge saw it.
struct CallResult {
  enum class End {
    returned,
    threw,
    out_of_memory,  ///< std::bad_alloc left the kernel
    load_failed,    ///< text: the loader's message
    died,           ///< exit and perhaps fault say how
    timeout,
    threads_left,  ///< it answered, but threads of its own still exist
    protocol,      ///< something else than the runner's own answer was on the channel
  };
  End end = End::returned;
  double wall_ms = 0;
  double cpu_ms = 0;  ///< processor time of all its threads
  std::string text;
  std::uint32_t fault = 0;  ///< protocol::Fault of a process that died
  eval::ExitStatus exit{};
};

/// How long a call may take. The limit counts processor time, so that a busy machine fails nobody; a call that makes no
/// use of the processor ends after three times as long on the wall clock.
struct CallLimit {
  double milliseconds = 2000;
  [[nodiscard]] bool passed(double cpu_ms, double wall_ms, int threads) const noexcept {
    return cpu_ms >= milliseconds * threads || wall_ms >= 3 * milliseconds;
  }
};

/// The judge's end of one runner process. Trusts nothing that comes from it (see runner_protocol.hpp): a call has ended
/// when ProcessWatch shows that the process can do nothing more by itself; until then the clock runs, whatever was
/// answered. One thread at a time may use a Runner.
class Runner {
 public:
  using End = CallResult::End;

  /// Takes over a runner process that was just started. `filter`: a file with the seccomp program it has to confine
  /// itself by; `threads`: how many the candidate may use.
  Runner(eval::Child child, eval::Descriptor control, eval::Descriptor filter, int threads)
      : child_(std::move(child)),
        control_(std::move(control)),
        filter_(std::move(filter)),
        watch_(child_.pid(), protocol::control_descriptor),
        threads_(threads) {
    set_wait(wait_ms);
  }

  [[nodiscard]] pid_t pid() const noexcept { return child_.pid(); }

  /// Waits for the start-up. Throws Error(unsupported | worker_lost).
  void await_ready() {
    CallResult result;
    const auto start = eval::WallClock::now();
    protocol::Reply reply{};
    const bool got = receive(reply, 0, start, -1, CallLimit{5000}, result);
    if (got && reply.status == protocol::Status::ready) return watch_.await_quiet();
    if (got && reply.status == protocol::Status::confine_failed) throw_confine(static_cast<int>(reply.detail));
    throw Error(ErrorCode::worker_lost,
                "a runner process ended, or did not answer, before it was ready: out of memory, or its program lacks a "
                "library?");
  }

  /// A call that does nothing: what a call costs by itself. Only before load().
  [[nodiscard]] CallResult idle(CallLimit limit) { return call(protocol::Kind::idle, limit); }

  /// Hands over the candidate's shared object and the buffers, in the order of the kernel's arguments, and lets the
  /// runner confine itself. `memory`: bytes of address space for the candidate's own use. Throws Error: no candidate
  /// code runs here.
  void prepare(int object, std::span<const eval::SharedBuffer* const> buffers, std::uint64_t memory) {
    KEVIN_ASSERT(buffers.size() <= protocol::max_buffers);
    std::vector<int> files{object, filter_.get()};
    std::vector<protocol::Buffer> headers;
    std::uint64_t address_space = watch_.address_space() + memory;
    for (const eval::SharedBuffer* b : buffers) {
      files.push_back(b->descriptor());
      headers.push_back(
          {b->mapped_bytes(), b->offset(), b->bytes(), b->access() == eval::Access::read_write ? 1U : 0U});
      address_space += b->mapped_bytes() + 2 * protocol::guard_bytes;
    }
    const rlimit space{address_space, address_space};
    if (::prlimit(pid(), RLIMIT_AS, &space, nullptr) != 0)
      eval::detail::throw_errno("limiting a runner's address space");
    protocol::Reply reply{};
    const CallResult result = call(protocol::Kind::prepare, static_cast<std::uint32_t>(buffers.size()),
                                   CallLimit{10000}, files, headers, reply);
    if (result.end == End::returned) return;
    if (reply.status == protocol::Status::confine_failed) throw_confine(static_cast<int>(reply.detail));
    throw Error(ErrorCode::worker_lost, "a runner was lost before it had a candidate");
  }

  /// Loads the candidate, whose constructors run. Only after prepare().
  [[nodiscard]] CallResult load(CallLimit limit) { return call(protocol::Kind::load, limit); }

  /// One call of the kernel. Only after load() succeeded.
  [[nodiscard]] CallResult launch(CallLimit limit) { return call(protocol::Kind::launch, limit); }

  /// Restricts the process to these processors.
  void pin(const cpu_set_t& cpus) {
    if (::sched_setaffinity(pid(), sizeof cpus, &cpus) != 0 && errno != ESRCH)
      eval::detail::throw_errno("pinning a runner to processors");
  }

  /// Ends it. The process is reaped when the Runner is destroyed.
  void kill() noexcept { child_.kill(); }

 private:
  static constexpr int wait_ms = 50;  // the longest sleep before the limit is looked at again

  void set_wait(int ms) {
    const timeval t{ms / 1000, (ms % 1000) * 1000};
    if (::setsockopt(control_.get(), SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t) != 0)
      eval::detail::throw_errno("setsockopt on a runner's channel");
  }

  [[nodiscard]] static double ms_between(std::int64_t from, std::int64_t to) noexcept {
    return static_cast<double>(to - from) * 1e-6;
  }

  [[noreturn]] static void throw_confine(int error) {
    throw Error(ErrorCode::unsupported, "a runner could not confine itself (" + eval::detail::errno_text(error) +
                                            "): Landlock, seccomp and file descriptors for " +
                                            std::to_string(protocol::max_buffers) + " buffers are needed");
  }

  [[nodiscard]] CallResult call(protocol::Kind kind, CallLimit limit) {
    protocol::Reply reply{};
    return call(kind, 0, limit, {}, {}, reply);
  }

  [[nodiscard]] CallResult call(protocol::Kind kind, std::uint32_t count, CallLimit limit, std::span<const int> files,
                                std::span<const protocol::Buffer> headers, protocol::Reply& reply) {
    CallResult result;
    protocol::Request request{0, kind, count};
    eval::secret_bytes(std::as_writable_bytes(std::span(&request.nonce, 1)));
    const std::int64_t cpu_start = watch_.cpu().nanoseconds();
    const auto start = eval::WallClock::now();
    if (!send(&request, sizeof request, {}) || (!files.empty() && !send(headers.data(), headers.size_bytes(), files))) {
      died(limit, result);
      return result;
    }
    if (!receive(reply, request.nonce, start, cpu_start, limit, result)) return result;
    if (!settle(start, cpu_start, limit, result)) return result;
    using protocol::Status;
    switch (reply.status) {
      case Status::ok:
        result.end = End::returned;
        break;
      case Status::threw:
        result.end = End::threw;
        break;
      case Status::out_of_memory:
        result.end = End::out_of_memory;
        break;
      case Status::load_failed:
        result.end = kind == protocol::Kind::load ? End::load_failed : End::protocol;
        break;
      case Status::confine_failed:
      case Status::fault:
      case Status::ready:
        result.end = End::protocol;
        break;
    }
    reply.text[sizeof reply.text - 1] = '\0';
    if (result.end == End::load_failed) result.text = reply.text;
    return result;
  }

  [[nodiscard]] bool send(const void* data, std::size_t size, std::span<const int> files) {
    iovec io{const_cast<void*>(data), size};
    if (size == 0) io.iov_len = 1, io.iov_base = &io;  // descriptors need a byte to travel with
    msghdr message{};
    message.msg_iov = &io;
    message.msg_iovlen = 1;
    std::vector<char> ancillary;
    if (!files.empty()) {
      ancillary.resize(CMSG_SPACE(files.size_bytes()));
      message.msg_control = ancillary.data();
      message.msg_controllen = ancillary.size();
      cmsghdr* rights = CMSG_FIRSTHDR(&message);
      rights->cmsg_level = SOL_SOCKET;
      rights->cmsg_type = SCM_RIGHTS;
      rights->cmsg_len = CMSG_LEN(files.size_bytes());
      std::memcpy(CMSG_DATA(rights), files.data(), files.size_bytes());
    }
    ssize_t n = 0;
    // never blocks: at most two short messages wait for the runner at a time
    while ((n = ::sendmsg(control_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT)) < 0 && errno == EINTR) {
    }
    if (n >= 0) return true;
    if (errno == EPIPE || errno == ECONNRESET || errno == EAGAIN) return false;
    eval::detail::throw_errno("sending to a runner");
  }

  /// Waits for the answer to `nonce`. False: result says how the call ended instead.
  [[nodiscard]] bool receive(protocol::Reply& reply, std::uint64_t nonce, eval::WallClock::time_point start,
                             std::int64_t cpu_start, CallLimit limit, CallResult& result) {
    bool faulted = false;
    for (;;) {
      const ssize_t n = ::recv(control_.get(), &reply, sizeof reply, MSG_TRUNC);
      if (n < 0 && (errno == EINTR || errno == EAGAIN)) {
        const double cpu_ms = ms_between(cpu_start, watch_.cpu().nanoseconds());
        const double wall_ms = eval::milliseconds(eval::WallClock::now() - start);
        if (!limit.passed(cpu_ms, wall_ms, threads_)) continue;
        result.end = faulted ? End::protocol : End::timeout;
        return false;
      }
      if (n < 0 && errno != ECONNRESET) eval::detail::throw_errno("receiving from a runner");
      if (n <= 0) {
        died(limit, result);
        return false;
      }
      const bool whole = n == static_cast<ssize_t>(protocol::short_reply) || n == static_cast<ssize_t>(sizeof reply);
      if (!whole || reply.nonce != nonce || faulted) {
        result.end = End::protocol;
        return false;
      }
      if (reply.status != protocol::Status::fault) return true;
      faulted = true;  // only a remark: it is believed when the process dies of it
      result.fault = reply.detail;
    }
  }

  /// Waits until the process is seen to have finished. False: result says how the call ended instead.
  [[nodiscard]] bool settle(eval::WallClock::time_point start, std::int64_t cpu_start, CallLimit limit,
                            CallResult& result) {
    auto only_threads =
        eval::WallClock::time_point::max();  // since when nothing but threads kept it from being finished
    for (int looks = 1;; ++looks) {
      std::int64_t cpu_ns = cpu_start;
      const auto seen = watch_.look(cpu_ns);
      const auto now = eval::WallClock::now();
      result.wall_ms = eval::milliseconds(now - start);
      result.cpu_ms = ms_between(cpu_start, cpu_ns);
      if (seen == ProcessWatch::Look::quiet) break;
      if (seen == ProcessWatch::Look::gone) {
        died(limit, result);
        return false;
      }
      only_threads =
          seen == ProcessWatch::Look::threads ? std::min(only_threads, now) : eval::WallClock::time_point::max();
      // a joined thread needs a moment to disappear
      if (seen == ProcessWatch::Look::threads && now - only_threads > std::chrono::milliseconds(100)) {
        result.end = End::threads_left;
        return false;
      }
      if (limit.passed(result.cpu_ms, result.wall_ms, threads_)) {
        result.end = seen == ProcessWatch::Look::threads ? End::threads_left : End::timeout;
        return false;
      }
      if (looks < 64) {
        ::sched_yield();
        continue;
      }
      ::usleep(50);
      if (disturbed(limit, result)) return false;  // a process that ended waits to be reaped, and never gets quiet
    }
    return !disturbed(limit, result);
  }

  /// Whether there is something on the channel although the answer was already taken: a second one, or its end.
  [[nodiscard]] bool disturbed(CallLimit limit, CallResult& result) {
    char extra = 0;
    const ssize_t n = ::recv(control_.get(), &extra, 1, MSG_DONTWAIT);
    if (n > 0)
      result.end = End::protocol;
    else if (n == 0 || errno == ECONNRESET)
      died(limit, result);
    else
      return false;
    return true;
  }

  /// The channel is closed: says how the process ended. A process that closed it and goes on broke the protocol.
  void died(CallLimit limit, CallResult& result) {
    const auto patience = std::chrono::milliseconds(static_cast<std::int64_t>(limit.milliseconds) + 500);
    const auto status = child_.wait_until(eval::WallClock::now() + patience);
    result.end = status ? End::died : End::protocol;
    if (status) result.exit = *status;
  }

  eval::Child child_;
  eval::Descriptor control_;
  eval::Descriptor filter_;
  ProcessWatch watch_;
  int threads_;
};

}  // namespace kevin::cpu

#endif  // KEVIN_EVAL_CPU_RUNNER_HPP
