#ifndef KEVIN_EVAL_CUDA_COMPILE_WORKER_HPP
#define KEVIN_EVAL_CUDA_COMPILE_WORKER_HPP

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <poll.h>
#include <sys/socket.h>

#include "kevin/core/error.hpp"
#include "kevin/eval/descriptor.hpp"
#include "kevin/eval/process.hpp"
#include "kevin/eval/scratch.hpp"

namespace kevin::cuda {

/// The judge's end of one process that runs compile_worker_source(). What comes from it is hostile: sizes are bounded
/// before anything is allocated, and time is bounded always. One thread at a time.
class CompileWorker {
 public:
  using Clock = std::chrono::steady_clock;
  /// Bytes of the largest CUBIN or PTX, and of the log.
  static constexpr std::uint64_t code_limit = std::uint64_t{64} << 20;
  static constexpr std::uint64_t log_limit = std::uint64_t{512} << 10;

  /// With this code a worker ends whose memory is used up.
  static constexpr int memory_exit = 77;

  /// What became of a request.
  enum class Outcome { answered, timeout, too_large, crashed, killed };
  struct Reply {
    Outcome outcome = Outcome::crashed;
    std::vector<std::string> fields;  ///< when answered
    eval::ExitStatus status;          ///< when crashed or killed
  };

  /// `control`: a non-blocking stream socket; `scratch`: removed with this object; `headers`: the one folder in which
  /// the process may write.
  CompileWorker(eval::Child child, eval::Descriptor control, std::unique_ptr<eval::Scratch::Part> scratch,
                std::filesystem::path headers)
      : scratch_(std::move(scratch)),
        headers_(std::move(headers)),
        child_(std::move(child)),
        control_(std::move(control)) {}

  [[nodiscard]] pid_t pid() const noexcept { return child_.pid(); }
  /// Compilations so far.
  [[nodiscard]] std::size_t jobs() const noexcept { return jobs_; }
  /// Where it keeps precompiled headers.
  [[nodiscard]] const std::filesystem::path& headers() const noexcept { return headers_; }
  /// Whether it has these headers precompiled, as far as is known.
  [[nodiscard]] bool prepared(const std::string& headers) const { return prepared_.count(headers) != 0; }
  void set_prepared(const std::string& headers) { prepared_.insert(headers); }

  void kill() noexcept { child_.kill(); }

  /// Alive, and not saying anything unasked.
  [[nodiscard]] bool idle() {
    pollfd p{control_.get(), POLLIN, 0};
    return ::poll(&p, 1, 0) == 0;
  }

  /// Waits for the first message once; later calls do nothing. Returns what the worker says is wrong ("" = nothing),
  /// its version and architectures. Throws Error(worker_lost) when it does not answer.
  const std::vector<std::string>& greet() {
    if (!greeting_.empty()) return greeting_;
    Reply reply = receive(Clock::now() + std::chrono::seconds(60), std::array<std::uint64_t, 3>{4096, 64, 4096});
    if (reply.outcome != Outcome::answered) {
      throw Error(ErrorCode::worker_lost, reply.outcome == Outcome::timeout
                                              ? "the process that compiles CUDA candidates did not start in a minute"
                                              : "the process that compiles CUDA candidates ended at its start (" +
                                                    describe(reply.status) + ")");
    }
    greeting_ = std::move(reply.fields);
    return greeting_;
  }

  /// Sends a request and waits for the answer: result, log, CUBIN, PTX. After anything but `answered` the worker must
  /// be killed.
  [[nodiscard]] Reply compile(std::span<const std::string_view> request, Clock::time_point deadline) {
    ++jobs_;
    std::string head;
    const auto number = [&head](auto n) { head.append(reinterpret_cast<const char*>(&n), sizeof n); };
    number(magic);
    number(static_cast<std::uint32_t>(request.size()));
    for (const std::string_view field : request) number(static_cast<std::uint64_t>(field.size()));
    std::vector<std::string_view> parts{head};
    parts.insert(parts.end(), request.begin(), request.end());
    for (std::string_view part : parts) {
      while (!part.empty()) {
        const ssize_t n = ::send(control_.get(), part.data(), part.size(), MSG_NOSIGNAL);
        if (n > 0) {
          part.remove_prefix(static_cast<std::size_t>(n));
        } else if (n < 0 && errno == EAGAIN) {
          if (!wait(POLLOUT, deadline)) return {Outcome::timeout, {}, {}};
        } else if (n >= 0 || errno != EINTR) {
          return ended(deadline);
        }
      }
    }
    return receive(deadline, std::array<std::uint64_t, 4>{16, log_limit, code_limit, code_limit});
  }

