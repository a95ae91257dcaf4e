#include "kevin/refine/refinement_env.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "kevin/core/rollout.hpp"
#include "kevin/core/rollout_group.hpp"
#include "kevin/refine/last_turn.hpp"
#include "refine/fixtures.hpp"

using kevin::Context;
using kevin::RefinementEnv;
using kevin::Response;
using kevin::Score;
using kevin::Stage;
using kevin::Verdict;
using kevin_test::answer;
using kevin_test::softmax_task;
using kevin_test::WordEvaluator;

using DefaultEnv = RefinementEnv<WordEvaluator>;
static_assert(kevin::Env<DefaultEnv>);
static_assert(std::is_same_v<kevin::ObservationOf<DefaultEnv>, Context>);
static_assert(std::is_same_v<kevin::ActionOf<DefaultEnv>, Response>);
static_assert(std::is_same_v<kevin::RewardOf<DefaultEnv>, Score>);
static_assert(std::is_same_v<kevin::InfoOf<DefaultEnv>, Verdict>);

TEST_CASE("an environment is made of a task and an evaluator alone") {
  WordEvaluator evaluator;
  RefinementEnv env{softmax_task(), evaluator};
  static_assert(std::is_same_v<decltype(env), DefaultEnv>);
  const Context context = env.reset(42);
  REQUIRE(context.task != nullptr);
  CHECK(*context.task == softmax_task());
  CHECK(context.turn == 0);
  CHECK(context.history.empty());
  CHECK(&env.evaluator() == &evaluator);
}

TEST_CASE("tasks are shared, rewards and contexts can be chosen") {
  WordEvaluator evaluator;
  const auto task = std::make_shared<const kevin::Task>(softmax_task());
  RefinementEnv one{task, evaluator};
  const RefinementEnv two = one;
  CHECK(&one.task() == task.get());
  CHECK(&two.task() == task.get());

  RefinementEnv plain{task, evaluator, [](const Verdict& v) { return v.correct() ? 1.0F : 0.0F; }, kevin::LastTurn{}};
  static_assert(std::is_same_v<kevin::RewardOf<decltype(plain)>, float>);
  (void)plain.reset(1);
  (void)plain.step(answer("syntax"));
  const auto step = plain.step(answer("speed 3"));
  CHECK(step.reward == 1.0F);
  CHECK(step.observation.history.size() == 1);
  CHECK(step.observation.history[0].score == 1.0);
  CHECK(step.observation.dropped == 1);

  const RefinementEnv capped{softmax_task(), evaluator, kevin::KevinReward{.speedup_cap = 2.0}};
  static_assert(std::is_same_v<std::remove_cv_t<decltype(capped)>, DefaultEnv>);
}

TEST_CASE("each outcome reaches verdict, reward and the next context") {
  WordEvaluator evaluator;
  RefinementEnv env{softmax_task(), evaluator};
  (void)env.reset(1);
  const std::vector<std::pair<std::string, Stage>> turns = {{"syntax", Stage::compile},
                                                            {"crash", Stage::run},
                                                            {"wrong", Stage::correctness},
                                                            {"speed 1.5", Stage::correct},
                                                            {"correct", Stage::correct}};
  for (std::size_t t = 0; t < turns.size(); ++t) {
    const auto step = env.step(answer(turns[t].first, "summary " + std::to_string(t)));
    CHECK(step.info.stage == turns[t].second);
    CHECK_FALSE(step.terminated);
    CHECK_FALSE(step.truncated);
    CHECK(step.observation.turn == t + 1);
    REQUIRE(step.observation.history.size() == t + 1);
    const kevin::PastTurn& newest = step.observation.history.back();
    CHECK(newest.source == turns[t].first);
    CHECK(newest.summary == "summary " + std::to_string(t));
    CHECK(newest.thought.empty());
    CHECK(newest.turn == t);
    CHECK(newest.verdict.stage == turns[t].second);
    CHECK(newest.score == step.reward);
    double sum = 0;
    for (const Score::Part& p : step.reward.parts) sum += p.value;
    CHECK(sum == step.reward.value);
  }
  CHECK(env.past()[3].score.value == doctest::Approx(1.8));
  CHECK(env.past()[4].score.value == doctest::Approx(0.3));
  CHECK(env.past()[0].thought == "hm");
}

TEST_CASE("a response without a source is a format failure and costs no evaluation") {
  WordEvaluator evaluator;
  RefinementEnv env{softmax_task(), evaluator};
  (void)env.reset(1);
  for (const char* source : {"", " \n\t\r\n"}) {
    const auto step = env.step(answer(source));
    CHECK(step.info.stage == Stage::format);
    CHECK(step.info.reason == "empty_source");
    CHECK_FALSE(step.info.diagnostics.empty());
    CHECK(step.reward == 0.0);
  }
  CHECK(evaluator.calls == 0);
  CHECK(env.past().size() == 2);
}

TEST_CASE("texts are parsed, and those that cannot be read say why") {
  WordEvaluator evaluator;
  RefinementEnv env{softmax_task(), evaluator};
  (void)env.reset(1);
  const auto bad = env.step_text("<think>a</think> no code");
  CHECK(bad.info.stage == Stage::format);
  CHECK(bad.info.reason == "no_code_block");
  CHECK(env.past().back().thought == "a");
  const auto good = env.step_text("```cpp\nspeed 2\n```\nSummary: s");
  CHECK(good.info.correct());
  CHECK(env.past().back().summary == "s");
  CHECK(evaluator.calls == 1);
}

