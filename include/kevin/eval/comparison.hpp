#ifndef KEVIN_EVAL_COMPARISON_HPP
#define KEVIN_EVAL_COMPARISON_HPP

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <string>

#include "kevin/config.hpp"
#include "kevin/core/error.hpp"
#include "kevin/eval/comparison_blocks.hpp"
#include "kevin/eval/half.hpp"
#include "kevin/eval/spread.hpp"
#include "kevin/refine/task.hpp"
#include "kevin/refine/verdict.hpp"

/// The comparison's law, one element at a time:
///   unwritten   the element still has exactly the bits that were there before the launch;
///   finite e    passes when |a - e| <= absolute + relative |e| + spread sigma, in double; written so that a NaN fails;
///   e is NaN    passes when a is NaN; e is infinite: when a == e, sign included;
///   integers    and booleans pass when they are equal.
/// Every element counts: no ratio of right ones, no mean error, no scale taken from the largest element. sigma is that
/// of spread.hpp, of the expected output alone. Beside it, deciding nothing, KernelBench's rule
/// (kernelbench_tolerance).
namespace kevin::eval {

/// What an output holds before a launch. For floating types a NaN with random payload, which no kernel computes by
/// accident; for integers random bits; for bool a byte that is neither false nor true.
class Poison {
 public:
  /// Of type `dtype`, from 64 random bits.
  Poison(DType dtype, std::uint64_t random) noexcept : size_(static_cast<std::size_t>(size_of(dtype))) {
    switch (dtype) {
      case DType::float64:
        bits_ = 0x7ff8000000000000ULL | (random & 0x8007ffffffffffffULL);
        break;
      case DType::float32:
        bits_ = 0x7fc00000ULL | (random & 0x803fffffULL);
        break;
      case DType::float16:
        bits_ = 0x7e00ULL | (random & 0x81ffULL);
        break;
      case DType::bfloat16:
        bits_ = 0x7fc0ULL | (random & 0x803fULL);
        break;
      case DType::boolean:
        bits_ = 0x80U | (random & 0x7fU);
        break;
      case DType::int64:
        bits_ = random;
        break;
      case DType::int32:
        bits_ = random & 0xffffffffULL;
        break;
    }
  }

  [[nodiscard]] std::uint64_t bits() const noexcept { return bits_; }

  /// Eight bytes of it: one element, or two, four or eight.
  [[nodiscard]] std::uint64_t word() const noexcept {
    std::uint64_t word = bits_;
    for (std::size_t width = size_; width < 8; width *= 2) word |= word << (8 * width);
    return word;
  }

  /// Fills `bytes` (a multiple of the element's size) with it.
  void fill(std::byte* memory, std::size_t bytes) const noexcept {
    const std::uint64_t word = this->word();
    std::size_t i = 0;
    for (; i + 8 <= bytes; i += 8) std::memcpy(memory + i, &word, 8);
    if (i < bytes) std::memcpy(memory + i, &word, bytes - i);
  }