  [[nodiscard]] static std::string describe(const eval::ExitStatus& status) {
    return (status.signaled ? "signal " : "exit code ") + std::to_string(status.code);
  }

 private:
  static constexpr std::uint32_t magic = 0x6b63756b;

  /// False when the deadline passed.
  bool wait(short events, Clock::time_point deadline) {
    for (;;) {
      const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(deadline - Clock::now()).count();
      if (left <= 0) return false;
      const timespec time{static_cast<time_t>(left / 1'000'000'000), static_cast<long>(left % 1'000'000'000)};
      pollfd p{control_.get(), events, 0};
      const int ready = ::ppoll(&p, 1, &time, nullptr);
      if (ready > 0) return true;
      if (ready < 0 && errno != EINTR) eval::detail::throw_errno("waiting for a compiler");
    }
  }

  template <std::size_t Fields>
  [[nodiscard]] Reply receive(Clock::time_point deadline, const std::array<std::uint64_t, Fields>& limits) {
    std::optional<Reply> failure;
    const auto read = [&](void* data, std::size_t size) {
      char* at = static_cast<char*>(data);
      while (size > 0) {
        const ssize_t n = ::recv(control_.get(), at, size, 0);
        if (n > 0) {
          at += n;
          size -= static_cast<std::size_t>(n);
        } else if (n < 0 && errno == EAGAIN) {
          if (wait(POLLIN, deadline)) continue;
          failure = Reply{Outcome::timeout, {}, {}};
          return false;
        } else if (n == 0 || errno != EINTR) {
          failure = ended(deadline);
          return false;
        }
      }
      return true;
    };
    std::array<std::uint32_t, 2> head{};
    std::array<std::uint64_t, Fields> sizes{};
    if (!read(head.data(), sizeof head)) return std::move(*failure);
    if (head[0] != magic || head[1] != Fields) return {};  // it speaks nonsense: as good as crashed
    if (!read(sizes.data(), sizeof sizes)) return std::move(*failure);
    for (std::size_t i = 0; i < Fields; ++i) {
      if (sizes[i] > limits[i]) return {sizes[i] <= code_limit * 64 ? Outcome::too_large : Outcome::crashed, {}, {}};
    }
    Reply reply{Outcome::answered, std::vector<std::string>(Fields), {}};
    for (std::size_t i = 0; i < Fields; ++i) {
      // grows as bytes come: a size alone makes nobody allocate
      for (std::uint64_t done = 0; done < sizes[i];) {
        const std::uint64_t step = std::min<std::uint64_t>(sizes[i] - done, std::uint64_t{1} << 20);
        reply.fields[i].resize(done + step);
        if (!read(reply.fields[i].data() + done, step)) return std::move(*failure);
        done += step;
      }
    }
    return reply;
  }

  /// How it came that the channel is closed.
  [[nodiscard]] Reply ended(Clock::time_point deadline) {
    auto status = child_.wait_until(std::min(deadline, Clock::now() + std::chrono::seconds(2)));
    if (!status) return {};  // it closed the channel and goes on
    // NVRTC does not end by these; somebody else did it, or a limit over the whole life of the process
    const bool outside =
        status->signaled && (status->code == SIGKILL || status->code == SIGTERM || status->code == SIGINT ||
                             status->code == SIGHUP || status->code == SIGQUIT || status->code == SIGXCPU);
    const bool file = status->signaled && status->code == SIGXFSZ;
    return {outside ? Outcome::killed : file ? Outcome::too_large : Outcome::crashed, {}, *status};
  }

  std::unique_ptr<eval::Scratch::Part> scratch_;  // outlives the process
  std::filesystem::path headers_;
  eval::Child child_;
  eval::Descriptor control_;
  std::size_t jobs_ = 0;
  std::set<std::string> prepared_;
  std::vector<std::string> greeting_;
};

}  // namespace kevin::cuda

#endif  // KEVIN_EVAL_CUDA_COMPILE_WORKER_HPP
