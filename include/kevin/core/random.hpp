#ifndef KEVIN_CORE_RANDOM_HPP
#define KEVIN_CORE_RANDOM_HPP

#include <cstdint>
#include <limits>
#include <numbers>
#include <string_view>

#include "kevin/config.hpp"
#include "kevin/core/math.hpp"

namespace kevin {

namespace detail {
/// SplitMix64's output function (Steele, Lea, Flood 2014): a bijection on 64 bits that mixes well.
[[nodiscard]] constexpr std::uint64_t mix64(std::uint64_t z) noexcept {
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31U);
}
}  // namespace detail

/// A seed for the draw called `name` with number `index`, derived from `seed`.
/// Every random draw of the library comes from one seed through this function, so the order in which threads
/// happen to run never changes what is drawn.
[[nodiscard]] constexpr std::uint64_t derive_seed(std::uint64_t seed, std::string_view name,
                                                  std::uint64_t index = 0) noexcept {
  std::uint64_t h = 0xcbf29ce484222325ULL;  // FNV-1a over the name
  for (char c : name) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  h = detail::mix64(seed + 0x9e3779b97f4a7c15ULL) ^ detail::mix64(h + 0x9e3779b97f4a7c15ULL);
  return detail::mix64(h + 0x9e3779b97f4a7c15ULL * (index + 1));
}

/// A small, fast generator (SplitMix64) whose draws are the same on every platform and standard library.
/// Models std::uniform_random_bit_generator.
class Rng {
 public:
  using result_type = std::uint64_t;

  explicit constexpr Rng(std::uint64_t seed = 0) noexcept : state_(seed) {}
  constexpr Rng(std::uint64_t seed, std::string_view name, std::uint64_t index = 0) noexcept
      : state_(derive_seed(seed, name, index)) {}

  static constexpr result_type min() noexcept { return 0; }
  static constexpr result_type max() noexcept { return std::numeric_limits<result_type>::max(); }

  constexpr result_type operator()() noexcept { return detail::mix64(state_ += 0x9e3779b97f4a7c15ULL); }

  /// Uniform in [0, 1), 53 bits.
  [[nodiscard]] constexpr double uniform() noexcept { return static_cast<double>((*this)() >> 11U) * 0x1.0p-53; }
  [[nodiscard]] constexpr double uniform(double low, double high) noexcept { return low + (high - low) * uniform(); }

  /// Uniform in {0, ..., n-1}, unbiased by rejection; n > 0.
  [[nodiscard]] constexpr std::uint64_t below(std::uint64_t n) noexcept {
    KEVIN_ASSERT(n > 0);
    const std::uint64_t limit = max() - max() % n;
    std::uint64_t x = (*this)();
    while (x >= limit) x = (*this)();
    return x % n;
  }

  /// Standard normal (Box-Muller, one of the pair).
  [[nodiscard]] double normal() noexcept {
    const double u = 1.0 - uniform();
    return detail::sqrt(-2.0 * detail::log(u)) * detail::cos(2.0 * std::numbers::pi * uniform());
  }

  /// The whole state: Rng{state()} goes on where this one is.
  [[nodiscard]] constexpr std::uint64_t state() const noexcept { return state_; }

 private:
  std::uint64_t state_;
};

}  // namespace kevin

#endif  // KEVIN_CORE_RANDOM_HPP
