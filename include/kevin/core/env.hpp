#ifndef KEVIN_CORE_ENV_HPP
#define KEVIN_CORE_ENV_HPP

#include <concepts>
#include <cstdint>
#include <type_traits>

#include "kevin/core/step.hpp"

namespace kevin {

/// A result of step: observation, reward, terminated, truncated, info. kevin::Step is the default model.
template <class S, class Observation>
concept StepResult = requires(const S& s) {
  { s.observation } -> std::convertible_to<const Observation&>;
  { s.reward } -> RewardValue;
  { s.terminated } -> std::convertible_to<bool>;
  { s.truncated } -> std::convertible_to<bool>;
  s.info;
};

/// An Env is a multi-turn task: reset gives the first observation, each step answers one action.
///
/// Syntax: member types Observation and Action; `reset(seed)`; `step(action)`.
/// Semantics that the compiler cannot check (check_env does):
///  - reset comes first; the same seed and actions give the same observations, rewards and flags (measured times
///  apart);
///  - after terminated or truncated, step is not called before the next reset;
///  - reset may be called at any time and starts a fresh episode;
///  - the observation of the last step is the terminal one: there is no automatic reset;
///  - a failure of the machinery throws kevin::Error; a bad action is a low reward, not an exception.
/// An Env is used by one thread at a time; different Envs may run on different threads.
///
/// Smallest model:
///     struct Coin {
///       using Observation = int; using Action = int;
///       int reset(std::uint64_t) { return 0; }
///       Step<int> step(int a) { return {.observation = 0, .reward = a == 1 ? 1.0 : 0.0, .terminated = true}; }
///     };
template <class E>
concept Env = requires(E& env, std::uint64_t seed, const typename E::Action& action) {
  typename E::Observation;
  typename E::Action;
  { env.reset(seed) } -> std::convertible_to<typename E::Observation>;
  { env.step(action) } -> StepResult<typename E::Observation>;
};

template <Env E>
using ObservationOf = typename E::Observation;
template <Env E>
using ActionOf = typename E::Action;
/// What step returns, without reference.
template <Env E>
using StepOf = std::remove_cvref_t<decltype(std::declval<E&>().step(std::declval<const typename E::Action&>()))>;
template <Env E>
using RewardOf = std::remove_cvref_t<decltype(std::declval<StepOf<E>&>().reward)>;
template <Env E>
using InfoOf = std::remove_cvref_t<decltype(std::declval<StepOf<E>&>().info)>;

}  // namespace kevin

#endif  // KEVIN_CORE_ENV_HPP
