#include "kevin/core/wrappers/order_enforcing.hpp"

#include <doctest/doctest.h>

#include "core/toy_envs.hpp"
#include "kevin/core/wrappers/time_limit.hpp"

static_assert(kevin::Env<kevin::OrderEnforcing<toy::Echo>>);

TEST_CASE("step before reset and step after the end throw, and reset helps") {
  kevin::OrderEnforcing env(kevin::TimeLimit(toy::Echo{.length = 5}, 1));
  CHECK_THROWS_WITH_AS(env.step(0), doctest::Contains("step before reset"), kevin::Error);
  env.reset(1);
  CHECK(env.step(0).truncated);
  CHECK_THROWS_WITH_AS(env.step(0), doctest::Contains("has ended"), kevin::Error);
  env.reset(1);
  CHECK_NOTHROW(env.step(0));
}

TEST_CASE("a reset that throws leaves nothing to step") {
  toy::Failing inner;
  inner.when = toy::Failing::When::reset;
  kevin::OrderEnforcing env(inner);
  CHECK_THROWS(env.reset(1));
  CHECK_THROWS_WITH_AS(env.step(0), doctest::Contains("step before reset"), kevin::Error);
}
