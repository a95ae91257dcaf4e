#ifndef KEVIN_EVAL_COMPARISON_BLOCKS_HPP
#define KEVIN_EVAL_COMPARISON_BLOCKS_HPP

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "kevin/refine/task.hpp"
#include "kevin/refine/verdict.hpp"

/// The passes over whole blocks of elements that comparison.hpp is quick by. The tolerances have no spread here.
namespace kevin::eval::detail {

/// Elements that are compared together; a fixed count lets the compiler use vector instructions.
inline constexpr std::size_t comparison_block = 1024;

/// How many elements of a block, finite on both sides, KernelBench would not accept (`k`: its tolerance).
template <class T>
[[nodiscard, gnu::always_inline]] inline std::int64_t outside_kernelbench(const T* actual, const T* expected,
                                                                          double k) noexcept {
  std::uint64_t count = 0;
  for (std::size_t i = 0; i < comparison_block; ++i) {
    const double a = static_cast<double>(actual[i]);
    const double margin = k + k * std::fabs(a) - std::fabs(a - static_cast<double>(expected[i]));
    count += std::bit_cast<std::uint64_t>(margin) >> 63U;  // its sign: equal numbers give +0
  }
  return static_cast<std::int64_t>(count);
}

/// Whether every element of a block is finite on both sides, written and within the tolerance; collects the largest
/// errors and counts what KernelBench would not accept. The one pass that nearly every block of nearly every candidate
/// takes, so it has no branches.
template <class T>
[[nodiscard, gnu::always_inline]] inline bool clean_block_here(const T* actual, const T* expected, Tolerance tolerance,
                                                               double k, ErrorFigures& f) noexcept {
  // Bits of numbers that are not negative are ordered as the numbers are, and a NaN's are above all: largest ones are
  // found among integers, which the compiler may take in any order.
  constexpr std::int64_t infinity = std::bit_cast<std::int64_t>(std::numeric_limits<double>::infinity());
  std::int64_t max_absolute = 0;
  std::int64_t max_relative = 0;
  std::int64_t outside = 0;  // its sign: set when an element is
  for (std::size_t i = 0; i < comparison_block; ++i) {
    const double e = static_cast<double>(expected[i]);
    const double difference = std::fabs(static_cast<double>(actual[i]) - e);
    const double size = std::fabs(e);
    // Negative when outside: equal numbers give +0. The sign of a NaN means nothing, but it is among the largest
    // errors.
    const double margin = tolerance.absolute + tolerance.relative * size - difference;
    const double relative = difference / (size > 0 ? size : std::numeric_limits<double>::infinity());
    const auto absolute_bits = std::bit_cast<std::int64_t>(difference);
    const auto relative_bits = std::bit_cast<std::int64_t>(relative);
    outside |= std::bit_cast<std::int64_t>(margin);
    max_absolute = absolute_bits > max_absolute ? absolute_bits : max_absolute;
    max_relative = relative_bits > max_relative ? relative_bits : max_relative;
  }
  if (outside < 0 || max_absolute >= infinity) return false;
  f.max_absolute = std::fmax(f.max_absolute, std::bit_cast<double>(max_absolute));
  f.max_relative = std::fmax(f.max_relative, std::bit_cast<double>(max_relative));
  // No need to look again where the largest errors say that all is well. A relative error below k (1 - k) of what is
  // expected is below k of the candidate's value; where 0 is expected, only the tolerance says how large an error is.
  const bool near = std::bit_cast<double>(max_absolute) <= k;
  const bool relatively_near = tolerance.absolute <= k && std::bit_cast<double>(max_relative) <= k * (1 - k);
  if (!near && !relatively_near) f.outside_kernelbench += outside_kernelbench(actual, expected, k);
  return true;
}

#if defined(__x86_64__) && defined(__GNUC__)
template <class T>
[[nodiscard, gnu::target("avx2")]] inline bool clean_block_avx2(const T* actual, const T* expected, Tolerance tolerance,
                                                                double k, ErrorFigures& f) noexcept {
  return clean_block_here(actual, expected, tolerance, k, f);
}
#endif

/// clean_block_here, with the vector instructions of this processor; the same result with all of them.
template <class T>
[[nodiscard]] bool clean_block(const T* actual, const T* expected, Tolerance tolerance, double k,
                               ErrorFigures& f) noexcept {
#if defined(__x86_64__) && defined(__GNUC__)
  if (__builtin_cpu_supports("avx2")) return clean_block_avx2(actual, expected, tolerance, k, f);
#endif
  return clean_block_here(actual, expected, tolerance, k, f);
}

/// Whether a block is within the tolerance for certain: in float arithmetic, against a limit that is smaller by more
/// than its rounding. An expected infinity or NaN makes the difference infinite or NaN, which is never certain.
[[nodiscard, gnu::always_inline]] inline bool certain_block_here(const float* actual, const float* expected,
                                                                 float absolute, float relative) noexcept {
  std::uint32_t doubtful = 0;
  for (std::size_t i = 0; i < comparison_block; ++i) {
    const float difference = std::fabs(actual[i] - expected[i]);
    const float limit = absolute + relative * std::fabs(expected[i]);
    doubtful |= static_cast<std::uint32_t>(!(difference <= limit));
    doubtful |= static_cast<std::uint32_t>(!(difference <= std::numeric_limits<float>::max()));
  }
  return doubtful == 0;
}

#if defined(__x86_64__) && defined(__GNUC__)
[[nodiscard, gnu::target("avx2")]] inline bool certain_block_avx2(const float* actual, const float* expected,
                                                                  float absolute, float relative) noexcept {
  return certain_block_here(actual, expected, absolute, relative);
}
#endif

[[nodiscard]] inline bool certain_block(const float* actual, const float* expected, float absolute,
                                        float relative) noexcept {
#if defined(__x86_64__) && defined(__GNUC__)
  if (__builtin_cpu_supports("avx2")) return certain_block_avx2(actual, expected, absolute, relative);
#endif
  return certain_block_here(actual, expected, absolute, relative);
}

}  // namespace kevin::eval::detail

#endif  // KEVIN_EVAL_COMPARISON_BLOCKS_HPP
