#ifndef KEVIN_CORE_POLICY_HPP
#define KEVIN_CORE_POLICY_HPP

#include <concepts>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "kevin/core/random.hpp"

namespace kevin {

/// What was really sampled for one turn. `logprobs[i]` is the natural logarithm of the probability with which the
/// sampling policy chose `completion_ids[i]`; both have the same length. Text is a by-product and is never tokenised
/// again. Empty for a policy without tokens.
struct Sample {
  std::vector<std::int64_t> prompt_ids;
  std::vector<std::int64_t> completion_ids;
  std::vector<float> logprobs;
  bool truncated = false;  ///< the answer was cut off at its length limit
  friend bool operator==(const Sample&, const Sample&) = default;
};

/// An action together with the tokens it was made of.
template <class ActionT>
struct Decision {
  using Action = ActionT;
  Action action{};
  Sample sample{};
};

namespace detail {
template <class T>
struct IsDecision : std::false_type {};
template <class A>
struct IsDecision<Decision<A>> : std::true_type {};

template <class T, class Action>
concept ActionOrDecision = std::convertible_to<T, Action> ||
    (IsDecision<std::remove_cvref_t<T>>::value&& std::convertible_to<typename std::remove_cvref_t<T>::Action, Action>);

/// `value` as a Decision<Action>, whether a policy returned a Decision or a bare action.
template <class Action, class T>
[[nodiscard]] Decision<Action> to_decision(T&& value) {
  if constexpr (IsDecision<std::remove_cvref_t<T>>::value) {
    return Decision<Action>{std::forward<T>(value).action, std::forward<T>(value).sample};
  } else {
    return Decision<Action>{std::forward<T>(value), {}};
  }
}
}  // namespace detail

/// A Policy chooses an action for an observation: `act(observation, rng)` returns an Action, or a Decision that also
/// carries the sampled tokens and their log-probabilities.
///
/// Semantics that the compiler cannot check (check_policy does): every random choice comes from `rng`, so the same
/// observation and the same rng state give the same action; act does not change the policy and may be called from
/// several threads at once.
///
/// Smallest model: `struct Fixed { int act(int, Rng&) const { return 1; } };`
template <class P, class Observation, class Action>
concept Policy = requires(const P& policy, const Observation& observation, Rng& rng) {
  { policy.act(observation, rng) } -> detail::ActionOrDecision<Action>;
};

/// A Policy for the environment E.
template <class P, class E>
concept PolicyFor = Policy<P, typename E::Observation, typename E::Action>;

}  // namespace kevin

#endif  // KEVIN_CORE_POLICY_HPP
