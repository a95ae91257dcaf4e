#ifndef KEVIN_CORE_WRAPPERS_ORDER_ENFORCING_HPP
#define KEVIN_CORE_WRAPPERS_ORDER_ENFORCING_HPP

#include <cstdint>
#include <utility>

#include "kevin/core/env.hpp"
#include "kevin/core/error.hpp"

namespace kevin {

/// Throws Error(order) when step comes before the first reset or after the end of an episode.
template <Env E>
class OrderEnforcing {
 public:
  using Observation = ObservationOf<E>;
  using Action = ActionOf<E>;

  explicit OrderEnforcing(E env) : env_(std::move(env)) {}

  Observation reset(std::uint64_t seed) {
    state_ = State::fresh;  // a reset that throws leaves nothing to step
    Observation first = env_.reset(seed);
    state_ = State::running;
    return first;
  }

  StepOf<E> step(const Action& action) {
    if (state_ == State::fresh) throw Error(ErrorCode::order, "step before reset: call reset(seed) first");
    if (state_ == State::ended)
      throw Error(ErrorCode::order,
                  "step after the episode has ended (terminated or truncated): call reset(seed) first");
    StepOf<E> result = env_.step(action);
    if (result.terminated || result.truncated) state_ = State::ended;
    return result;
  }

  [[nodiscard]] E& unwrapped() noexcept { return env_; }

 private:
  enum class State { fresh, running, ended };
  E env_;
  State state_ = State::fresh;
};

}  // namespace kevin

#endif  // KEVIN_CORE_WRAPPERS_ORDER_ENFORCING_HPP
