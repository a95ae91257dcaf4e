#ifndef KEVIN_REFINE_KEVIN_REWARD_HPP
#define KEVIN_REFINE_KEVIN_REWARD_HPP

#include <optional>
#include <utility>
#include <vector>

#include "kevin/config.hpp"
#include "kevin/core/math.hpp"
#include "kevin/core/reward.hpp"
#include "kevin/refine/verdict.hpp"

namespace kevin {

/// Kevin-32B's score of one kernel (arXiv 2507.11948, section 3.2):
///
///     S = 0.3 [correct] + (baseline time / kernel time) [correct]
///
/// The parts are named "correct" and "speedup", and their sum is the value; a kernel that is not correct has both at 0.
/// A correct kernel whose speed is unknown (not measured, or no finite number >= 0) has no part "speedup": not scored
/// is not the same as slow.
struct KevinReward {
  double correct_weight = 0.3;          ///< finite
  std::optional<double> speedup_cap{};  ///< finite, >= 0; the paper has none

  [[nodiscard]] Score operator()(const Verdict& verdict) const {
    KEVIN_ASSERT(detail::is_finite(correct_weight));
    KEVIN_ASSERT(!speedup_cap || (detail::is_finite(*speedup_cap) && *speedup_cap >= 0));
    std::vector<Score::Part> parts;
    parts.push_back({"correct", verdict.correct() ? correct_weight : 0.0});
    if (!verdict.correct()) {
      parts.push_back({"speedup", 0.0});
    } else if (verdict.speedup && detail::is_finite(*verdict.speedup) && *verdict.speedup >= 0) {
      parts.push_back({"speedup", speedup_cap ? std::min(*verdict.speedup, *speedup_cap) : *verdict.speedup});
    }
    return Score(std::move(parts));
  }
};

}  // namespace kevin

#endif  // KEVIN_REFINE_KEVIN_REWARD_HPP
