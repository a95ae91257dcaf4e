#include "kevin/core/wrappers/time_limit.hpp"

#include <doctest/doctest.h>

#include "core/toy_envs.hpp"

static_assert(kevin::Env<kevin::TimeLimit<toy::Echo>>);

TEST_CASE("the step that reaches the limit is truncated, and terminated is left alone") {
  kevin::TimeLimit env(toy::Echo{.length = 5}, 3);
  env.reset(1);
  CHECK_FALSE(env.step(0).truncated);
  CHECK_FALSE(env.step(0).truncated);
  const auto last = env.step(0);
  CHECK(last.truncated);
  CHECK_FALSE(last.terminated);
}

TEST_CASE("both flags are set when the task ends in the very step of the limit") {
  kevin::TimeLimit env(toy::Echo{.length = 2}, 2);
  env.reset(1);
  env.step(0);
  const auto last = env.step(0);
  CHECK(last.truncated);
  CHECK(last.terminated);
}

TEST_CASE("a reset starts the count afresh") {
  kevin::TimeLimit env(toy::Echo{.length = 9}, 2);
  env.reset(1);
  env.step(0);
  env.reset(1);
  CHECK_FALSE(env.step(0).truncated);
  CHECK(env.step(0).truncated);
}

TEST_CASE("a limit of 0 is refused") { CHECK_THROWS_AS(kevin::TimeLimit(toy::Echo{}, 0), kevin::Error); }
