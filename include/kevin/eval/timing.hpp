#ifndef KEVIN_EVAL_TIMING_HPP
#define KEVIN_EVAL_TIMING_HPP

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <sys/types.h>
#include <time.h>

#include "kevin/config.hpp"
#include "kevin/refine/verdict.hpp"

namespace kevin::eval {

using WallClock = std::chrono::steady_clock;

/// Milliseconds between two points of a clock.
[[nodiscard]] inline double milliseconds(WallClock::duration d) noexcept {
  return std::chrono::duration<double, std::milli>(d).count();
}

/// Processor time in milliseconds: of one thread, or of a process with all its threads, as the kernel accounts it.
/// It stands still while the process waits for a processor, so other work on the machine does not enter.
class CpuClock {
 public:
  /// Of process `pid`. Reading needs no rights over it.
  explicit CpuClock(pid_t pid) noexcept {
    if (::clock_getcpuclockid(pid, &id_) != 0) id_ = CLOCK_MONOTONIC;
  }
  /// Of the thread that calls now().
  [[nodiscard]] static CpuClock this_thread() noexcept { return CpuClock(); }

  /// Nanoseconds; -1 when the process is gone.
  [[nodiscard]] std::int64_t nanoseconds() const noexcept {
    timespec t{};
    if (::clock_gettime(id_, &t) != 0) return -1;
    return static_cast<std::int64_t>(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
  }

 private:
  CpuClock() noexcept : id_(CLOCK_THREAD_CPUTIME_ID) {}
  clockid_t id_{};
};

/// The order statistics that bound the median with 95 % confidence: 0-based ranks into n sorted samples.
/// Distribution-free: the number of samples below the median is binomial(n, 1/2), so the interval
/// [x(k), x(n-1-k)] covers it with probability 1 - 2 P(B <= k) (see e.g. David & Nagaraja, Order Statistics, 7.1).
/// Below 6 samples no interval reaches 95 %: then all of the range.
[[nodiscard]] inline std::pair<std::size_t, std::size_t> median_bounds(std::size_t n) noexcept {
  if (n == 0) return {0, 0};
  // P(B <= k) summed from its logarithms: 2^-n underflows for large n
  const double count = static_cast<double>(n);
  double cumulative = 0;
  std::size_t rank = 0;
  for (std::size_t k = 0; k < n / 2; ++k) {
    const double j = static_cast<double>(k);
    // lgamma_r, since lgamma writes a global sign
    int sign = 0;
    const double log_p = ::lgamma_r(count + 1, &sign) - ::lgamma_r(j + 1, &sign) - ::lgamma_r(count - j + 1, &sign) -
                         count * std::log(2.0);
    cumulative += std::exp(log_p);
    if (cumulative > 0.025) break;
    rank = k;
  }
  return {rank, n - 1 - rank};
}

/// Median of the samples with its bounds. No samples: all zero.
[[nodiscard]] inline Timing summarize(std::vector<double> samples) {
  Timing t;
  t.samples = static_cast<std::int64_t>(samples.size());
  if (samples.empty()) return t;
  std::sort(samples.begin(), samples.end());
  const std::size_t n = samples.size();
  t.median_ms = n % 2 == 1 ? samples[n / 2] : (samples[n / 2 - 1] + samples[n / 2]) / 2;
  const auto [low, high] = median_bounds(n);
  t.low_ms = samples[low];
  t.high_ms = samples[high];
  return t;
}

/// When to stop measuring. With a task whose inputs take more than a few milliseconds to draw and compare it is mostly
/// overhead_ms that ends it, after min_rounds, whatever the width.
struct StoppingRule {
  std::int64_t min_rounds = 8;  ///< below 6, no confidence interval exists
  std::int64_t max_rounds = 30;
  double width = 0.08;      ///< enough when both intervals are narrower than this share of their medians
  double budget_ms = 150;   ///< time spent inside both sides' calls; then min_rounds, or a third of them for calls
                            ///< so slow that they cost four budgets, is enough
  double overhead_ms = 15;  ///< time spent on drawing and checking between the calls; then min_rounds is enough
};

/// Whether the two sides' samples (milliseconds, one each a round) suffice, after `spent_ms` inside the calls and
/// `overhead_ms` between them. The rule looks at the widths only, never at which side is ahead, so that stopping early
/// favours nobody.
[[nodiscard]] inline bool enough(const StoppingRule& rule, const Timing& candidate, const Timing& baseline,
                                 double spent_ms, double overhead_ms) noexcept {
  const std::int64_t n = std::min(candidate.samples, baseline.samples);
  if (n >= rule.max_rounds) return true;
  if (spent_ms >= 4 * rule.budget_ms && n >= std::max<std::int64_t>(1, rule.min_rounds / 3)) return true;
  if (n < rule.min_rounds) return false;
  if (spent_ms >= rule.budget_ms || overhead_ms >= rule.overhead_ms) return true;
  const auto narrow = [&](const Timing& t) { return t.high_ms - t.low_ms <= rule.width * t.median_ms; };
  return narrow(candidate) && narrow(baseline);
}

}  // namespace kevin::eval

#endif  // KEVIN_EVAL_TIMING_HPP
