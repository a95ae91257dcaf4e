#ifndef KEVIN_CORE_STEP_HPP
#define KEVIN_CORE_STEP_HPP

#include <ostream>

#include "kevin/core/reward.hpp"

namespace kevin {

/// The info of an environment that has nothing to say beyond observation and reward.
struct NoInfo {
  friend bool operator==(NoInfo, NoInfo) = default;
  friend std::ostream& operator<<(std::ostream& out, NoInfo) { return out; }
};

/// What Env::step returns (Gymnasium's five values).
/// `terminated`: the task itself is over. `truncated`: the episode was cut from outside (a limit of turns or time).
/// Both may be true in the same step; they are never merged into one flag.
template <class ObservationT, RewardValue RewardT = double, class InfoT = NoInfo>
struct Step {
  using Observation = ObservationT;
  using Reward = RewardT;
  using Info = InfoT;

  Observation observation{};
  Reward reward{};
  bool terminated = false;
  bool truncated = false;
  [[no_unique_address]] Info info{};

  [[nodiscard]] bool done() const noexcept { return terminated || truncated; }
};

}  // namespace kevin

#endif  // KEVIN_CORE_STEP_HPP
