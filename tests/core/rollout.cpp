#include "kevin/core/rollout.hpp"

#include <doctest/doctest.h>

#include "core/toy_envs.hpp"

namespace {
struct Throwing {
  int act(int, kevin::Rng&) const { throw std::runtime_error("model server is down"); }
};
static_assert(kevin::Turn<kevin::BasicTurn<toy::Echo>>);
static_assert(!kevin::Turn<int>);
static_assert(kevin::Trajectory<kevin::TrajectoryOf<toy::Echo>>);
static_assert(!kevin::Trajectory<std::vector<int>>);
}  // namespace

TEST_CASE("a turn holds what the policy saw, what it did and what that earned") {
  toy::Echo env;
  const auto t = kevin::rollout(env, toy::Repeat{}, {.turns = 10, .seed = 3});
  REQUIRE(t.turns.size() == 5);
  for (const auto& turn : t.turns) {
    CHECK(turn.action == turn.observation);
    CHECK(turn.reward == 1.0);
  }
  CHECK(t.stop == kevin::StopReason::terminated);
  CHECK(t.turns.back().terminated);
  CHECK_FALSE(t.turns.front().terminated);
  CHECK(t.valid());
}

TEST_CASE("the limit of turns is a stop reason of its own and sets no flag") {
  toy::Echo env;
  const auto t = kevin::rollout(env, toy::Repeat{}, {.turns = 2});
  CHECK(t.turns.size() == 2);
  CHECK(t.stop == kevin::StopReason::turn_limit);
  CHECK_FALSE(t.turns.back().terminated);
  CHECK_FALSE(t.turns.back().truncated);
}

TEST_CASE("no turns give an empty, valid trajectory") {
  toy::Echo env;
  const auto t = kevin::rollout(env, toy::Repeat{}, {.turns = 0});
  CHECK(t.turns.empty());
  CHECK(t.stop == kevin::StopReason::turn_limit);
}

TEST_CASE("the same seed gives the same trajectory, another seed another") {
  toy::Echo env;
  const auto draw = [&](std::uint64_t seed) {
    std::vector<std::int64_t> ids;
    for (const auto& turn : kevin::rollout(env, toy::Guess{}, {.turns = 5, .seed = seed}).turns) {
      ids.push_back(turn.observation);
      ids.push_back(turn.sample.completion_ids.at(0));
    }
    return ids;
  };
  CHECK(draw(1) == draw(1));
  CHECK(draw(1) != draw(2));
}

TEST_CASE("an environment that throws ends its trajectory with env_error and keeps the turns so far") {
  toy::Failing env;
  env.when = toy::Failing::When::step;
  env.at_step = 2;
  const auto t = kevin::rollout(env, toy::Repeat{}, {.turns = 5});
  CHECK(t.stop == kevin::StopReason::env_error);
  CHECK(t.error == "lost the worker");
  CHECK(t.turns.size() == 2);
  CHECK_FALSE(t.valid());
}

TEST_CASE("an environment that cannot be reset gives env_error and no turns") {
  toy::Failing env;
  env.when = toy::Failing::When::reset;
  const auto t = kevin::rollout(env, toy::Repeat{}, {.turns = 5});
  CHECK(t.stop == kevin::StopReason::env_error);
  CHECK(t.error.find("no machine") != std::string::npos);
  CHECK(t.turns.empty());
}

TEST_CASE("a policy that throws gives policy_error") {
  toy::Echo env;
  const auto t = kevin::rollout(env, Throwing{}, {.turns = 5});
  CHECK(t.stop == kevin::StopReason::policy_error);
  CHECK(t.error == "model server is down");
}

TEST_CASE("a request to stop is seen before the next turn") {
  toy::Echo env;
  const kevin::StopFlag stop = true;
  const auto t = kevin::rollout(env, toy::Repeat{}, {.turns = 5, .seed = 0, .stop = &stop});
  CHECK(t.stop == kevin::StopReason::cancelled);
  CHECK_FALSE(t.valid());
}

TEST_CASE("a summary has the same totals as the trajectory") {
  toy::Echo env;
  const auto t = kevin::rollout(env, toy::Guess{}, {.turns = 5, .seed = 9});
  const auto s = kevin::rollout_summary(env, toy::Guess{}, {.turns = 5, .seed = 9});
  double total = 0;
  for (const auto& turn : t.turns) total += turn.reward;
  CHECK(s.total_reward == total);
  CHECK(s.turns == t.turns.size());
  CHECK(s.stop == t.stop);
}
