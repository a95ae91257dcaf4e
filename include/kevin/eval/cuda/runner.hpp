#ifndef KEVIN_EVAL_CUDA_RUNNER_HPP
#define KEVIN_EVAL_CUDA_RUNNER_HPP

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "kevin/core/error.hpp"
#include "kevin/eval/cuda/plan.hpp"
#include "kevin/eval/cuda/runner_protocol.hpp"
#include "kevin/eval/descriptor.hpp"
#include "kevin/eval/memory_file.hpp"
#include "kevin/eval/process.hpp"
#include "kevin/eval/timing.hpp"

namespace kevin::cuda {

/// How a request to the runner ended.
struct CallResult {
  enum class End {
    done,
    failed,   ///< `status`, `code`, `step`, `detail` say at what
    timeout,  ///< no answer in time; the runner is to be killed
    died,     ///< the process ended; `exit` says how
  };
  End end = End::done;
  protocol::Status status = protocol::Status::ok;
  int code = 0;
  protocol::Step step = protocol::Step::none;
  std::uint32_t detail = 0;
  double event_ms = 0;  ///< run: what the GPU's own clock says
  bool late = false;    ///< run: the GPU came to the launches before all were queued, so it may have waited for them
  double wall_ms = 0;   ///< from asking to the answer
  eval::ExitStatus exit{};
};

/// A program's bytes for the runner: what `program` finds in the mailbox. Error(bad_input) when they do not fit.
[[nodiscard]] inline std::vector<std::byte> encode_program(const LaunchPlan& plan) {
  std::vector<std::byte> out;
  const auto put = [&](const auto& value) {
    const auto bytes = std::as_bytes(std::span(&value, 1));
    out.insert(out.end(), bytes.begin(), bytes.end());
  };
  const auto count = [&](std::size_t n) { put(static_cast<std::uint32_t>(n)); };
  count(plan.launches.size());
  count(plan.scratch.size());
  count(plan.maps.size());
  count(0);
  for (const std::uint64_t bytes : plan.scratch) put(bytes);
  for (const TensorMap& m : plan.maps) put(m);
  for (const PlannedLaunch& l : plan.launches) {
    put(l.grid);
    put(l.block);
    put(l.cluster);
    put(l.shared);
    count(l.cooperative ? 1 : 0);
    count(l.arguments.size());
    count(l.relocations.size());
    count(l.maps.size());
    count(l.kernel.size());
    count(l.starts.size());
    const auto name = std::as_bytes(std::span(l.kernel));
    out.insert(out.end(), name.begin(), name.end());
    out.insert(out.end(), l.arguments.begin(), l.arguments.end());
    for (const std::uint32_t start : l.starts) put(start);
    for (const Relocation& r : l.relocations) put(r);
    for (const MapRelocation& m : l.maps) put(m);
  }
  if (out.size() > protocol::mailbox_bytes)
    throw Error(ErrorCode::bad_input, "a launch plan that does not fit the mailbox");
  return out;
}

/// The judge's end of one GPU runner process. One thread at a time may use it.
class Runner {
 public:
  using End = CallResult::End;

  Runner(eval::Child child, eval::Descriptor control, eval::Descriptor mailbox)
      : child_(std::move(child)), control_(std::move(control)) {
    void* memory = ::mmap(nullptr, protocol::mailbox_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, mailbox.get(), 0);
    if (memory == MAP_FAILED) eval::detail::throw_errno("mapping a runner's mailbox");
    mailbox_ = static_cast<std::byte*>(memory);
  }
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;
  ~Runner() { ::munmap(mailbox_, protocol::mailbox_bytes); }

  [[nodiscard]] pid_t pid() const noexcept { return child_.pid(); }
  void kill() noexcept { child_.kill(); }

