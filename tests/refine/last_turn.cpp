#include "kevin/refine/last_turn.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <vector>

TEST_CASE("the last turn alone is kept, without its thought") {
  const auto task = std::make_shared<const kevin::Task>();
  const kevin::LastTurn policy;
  CHECK(policy.compact(task, {}).history.empty());
  CHECK(policy.compact(task, {}).task == task);
  std::vector<kevin::PastTurn> past(3);
  past[2].summary = "newest";
  past[2].thought = "hm";
  const kevin::Context context = policy.compact(task, past);
  REQUIRE(context.history.size() == 1);
  CHECK(context.history[0].summary == "newest");
  CHECK(context.history[0].thought.empty());
  CHECK(context.turn == 3);
  CHECK(context.dropped == 2);
}
