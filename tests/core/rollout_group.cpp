#include "kevin/core/rollout_group.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <thread>

#include "core/toy_envs.hpp"

namespace {
template <class Group>
std::vector<std::int64_t> fingerprint(const Group& group) {
  std::vector<std::int64_t> ids;
  for (const auto& t : group) {
    ids.push_back(static_cast<std::int64_t>(t.seed >> 1U));
    for (const auto& turn : t.turns) {
      ids.push_back(turn.observation);
      ids.push_back(turn.action);
      ids.push_back(turn.reward > 0 ? 1 : 0);
    }
  }
  return ids;
}
}  // namespace

TEST_CASE("a group is the same for any number of threads") {
  const auto group = [](std::size_t threads) {
    return fingerprint(kevin::rollout_group([] { return toy::Echo{}; }, toy::Guess{},
                                            {.trajectories = 32, .turns = 5, .seed = 7, .threads = threads}));
  };
  const auto one = group(1);
  CHECK(one == group(2));
  CHECK(one == group(8));
  CHECK(one == group(0));
}

TEST_CASE("trajectories of a group differ from each other and know their index") {
  const auto group =
      kevin::rollout_group([] { return toy::Echo{}; }, toy::Guess{}, {.trajectories = 4, .turns = 5, .seed = 7});
  REQUIRE(group.size() == 4);
  for (std::size_t i = 0; i < 4; ++i) CHECK(group[i].index == i);
  CHECK(group[0].seed != group[1].seed);
  CHECK(fingerprint(std::vector{group[0]}) != fingerprint(std::vector{group[1]}));
}

TEST_CASE("an environment that fails marks its own trajectory only") {
  const auto make = [](std::size_t index) {
    toy::Failing env;
    if (index == 1) env.when = toy::Failing::When::reset;
    if (index == 2) env.when = toy::Failing::When::step;
    if (index == 3) throw std::runtime_error("cannot be made");
    return env;
  };
  const auto group =
      kevin::rollout_group(make, toy::Repeat{}, {.trajectories = 6, .turns = 5, .seed = 1, .threads = 3});
  for (std::size_t i = 0; i < 6; ++i) {
    CAPTURE(i);
    CHECK(group[i].valid() == (i == 0 || i > 3));
    if (group[i].valid()) CHECK(group[i].turns.size() == 5);
  }
  CHECK(group[3].error == "cannot be made");
  CHECK(group[3].stop == kevin::StopReason::env_error);
}

TEST_CASE("an env_error is tried again as often as asked, with the same seeds") {
  std::atomic<int> made{0};
  const auto make = [&](std::size_t) {
    toy::Failing env;
    if (made++ < 2) env.when = toy::Failing::When::step;
    return env;
  };
  const kevin::GroupOptions options{.trajectories = 1, .turns = 5, .seed = 4, .threads = 1, .retries = 2};
  const auto group = kevin::rollout_group(make, toy::Guess{}, options);
  CHECK(made == 3);
  CHECK(group[0].valid());
  const auto undisturbed = kevin::rollout_group([] { return toy::Failing{}; }, toy::Guess{}, options);
  CHECK(fingerprint(group) == fingerprint(undisturbed));
}

TEST_CASE("a policy_error is not tried again") {
  struct Throwing {
    int act(int, kevin::Rng&) const { throw std::runtime_error("down"); }
  };
  int made = 0;
  const auto group = kevin::rollout_group(
      [&] {
        ++made;
        return toy::Echo{};
      },
      Throwing{}, {.trajectories = 1, .turns = 5, .threads = 1, .retries = 5});
  CHECK(made == 1);
  CHECK(group[0].stop == kevin::StopReason::policy_error);
}

TEST_CASE("several tasks share one pool and each gets a group of its own") {
  const auto make = [](std::size_t task, std::size_t) { return toy::Echo{.length = task + 1}; };
  const auto groups =
      kevin::rollout_groups(make, 3, toy::Repeat{}, {.trajectories = 2, .turns = 10, .seed = 7, .threads = 4});
  REQUIRE(groups.size() == 3);
  for (std::size_t task = 0; task < 3; ++task) {
    REQUIRE(groups[task].size() == 2);
    CHECK(groups[task][0].turns.size() == task + 1);
  }
}

TEST_CASE("a stop request leaves every trajectory ended or cancelled") {
  kevin::StopFlag stop = false;
  const auto make = [&](std::size_t index) {
    if (index == 3) stop = true;
    return toy::Echo{};
  };
  const auto group =
      kevin::rollout_group(make, toy::Repeat{}, {.trajectories = 8, .turns = 5, .threads = 1, .stop = &stop});
  for (std::size_t i = 0; i < 8; ++i)
    CHECK(group[i].stop == (i < 3 ? kevin::StopReason::terminated : kevin::StopReason::cancelled));
}

TEST_CASE("a group of none is empty") {
  CHECK(kevin::rollout_group([] { return toy::Echo{}; }, toy::Repeat{}, {.trajectories = 0}).empty());
}
