#include "kevin/core/wrappers/record_episode_statistics.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "core/toy_envs.hpp"
#include "kevin/core/rollout.hpp"
#include "kevin/core/wrappers/time_limit.hpp"

static_assert(kevin::Env<kevin::RecordEpisodeStatistics<toy::Echo>>);

TEST_CASE("the last step carries the episode's return, length and seconds; the others carry nothing") {
  kevin::RecordEpisodeStatistics env(toy::Echo{.length = 3});
  int shown = env.reset(1);
  for (int i = 0; i < 2; ++i) {
    const auto step = env.step(shown);
    CHECK_FALSE(step.info.episode.has_value());
    shown = step.observation;
  }
  const auto last = env.step(shown);
  REQUIRE(last.info.episode.has_value());
  CHECK(last.info.episode->total_reward == 3.0);
  CHECK(last.info.episode->length == 3);
  CHECK(last.info.episode->seconds >= 0);
  CHECK(env.episodes().size() == 1);
}

TEST_CASE("a truncated episode is recorded too, an abandoned one is not") {
  kevin::RecordEpisodeStatistics env(kevin::TimeLimit(toy::Echo{.length = 9}, 2));
  env.reset(1);
  env.step(0);
  env.reset(1);
  env.step(0);
  CHECK(env.step(0).info.episode->length == 2);
  CHECK(env.episodes().size() == 1);
}

TEST_CASE("only the last episodes are kept, oldest first") {
  kevin::RecordEpisodeStatistics env(toy::Echo{.length = 1}, 3);
  std::vector<kevin::EpisodeStatistics> all;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    env.reset(seed);
    all.push_back(*env.step(0).info.episode);
    const std::size_t kept = std::min<std::size_t>(all.size(), 3);
    REQUIRE(env.episodes().size() == kept);
    for (std::size_t i = 0; i < kept; ++i) {
      CHECK(env.episodes()[i].seconds == all[all.size() - kept + i].seconds);
      CHECK(env.episodes()[i].total_reward == all[all.size() - kept + i].total_reward);
    }
  }
  CHECK_THROWS_AS(kevin::RecordEpisodeStatistics(toy::Echo{}, 0), kevin::Error);
}

TEST_CASE("wrapped environments roll out") {
  kevin::RecordEpisodeStatistics env(kevin::TimeLimit(toy::Echo{.length = 9}, 4));
  const auto t = kevin::rollout(env, toy::Repeat{}, {.turns = 100, .seed = 2});
  CHECK(t.stop == kevin::StopReason::truncated);
  CHECK(t.turns.back().info.episode->length == 4);
}
