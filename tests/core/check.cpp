#include "kevin/core/check.hpp"

#include <doctest/doctest.h>

#include <limits>
#include <memory>
#include <sstream>

#include "core/toy_envs.hpp"

namespace {
const auto any_digit = [](kevin::Rng& rng) { return static_cast<int>(rng.below(10)); };

struct RememberingEnv : toy::Echo {  // reset does not clear
  int total = 0;
  kevin::Step<int> step(int action) {
    auto s = Echo::step(action);
    s.reward = ++total;
    return s;
  }
};
struct OwnRandomness : toy::Echo {
  kevin::Rng own{99};
  int reset(std::uint64_t seed) {
    Echo::reset(seed);
    return static_cast<int>(own.below(1000000));
  }
};
struct InfiniteReward : toy::Echo {
  kevin::Step<int> step(int action) {
    auto s = Echo::step(action);
    s.reward = std::numeric_limits<double>::infinity();
    return s;
  }
};
struct NoNumber : toy::Echo {
  kevin::Step<int> step(int action) {
    auto s = Echo::step(action);
    s.reward = std::numeric_limits<double>::quiet_NaN();
    return s;
  }
};
struct ForgetsTheCount : toy::Echo {  // the episode's length is not reset
  std::size_t since_ever = 0;
  kevin::Step<int> step(int action) {
    auto s = Echo::step(action);
    s.terminated = ++since_ever == 3;
    return s;
  }
};
struct ThrowsOnBadAction : toy::Echo {
  kevin::Step<int> step(int action) {
    if (action > 4) throw std::invalid_argument("no such action");
    return Echo::step(action);
  }
};

bool mentions(const kevin::CheckReport& report, const std::string& text) {
  std::ostringstream out;
  out << report;
  return out.str().find(text) != std::string::npos;
}
}  // namespace

TEST_CASE("a sound environment passes") {
  toy::Echo env;
  const auto report = kevin::check_env(env, any_digit);
  CHECK_MESSAGE(report.ok(), report);
}

TEST_CASE("each broken rule is reported with what to mend") {
  SUBCASE("rewards carry over a reset") {
    RememberingEnv env;
    CHECK(mentions(kevin::check_env(env, any_digit), "other rewards"));
  }
  SUBCASE("observations come from elsewhere than the seed") {
    OwnRandomness env;
    CHECK(mentions(kevin::check_env(env, any_digit), "other observations"));
  }
  SUBCASE("a reward is infinite") {
    InfiniteReward env;
    CHECK(mentions(kevin::check_env(env, any_digit), "not finite"));
  }
  SUBCASE("a reward is no number: that alone, though NaN is unequal to itself") {
    NoNumber env;
    const auto report = kevin::check_env(env, any_digit);
    CHECK(report.violations.size() == 1);
    CHECK(mentions(report, "not finite"));
  }
  SUBCASE("flags depend on former episodes") {
    ForgetsTheCount env;
    CHECK(mentions(kevin::check_env(env, any_digit), "flags"));
  }
  SUBCASE("a bad action throws") {
    ThrowsOnBadAction env;
    CHECK(mentions(kevin::check_env(env, any_digit), "a bad action is a low reward"));
  }
}

namespace {
struct Stateful {
  std::shared_ptr<int> calls = std::make_shared<int>(0);
  int act(int, kevin::Rng&) const { return ++*calls; }
};
struct MissingLogprob {
  kevin::Decision<int> act(int, kevin::Rng&) const {
    return {.action = 1, .sample = {.prompt_ids = {}, .completion_ids = {1, 2}, .logprobs = {-1.0F}}};
  }
};
struct PositiveLogprob {
  kevin::Decision<int> act(int, kevin::Rng&) const {
    return {.action = 1, .sample = {.prompt_ids = {}, .completion_ids = {1}, .logprobs = {0.5F}}};
  }
};
struct Down {
  int act(int, kevin::Rng&) const { throw std::runtime_error("server down"); }
};
}  // namespace

TEST_CASE("a sound policy passes, and each broken rule is reported") {
  const std::vector<int> observations{1, 2, 3};
  CHECK(kevin::check_policy<int>(toy::Guess{}, observations).ok());
  CHECK(mentions(kevin::check_policy<int>(Stateful{}, observations), "another action"));
  CHECK(mentions(kevin::check_policy<int>(MissingLogprob{}, observations), "one for each"));
  CHECK(mentions(kevin::check_policy<int>(PositiveLogprob{}, observations), "at most 0"));
  CHECK(mentions(kevin::check_policy<int>(Down{}, observations), "server down"));
  CHECK(mentions(kevin::check_policy<int>(toy::Guess{}, std::vector<int>{}), "no observations"));
}
