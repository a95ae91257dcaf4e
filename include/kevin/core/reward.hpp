#ifndef KEVIN_CORE_REWARD_HPP
#define KEVIN_CORE_REWARD_HPP

#include <concepts>
#include <ostream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace kevin {

/// One kernel's (or one step's) worth together with the named parts that it is the sum of.
/// Converts to double, so it serves wherever a plain reward does.
struct Score {
  struct Part {
    std::string name;
    double value = 0;
    friend bool operator==(const Part&, const Part&) = default;
  };

  double value = 0;
  std::vector<Part> parts;

  Score() = default;
  Score(double v) : value(v) {}  // NOLINT(google-explicit-constructor): a bare number is a score without parts
  /// The sum of the parts.
  explicit Score(std::vector<Part> named) : parts(std::move(named)) {
    for (const Part& p : parts) value += p.value;
  }

  operator double() const noexcept { return value; }  // NOLINT(google-explicit-constructor)
  friend bool operator==(const Score&, const Score&) = default;
  /// Beside a number only the value counts.
  template <class T>
  requires(std::integral<T> || std::floating_point<T>) friend bool operator==(const Score& s, T number) {
    return s.value == static_cast<double>(number);
  }
  friend std::ostream& operator<<(std::ostream& out, const Score& s) { return out << s.value; }
};

/// A value that can be summed as a reward: double, float, Score, or a type of the user's own.
/// References are looked through, so that the concept can be asked of an expression.
template <class R>
concept RewardValue = std::convertible_to < const std::remove_cvref_t<R>
&, double > &&std::copyable<std::remove_cvref_t<R>>;

/// A Reward turns one outcome (for kernels: a Verdict) into a reward value.
///
/// Semantics that the compiler cannot check: the result depends on the outcome alone (same outcome, same reward, no
/// state, callable from several threads), and it is finite for every outcome.
/// Smallest model: `[](const Verdict& v) { return v.correct() ? 1.0 : 0.0; }`.
template <class R, class Outcome>
concept Reward = std::copy_constructible<R> && requires(const R& reward, const Outcome& outcome) {
  { reward(outcome) } -> RewardValue;
};

}  // namespace kevin

#endif  // KEVIN_CORE_REWARD_HPP
