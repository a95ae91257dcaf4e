#include "kevin/rl/advantages.hpp"

#include <doctest/doctest.h>

#include <cmath>

using kevin::rl::group_advantages;
using kevin::rl::Normalize;
using kevin::rl::PerTurn;

namespace {
// eight samples 1,1,1,0,0,0,0,0 spread over trajectories of different lengths
const PerTurn golden{{1, 1, 1}, {0}, {0, 0, 0, 0}};
}  // namespace

TEST_CASE("golden advantages of 1,1,1,0,0,0,0,0") {
  const auto with = [](Normalize n, double epsilon) {
    return group_advantages(golden, {.normalize = n, .epsilon = epsilon});
  };
  CHECK(with(Normalize::standard, 1e-4)[0][0] == doctest::Approx(1.207382).epsilon(1e-6));  // TRL
  CHECK(with(Normalize::standard, 1e-4)[2][3] == doctest::Approx(-0.724429).epsilon(1e-6));
  CHECK(with(Normalize::standard, 1e-6)[0][0] == doctest::Approx(1.207612).epsilon(1e-6));  // verl
  CHECK(with(Normalize::standard, 1e-6)[1][0] == doctest::Approx(-0.724567).epsilon(1e-6));
  CHECK(with(Normalize::mean_only, 0)[0][2] == doctest::Approx(0.625));  // Dr. GRPO
  CHECK(with(Normalize::mean_only, 0)[1][0] == doctest::Approx(-0.375));
  CHECK(with(Normalize::leave_one_out, 0)[0][1] == doctest::Approx(0.714286).epsilon(1e-5));  // RLOO
  CHECK(with(Normalize::leave_one_out, 0)[2][0] == doctest::Approx(-0.428571).epsilon(1e-5));
}

TEST_CASE("leave-one-out is each return less the mean of the others") {
  const PerTurn r{{0.3, 2.5}, {1.75}, {}, {-0.5}};
  const auto a = group_advantages(r, {.normalize = Normalize::leave_one_out});
  CHECK(a[0][1] == doctest::Approx(2.5 - (0.3 + 1.75 - 0.5) / 3));
  CHECK(a[3][0] == doctest::Approx(-0.5 - (0.3 + 2.5 + 1.75) / 3));
}

TEST_CASE("leave-trajectory-out is each return less the mean of all turns of the other trajectories") {
  const PerTurn r{{0.3, 2.5}, {1.75}, {}, {-0.5}};
  const auto a = group_advantages(r, {.normalize = Normalize::leave_trajectory_out});
  CHECK(a[0][0] == doctest::Approx(0.3 - (1.75 - 0.5) / 2));
  CHECK(a[0][1] == doctest::Approx(2.5 - (1.75 - 0.5) / 2));
  CHECK(a[1][0] == doctest::Approx(1.75 - (0.3 + 2.5 - 0.5) / 3));
  CHECK(group_advantages({{1.0, 2.0}}, {.normalize = Normalize::leave_trajectory_out}) == PerTurn{{0.0, 0.0}});
}

TEST_CASE("groups by task and turn compare a turn with the same turn of the other trajectories alone") {
  const PerTurn r{{1, 10}, {3, 30}, {2}};
  const auto a =
      group_advantages(r, {.normalize = Normalize::leave_one_out, .group_by = kevin::rl::GroupBy::task_and_turn});
  CHECK(a[0][0] == doctest::Approx(1 - 2.5));
  CHECK(a[1][0] == doctest::Approx(3 - 1.5));
  CHECK(a[2][0] == doctest::Approx(0).scale(1));
  CHECK(a[0][1] == doctest::Approx(-20));
  CHECK(a[1][1] == doctest::Approx(20));
  // a turn that one trajectory alone reached is compared with nothing
  CHECK(group_advantages({{1, 5}, {3}}, {.group_by = kevin::rl::GroupBy::task_and_turn})[0][1] == 0);
}

TEST_CASE("a group has a signal when some advantage is not 0") {
  CHECK(kevin::rl::has_signal({{0, 0}, {0, 0.1}}));
  CHECK_FALSE(kevin::rl::has_signal({{0, 0}, {}}));
}

TEST_CASE("advantages have mean 0 and keep the shape of the returns") {
  const PerTurn r{{0.3, 2.5}, {1.75}, {}, {-0.5}};
  for (Normalize n : {Normalize::standard, Normalize::mean_only, Normalize::leave_one_out}) {
    const auto a = group_advantages(r, {.normalize = n});
    REQUIRE(a.size() == 4);
    CHECK(a[2].empty());
    CHECK(a[0][0] + a[0][1] + a[1][0] + a[3][0] == doctest::Approx(0).scale(1));
  }
}

TEST_CASE("a group of one and a group of equal returns give 0 everywhere") {
  for (Normalize n : {Normalize::standard, Normalize::mean_only, Normalize::leave_one_out}) {
    for (double epsilon : {0.0, 1e-6}) {
      CHECK(group_advantages({{5.0}}, {.normalize = n, .epsilon = epsilon}) == PerTurn{{0.0}});
      // 0.1 three times: the mean is not exactly 0.1
      CHECK(group_advantages({{0.1, 0.1}, {0.1}}, {.normalize = n, .epsilon = epsilon}) == PerTurn{{0.0, 0.0}, {0.0}});
    }
  }
  CHECK(group_advantages({}).empty());
  CHECK(group_advantages({{}, {}}) == PerTurn{{}, {}});
}
