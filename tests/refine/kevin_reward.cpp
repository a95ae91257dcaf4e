#include "kevin/refine/kevin_reward.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <optional>
#include <string>

#include "kevin/core/random.hpp"

using kevin::KevinReward;
using kevin::Score;
using kevin::Stage;
using kevin::Verdict;

static_assert(kevin::Reward<KevinReward, Verdict>);

namespace {
Verdict correct(std::optional<double> speedup) {
  Verdict v;
  v.stage = Stage::correct;
  v.speedup = speedup;
  return v;
}
const Score::Part* part(const Score& score, const std::string& name) {
  for (const Score::Part& p : score.parts) {
    if (p.name == name) return &p;
  }
  return nullptr;
}
}  // namespace

TEST_CASE("a correct kernel earns 0.3 plus its speedup") {
  const Score score = KevinReward{}(correct(1.5));
  CHECK(score.value == doctest::Approx(1.8));
  CHECK(part(score, "correct")->value == 0.3);
  CHECK(part(score, "speedup")->value == 1.5);
}

TEST_CASE("beside a number a score's parts do not count, beside a score they do") {
  const Score score = KevinReward{.correct_weight = 0.5}(correct(1.5));
  CHECK((score == 2.0 && 2.0 == score && score == 2 && score != 1.0));
  CHECK(score != Score(2.0));
}

TEST_CASE("whatever is not correct earns exactly nothing, however fast it is said to be") {
  for (const Stage stage : {Stage::format, Stage::compile, Stage::run, Stage::correctness}) {
    Verdict v = correct(50.0);
    v.stage = stage;
    const Score score = KevinReward{}(v);
    CHECK(score.value == 0.0);
    REQUIRE(score.parts.size() == 2);
    CHECK(score.parts[0].value == 0.0);
    CHECK(score.parts[1].value == 0.0);
  }
}

TEST_CASE("a speed that is not known is absent, not zero") {
  for (const std::optional<double> speedup :
       {std::optional<double>(), std::optional<double>(std::nan("")),
        std::optional<double>(std::numeric_limits<double>::infinity()),
        std::optional<double>(-std::numeric_limits<double>::infinity()), std::optional<double>(-2.0)}) {
    const Score score = KevinReward{}(correct(speedup));
    CHECK(score.value == 0.3);
    CHECK(part(score, "correct") != nullptr);
    CHECK(part(score, "speedup") == nullptr);
  }
  CHECK(part(KevinReward{}(correct(0.0)), "speedup")->value == 0.0);
}

TEST_CASE("weight and cap can be chosen") {
  CHECK(KevinReward{.correct_weight = 1.0}(correct(2.0)).value == 3.0);
  CHECK(KevinReward{.correct_weight = 0.0}(correct(2.0)).value == 2.0);
  CHECK(KevinReward{.speedup_cap = 3.0}(correct(10.0)).value == doctest::Approx(3.3));
  CHECK(KevinReward{.speedup_cap = 3.0}(correct(2.0)).value == doctest::Approx(2.3));
}

TEST_CASE("for every verdict the score is finite and the sum of its parts") {
  kevin::Rng rng(1);
  const double extremes[] = {0.0,
                             -0.0,
                             1e-308,
                             5e-324,
                             1e308,
                             -1e308,
                             std::numeric_limits<double>::max(),
                             std::nan(""),
                             std::numeric_limits<double>::infinity(),
                             -std::numeric_limits<double>::infinity(),
                             1.0,
                             0.5};
  for (int round = 0; round < 5000; ++round) {
    Verdict v;
    v.stage = static_cast<Stage>(rng.below(5));
    if (rng.below(4) > 0) v.speedup = rng.below(2) == 0 ? extremes[rng.below(12)] : std::exp(rng.uniform(-20, 20));
    KevinReward reward;
    if (rng.below(2) == 0) reward.speedup_cap = rng.uniform(0, 10);
    const Score score = reward(v);
    REQUIRE(std::isfinite(score.value));
    REQUIRE(score.value >= 0);
    double sum = 0;
    for (const Score::Part& p : score.parts) sum += p.value;
    REQUIRE(sum == score.value);
  }
}
