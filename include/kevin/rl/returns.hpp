#ifndef KEVIN_RL_RETURNS_HPP
#define KEVIN_RL_RETURNS_HPP

#include <cstddef>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "kevin/core/error.hpp"
#include "kevin/core/trajectory.hpp"

namespace kevin::rl {

/// One number for each turn of each trajectory: values[j][t]. A trajectory that takes no part is empty.
using PerTurn = std::vector<std::vector<double>>;

/// How a turn is credited for its own and later scores s_t ... s_T (Kevin-32B, arXiv 2507.11948, section 4.3 and
/// appendix B.1).
enum class Aggregate {
  sum,      ///< R_t = sum_{i >= t} gamma^(i-t) s_i        (Kevin's choice, gamma 0.4)
  max,      ///< R_t = max_{i >= t} gamma^(i-t) s_i
  greedy,   ///< R_t = s_t: no credit for later turns
  outcome,  ///< R_t = max_i s_i: every turn gets the trajectory's best
  last,     ///< R_t = s_T: every turn gets the last turn's
};

struct ReturnOptions {
  double gamma = 0.4;  ///< in [0, 1]; used by sum and max
  Aggregate aggregate = Aggregate::sum;
};

namespace detail {
inline void check(const ReturnOptions& options) {
  if (!(options.gamma >= 0 && options.gamma <= 1)) {
    throw Error(ErrorCode::bad_input,
                "ReturnOptions.gamma is " + std::to_string(options.gamma) + "; it must lie in [0, 1]");
  }
}
}  // namespace detail

/// The returns of one trajectory's scores. Throws Error(bad_input) when gamma is outside [0, 1].
[[nodiscard]] inline std::vector<double> returns_of_scores(std::span<const double> scores,
                                                           const ReturnOptions& options = {}) {
  detail::check(options);
  std::vector<double> r(scores.begin(), scores.end());
  if (r.empty()) return r;
  switch (options.aggregate) {
    case Aggregate::sum:
      for (std::size_t t = r.size() - 1; t-- > 0;) r[t] += options.gamma * r[t + 1];
      break;
    case Aggregate::max:  // max_{i>=t} gamma^(i-t) s_i = max(s_t, gamma R_{t+1}), since gamma >= 0
      for (std::size_t t = r.size() - 1; t-- > 0;) r[t] = std::max(r[t], options.gamma * r[t + 1]);
      break;
    case Aggregate::greedy:
      break;
    case Aggregate::outcome: {
      double best = r.front();
      for (const double s : scores) best = std::max(best, s);
      for (double& value : r) value = best;
      break;
    }
    case Aggregate::last:
      for (double& value : r) value = scores.back();
      break;
  }
  return r;
}

/// The turns' rewards as numbers; empty for a trajectory that is not valid.
template <Trajectory T>
[[nodiscard]] std::vector<double> scores_of(const T& trajectory) {
  std::vector<double> scores;
  if (!trajectory.valid()) return scores;
  for (const auto& turn : trajectory.turns) scores.push_back(static_cast<double>(turn.reward));
  return scores;
}

/// A range of trajectories.
template <class G>
concept TrajectoryRange = requires(const G& group) {
  { std::begin(group) } -> std::forward_iterator;
  { *std::begin(group) } -> Trajectory;
  std::end(group);
};

/// Returns of each turn of each trajectory of a group; trajectories that are not valid get none.
template <TrajectoryRange G>
[[nodiscard]] PerTurn returns(const G& group, const ReturnOptions& options = {}) {
  PerTurn out;
  for (const auto& trajectory : group) out.push_back(returns_of_scores(scores_of(trajectory), options));
  return out;
}

}  // namespace kevin::rl

#endif  // KEVIN_RL_RETURNS_HPP
