#ifndef KEVIN_CORE_MATH_HPP
#define KEVIN_CORE_MATH_HPP

#if !defined(__GNUC__)
#include <cmath>
#endif

/// The few functions of <cmath> that floors 0 to 2 need, for double. In C++17 and later <cmath> also brings the special
/// functions, a seventh of the memory that g++ 12 took for kevin.hpp; g++ and clang have these as built-ins, with the
/// same result.
namespace kevin::detail {

#if defined(__GNUC__)
[[nodiscard]] constexpr bool is_finite(double x) noexcept { return __builtin_isfinite(x); }
[[nodiscard]] inline double sqrt(double x) noexcept { return __builtin_sqrt(x); }
[[nodiscard]] inline double exp(double x) noexcept { return __builtin_exp(x); }
[[nodiscard]] inline double expm1(double x) noexcept { return __builtin_expm1(x); }
[[nodiscard]] inline double log(double x) noexcept { return __builtin_log(x); }
[[nodiscard]] inline double cos(double x) noexcept { return __builtin_cos(x); }
#else
[[nodiscard]] inline bool is_finite(double x) noexcept { return std::isfinite(x); }
[[nodiscard]] inline double sqrt(double x) noexcept { return std::sqrt(x); }
[[nodiscard]] inline double exp(double x) noexcept { return std::exp(x); }
[[nodiscard]] inline double expm1(double x) noexcept { return std::expm1(x); }
[[nodiscard]] inline double log(double x) noexcept { return std::log(x); }
[[nodiscard]] inline double cos(double x) noexcept { return std::cos(x); }
#endif

}  // namespace kevin::detail

#endif  // KEVIN_CORE_MATH_HPP
