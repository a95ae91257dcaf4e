#ifndef KEVIN_RL_ADVANTAGES_HPP
#define KEVIN_RL_ADVANTAGES_HPP

#include <cstddef>

#include "kevin/core/math.hpp"
#include "kevin/rl/returns.hpp"

namespace kevin::rl {

/// How the returns of a group become advantages.
enum class Normalize {
  standard,       ///< (R - mean) / (std + epsilon), std with Bessel's correction (GRPO, arXiv 2402.03300; Kevin)
  mean_only,      ///< R - mean (Dr. GRPO, arXiv 2503.20783)
  leave_one_out,  ///< R - mean of the other samples (RLOO, arXiv 2402.14740)
};

struct AdvantageOptions {
  Normalize normalize = Normalize::standard;
  double epsilon = 1e-6;  ///< added to the standard deviation (verl: 1e-6, TRL: 1e-4)
};

/// Advantages over all turns of all trajectories of one task: Kevin's group of m x n samples
/// (arXiv 2507.11948, section 4, step 4). Same shape as `returns`.
///
/// A group of one sample and a group of equal returns give 0 everywhere, without a division by zero.
[[nodiscard]] inline PerTurn group_advantages(const PerTurn& returns, const AdvantageOptions& options = {}) {
  double sum = 0;
  std::size_t n = 0;
  for (const auto& trajectory : returns) {
    for (double r : trajectory) sum += r;
    n += trajectory.size();
  }
  PerTurn advantages = returns;
  const double count = static_cast<double>(n);
  const double mean = n == 0 ? 0 : sum / count;
  double squares = 0;
  bool equal = true;
  double first = 0;
  bool seen = false;
  for (const auto& trajectory : returns) {
    for (double r : trajectory) {
      if (!seen) first = r;
      seen = true;
      equal = equal && r == first;
      squares += (r - mean) * (r - mean);
    }
  }
  double scale = 1;
  if (options.normalize == Normalize::standard && n > 1)
    scale = 1 / (kevin::detail::sqrt(squares / (count - 1)) + options.epsilon);
  if (options.normalize == Normalize::leave_one_out && n > 1)
    scale = count / (count - 1);  // R - (S - R)/(n-1) = (R - mean) n/(n-1)
  for (auto& trajectory : advantages) {
    for (double& a : trajectory) a = n < 2 || equal ? 0.0 : (a - mean) * scale;
  }
  return advantages;
}

}  // namespace kevin::rl

#endif  // KEVIN_RL_ADVANTAGES_HPP
