#include "kevin/rl/returns.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/toy_envs.hpp"
#include "kevin/core/random.hpp"

using kevin::rl::Aggregate;
using kevin::rl::returns_of_scores;

namespace {
/// The formulas of the paper, term by term.
std::vector<double> by_definition(const std::vector<double>& s, double gamma, Aggregate how) {
  std::vector<double> r;
  for (std::size_t t = 0; t < s.size(); ++t) {
    double sum = 0;
    double max = -std::numeric_limits<double>::infinity();
    for (std::size_t i = t; i < s.size(); ++i) {
      const double term = std::pow(gamma, static_cast<double>(i - t)) * s[i];
      sum += term;
      max = std::max(max, term);
    }
    r.push_back(how == Aggregate::sum ? sum : max);
  }
  return r;
}
}  // namespace

TEST_CASE("Kevin's return of scores (0, 1, 0.5) with gamma 0.4 is (0.48, 1.2, 0.5)") {
  const auto r = returns_of_scores(std::vector{0.0, 1.0, 0.5});
  CHECK(r[0] == doctest::Approx(0.48));
  CHECK(r[1] == doctest::Approx(1.2));
  CHECK(r[2] == doctest::Approx(0.5));
}

TEST_CASE("equal scores over four turns weigh 1.624, 1.56, 1.4, 1 with gamma 0.4") {
  const auto r = returns_of_scores(std::vector{1.0, 1.0, 1.0, 1.0});
  CHECK(r[0] == doctest::Approx(1.624));
  CHECK(r[1] == doctest::Approx(1.56));
  CHECK(r[2] == doctest::Approx(1.4));
  CHECK(r[3] == doctest::Approx(1.0));
}

TEST_CASE("sum and max agree with their definitions for any gamma and sign") {
  kevin::Rng rng(1);
  for (double gamma : {0.0, 0.3, 0.4, 0.8, 1.0}) {
    for (int n = 1; n < 9; ++n) {
      std::vector<double> s;
      for (int i = 0; i < n; ++i) s.push_back(rng.uniform(-1, 3));
      for (Aggregate how : {Aggregate::sum, Aggregate::max}) {
        const auto got = returns_of_scores(s, {.gamma = gamma, .aggregate = how});
        const auto want = by_definition(s, gamma, how);
        for (std::size_t t = 0; t < s.size(); ++t) CHECK(got[t] == doctest::Approx(want[t]));
      }
    }
  }
}

TEST_CASE("greedy, outcome and last credit") {
  const std::vector<double> s{0.5, 2.0, 1.0};
  CHECK(returns_of_scores(s, {.aggregate = Aggregate::greedy}) == s);
  CHECK(returns_of_scores(s, {.aggregate = Aggregate::outcome}) == std::vector{2.0, 2.0, 2.0});
  CHECK(returns_of_scores(s, {.aggregate = Aggregate::last}) == std::vector{1.0, 1.0, 1.0});
  CHECK(returns_of_scores(std::vector<double>{}).empty());
}

TEST_CASE("a gamma outside [0, 1] is refused") {
  for (double gamma : {-0.1, 1.1, std::nan("")})
    CHECK_THROWS_AS(returns_of_scores(std::vector{1.0}, {.gamma = gamma}), kevin::Error);
}

TEST_CASE("a group's returns have its shape, and trajectories that are not valid get none") {
  kevin::GroupOf<toy::Echo> group(3);
  group[0].turns.resize(2);
  group[0].turns[1].reward = 1;
  group[1].turns.resize(3);
  group[1].stop = kevin::StopReason::env_error;
  group[2].turns.resize(1);
  const auto r = kevin::rl::returns(group, {.gamma = 0.5});
  REQUIRE(r.size() == 3);
  CHECK(r[0] == std::vector{0.5, 1.0});
  CHECK(r[1].empty());
  CHECK(r[2].size() == 1);
}
