#ifndef KEVIN_EVAL_COMMAND_HPP
#define KEVIN_EVAL_COMMAND_HPP

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "kevin/eval/process.hpp"

namespace kevin::eval {

/// What a bounded command did.
struct CommandResult {
  std::optional<ExitStatus> status;  ///< nullopt = killed at the time limit
  std::string output;                ///< of the captured descriptors, at most the limit; the rest was thrown away
  [[nodiscard]] bool ok() const noexcept { return status == ExitStatus{false, 0}; }
};

/// Which of a command's streams are captured (together, in the order of writing).
enum class Capture { output, errors, both };

/// Runs a program until it ends or `deadline` comes; then its process group is killed. Returns only when nobody holds
/// the captured stream any more, that is, when the last process of the group is really gone and can write nowhere
/// (bounded by one second for a process that the kernel does not let go).
/// Throws what spawn throws.
[[nodiscard]] inline CommandResult run_command(SpawnOptions options, std::chrono::steady_clock::time_point deadline,
                                               Capture capture, std::size_t output_limit = 1 << 18) {
  using Clock = std::chrono::steady_clock;
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) detail::throw_errno("pipe");
  Descriptor reader(ends[0]), writer(ends[1]);
  // The child's end is an ordinary blocking one: O_NONBLOCK belongs to the open file, and the two ends are two files.
  if (::fcntl(writer.get(), F_SETFL, 0) != 0) detail::throw_errno("fcntl");
  if (capture != Capture::errors) options.descriptors.push_back({writer.get(), 1});
  if (capture != Capture::output) options.descriptors.push_back({writer.get(), 2});
  Child child = spawn(options);
  writer.reset();

  CommandResult result;
  std::array<char, 16384> buffer;
  for (bool open = true; open || child.descriptor() >= 0;) {
    const auto now = Clock::now();
    if (now >= deadline) {
      if (child.descriptor() < 0) break;  // it ended; something unkillable still holds the stream
      child.kill();
      static_cast<void>(child.wait());
      deadline = now + std::chrono::seconds(1);
      if (!open) break;
      continue;
    }
    std::array<pollfd, 2> waits{{{open ? reader.get() : -1, POLLIN, 0}, {child.descriptor(), POLLIN, 0}}};
    const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(deadline - now).count();
    const timespec time{static_cast<time_t>(left / 1'000'000'000), static_cast<long>(left % 1'000'000'000)};
    const int ready = ::ppoll(waits.data(), waits.size(), &time, nullptr);
    if (ready < 0 && errno != EINTR) detail::throw_errno("waiting for a command");
    if (ready <= 0) continue;
    if (open && waits[0].revents != 0) {
      const ssize_t count = ::read(reader.get(), buffer.data(), buffer.size());
      if (count > 0) {
        const std::size_t room = output_limit - std::min(output_limit, result.output.size());
        result.output.append(buffer.data(), std::min(room, static_cast<std::size_t>(count)));
      } else if (count == 0 || (errno != EAGAIN && errno != EINTR)) {
        open = false;
      }
    }
    if (waits[1].revents != 0) {
      result.status = child.wait_until(Clock::now());
      deadline =
          std::max(deadline, Clock::now() + std::chrono::seconds(1));  // its group is killed: the stream closes now
    }
  }
  return result;
}

}  // namespace kevin::eval

#endif  // KEVIN_EVAL_COMMAND_HPP
