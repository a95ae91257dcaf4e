#ifndef KEVIN_CORE_TRAJECTORY_HPP
#define KEVIN_CORE_TRAJECTORY_HPP

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "kevin/core/turn.hpp"

namespace kevin {

/// Why a trajectory ended.
enum class StopReason {
  terminated,    ///< the environment said the task is over
  truncated,     ///< the environment (or a wrapper) cut the episode
  turn_limit,    ///< rollout's own limit of turns; the environment could have gone on
  env_error,     ///< the machinery failed; the trajectory takes no part in statistics
  policy_error,  ///< the policy threw; the trajectory takes no part in statistics
  cancelled,     ///< the caller asked to stop
};

[[nodiscard]] constexpr std::string_view to_string(StopReason r) noexcept {
  switch (r) {
    case StopReason::terminated:
      return "terminated";
    case StopReason::truncated:
      return "truncated";
    case StopReason::turn_limit:
      return "turn_limit";
    case StopReason::env_error:
      return "env_error";
    case StopReason::policy_error:
      return "policy_error";
    case StopReason::cancelled:
      return "cancelled";
  }
  return "cancelled";
}

/// A Trajectory is the turns of one try at one task, in order, plus the reason why it ended.
///
/// Semantics: only the last turn may be terminated or truncated. A trajectory that is not `valid()` (an error or a
/// cancellation ended it) is left out of returns, advantages and metrics; its turns so far are kept for the log.
template <class T>
concept Trajectory = requires(const T& t) {
  { std::begin(t.turns) } -> std::forward_iterator;
  { std::size(t.turns) } -> std::convertible_to<std::size_t>;
  { t.valid() } -> std::convertible_to<bool>;
}
&&Turn<std::remove_cvref_t<decltype(*std::begin(std::declval<const T&>().turns))>>;

/// The default trajectory.
template <Turn TurnT>
struct BasicTrajectory {
  using TurnType = TurnT;

  std::vector<TurnT> turns;
  StopReason stop = StopReason::turn_limit;
  std::string error;  ///< what env_error or policy_error said; empty otherwise
  std::uint64_t seed =
      0;                  ///< RolloutOptions::seed of its rollout; the environment's reset got derive_seed(seed, "env")
  std::size_t index = 0;  ///< number of this trajectory within its group

  [[nodiscard]] bool valid() const noexcept {
    return stop == StopReason::terminated || stop == StopReason::truncated || stop == StopReason::turn_limit;
  }
};

/// The default trajectory of an environment E.
template <Env E>
using TrajectoryOf = BasicTrajectory<BasicTurn<E>>;

/// The trajectories of one task that are normalised together.
template <Env E>
using GroupOf = std::vector<TrajectoryOf<E>>;

}  // namespace kevin

#endif  // KEVIN_CORE_TRAJECTORY_HPP