TEST_CASE("the seed of an evaluation follows from the reset's seed and the turn's number") {
  WordEvaluator evaluator;
  RefinementEnv env{softmax_task(), evaluator};
  (void)env.reset(9);
  (void)env.step(answer("wrong"));
  CHECK(evaluator.last_seed == kevin::derive_seed(9, "evaluation", 0));
  (void)env.step(answer(""));  // counts as a turn
  (void)env.step(answer("wrong"));
  CHECK(evaluator.last_seed == kevin::derive_seed(9, "evaluation", 2));
  const auto wrong = env.past()[2].verdict.error->wrong;
  (void)env.reset(9);
  CHECK(env.past().empty());
  (void)env.step(answer("syntax"));
  (void)env.step(answer("syntax"));
  CHECK(env.step(answer("wrong")).info.error->wrong == wrong);
}

TEST_CASE("what the evaluator throws passes through and the turn does not count") {
  WordEvaluator evaluator;
  RefinementEnv env{softmax_task(), evaluator};
  (void)env.reset(1);
  (void)env.step(answer("speed 1"));
  CHECK_THROWS_WITH_AS((void)env.step(answer("lost")), "worker_lost: the runner is gone", kevin::Error);
  CHECK(env.past().size() == 1);
  CHECK(env.step(answer("speed 2")).observation.turn == 2);
  CHECK(evaluator.last_seed == kevin::derive_seed(1, "evaluation", 1));
}

TEST_CASE("an episode never ends by itself unless a speedup is set that ends it") {
  WordEvaluator evaluator;
  RefinementEnv open_end{softmax_task(), evaluator};
  (void)open_end.reset(1);
  for (int t = 0; t < 50; ++t) CHECK_FALSE(open_end.step(answer("speed 1000")).terminated);

  RefinementEnv env{
      softmax_task(), evaluator, kevin::KevinReward{}, kevin::SummarizedThoughts{}, {.stop_when_speedup = 2.0}};
  (void)env.reset(1);
  CHECK_FALSE(env.step(answer("speed 1.99")).terminated);
  CHECK_FALSE(env.step(answer("correct")).terminated);
  CHECK_FALSE(env.step(answer("speed nan")).terminated);
  const auto last = env.step(answer("speed 2"));
  CHECK(last.terminated);
  CHECK_FALSE(last.truncated);
  CHECK(last.observation.turn == 4);
  CHECK(env.reset(2).turn == 0);
  CHECK_FALSE(env.step(answer("speed 1")).terminated);
}

namespace {
/// Learns from feedback within the episode: repairs what failed, then gets faster.
struct Refiner {
  Response act(const Context& context, kevin::Rng& rng) const {
    if (context.history.empty()) return answer(rng.below(2) == 0 ? "syntax" : "crash");
    switch (context.history.back().verdict.stage) {
      case Stage::compile:
      case Stage::run:
        return answer("wrong");
      case Stage::correctness:
        return answer("speed " + std::to_string(1 + rng.below(3)));
      default:
        return answer("lost");
    }
  }
};
}  // namespace

TEST_CASE("rollout plays kernel refinement") {
  WordEvaluator evaluator;
  RefinementEnv env{softmax_task(), evaluator};
  const auto trajectory = kevin::rollout(env, Refiner{}, {.turns = 3, .seed = 7});
  CHECK(trajectory.valid());
  REQUIRE(trajectory.turns.size() == 3);
  CHECK(trajectory.stop == kevin::StopReason::turn_limit);
  CHECK(trajectory.turns[0].observation.turn == 0);
  CHECK(trajectory.turns[2].observation.history.size() == 2);
  CHECK(trajectory.turns[2].info.correct());
  CHECK(trajectory.turns[2].reward > 1.0);

  const auto lost = kevin::rollout(env, Refiner{}, {.turns = 4, .seed = 7});
  CHECK(lost.stop == kevin::StopReason::env_error);
  CHECK(lost.turns.size() == 3);
  CHECK(lost.error.find("the runner is gone") != std::string::npos);
}

TEST_CASE("a group of copies gives the same trajectories for any number of threads") {
  WordEvaluator evaluator;
  const RefinementEnv prototype{softmax_task(), evaluator};
  const auto make_env = [&](std::size_t) { return prototype; };
  const auto play = [&](std::size_t threads) {
    return kevin::rollout_group(make_env, Refiner{}, {.trajectories = 16, .turns = 3, .seed = 5, .threads = threads});
  };
  const auto one = play(1);
  const auto eight = play(8);
  REQUIRE(one.size() == 16);
  REQUIRE(eight.size() == 16);
  for (std::size_t i = 0; i < 16; ++i) {
    REQUIRE(one[i].turns.size() == 3);
    for (std::size_t t = 0; t < 3; ++t) {
      CHECK(one[i].turns[t].action == eight[i].turns[t].action);
      CHECK(one[i].turns[t].reward == eight[i].turns[t].reward);
      CHECK(one[i].turns[t].info.error == eight[i].turns[t].info.error);
    }
  }
}
