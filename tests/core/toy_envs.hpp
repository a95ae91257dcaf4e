#ifndef KEVIN_TESTS_CORE_TOY_ENVS_HPP
#define KEVIN_TESTS_CORE_TOY_ENVS_HPP

// Small environments and policies that the tests of floor 0 share.

#include <cstdint>
#include <stdexcept>
#include <vector>

#include "kevin/core/env.hpp"
#include "kevin/core/error.hpp"
#include "kevin/core/policy.hpp"

namespace toy {

/// Shows a digit drawn from the seed; repeating it earns 1 and a new digit follows. Ends after `length` steps.
struct Echo {
  using Observation = int;
  using Action = int;
  std::size_t length = 5;
  kevin::Rng rng{0};
  int digit = 0;
  std::size_t steps = 0;

  int reset(std::uint64_t seed) {
    rng = kevin::Rng(seed, "echo");
    steps = 0;
    return digit = static_cast<int>(rng.below(10));
  }
  kevin::Step<int> step(int action) {
    kevin::Step<int> result;
    result.reward = action == digit ? 1.0 : 0.0;
    result.observation = digit = static_cast<int>(rng.below(10));
    result.terminated = ++steps >= length;
    return result;
  }
};

/// Fails at reset or at a step, in one of several ways.
struct Failing : Echo {
  enum class When { never, reset, step } when = When::never;
  std::size_t at_step = 1;
  int reset(std::uint64_t seed) {
    if (when == When::reset) throw kevin::Error(kevin::ErrorCode::resource, "no machine");
    return Echo::reset(seed);
  }
  kevin::Step<int> step(int action) {
    if (when == When::step && steps == at_step) throw std::runtime_error("lost the worker");
    return Echo::step(action);
  }
};

struct Repeat {
  int act(int observation, kevin::Rng&) const { return observation; }
};
struct Guess {
  kevin::Decision<int> act(int, kevin::Rng& rng) const {
    const auto digit = static_cast<std::int64_t>(rng.below(10));
    return {.action = static_cast<int>(digit),
            .sample = {.prompt_ids = {}, .completion_ids = {digit}, .logprobs = {-2.3025851F}}};
  }
};

}  // namespace toy

#endif  // KEVIN_TESTS_CORE_TOY_ENVS_HPP
