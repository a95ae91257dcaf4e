#ifndef KEVIN_CORE_TURN_HPP
#define KEVIN_CORE_TURN_HPP

#include <concepts>

#include "kevin/core/env.hpp"
#include "kevin/core/policy.hpp"

namespace kevin {

/// A Turn is one exchange of a trajectory: what was seen, what was done, what it earned, and how it ended.
///
/// Semantics: `observation` is what the policy saw when it chose `action` (not what came after); `reward` is this
/// turn's own, before any credit from later turns; `sample` is what was really sampled (may be empty).
/// kevin::BasicTurn is the default model; returns and advantages work on any model.
template <class T>
concept Turn = requires(const T& t) {
  t.observation;
  t.action;
  { t.reward } -> RewardValue;
  { t.terminated } -> std::convertible_to<bool>;
  { t.truncated } -> std::convertible_to<bool>;
};

/// The default turn of an environment E.
template <Env E>
struct BasicTurn {
  ObservationOf<E> observation{};
  ActionOf<E> action{};
  RewardOf<E> reward{};
  bool terminated = false;
  bool truncated = false;
  InfoOf<E> info{};
  Sample sample{};
};

}  // namespace kevin

#endif  // KEVIN_CORE_TURN_HPP
