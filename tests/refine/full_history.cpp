#include "kevin/refine/full_history.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "refine/fixtures.hpp"

TEST_CASE("the full history keeps thoughts as far as the budget reaches") {
  const auto task = std::make_shared<const kevin::Task>(kevin_test::softmax_task());
  std::vector<kevin::PastTurn> past(4);
  for (std::size_t i = 0; i < past.size(); ++i) {
    past[i].thought = "thought " + std::to_string(i) + ' ' + std::string(4000, 't');
    past[i].turn = i;
  }
  kevin::FullHistory policy;
  policy.budget.tokens = 100000;
  const kevin::Context all = policy.compact(task, past);
  REQUIRE(all.history.size() == 4);
  CHECK(all.history[2].thought == past[2].thought);
  CHECK(kevin::prompt_text(all).find("thought 0") != std::string::npos);

  policy.budget.tokens = kevin::estimate_tokens(kevin::prompt_text(all)) - 1500;
  const kevin::Context fewer = policy.compact(task, past);
  CHECK(fewer.dropped == 2);
  CHECK(fewer.history.front().turn == 2);
  CHECK(kevin::prompt_text(fewer).find("thought 1") == std::string::npos);
}
