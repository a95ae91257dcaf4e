#ifndef KEVIN_RL_METRICS_HPP
#define KEVIN_RL_METRICS_HPP

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kevin/core/error.hpp"
#include "kevin/core/math.hpp"
#include "kevin/core/random.hpp"

namespace kevin::rl {

namespace detail {
/// Ascending. std::sort is a template, and every file that includes this one would compile it anew.
inline void sort(std::vector<double>& values) {
  const auto order = [](const void* a, const void* b) {
    const double x = *static_cast<const double*>(a);
    const double y = *static_cast<const double*>(b);
    return x < y ? -1 : x > y ? 1 : 0;
  };
  std::qsort(values.data(), values.size(), sizeof(double), order);
}
}  // namespace detail

/// Probability that at least one of k samples drawn without replacement from n, c of them correct, is correct:
/// 1 - C(n-c, k) / C(n, k) (Chen et al. 2021, arXiv 2107.03374), as the product 1 - prod_{i=n-c+1..n} (1 - k/i).
/// Needs 1 <= k <= n and c <= n, otherwise Error(bad_input).
[[nodiscard]] inline double pass_at_k(std::size_t n, std::size_t c, std::size_t k) {
  if (k < 1 || k > n || c > n) {
    throw Error(ErrorCode::bad_input, "pass_at_k(n=" + std::to_string(n) + ", c=" + std::to_string(c) +
                                          ", k=" + std::to_string(k) + "): needs 1 <= k <= n and c <= n");
  }
  if (n - c < k) return 1;
  double miss = 1;
  for (std::size_t i = n - c + 1; i <= n; ++i) miss *= 1 - static_cast<double>(k) / static_cast<double>(i);
  return 1 - miss;
}

/// Unbiased estimate of the expected best of k samples drawn without replacement from `scores`:
/// (1 / C(n, k)) sum_{i=k..n} C(i-1, k-1) x_(i), x ascending (PKPO, arXiv 2505.15201). The mean at k = 1, the
/// maximum at k = n, pass@k for scores of 0 and 1. Needs 1 <= k <= n, otherwise Error(bad_input).
[[nodiscard]] inline double best_at_k(std::span<const double> scores, std::size_t k) {
  const std::size_t n = scores.size();
  if (k < 1 || k > n) {
    throw Error(ErrorCode::bad_input,
                "best_at_k: k is " + std::to_string(k) + " for " + std::to_string(n) + " scores; needs 1 <= k <= n");
  }
  std::vector<double> x(scores.begin(), scores.end());
  detail::sort(x);
  // weight of x_(n) is C(n-1, k-1) / C(n, k) = k / n; one rank lower it changes by the factor C(i-2, k-1) / C(i-1, k-1)
  // = (i-k) / (i-1)
  double weight = static_cast<double>(k) / static_cast<double>(n);
  double total = 0;
  for (std::size_t i = n; i >= k; --i) {
    total += weight * x[i - 1];
    if (i > 1) weight *= static_cast<double>(i - k) / static_cast<double>(i - 1);
  }
  return total;
}

/// The mean (avg@k over k trajectories); Error(bad_input) when there is none.
[[nodiscard]] inline double mean(std::span<const double> values) {
  if (values.empty()) throw Error(ErrorCode::bad_input, "mean of no values");
  double sum = 0;
  for (const double v : values) sum += v;
  return sum / static_cast<double>(values.size());
}
[[nodiscard]] inline double avg_at_k(std::span<const double> scores) { return mean(scores); }

/// fast_p: share of tasks with a correct kernel faster than p times the baseline (KernelBench, arXiv 2502.10517).
/// `speedups`: one a task, nothing where no kernel was correct. Strictly faster unless `inclusive` (Kevin words it as
/// "p or more"). fast_0 is the share of correct tasks.
[[nodiscard]] inline double fast_p(std::span<const std::optional<double>> speedups, double p, bool inclusive = false) {
  if (speedups.empty()) throw Error(ErrorCode::bad_input, "fast_p of no tasks");
  std::size_t fast = 0;
  for (const std::optional<double>& s : speedups) fast += s && (inclusive ? *s >= p : *s > p) ? 1 : 0;
  return static_cast<double>(fast) / static_cast<double>(speedups.size());
}

/// Geometric mean; every value must be positive, otherwise Error(bad_input).
[[nodiscard]] inline double geometric_mean(std::span<const double> values) {
  if (values.empty()) throw Error(ErrorCode::bad_input, "geometric mean of no values");
  double log_sum = 0;
  for (double v : values) {
    if (!(v > 0)) throw Error(ErrorCode::bad_input, "geometric mean: " + std::to_string(v) + " is not positive");
    log_sum += kevin::detail::log(v);
  }
  return kevin::detail::exp(log_sum / static_cast<double>(values.size()));
}

struct Interval {
  double low = 0;
  double high = 0;
};

/// Percentile bootstrap interval of the mean (Efron 1979): the central `confidence` of the means of `resamples`
/// resamples.
[[nodiscard]] inline Interval bootstrap_interval(std::span<const double> values, std::uint64_t seed,
                                                 double confidence = 0.95, std::size_t resamples = 2000) {
  if (values.empty() || resamples == 0 || !(confidence > 0 && confidence < 1)) {
    throw Error(ErrorCode::bad_input,
                "bootstrap_interval needs values, resamples > 0 and a confidence between 0 and 1");
  }
  Rng rng(seed, "bootstrap");
  std::vector<double> means(resamples);
  for (double& m : means) {
    double sum = 0;
    for (std::size_t i = 0; i < values.size(); ++i) sum += values[rng.below(values.size())];
    m = sum / static_cast<double>(values.size());
  }
  detail::sort(means);
  const double tail = (1 - confidence) / 2;
  const auto at = [&](double q) {
    return means[static_cast<std::size_t>(q * static_cast<double>(resamples - 1) + 0.5)];
  };
  return {at(tail), at(1 - tail)};
}

}  // namespace kevin::rl

#endif  // KEVIN_RL_METRICS_HPP
