#ifndef KEVIN_CORE_ROLLOUT_HPP
#define KEVIN_CORE_ROLLOUT_HPP

#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <utility>

#include "kevin/core/stop_flag.hpp"
#include "kevin/core/trajectory.hpp"

namespace kevin {

struct RolloutOptions {
  std::size_t turns = 4;           ///< at most; reaching it is StopReason::turn_limit
  std::uint64_t seed = 0;          ///< the environment's reset and the policy's draws are derived from it, each by name
  const StopFlag* stop = nullptr;  ///< looked at between turns
};

namespace detail {
/// Runs one episode and hands each finished turn to `on_turn`. Says why it ended; what env or policy throw becomes
/// `error` and a stop reason.
template <Env E, PolicyFor<E> P, class OnTurn>
StopReason run_episode(E& env, const P& policy, const RolloutOptions& options, std::string& error, OnTurn&& on_turn) {
  StopReason blame = StopReason::env_error;
  try {
    Rng rng(options.seed, "policy");
    ObservationOf<E> observation = env.reset(derive_seed(options.seed, "env"));
    for (std::size_t t = 0; t < options.turns; ++t) {
      if (stop_requested(options.stop)) return StopReason::cancelled;
      blame = StopReason::policy_error;
      Decision<ActionOf<E>> decision = to_decision<ActionOf<E>>(policy.act(std::as_const(observation), rng));
      blame = StopReason::env_error;
      StepOf<E> step = env.step(std::as_const(decision.action));
      const bool terminated = step.terminated;
      const bool truncated = step.truncated;
      on_turn(BasicTurn<E>{.observation = std::move(observation),
                           .action = std::move(decision.action),
                           .reward = std::move(step.reward),
                           .terminated = terminated,
                           .truncated = truncated,
                           .info = std::move(step.info),
                           .sample = std::move(decision.sample)});
      if (terminated) return StopReason::terminated;
      if (truncated) return StopReason::truncated;
      observation = std::move(step.observation);
    }
    return StopReason::turn_limit;
  } catch (const std::exception& e) {
    error = e.what();
  } catch (...) {
    error = "an exception that is not a std::exception";
  }
  return blame;
}
}  // namespace detail

/// Plays one trajectory: reset, then at most `options.turns` turns of policy.act and env.step.
/// Never throws what the environment or the policy throws: the trajectory says so (env_error, policy_error).
template <Env E, PolicyFor<E> P>
[[nodiscard]] TrajectoryOf<E> rollout(E& env, const P& policy, const RolloutOptions& options = {}) {
  TrajectoryOf<E> trajectory;
  trajectory.seed = options.seed;
  trajectory.stop = detail::run_episode(env, policy, options, trajectory.error,
                                        [&](BasicTurn<E>&& turn) { trajectory.turns.push_back(std::move(turn)); });
  return trajectory;
}

/// What rollout_summary keeps of an episode.
struct EpisodeSummary {
  std::size_t turns = 0;
  double total_reward = 0;
  StopReason stop = StopReason::turn_limit;
  std::string error;
};

/// As rollout, but keeps no turns: for long episodes of cheap environments.
template <Env E, PolicyFor<E> P>
[[nodiscard]] EpisodeSummary rollout_summary(E& env, const P& policy, const RolloutOptions& options = {}) {
  EpisodeSummary summary;
  summary.stop = detail::run_episode(env, policy, options, summary.error, [&](BasicTurn<E>&& turn) {
    ++summary.turns;
    summary.total_reward += static_cast<double>(turn.reward);
  });
  return summary;
}

}  // namespace kevin

#endif  // KEVIN_CORE_ROLLOUT_HPP
