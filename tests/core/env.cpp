#include "kevin/core/env.hpp"

#include <doctest/doctest.h>

#include <string>

#include "core/toy_envs.hpp"

namespace {
struct Coin {
  using Observation = int;
  using Action = int;
  int reset(std::uint64_t) { return 0; }
  kevin::Step<int> step(int) { return {}; }
};
struct NoReset {
  using Observation = int;
  using Action = int;
  kevin::Step<int> step(int) { return {}; }
};
struct MergedDone {  // terminated and truncated in one flag
  using Observation = int;
  using Action = int;
  struct Result {
    int observation;
    double reward;
    bool done;
    kevin::NoInfo info;
  };
  int reset(std::uint64_t) { return 0; }
  Result step(int) { return {}; }
};
struct TextReward {
  using Observation = int;
  using Action = int;
  struct Result {
    int observation;
    std::string reward;
    bool terminated;
    bool truncated;
    kevin::NoInfo info;
  };
  int reset(std::uint64_t) { return 0; }
  Result step(int) { return {}; }
};
struct OwnResult {
  using Observation = std::string;
  using Action = float;
  struct Result {
    std::string observation;
    float reward;
    bool terminated;
    bool truncated;
    int info;
  };
  std::string reset(std::uint64_t) { return ""; }
  Result step(float) { return {}; }
};
static_assert(kevin::Env<Coin>);
static_assert(kevin::Env<toy::Echo>);
static_assert(kevin::Env<OwnResult>);
static_assert(!kevin::Env<NoReset>);
static_assert(!kevin::Env<MergedDone>);
static_assert(!kevin::Env<TextReward>);
static_assert(!kevin::Env<int>);
static_assert(std::same_as<kevin::RewardOf<OwnResult>, float>);
static_assert(std::same_as<kevin::InfoOf<OwnResult>, int>);
}  // namespace

TEST_CASE("a step that is terminated or truncated is done, and the flags stay apart") {
  kevin::Step<int> step;
  CHECK_FALSE(step.done());
  step.truncated = true;
  CHECK(step.done());
  CHECK_FALSE(step.terminated);
}

TEST_CASE("an environment's own result type serves as a step") {
  OwnResult env;
  CHECK(env.reset(1).empty());
  CHECK(env.step(1.0F).reward == 0.0F);
}