 private:
  std::size_t size_;
  std::uint64_t bits_ = 0;
};

/// What KernelBench allows, absolutely and relative to the candidate's value (the reference's being the first operand):
/// torch.allclose(expected, candidate, atol = rtol = this), which no NaN passes (its src/eval.py,
/// since pull request 80 of November 2025). It knows nothing of float64 and compares integers as the float32 run that
/// they belong to.
[[nodiscard]] constexpr double kernelbench_tolerance(DType dtype) noexcept {
  return dtype == DType::float16 || dtype == DType::bfloat16 ? 1e-2 : 1e-4;
}

/// How one output differs: the figures, and where its wrong elements lie.
struct Difference {
  ErrorFigures figures;
  std::int64_t first_wrong = -1;  ///< flat index; -1 = none
  std::int64_t last_wrong = -1;
};

namespace detail {

/// Whether KernelBench accepts `a` where `e` is expected, as torch.isclose(e, a) does.
[[nodiscard]] inline bool kernelbench_accepts(double a, double e, double k) noexcept {
  const double difference = std::fabs(a - e);
  return a == e || (difference <= k + k * std::fabs(a) && std::isfinite(difference));
}

template <class T>
[[nodiscard]] std::uint64_t bits_of(const T& value) noexcept {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  return bits;
}

/// `Stored`: the type in memory; `value`: its value as a double.
template <class Stored, class Value>
void compare_reals(const Stored* actual, const Stored* expected, std::size_t n, Tolerance tolerance, double k,
                   std::uint64_t poison, Value value, Difference& d) {
  constexpr std::size_t block = comparison_block;
  ErrorFigures& f = d.figures;
  for (std::size_t start = 0; start < n; start += block) {
    const std::size_t end = start + block < n ? start + block : n;
    if constexpr (std::is_floating_point_v<Stored>) {
      // the poison is a NaN, so a block with an unwritten element is never clean
      if (end - start == block && clean_block(actual + start, expected + start, tolerance, k, f)) continue;
    }
    for (std::size_t i = start; i < end; ++i) {
      const double a = value(actual[i]);
      const double e = value(expected[i]);
      bool right = false;
      if (!kernelbench_accepts(a, e, k)) ++f.outside_kernelbench;  // the poison, a NaN, among them
      if (bits_of(actual[i]) == poison) {
        ++f.unwritten;
      } else if (std::isnan(e)) {
        right = std::isnan(a);
      } else if (std::isinf(e)) {
        right = a == e;
      } else {
        const double difference = std::fabs(a - e);
        right = difference <= tolerance.absolute + tolerance.relative * std::fabs(e);
        if (std::isfinite(a)) {
          f.max_absolute = std::fmax(f.max_absolute, difference);
          if (e != 0) f.max_relative = std::fmax(f.max_relative, difference / std::fabs(e));
        } else {
          ++f.not_finite;
        }
      }
      if (right) continue;
      ++f.wrong;
      if (d.first_wrong < 0) d.first_wrong = static_cast<std::int64_t>(i);
      d.last_wrong = static_cast<std::int64_t>(i);
    }
  }
}

template <class Stored>
void compare_integers(const Stored* actual, const Stored* expected, std::size_t n, double k, std::uint64_t poison,
                      Difference& d) {
  ErrorFigures& f = d.figures;
  for (std::size_t i = 0; i < n; ++i) {
    if (actual[i] == expected[i]) continue;  // equal is right, even if by chance equal to the poison too
    if (bits_of(actual[i]) == poison) {
      ++f.unwritten;
      ++f.outside_kernelbench;
    } else {
      const double a = static_cast<double>(actual[i]);
      const double e = static_cast<double>(expected[i]);
      const double difference = std::fabs(a - e);
      if (!kernelbench_accepts(a, e, k)) ++f.outside_kernelbench;
      f.max_absolute = std::fmax(f.max_absolute, difference);
      if (e != 0) f.max_relative = std::fmax(f.max_relative, difference / std::fabs(e));
    }
    ++f.wrong;
    if (d.first_wrong < 0) d.first_wrong = static_cast<std::int64_t>(i);
    d.last_wrong = static_cast<std::int64_t>(i);
  }
}

}  // namespace detail

/// Throws Error(bad_input) for a tolerance that would accept anything: negative, NaN or infinite.
inline void require_valid(const Tolerance& t) {
  for (const double x : {t.absolute, t.relative, t.spread}) {
    if (!(x >= 0 && x < std::numeric_limits<double>::infinity()))
      throw Error(ErrorCode::bad_input, "a task's tolerance must be finite numbers that are not negative");
  }
}

/// The same tolerance for `n` > 0 expected elements without a spread: it is in `absolute`, as what it comes to for
/// them.
[[nodiscard]] inline Tolerance resolved(const Tolerance& t, DType dtype, const void* expected,
                                        std::int64_t n) noexcept {
  if (!(t.spread > 0)) return t;
  return {t.absolute + t.spread * spread_of(dtype, expected, n), t.relative, 0};
}

/// Compares `n` > 0 elements of type `dtype`, all of them. `poison`: what `actual` held before the launch.
[[nodiscard]] inline Difference compare(DType dtype, const void* actual, const void* expected, std::int64_t n,
                                        const Tolerance& given, const Poison& poison) {
  KEVIN_ASSERT(n > 0);
  const Tolerance tolerance = resolved(given, dtype, expected, n);
  const double k = kernelbench_tolerance(dtype);
  Difference d;
  d.figures.elements = n;
  const auto count = static_cast<std::size_t>(n);
  const auto reals = [&]<class T>(const T*, auto value) {
    detail::compare_reals(static_cast<const T*>(actual), static_cast<const T*>(expected), count, tolerance, k,
                          poison.bits(), value, d);
  };
  const auto integers = [&]<class T>(const T*) {
    detail::compare_integers(static_cast<const T*>(actual), static_cast<const T*>(expected), count, k, poison.bits(),
                             d);
  };
  switch (dtype) {
    case DType::float32:
      reals(static_cast<const float*>(nullptr), [](float x) { return static_cast<double>(x); });
      break;
    case DType::float64:
      reals(static_cast<const double*>(nullptr), [](double x) { return x; });
      break;
    case DType::float16:
      reals(static_cast<const std::uint16_t*>(nullptr), detail::half_to_double);
      break;
    case DType::bfloat16:
      reals(static_cast<const std::uint16_t*>(nullptr), detail::bfloat16_to_double);
      break;
    case DType::int32:
      integers(static_cast<const std::int32_t*>(nullptr));
      break;
    case DType::int64:
      integers(static_cast<const std::int64_t*>(nullptr));
      break;
    case DType::boolean:
      integers(static_cast<const std::uint8_t*>(nullptr));
      break;  // as bytes: a bool of value 2 is wrong
  }
  return d;
}

/// A quick look at the same elements: true = each of them is right, so that compare() would find none wrong. False says
/// nothing. For float32 and tolerances of usual size; four times as fast as compare(), since it collects no figures.
[[nodiscard]] inline bool certainly_right(DType dtype, const void* actual, const void* expected, std::int64_t n,
                                          const Tolerance& given) noexcept {
  if (dtype != DType::float32) return false;
  const Tolerance tolerance = resolved(given, dtype, expected, n);
  // Roundings are relative to their results, six of 2^-24 at most, if nothing is as small as subnormal numbers are.
  if (!(tolerance.absolute > 1e-30 && tolerance.absolute < 1e30)) return false;
  if (!(tolerance.relative == 0 || (tolerance.relative > 1e-6 && tolerance.relative < 0.25))) return false;
  const auto absolute = static_cast<float>(tolerance.absolute * (1 - 1e-6));
  const auto relative = static_cast<float>(tolerance.relative * (1 - 1e-6));
  constexpr auto block = static_cast<std::int64_t>(detail::comparison_block);
  const auto* a = static_cast<const float*>(actual);
  const auto* e = static_cast<const float*>(expected);
  std::int64_t i = 0;
  for (; i + block <= n; i += block) {
    if (!detail::certain_block(a + i, e + i, absolute, relative)) return false;
  }
  for (; i < n; ++i) {
    const double difference = std::fabs(static_cast<double>(a[i]) - static_cast<double>(e[i]));
    if (!(difference <= tolerance.absolute + tolerance.relative * std::fabs(static_cast<double>(e[i]))) ||
        std::isinf(difference)) {
      return false;
    }
  }
  return true;
}

/// Adds one output's figures to those of a launch.
inline void accumulate(ErrorFigures& sum, const ErrorFigures& f) noexcept {
  sum.elements += f.elements;
  sum.wrong += f.wrong;
  sum.unwritten += f.unwritten;
  sum.not_finite += f.not_finite;
  sum.max_absolute = std::fmax(sum.max_absolute, f.max_absolute);
  sum.max_relative = std::fmax(sum.max_relative, f.max_relative);
  sum.outside_kernelbench += f.outside_kernelbench;
}

/// Adds one launch's figures to those of earlier launches of the same kernel, all right: the worst of each.
inline void keep_worst(ErrorFigures& of_all, const ErrorFigures& f) noexcept {
  of_all.max_absolute = std::fmax(of_all.max_absolute, f.max_absolute);
  of_all.max_relative = std::fmax(of_all.max_relative, f.max_relative);
  if (of_all.outside_kernelbench < f.outside_kernelbench) of_all.outside_kernelbench = f.outside_kernelbench;
}

/// The stable word for a wrong output: what is most useful to know first.
[[nodiscard]] inline std::string reason_of(const ErrorFigures& f) {
  if (f.unwritten > 0) return "unwritten_output";
  if (f.not_finite > 0) return "not_finite";
  return "wrong_values";
}

/// Says in one line how an output is wrong: counts, where, and the largest errors to two digits. Never an expected
/// value, and no more digits: over several turns precise errors would give the answers away.
[[nodiscard]] inline std::string describe(const std::string& output, const Difference& d) {
  const ErrorFigures& f = d.figures;
  std::string text =
      output + ": " + std::to_string(f.wrong) + " of " + std::to_string(f.elements) + " elements are wrong";
  if (f.unwritten > 0) text += ", " + std::to_string(f.unwritten) + " of them never written";
  if (f.not_finite > 0) text += ", " + std::to_string(f.not_finite) + " of them NaN or infinite";
  if (d.first_wrong >= 0)
    text += " (between flat index " + std::to_string(d.first_wrong) + " and " + std::to_string(d.last_wrong) + ")";
  if (f.wrong > f.unwritten + f.not_finite) {
    char figures[96];
    std::snprintf(figures, sizeof figures, "; largest absolute error %.1e", f.max_absolute);
    text += figures;
    if (f.max_relative > 0) {  // of elements whose expected value is not 0
      std::snprintf(figures, sizeof figures, ", largest relative error %.1e", f.max_relative);
      text += figures;
    }
  }
  return text;
}

}  // namespace kevin::eval

#endif  // KEVIN_EVAL_COMPARISON_HPP
