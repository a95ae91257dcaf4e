#include "kevin/refine/summarized_thoughts.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "kevin/refine/full_history.hpp"
#include "kevin/refine/last_turn.hpp"
#include "refine/fixtures.hpp"

using kevin::Context;
using kevin::PastTurn;
using kevin::SummarizedThoughts;

namespace {
const auto task = std::make_shared<const kevin::Task>(kevin_test::softmax_task());

std::vector<PastTurn> turns(std::size_t n, std::size_t source_bytes = 1000, std::size_t thought_bytes = 40000) {
  std::vector<PastTurn> past;
  for (std::size_t i = 0; i < n; ++i) {
    PastTurn turn{"summary " + std::to_string(i),
                  "// kernel " + std::to_string(i) + '\n' + std::string(source_bytes, 's'),
                  {},
                  {}};
    turn.thought = "THOUGHT " + std::to_string(i) + std::string(thought_bytes, 't');
    turn.turn = i;
    turn.verdict.stage = kevin::Stage::correct;
    turn.verdict.speedup = 1.0;
    past.push_back(turn);
  }
  return past;
}
kevin::TokenBudget budget(std::size_t tokens) {
  kevin::TokenBudget b;
  b.tokens = tokens;
  return b;
}
std::size_t length(const Context& context) { return kevin::estimate_tokens(kevin::prompt_text(context)); }
}  // namespace

TEST_CASE("thoughts are dropped, and of every kept turn summary, source and verdict stay") {
  const auto past = turns(3);
  const Context context = SummarizedThoughts{}.compact(task, past);
  CHECK(context.task == task);
  CHECK(context.turn == 3);
  CHECK(context.dropped == 0);
  REQUIRE(context.history.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(context.history[i].thought.empty());
    CHECK(context.history[i].summary == past[i].summary);
    CHECK(context.history[i].source == past[i].source);
    CHECK(context.history[i].verdict.stage == past[i].verdict.stage);
    CHECK(context.history[i].turn == i);
  }
}

TEST_CASE("before the first turn there is only the task") {
  const Context context = SummarizedThoughts{budget(1)}.compact(task, {});
  CHECK(context.task == task);
  CHECK(context.turn == 0);
  CHECK(context.history.empty());
  CHECK(context.dropped == 0);
}

TEST_CASE("the oldest turns are cut first, and no more of them than the budget asks for") {
  const auto past = turns(12);
  for (const std::size_t tokens : {900U, 1200U, 1800U, 2500U, 3300U, 4500U, 100000U}) {
    CAPTURE(tokens);
    const SummarizedThoughts policy{budget(tokens)};
    const Context context = policy.compact(task, past);
    CHECK(context.turn == 12);
    REQUIRE(context.history.size() + context.dropped == 12);
    for (std::size_t i = 0; i < context.history.size(); ++i) CHECK(context.history[i].turn == context.dropped + i);
    if (context.history.size() > 1) CHECK(length(context) <= tokens);
    if (context.dropped > 0) {  // one more would have been too many
      const Context one_more{task,
                             12,
                             {past.end() - static_cast<std::ptrdiff_t>(context.history.size()) - 1, past.end()},
                             context.dropped - 1};
      Context without_thoughts = one_more;
      for (PastTurn& turn : without_thoughts.history) turn.thought.clear();
      CHECK(length(without_thoughts) > tokens);
    }
  }
}

TEST_CASE("the task and the newest turn are kept even when they alone exceed the budget") {
  const Context context = SummarizedThoughts{budget(10)}.compact(task, turns(5));
  CHECK(context.task == task);
  REQUIRE(context.history.size() == 1);
  CHECK(context.history[0].turn == 4);
  CHECK(context.dropped == 4);
}

TEST_CASE("tokens are counted by the user's counter over the user's rendering") {
  SummarizedThoughts policy;
  policy.budget.render = [](const Context& c) { return std::string(c.history.size(), 'x'); };
  policy.budget.count = [](std::string_view text) { return 100 * text.size(); };
  policy.budget.tokens = 350;
  CHECK(policy.compact(task, turns(8)).history.size() == 3);
  policy.budget.tokens = 800;
  CHECK(policy.compact(task, turns(8)).history.size() == 8);
}

TEST_CASE("the estimate is a token for every four bytes begun") {
  CHECK(kevin::estimate_tokens("") == 0);
  CHECK(kevin::estimate_tokens("a") == 1);
  CHECK(kevin::estimate_tokens("abcd") == 1);
  CHECK(kevin::estimate_tokens("abcde") == 2);
}

TEST_CASE("over 8 turns with thoughts of 10k tokens the prompt holds no thought and grows by kernel and summary only") {
  const auto past = turns(8, 2000, 40000);
  std::size_t before = 0;
  for (std::size_t t = 0; t <= 8; ++t) {
    const std::span<const PastTurn> so_far(past.data(), t);
    const Context context = SummarizedThoughts{}.compact(task, so_far);
    const std::string prompt = kevin::prompt_text(context);
    MESSAGE("turn " << t + 1 << ": " << kevin::estimate_tokens(prompt) << " tokens, full history "
                    << length(kevin::FullHistory{budget(1000000)}.compact(task, so_far)) << ", last turn only "
                    << length(kevin::LastTurn{}.compact(task, so_far)));
    CHECK(prompt.find("THOUGHT") == std::string::npos);
    CHECK(kevin::estimate_tokens(prompt) <= 8192);
    CHECK(context.dropped == 0);
    if (t > 1) CHECK(kevin::estimate_tokens(prompt) - before < 700);  // 2 kB of source are 500 tokens
    before = kevin::estimate_tokens(prompt);
  }
}
