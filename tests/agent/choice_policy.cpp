#include "kevin/agent/choice_policy.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <iterator>
#include <memory>
#include <set>
#include <sstream>
#include <thread>

#include "kevin/agent/grpo_trainer.hpp"
#include "kevin/core/check.hpp"
#include "kevin/core/rollout_group.hpp"
#include "kevin/refine/refinement_env.hpp"
#include "kevin/tasks/suite.hpp"

using kevin::Context;
using kevin::Rng;
using kevin::Task;
using kevin::agent::ChoicePolicy;

namespace {

/// An evaluator whose verdict depends on what the source says, so that it costs nothing: "width=W" is read back from
/// the comment that kernels begin with.
struct Judge {
  std::function<kevin::Verdict(const std::string& source, std::uint64_t seed)> rule;
  kevin::Verdict evaluate(const Task&, const kevin::Candidate& candidate, std::uint64_t seed) {
    return rule(candidate.source, seed);
  }
};
using Environment = kevin::RefinementEnv<Judge>;
static_assert(kevin::agent::TrainablePolicy<ChoicePolicy, Environment>);

kevin::Verdict verdict(kevin::Stage stage, double speedup = 1) {
  kevin::Verdict v;
  v.stage = stage;
  if (v.correct()) v.speedup = speedup;
  return v;
}
std::vector<Task> tasks() {
  return {kevin::tasks::find("kevin/l1/25@small"), kevin::tasks::find("kevin/l1/36@small"),
          kevin::tasks::find("kevin/l2/12@small")};
}

void disturb(ChoicePolicy& policy) {
  const torch::NoGradGuard no_grad;
  Rng rng(3, "disturb");
  for (torch::Tensor& p : policy.module().parameters()) {
    float* data = p.data_ptr<float>();
    for (std::int64_t i = 0; i < p.numel(); ++i) data[i] += static_cast<float>(0.5 * rng.normal());
  }
}

/// Contexts with no, one and two earlier turns of each task.
std::vector<Context> contexts(const ChoicePolicy& policy) {
  std::vector<Context> all;
  for (const Task& task : tasks()) {
    Context context{.task = std::make_shared<const Task>(task)};
    all.push_back(context);
    for (std::uint64_t turn = 0; turn < 2; ++turn) {
      Rng rng(turn, task.id);
      const auto decision = policy.act(context, rng);
      context.history.push_back({decision.action.summary, decision.action.source,
                                 verdict(turn == 0 ? kevin::Stage::correct : kevin::Stage::compile, 1.7),
                                 turn == 0 ? 2.0 : 0.0});
      context.turn = turn + 1;
      all.push_back(context);
    }
  }
  return all;
}

}  // namespace

TEST_CASE("untrained, every option of every knob is equally likely") {
  const ChoicePolicy policy(tasks(), 1);
  for (const Context& context : contexts(policy)) {
    Rng rng(5);
    const auto decision = policy.act(context, rng);
    const auto& knobs = policy.vocabulary().tokens(policy.vocabulary().index(*context.task));
    REQUIRE(decision.sample.logprobs.size() == knobs.size());
    for (std::size_t k = 0; k < knobs.size(); ++k)
      CHECK(decision.sample.logprobs[k] == doctest::Approx(-std::log(double(knobs[k].size()))));
  }
}

TEST_CASE("an answer is the kernel of the choices, its summary names them, its tokens are them") {
  ChoicePolicy policy(tasks(), 1);
  disturb(policy);
  for (const Context& context : contexts(policy)) {
    Rng rng(6);
    const auto decision = policy.act(context, rng);
    const auto& words = policy.vocabulary();
    const auto& space = words.space(words.index(*context.task));
    const auto read = space.read_summary(decision.action.summary);
    kevin::agent::Choices choices;
    std::string named;
    for (std::size_t k = 0; k < read.size(); ++k) {
      REQUIRE(read[k]);
      choices.push_back(*read[k]);
      named += (k > 0 ? " " : "") + words.word(static_cast<std::size_t>(decision.sample.completion_ids[k]));
    }
    CHECK(decision.action.source == space.render(choices));
    CHECK(decision.action.summary == named);
    CHECK_FALSE(decision.action.thought.empty());
  }
}