  /// Waits for the start-up. Throws Error(unsupported | worker_lost).
  void await_ready() {
    CallResult result;
    receive(result, 30'000);
    if (result.end == End::done && result.status == protocol::Status::ready) return;
    if (result.end == End::failed) {
      const bool walls = result.status == protocol::Status::system && result.detail == 1;
      throw Error(ErrorCode::unsupported,
                  std::string("a GPU runner could not ") + (walls ? "confine itself (" : "start the driver (") +
                      (result.status == protocol::Status::system ? eval::detail::errno_text(result.code)
                                                                 : "CUDA error " + std::to_string(result.code)) +
                      ')');
    }
    throw Error(ErrorCode::worker_lost, "a GPU runner process ended, or did not answer, before it was ready");
  }

  /// Maps the buffers of `sets` sets of arguments: set after set, each in the order of the arguments.
  [[nodiscard]] CallResult map(std::span<const int> files, std::span<const protocol::Buffer> buffers, std::size_t sets,
                               double limit_ms) {
    std::memcpy(mailbox_, buffers.data(), buffers.size_bytes());
    return call({protocol::Kind::buffers, static_cast<std::uint32_t>(buffers.size()), sets, 0, 0}, files, limit_ms);
  }

  /// Loads the module afresh, and numbers the tags.
  [[nodiscard]] CallResult load(int cubin, std::size_t bytes, const std::vector<std::string>& tags, double limit_ms) {
    std::size_t at = 0;
    for (const std::string& tag : tags) {
      if (tag.size() + 1 > protocol::mailbox_bytes - at)
        throw Error(ErrorCode::internal, "tags do not fit the mailbox");
      std::memcpy(mailbox_ + at, tag.c_str(), tag.size() + 1);
      at += tag.size() + 1;
    }
    const int files[] = {cubin};
    return call({protocol::Kind::load, static_cast<std::uint32_t>(tags.size()), bytes, 0, 0}, files, limit_ms);
  }

  /// Runs kevin_plan on stand-in addresses; `book` receives what it wrote.
  [[nodiscard]] CallResult plan(std::uint64_t tag, std::size_t arguments, Book& book, double limit_ms) {
    const CallResult result =
        call({protocol::Kind::plan, static_cast<std::uint32_t>(arguments), tag, 0, 0}, {}, limit_ms);
    static_assert(sizeof(Book) <= protocol::mailbox_bytes);
    if (result.end == End::done) std::memcpy(&book, mailbox_, sizeof book);
    return result;
  }

  /// Readies the launches. `figures` receives what each kernel needs.
  [[nodiscard]] CallResult program(const LaunchPlan& plan, std::vector<protocol::KernelFigures>& figures,
                                   double limit_ms) {
    const std::vector<std::byte> bytes = encode_program(plan);
    std::memcpy(mailbox_, bytes.data(), bytes.size());
    const CallResult result = call({protocol::Kind::program, 0, 0, 0, 0}, {}, limit_ms);
    figures.resize(plan.launches.size());
    if (result.end == End::done) std::memcpy(figures.data(), mailbox_, figures.size() * sizeof figures[0]);
    return result;
  }

  /// Runs the plan once on the buffers of `set`. `flags`: protocol::Run; `poison`: fills scratch memory before;
  /// `head_start`: microseconds for which the GPU is kept busy while the launches are queued.
  [[nodiscard]] CallResult run(std::size_t set, std::uint64_t flags, std::uint32_t poison, std::uint32_t head_start,
                               double limit_ms) {
    CallResult result = call({protocol::Kind::run, head_start, set, flags, poison}, {}, limit_ms);
    result.late = result.end == End::done && result.detail != 0;
    return result;
  }

  /// Gives it the judge's own kernels, `bytes` of cubin in `file`; once, before anything else. `shared`: bytes that a
  /// block can have.
  [[nodiscard]] CallResult equip(int file, std::size_t bytes, std::uint64_t l2_bytes, std::uint32_t multiprocessors,
                                 std::uint32_t shared, double limit_ms) {
    equipped_ = true;
    const int files[] = {file};
    return call({protocol::Kind::equip, multiprocessors, bytes, l2_bytes, shared}, files, limit_ms);
  }
  [[nodiscard]] bool equipped() const noexcept { return equipped_; }

  /// Forgets the candidate.
  [[nodiscard]] CallResult reset(double limit_ms) {
    ++candidates_;
    return call({protocol::Kind::reset, 0, 0, 0, 0}, {}, limit_ms);
  }

  /// How many candidates it has forgotten.
  [[nodiscard]] std::size_t candidates() const noexcept { return candidates_; }

 private:
  [[nodiscard]] CallResult call(const protocol::Request& request, std::span<const int> files, double limit_ms) {
    CallResult result;
    const auto start = eval::WallClock::now();
    if (send(request, files))
      receive(result, limit_ms);
    else
      died(result);
    result.wall_ms = eval::milliseconds(eval::WallClock::now() - start);
    return result;
  }

  [[nodiscard]] bool send(const protocol::Request& request, std::span<const int> files) {
    iovec io{const_cast<protocol::Request*>(&request), sizeof request};
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
    while ((n = ::sendmsg(control_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT)) < 0 && errno == EINTR) {
    }
    if (n >= 0) return true;
    if (errno == EPIPE || errno == ECONNRESET || errno == EAGAIN) return false;
    eval::detail::throw_errno("sending to a GPU runner");
  }

  void receive(CallResult& result, double limit_ms) {
    const auto deadline =
        eval::WallClock::now() + std::chrono::microseconds(static_cast<std::int64_t>(1000 * limit_ms));
    protocol::Reply reply{};
    for (;;) {
      const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(deadline - eval::WallClock::now()).count();
      if (left <= 0) {
        result.end = End::timeout;
        return;
      }
      pollfd p{control_.get(), POLLIN, 0};
      const timespec wait{static_cast<time_t>(left / 1'000'000'000), static_cast<long>(left % 1'000'000'000)};
      const int ready = ::ppoll(&p, 1, &wait, nullptr);
      if (ready < 0 && errno != EINTR) eval::detail::throw_errno("waiting for a GPU runner");
      if (ready <= 0) continue;
      const ssize_t n = ::recv(control_.get(), &reply, sizeof reply, MSG_TRUNC | MSG_DONTWAIT);
      if (n < 0 && (errno == EAGAIN || errno == EINTR)) continue;
      if (n != static_cast<ssize_t>(sizeof reply)) return died(result);
      break;
    }
    const bool fine = reply.status == protocol::Status::ok || reply.status == protocol::Status::ready;
    result.end = fine ? End::done : End::failed;
    result.status = reply.status;
    result.code = reply.code;
    result.step = reply.step;
    result.detail = reply.detail;
    result.event_ms = reply.milliseconds;
  }

  void died(CallResult& result) {
    result.end = End::died;
    child_.kill();
    if (const auto status = child_.wait_until(eval::WallClock::now() + std::chrono::seconds(5))) result.exit = *status;
  }

  eval::Child child_;
  eval::Descriptor control_;
  std::byte* mailbox_ = nullptr;
  std::size_t candidates_ = 0;
  bool equipped_ = false;
};

}  // namespace kevin::cuda

#endif  // KEVIN_EVAL_CUDA_RUNNER_HPP
