#include "kevin/refine/context.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <span>

#include "kevin/refine/full_history.hpp"
#include "kevin/refine/last_turn.hpp"
#include "kevin/refine/summarized_thoughts.hpp"

namespace {
// the smallest model of the header's comment
struct Nothing {
  kevin::Context compact(const std::shared_ptr<const kevin::Task>& task, std::span<const kevin::PastTurn> past) const {
    return {.task = task, .turn = past.size(), .history = {}, .dropped = past.size()};
  }
};
struct NoTask {
  kevin::Context compact(std::span<const kevin::PastTurn>) const { return {}; }
};
struct Changes {  // compact must not change the policy
  kevin::Context compact(const std::shared_ptr<const kevin::Task>&, std::span<const kevin::PastTurn>) { return {}; }
};

static_assert(kevin::ContextPolicy<Nothing>);
static_assert(kevin::ContextPolicy<kevin::SummarizedThoughts>);
static_assert(kevin::ContextPolicy<kevin::FullHistory>);
static_assert(kevin::ContextPolicy<kevin::LastTurn>);
static_assert(!kevin::ContextPolicy<NoTask>);
static_assert(!kevin::ContextPolicy<Changes>);
static_assert(!kevin::ContextPolicy<int>);
}  // namespace

TEST_CASE("a past turn can be written down with its four main members") {
  const kevin::PastTurn past{"summary", "source", kevin::Verdict{}, kevin::Score(0.5)};
  CHECK(past.thought.empty());
  CHECK(past.turn == 0);
  CHECK(past.score == 0.5);
}

TEST_CASE("a user's own context policy needs nothing but compact") {
  const auto task = std::make_shared<const kevin::Task>();
  const std::vector<kevin::PastTurn> past(3);
  const kevin::Context context = Nothing{}.compact(task, past);
  CHECK(context.task == task);
  CHECK(context.turn == 3);
  CHECK(context.dropped == 3);
}
