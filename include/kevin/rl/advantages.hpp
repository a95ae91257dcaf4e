#ifndef KEVIN_RL_ADVANTAGES_HPP
#define KEVIN_RL_ADVANTAGES_HPP

#include <cstddef>
#include <vector>

#include "kevin/core/math.hpp"
#include "kevin/rl/returns.hpp"

namespace kevin::rl {

/// How the returns of a group become advantages.
enum class Normalize {
  standard,              ///< (R - mean) / (std + epsilon), std with Bessel's correction (GRPO, arXiv 2402.03300; Kevin)
  mean_only,             ///< R - mean (Dr. GRPO, arXiv 2503.20783)
  leave_one_out,         ///< R - mean of the other samples (RLOO, arXiv 2402.14740)
  leave_trajectory_out,  ///< R - mean of the samples of the other trajectories: those of its own, which its actions
                         ///< shape too, take no part
};

/// What is normalised together.
enum class GroupBy {
  task,  ///< all turns of all trajectories of a task (Kevin-32B, arXiv 2507.11948, section 4, step 4)
  /// All trajectories' turns of the same index (arXiv 2602.05885 with leave_one_out). Biased where the policy decides
  /// how many turns a trajectory has.
  task_and_turn,
};

struct AdvantageOptions {
  Normalize normalize = Normalize::standard;
  double epsilon = 1e-6;  ///< added to the standard deviation (verl: 1e-6, TRL: 1e-4)
  GroupBy group_by = GroupBy::task;
};

namespace detail {

/// The advantages of one group: values[i] belongs to trajectory owner[i].
[[nodiscard]] inline std::vector<double> normalize(const std::vector<double>& values,
                                                   const std::vector<std::size_t>& owner,
                                                   const AdvantageOptions& options) {
  const std::size_t n = values.size();
  std::vector<double> advantages(n, 0.0);
  bool equal = true;
  for (const double r : values) equal = equal && r == values.front();
  if (n < 2 || equal) return advantages;
  const double count = static_cast<double>(n);
  double sum = 0;
  for (const double r : values) sum += r;
  const double mean = sum / count;
  if (options.normalize == Normalize::leave_trajectory_out) {
    for (std::size_t i = 0; i < n; ++i) {
      double others = 0;
      std::size_t other_samples = 0;
      for (std::size_t k = 0; k < n; ++k) {
        if (owner[k] == owner[i]) continue;
        others += values[k];
        ++other_samples;
      }
      advantages[i] = other_samples == 0 ? 0 : values[i] - others / static_cast<double>(other_samples);
    }
    return advantages;
  }
  double squares = 0;
  for (const double r : values) squares += (r - mean) * (r - mean);
  double scale = 1;
  if (options.normalize == Normalize::standard)
    scale = 1 / (kevin::detail::sqrt(squares / (count - 1)) + options.epsilon);
  if (options.normalize == Normalize::leave_one_out)
    scale = count / (count - 1);  // R - (S - R)/(n-1) = (R - mean) n/(n-1)
  for (std::size_t i = 0; i < n; ++i) advantages[i] = (values[i] - mean) * scale;
  return advantages;
}

}  // namespace detail

/// Advantages of the turns of all trajectories of one task. Same shape as `returns`.
///
/// A group of one sample and a group of equal returns give 0 everywhere, without a division by zero; so does, left out
/// as a whole, a trajectory that is alone.
[[nodiscard]] inline PerTurn group_advantages(const PerTurn& returns, const AdvantageOptions& options = {}) {
  std::size_t turns = 1;
  if (options.group_by == GroupBy::task_and_turn) {
    for (const auto& trajectory : returns) turns = std::max(turns, trajectory.size());
  }
  PerTurn advantages = returns;
  for (std::size_t turn = 0; turn < turns; ++turn) {
    std::vector<double> values;
    std::vector<std::size_t> owner;
    std::vector<double*> places;
    for (std::size_t j = 0; j < returns.size(); ++j) {
      for (std::size_t t = 0; t < returns[j].size(); ++t) {
        if (options.group_by == GroupBy::task_and_turn && t != turn) continue;
        values.push_back(returns[j][t]);
        owner.push_back(j);
        places.push_back(&advantages[j][t]);
      }
    }
    const std::vector<double> normalized = detail::normalize(values, owner, options);
    for (std::size_t i = 0; i < places.size(); ++i) *places[i] = normalized[i];
  }
  return advantages;
}

/// Whether anything can be learnt from a group.
[[nodiscard]] inline bool has_signal(const PerTurn& advantages) {
  for (const auto& trajectory : advantages) {
    for (const double a : trajectory) {
      if (a != 0) return true;
    }
  }
  return false;
}

}  // namespace kevin::rl

#endif  // KEVIN_RL_ADVANTAGES_HPP
