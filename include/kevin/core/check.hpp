#ifndef KEVIN_CORE_CHECK_HPP
#define KEVIN_CORE_CHECK_HPP

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "kevin/core/env.hpp"
#include "kevin/core/math.hpp"
#include "kevin/core/policy.hpp"
#include "kevin/core/trajectory.hpp"

namespace kevin {

/// The rules that a type broke, each with what to mend. Empty: none was seen to be broken.
struct CheckReport {
  std::vector<std::string> violations;
  [[nodiscard]] bool ok() const noexcept { return violations.empty(); }
  explicit operator bool() const noexcept { return ok(); }
  friend std::ostream& operator<<(std::ostream& out, const CheckReport& r) {
    for (const std::string& v : r.violations) out << "- " << v << '\n';
    return out;
  }
};

struct CheckOptions {
  std::size_t max_steps = 64;  ///< per episode
  std::size_t episodes = 3;
  std::uint64_t seed = 0;
};

namespace detail {
template <Env E>
struct Episode {
  std::vector<ObservationOf<E>> observations;
  std::vector<double> rewards;
  std::vector<std::pair<bool, bool>> flags;
  [[nodiscard]] bool ended() const noexcept { return !flags.empty() && (flags.back().first || flags.back().second); }
};

template <Env E, class SampleAction>
Episode<E> check_episode(E& env, SampleAction& sample_action, std::uint64_t seed, std::size_t max_steps) {
  Episode<E> episode;
  Rng rng(seed, "check_env actions");
  episode.observations.push_back(env.reset(seed));
  for (std::size_t i = 0; i < max_steps; ++i) {
    const ActionOf<E> action = sample_action(rng);
    StepOf<E> step = env.step(action);
    episode.rewards.push_back(static_cast<double>(step.reward));
    episode.flags.emplace_back(step.terminated, step.truncated);
    episode.observations.push_back(std::move(step.observation));
    if (episode.ended()) break;
  }
  return episode;
}

template <class T>
[[nodiscard]] bool same(const std::vector<T>& a, const std::vector<T>& b) {
  if constexpr (std::equality_comparable<T>) {
    return a == b;
  } else {
    return a.size() == b.size();
  }
}

/// NaN, which is unequal to itself, counts as equal to NaN.
[[nodiscard]] inline bool same_rewards(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const bool both_nan = a[i] != a[i] && b[i] != b[i];
    if (a[i] != b[i] && !both_nan) return false;
  }
  return true;
}
}  // namespace detail

/// Puts an environment through the semantic rules of the concept Env. `sample_action(rng)` gives an action it accepts.
/// Observations are compared when they have operator==; leave measured times out of it.
///
/// Checked: reset and step do not throw; rewards are finite; the same seed and actions give the same observations,
/// rewards and flags; a reset in the middle of an episode starts afresh; a reset after the end starts afresh.
template <Env E, class SampleAction>
requires std::convertible_to < std::invoke_result_t<SampleAction&, Rng&>,
typename E::Action >
    [[nodiscard]] CheckReport check_env(E& env, SampleAction sample_action, const CheckOptions& options = {}) {
  CheckReport report;
  const auto violation = [&](std::string text) { report.violations.push_back(std::move(text)); };
  for (std::size_t e = 0; e < options.episodes && report.ok(); ++e) {
    const std::uint64_t seed = derive_seed(options.seed, "check_env", e);
    try {
      const auto first = detail::check_episode(env, sample_action, seed, options.max_steps);
      std::size_t finite = 0;
      while (finite < first.rewards.size() && detail::is_finite(first.rewards[finite])) ++finite;
      if (finite < first.rewards.size()) {
        violation("the reward of step " + std::to_string(finite) +
                  " is not finite: return a finite number for every action");
      }
      const auto again = detail::check_episode(env, sample_action, seed, options.max_steps);
      if (!detail::same(first.observations, again.observations)) {
        violation(
            "the same seed and actions gave other observations: draw everything random in reset(seed) and step from "
            "that seed, and forget the former episode in reset");
      }
      if (!detail::same_rewards(first.rewards, again.rewards))
        violation(
            "the same seed and actions gave other rewards: draw everything random from the seed that reset was given");
      if (first.flags != again.flags)
        violation(
            "the same seed and actions gave other terminated/truncated flags: reset must forget the former episode");
      const auto cut = detail::check_episode(env, sample_action, seed, 1);  // leaves the episode in its middle
      const auto after_cut = detail::check_episode(env, sample_action, seed, options.max_steps);
      static_cast<void>(cut);
      if (!detail::same(first.observations, after_cut.observations) ||
          !detail::same_rewards(first.rewards, after_cut.rewards) || first.flags != after_cut.flags) {
        violation("a reset in the middle of an episode did not start a fresh one: reset must clear all state");
      }
    } catch (const std::exception& ex) {
      violation(std::string("reset or step threw: ") + ex.what() +
                ": a bad action is a low reward, and a reset must always be possible");
    } catch (...) {
      violation("reset or step threw something that is not a std::exception");
    }
  }
  return report;
}

/// Puts a policy through the semantic rules of the concept Policy on the given observations.
///
/// Checked: act does not throw; the same observation and rng state give the same action (when actions have operator==)
/// and the same sample; as many log-probabilities as completion ids, each finite and at most 0.
template <class Action, class Observation, Policy<Observation, Action> P>
[[nodiscard]] CheckReport check_policy(const P& policy, const std::vector<Observation>& observations,
                                       const CheckOptions& options = {}) {
  CheckReport report;
  const auto violation = [&](std::string text) { report.violations.push_back(std::move(text)); };
  if (observations.empty()) violation("check_policy was given no observations: pass at least one");
  for (std::size_t i = 0; i < observations.size() && report.ok(); ++i) {
    try {
      Rng first_rng(options.seed, "check_policy", i);
      Rng second_rng(options.seed, "check_policy", i);
      const auto first = detail::to_decision<Action>(policy.act(observations[i], first_rng));
      Rng other_rng(options.seed + 1, "check_policy", i);
      static_cast<void>(policy.act(observations[i], other_rng));  // a policy with state of its own shows here
      const auto second = detail::to_decision<Action>(policy.act(observations[i], second_rng));
      if constexpr (std::equality_comparable<Action>) {
        if (!(first.action == second.action))
          violation(
              "the same observation and rng state gave another action: draw only from the rng that act is given, and "
              "keep no state");
      }
      if (!(first.sample == second.sample))
        violation(
            "the same observation and rng state gave other tokens or log-probabilities: draw only from the rng that "
            "act is given");
      if (first.sample.completion_ids.size() != first.sample.logprobs.size()) {
        violation("there are " + std::to_string(first.sample.completion_ids.size()) + " completion ids and " +
                  std::to_string(first.sample.logprobs.size()) + " log-probabilities: one for each is needed");
      }
      for (float p : first.sample.logprobs) {
        if (!detail::is_finite(p) || p > 1e-6F)
          violation("a log-probability is " + std::to_string(p) + ": it must be finite and at most 0");
      }
    } catch (const std::exception& ex) {
      violation(std::string("act threw: ") + ex.what());
    } catch (...) {
      violation("act threw something that is not a std::exception");
    }
  }
  return report;
}

}  // namespace kevin

#endif  // KEVIN_CORE_CHECK_HPP
