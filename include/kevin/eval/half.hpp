#ifndef KEVIN_EVAL_HALF_HPP
#define KEVIN_EVAL_HALF_HPP

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace kevin::eval::detail {

/// The value of a float16 or bfloat16, from its bits.
[[nodiscard]] inline double half_to_double(std::uint16_t h) noexcept {
  const int exponent = (h >> 10) & 31;
  const int mantissa = h & 1023;
  const double sign = (h & 0x8000) != 0 ? -1.0 : 1.0;
  if (exponent == 31)
    return mantissa == 0 ? sign * std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  if (exponent == 0) return sign * std::ldexp(static_cast<double>(mantissa), -24);
  return sign * std::ldexp(static_cast<double>(1024 + mantissa), exponent - 25);
}
[[nodiscard]] inline double bfloat16_to_double(std::uint16_t b) noexcept {
  return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(b) << 16U));
}

}  // namespace kevin::eval::detail

#endif  // KEVIN_EVAL_HALF_HPP