TEST_CASE(
    "evaluate gives the log-probabilities that act sampled with, for tasks and histories of different length "
    "together") {
  ChoicePolicy policy(tasks(), 1);
  disturb(policy);
  const std::vector<Context> all = contexts(policy);
  std::vector<kevin::Sample> samples;
  std::vector<const Context*> observations;
  std::vector<const kevin::Sample*> pointers;
  for (const Context& context : all) {
    Rng rng(samples.size(), "act");
    samples.push_back(policy.act(context, rng).sample);
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    observations.push_back(&all[i]);
    pointers.push_back(&samples[i]);
  }
  const auto now = policy.evaluate(observations, pointers);
  REQUIRE(now.logprobs.sizes() == now.mask.sizes());
  REQUIRE(now.logprobs.sizes() == now.entropy.sizes());
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto row = static_cast<std::int64_t>(i);
    const auto& knobs = policy.vocabulary().tokens(policy.vocabulary().index(*all[i].task));
    CHECK(now.mask[row].sum().item<std::int64_t>() == static_cast<std::int64_t>(knobs.size()));
    for (std::size_t k = 0; k < knobs.size(); ++k) {
      const auto column = static_cast<std::int64_t>(k);
      CHECK(now.logprobs[row][column].item<float>() == doctest::Approx(samples[i].logprobs[k]).epsilon(1e-4));
      const double entropy = now.entropy[row][column].item<double>();
      CHECK(entropy >= 0);
      CHECK(entropy <= std::log(double(knobs[k].size())) + 1e-5);
    }
  }
  (now.logprobs + now.entropy).sum().backward();
  for (const torch::Tensor& p : policy.module().parameters()) CHECK(p.grad().isfinite().all().item<bool>());
}

TEST_CASE("the same context and generator give the same answer, also from several threads") {
  ChoicePolicy policy(tasks(), 1);
  disturb(policy);
  const std::vector<Context> all = contexts(policy);
  const auto answers = [&] {
    std::vector<kevin::Response> got;
    for (std::size_t i = 0; i < all.size(); ++i) {
      Rng rng(i);
      got.push_back(policy.act(all[i], rng).action);
    }
    return got;
  };
  const auto expected = answers();
  std::vector<std::vector<kevin::Response>> seen(4);
  {
    std::vector<std::jthread> threads;
    for (auto& s : seen) threads.emplace_back([&] { s = answers(); });
  }
  for (const auto& s : seen) CHECK((s == expected));
  const auto report = kevin::check_policy<kevin::Response>(policy, all);
  CHECK_MESSAGE(report.ok(), report);
}

TEST_CASE("seeds make the weights") {
  const auto weights = [](std::uint64_t seed) { return ChoicePolicy(tasks(), seed).module().parameters()[0]; };
  CHECK(torch::equal(weights(1), weights(1)));
  CHECK_FALSE(torch::equal(weights(1), weights(2)));
}

TEST_CASE(
    "features: the task, what the last and the best turn reached, and their choices; foreign summaries say nothing") {
  const ChoicePolicy policy(tasks(), 1);
  const auto& words = policy.vocabulary();
  std::vector<Context> all = contexts(policy);
  const Context& second = all[2];  // a correct turn with 1.7x, then one that does not compile
  const auto f = words.features(second);
  REQUIRE(f.size() == words.feature_count());
  CHECK(f[0] == 1);
  CHECK(f[1] == 0);
  const auto marked = [&](std::size_t from) {
    std::set<std::string> names;
    for (std::size_t t = 0; t < words.size(); ++t) {
      if (f[from + t] == 1) names.insert(words.word(t));
    }
    return names;
  };
  const auto named = [](const std::string& summary) {
    std::istringstream in(summary);
    return std::set<std::string>{std::istream_iterator<std::string>(in), {}};
  };
  CHECK(marked(words.last_choices()) == named(second.history[1].summary));
  CHECK(marked(words.best_choices()) == named(second.history[0].summary));
  Context changed = second;
  changed.history[0].verdict.speedup = 3.4;
  CHECK(words.features(changed) != f);
  changed = second;
  changed.history[1].verdict.stage = kevin::Stage::run;
  CHECK(words.features(changed) != f);
  changed = second;
  for (auto& past : changed.history) past.summary = "I wrote width=seven and rm -rf; \xff\xfe";
  const auto unread = words.features(changed);
  for (std::size_t t = words.last_choices(); t < words.feature_count(); ++t) CHECK(unread[t] == 0);
}

