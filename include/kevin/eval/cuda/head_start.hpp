#ifndef KEVIN_EVAL_CUDA_HEAD_START_HPP
#define KEVIN_EVAL_CUDA_HEAD_START_HPP

#include <algorithm>
#include <cstdint>
#include <utility>

namespace kevin::cuda {

/// How long the GPU is kept busy before a timed run, so that all its launches are queued when their turn comes. Without
/// that, what is measured of operations shorter than their launches is the processor, and how busy the machine is.
///
/// A round of runs, one of which the GPU came to too early ("late"), is not counted, and the head start doubles. What
/// is late also with the longest, some operation that waits for the GPU itself, counts all the same after some rounds.
class HeadStart {
 public:
  static constexpr std::uint32_t shortest = 50;   ///< microseconds: that of a few launches
  static constexpr std::uint32_t longest = 3200;  ///< microseconds: that of more launches than the GPU's queue holds
  static constexpr int patience = 12;             ///< late rounds that are not counted

  HeadStart() noexcept = default;
  /// No head start, and every round counts.
  [[nodiscard]] static HeadStart none() noexcept {
    HeadStart h;
    h.microseconds_ = 0;
    return h;
  }

  [[nodiscard]] std::uint32_t microseconds() const noexcept { return microseconds_; }

  /// Takes note of one run.
  void saw(bool late) noexcept { late_ = late_ || late; }

  /// Ends a round: whether its times count. If not, the next one has a longer head start.
  [[nodiscard]] bool end_round() noexcept {
    if (!std::exchange(late_, false) || microseconds_ == 0) return true;
    if (++late_rounds_ > patience) return true;
    microseconds_ = std::min(2 * microseconds_, longest);
    return false;
  }

  /// Whether late rounds were counted.
  [[nodiscard]] bool gave_up() const noexcept { return late_rounds_ > patience; }

 private:
  std::uint32_t microseconds_ = shortest;
  int late_rounds_ = 0;
  bool late_ = false;
};

}  // namespace kevin::cuda

#endif  // KEVIN_EVAL_CUDA_HEAD_START_HPP
