#include "kevin/core/reward.hpp"

#include <doctest/doctest.h>

#include <sstream>
#include <string>

static_assert(kevin::RewardValue<double>);
static_assert(kevin::RewardValue<const float&>);
static_assert(kevin::RewardValue<kevin::Score>);
static_assert(!kevin::RewardValue<std::string>);

namespace {
struct Outcome {
  bool right = false;
};
struct RightOrWrong {
  kevin::Score operator()(const Outcome& o) const { return kevin::Score({{"right", o.right ? 1.0 : 0.0}}); }
};
struct NoValue {
  std::string operator()(const Outcome&) const { return "good"; }
};
static_assert(kevin::Reward<RightOrWrong, Outcome>);
static_assert(!kevin::Reward<RightOrWrong, int>);
static_assert(!kevin::Reward<NoValue, Outcome>);
}  // namespace

TEST_CASE("a score is the sum of its named parts") {
  const kevin::Score score({{"correct", 0.3}, {"speedup", 1.5}});
  CHECK(score.value == doctest::Approx(1.8));
  CHECK(static_cast<double>(score) == score.value);
  CHECK(score.parts.at(1).name == "speedup");
}

TEST_CASE("a bare number is a score without parts and prints as a number") {
  const kevin::Score score = 2.5;
  std::ostringstream out;
  out << score;
  CHECK(out.str() == "2.5");
  CHECK(score.parts.empty());
}
