#ifndef KEVIN_EVAL_SPREAD_HPP
#define KEVIN_EVAL_SPREAD_HPP

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kevin/eval/half.hpp"
#include "kevin/refine/task.hpp"

namespace kevin::eval {

namespace detail {

/// Sums over n finite elements, each less `shift`. The shift is one of the elements, and none is farther than sqrt(n)
/// standard deviations from the mean: so cancelling costs about n times the precision of double at worst, however large
/// the mean is.
struct ShiftedSums {
  double shift = 0;
  double first = 0;   ///< of the differences
  double second = 0;  ///< of their squares
  std::int64_t count = 0;

  /// 0 where there is no element, and where double cannot hold the squares.
  [[nodiscard]] double deviation() const noexcept {
    if (count == 0) return 0;
    const auto n = static_cast<double>(count);
    const double variance = (second - first * first / n) / n;
    return variance > 0 && std::isfinite(variance) ? std::sqrt(variance) : 0;
  }
};

/// A fixed count of elements and of sums that run side by side, for vector instructions.
inline constexpr std::size_t spread_block = 1024;
inline constexpr std::size_t spread_lanes = 8;

/// The sums over one block; not finite when an element is not.
template <class T>
[[gnu::always_inline]] inline void sum_block_here(const T* x, double shift, double& first, double& second) noexcept {
  double firsts[spread_lanes] = {};
  double seconds[spread_lanes] = {};
  for (std::size_t i = 0; i < spread_block; i += spread_lanes) {
    for (std::size_t k = 0; k < spread_lanes; ++k) {
      const double difference = static_cast<double>(x[i + k]) - shift;
      firsts[k] += difference;
      seconds[k] += difference * difference;
    }
  }
  first = second = 0;
  for (std::size_t k = 0; k < spread_lanes; ++k) {
    first += firsts[k];
    second += seconds[k];
  }
}

#if defined(__x86_64__) && defined(__GNUC__)
template <class T>
[[gnu::target("avx2")]] inline void sum_block_avx2(const T* x, double shift, double& first, double& second) noexcept {
  sum_block_here(x, shift, first, second);
}
#endif

/// sum_block_here, with the vector instructions of this processor; the same result with all of them.
template <class T>
void sum_block(const T* x, double shift, double& first, double& second) noexcept {
#if defined(__x86_64__) && defined(__GNUC__)
  if (__builtin_cpu_supports("avx2")) return sum_block_avx2(x, shift, first, second);
#endif
  sum_block_here(x, shift, first, second);
}

/// `value`: an element as a double.
template <class Stored, class Value>
[[nodiscard]] double spread_of_reals(const Stored* x, std::size_t n, Value value) noexcept {
  ShiftedSums sums;
  for (std::size_t i = 0; i < n; ++i) {
    if (!std::isfinite(value(x[i]))) continue;
    sums.shift = value(x[i]);
    break;
  }
  for (std::size_t start = 0; start < n; start += spread_block) {
    const std::size_t end = std::min(start + spread_block, n);
    if constexpr (std::is_floating_point_v<Stored>) {
      double first = 0;
      double second = 0;
      if (end - start == spread_block) {
        sum_block(x + start, sums.shift, first, second);
        if (std::isfinite(first) && std::isfinite(second)) {
          sums.first += first;
          sums.second += second;
          sums.count += static_cast<std::int64_t>(spread_block);
          continue;
        }
      }
    }
    for (std::size_t i = start; i < end; ++i) {
      const double v = value(x[i]);
      if (!std::isfinite(v)) continue;
      const double difference = v - sums.shift;
      sums.first += difference;
      sums.second += difference * difference;
      ++sums.count;
    }
  }
  return sums.deviation();
}

}  // namespace detail

/// The standard deviation of the finite ones of `n` elements, dividing by their number; 0 for integers and booleans,
/// and for float64 so large that double cannot hold their squares (a tolerance is not widened then).
[[nodiscard]] inline double spread_of(DType dtype, const void* elements, std::int64_t n) noexcept {
  const auto count = static_cast<std::size_t>(n);
  switch (dtype) {
    case DType::float32:
      return detail::spread_of_reals(static_cast<const float*>(elements), count,
                                     [](float x) { return static_cast<double>(x); });
    case DType::float64:
      return detail::spread_of_reals(static_cast<const double*>(elements), count, [](double x) { return x; });
    case DType::float16:
      return detail::spread_of_reals(static_cast<const std::uint16_t*>(elements), count, detail::half_to_double);
    case DType::bfloat16:
      return detail::spread_of_reals(static_cast<const std::uint16_t*>(elements), count, detail::bfloat16_to_double);
    case DType::int32:
    case DType::int64:
    case DType::boolean:
      return 0;
  }
  return 0;
}

}  // namespace kevin::eval

#endif  // KEVIN_EVAL_SPREAD_HPP
