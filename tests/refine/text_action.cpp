#include "kevin/refine/text_action.hpp"

#include <doctest/doctest.h>

#include <string>

#include "kevin/core/rollout.hpp"
#include "kevin/refine/prompt.hpp"
#include "kevin/refine/refinement_env.hpp"
#include "refine/fixtures.hpp"

using kevin_test::WordEvaluator;

static_assert(kevin::Env<kevin::TextAction<kevin::RefinementEnv<WordEvaluator>>>);
static_assert(!kevin::TextSteppable<int>);

namespace {
/// A language model in miniature: reads the prompt, writes text.
struct Writer {
  std::string act(const kevin::Context& context, kevin::Rng&) const {
    const std::string prompt = kevin::prompt_text(context);
    if (context.turn == 0) return "I would rather not.";
    if (prompt.find("No kernel could be read from this answer (no code block).") == std::string::npos)
      return "lost the thread";
    return "<think>A block, then.</think>\n```cpp\nspeed 2\n```\nSummary: now with a block";
  }
};
}  // namespace

TEST_CASE("raw text is parsed, and what cannot be read is a verdict") {
  WordEvaluator evaluator;
  kevin::TextAction env{kevin::RefinementEnv{kevin_test::softmax_task(), evaluator}};
  const auto trajectory = kevin::rollout(env, Writer{}, {.turns = 2, .seed = 4});
  REQUIRE(trajectory.valid());
  REQUIRE(trajectory.turns.size() == 2);
  CHECK(trajectory.turns[0].info.stage == kevin::Stage::format);
  CHECK(trajectory.turns[0].info.reason == "no_code_block");
  CHECK(trajectory.turns[0].reward == 0.0);
  CHECK(trajectory.turns[1].info.correct());
  CHECK(trajectory.turns[1].reward == doctest::Approx(2.3));
  CHECK(evaluator.calls == 1);
  CHECK(env.unwrapped().past()[1].thought == "A block, then.");
  CHECK(env.unwrapped().past()[1].summary == "now with a block");
}

TEST_CASE("strict mode reaches the parser") {
  WordEvaluator evaluator;
  kevin::TextAction env{kevin::RefinementEnv{kevin_test::softmax_task(), evaluator}, kevin::FormatMode::strict};
  (void)env.reset(1);
  CHECK(env.step("```cpp\nspeed 2\n```\nSummary: s").info.reason == "unexpected_text");
  CHECK(env.step("```cpp\nspeed 2\n```\n<summary>s</summary>").info.correct());
}