TEST_CASE("a task that the policy was not made for is an error that names it") {
  const ChoicePolicy policy({tasks()[0]}, 1);
  Rng rng(1);
  const Context other{.task = std::make_shared<const Task>(tasks()[1])};
  CHECK_THROWS_WITH_AS(static_cast<void>(policy.act(other, rng)), doctest::Contains("kevin/l1/36@small"), kevin::Error);
  CHECK_THROWS_AS(ChoicePolicy({}, 1), kevin::Error);
}

TEST_CASE("GRPO teaches it what is right in all episodes of a task") {
  ChoicePolicy policy({tasks()[0]}, 1);
  Judge judge{[](const std::string& source, std::uint64_t) {
    return source.find("width 16,") == std::string::npos ? verdict(kevin::Stage::correctness)
                                                         : verdict(kevin::Stage::correct, 2);
  }};
  kevin::agent::GrpoTrainer<Environment, ChoicePolicy> trainer(
      policy, {.gradient_steps = 4, .learning_rate = 0.01, .max_gradient_norm = 1});
  const auto correct = [&](std::uint64_t seed, bool learn) {
    const auto group = kevin::rollout_group([&](std::size_t) { return Environment(tasks()[0], judge); }, policy,
                                            {.trajectories = 32, .turns = 2, .seed = seed});
    double right = 0;
    for (const auto& t : group) {
      for (const auto& turn : t.turns) right += turn.info.correct() ? 1 : 0;
    }
    if (learn) trainer.update(group);
    return right / 64;
  };
  CHECK(correct(100, false) < 0.5);
  for (std::uint64_t seed = 0; seed < 25; ++seed) correct(seed, true);
  CHECK(correct(100, false) > 0.8);
}

TEST_CASE("GRPO teaches it to read feedback: what is right differs from episode to episode and only verdicts tell") {
  ChoicePolicy policy({tasks()[0]}, 2);
  // an episode accepts one of two widths; which one is known to its judge alone
  kevin::agent::GrpoTrainer<Environment, ChoicePolicy> trainer(
      policy, {.gradient_steps = 4, .learning_rate = 0.01, .max_gradient_norm = 1});
  std::vector<std::unique_ptr<Judge>> judges;
  for (const char* wanted : {"width 8,", "width 16,"}) {
    judges.push_back(std::make_unique<Judge>(Judge{[wanted](const std::string& source, std::uint64_t) {
      return source.find(wanted) == std::string::npos ? verdict(kevin::Stage::correctness)
                                                      : verdict(kevin::Stage::correct, 2);
    }}));
  }
  std::vector<double> by_turn(3);
  const auto play = [&](std::uint64_t seed, bool learn) {
    const auto group = kevin::rollout_group([&](std::size_t i) { return Environment(tasks()[0], *judges[i % 2]); },
                                            policy, {.trajectories = 64, .turns = 3, .seed = seed});
    by_turn.assign(3, 0);
    for (const auto& t : group) {
      for (std::size_t k = 0; k < t.turns.size(); ++k) by_turn[k] += t.turns[k].info.correct() ? 1.0 / 64 : 0;
    }
    if (learn) trainer.update(group);
  };
  for (std::uint64_t seed = 0; seed < 60; ++seed) play(seed, true);
  play(1000, false);
  CHECK(by_turn[0] < 0.7);  // nothing is known yet: at most one of two
  CHECK(by_turn[2] > 0.85);
}
