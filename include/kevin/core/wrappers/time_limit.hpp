#ifndef KEVIN_CORE_WRAPPERS_TIME_LIMIT_HPP
#define KEVIN_CORE_WRAPPERS_TIME_LIMIT_HPP

#include <cstddef>
#include <cstdint>
#include <utility>

#include "kevin/core/env.hpp"
#include "kevin/core/error.hpp"

namespace kevin {

/// Truncates an episode after `max_steps` steps. `terminated` is left alone, so both flags may be set in the last step
/// (Gymnasium's semantics). The count starts afresh at each reset.
template <Env E>
class TimeLimit {
 public:
  using Observation = ObservationOf<E>;
  using Action = ActionOf<E>;

  /// Throws Error(bad_input) when max_steps is 0.
  TimeLimit(E env, std::size_t max_steps) : env_(std::move(env)), max_steps_(max_steps) {
    if (max_steps == 0)
      throw Error(ErrorCode::bad_input, "TimeLimit: max_steps is 0; an episode needs at least one step");
  }

  Observation reset(std::uint64_t seed) {
    steps_ = 0;
    return env_.reset(seed);
  }

  StepOf<E> step(const Action& action) {
    StepOf<E> result = env_.step(action);
    if (++steps_ >= max_steps_) result.truncated = true;
    return result;
  }

  [[nodiscard]] E& unwrapped() noexcept { return env_; }

 private:
  E env_;
  std::size_t max_steps_;
  std::size_t steps_ = 0;
};

}  // namespace kevin

#endif  // KEVIN_CORE_WRAPPERS_TIME_LIMIT_HPP
