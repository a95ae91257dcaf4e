#include "kevin/agent/grpo_trainer.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include <limits>

#include "agent/toy_policy.hpp"
#include "kevin/core/rollout_group.hpp"

using kevin::agent::GrpoConfig;
using Trainer = kevin::agent::GrpoTrainer<toy::Secret, toy::NetPolicy>;
static_assert(kevin::agent::TrainablePolicy<toy::NetPolicy, toy::Secret>);

namespace {
std::vector<kevin::GroupOf<toy::Secret>> play(const toy::NetPolicy& policy, std::uint64_t seed) {
  return kevin::rollout_groups([](std::size_t task, std::size_t) { return toy::Secret{.task = task}; }, 2, policy,
                               {.trajectories = 16, .turns = 3, .seed = seed, .threads = 2});
}
double mean_reward(const std::vector<kevin::GroupOf<toy::Secret>>& groups) {
  double sum = 0;
  double count = 0;
  for (const auto& g : groups) {
    for (const auto& t : g) {
      for (const auto& turn : t.turns) sum += turn.reward, ++count;
    }
  }
  return sum / count;
}
bool same_parameters(torch::nn::Module& a, torch::nn::Module& b) {
  const auto pa = a.parameters();
  const auto pb = b.parameters();
  for (std::size_t i = 0; i < pa.size(); ++i) {
    if (!torch::equal(pa[i], pb[i])) return false;
  }
  return pa.size() == pb.size();
}
}  // namespace

TEST_CASE("a policy learns two secrets from their rewards") {
  toy::NetPolicy policy(1);
  Trainer trainer(policy, {.learning_rate = 0.02, .max_gradient_norm = 5});
  const double before = mean_reward(play(policy, 1000));
  for (std::uint64_t update = 0; update < 60; ++update) trainer.update(play(policy, update));
  const double after = mean_reward(play(policy, 1000));
  CHECK(before < 0.3);
  CHECK(after > 0.9);
}

TEST_CASE("the first step is on policy, the later ones are not") {
  toy::NetPolicy policy(2);
  Trainer once(policy, {.gradient_steps = 1});
  auto stats = once.update(play(policy, 1));
  CHECK(stats.samples == 2 * 16 * 3);
  CHECK(stats.mean_ratio == doctest::Approx(1).epsilon(1e-5));
  CHECK(stats.approx_kl == doctest::Approx(0).scale(1).epsilon(1e-6));
  CHECK(stats.entropy == doctest::Approx(std::log(8)).epsilon(0.05));
  Trainer twice(policy, {.gradient_steps = 2, .learning_rate = 0.05});
  CHECK(twice.update(play(policy, 2)).approx_kl > 1e-6);
}

TEST_CASE("a group of equal returns moves nothing") {
  toy::NetPolicy policy(3);
  toy::NetPolicy untouched(3);
  Trainer trainer(policy);
  auto groups = play(policy, 1);
  for (auto& g : groups) {
    for (auto& t : g) {
      for (auto& turn : t.turns) turn.reward = 0;
    }
  }
  const auto stats = trainer.update(groups);
  CHECK(stats.groups_without_signal == 2);
  CHECK(stats.gradient_norm == 0);
  CHECK(same_parameters(policy.module(), untouched.module()));
}

TEST_CASE("trajectories that are not valid take no part") {
  toy::NetPolicy a(4);
  toy::NetPolicy b(4);
  auto groups = play(a, 1);
  auto fewer = groups;
  for (auto& t : fewer[0]) {
    if (t.index % 2 == 0) t.stop = kevin::StopReason::env_error;
  }
  Trainer with_errors(a);
  CHECK(with_errors.update(fewer).samples == 3 * (8 + 16));
  std::erase_if(fewer[0], [](const auto& t) { return !t.valid(); });
  Trainer without(b);
  without.update(fewer);
  CHECK(same_parameters(a.module(), b.module()));
}

TEST_CASE("a step whose loss or gradient is not finite is skipped and counted") {
  toy::NetPolicy policy(5);
  toy::NetPolicy untouched(5);
  Trainer trainer(policy, {.gradient_steps = 3});
  auto groups = play(policy, 1);
  groups[0][0].turns[0].sample.logprobs[0] = std::numeric_limits<float>::quiet_NaN();
  const auto stats = trainer.update(groups);
  CHECK(stats.steps_skipped == 3);
  CHECK(same_parameters(policy.module(), untouched.module()));
  CHECK(trainer.update(play(policy, 2)).steps_skipped == 0);
}

TEST_CASE("minibatches accumulate to the step of the whole batch") {
  toy::NetPolicy a(6);
  toy::NetPolicy b(6);
  Trainer whole(a, {.gradient_steps = 1});
  Trainer parts(b, {.gradient_steps = 1, .minibatch_samples = 24});
  const auto groups = play(a, 1);
  const auto x = whole.update(groups);
  const auto y = parts.update(groups);
  CHECK(x.gradient_norm == doctest::Approx(y.gradient_norm).epsilon(1e-4));
  CHECK(x.objective == doctest::Approx(y.objective).epsilon(1e-4).scale(1));
}

TEST_CASE("minibatches make the same step with every loss that is defined on the whole batch") {
  for (const char* name : {"grpo", "dr_grpo", "dapo", "cispo", "gspo"}) {
    CAPTURE(name);
    toy::NetPolicy a(6);
    toy::NetPolicy b(6);
    const auto groups = play(a, 1);
    Trainer whole(a, {.objective = kevin::rl::objective_named(name)});
    Trainer parts(b, {.objective = kevin::rl::objective_named(name), .minibatch_samples = 36});
    const auto x = whole.update(groups);
    const auto y = parts.update(groups);
    CHECK(x.gradient_norm == doctest::Approx(y.gradient_norm).epsilon(1e-3));
    CHECK(x.entropy == doctest::Approx(y.entropy).epsilon(1e-4));
  }
}

TEST_CASE("groups without a signal can be left out, so that they do not thin out the others") {
  toy::NetPolicy a(9);
  toy::NetPolicy b(9);
  auto groups = play(a, 1);
  for (auto& t : groups[0]) {
    for (auto& turn : t.turns) turn.reward = 1;
  }
  for (auto& t : groups[0]) t.turns.resize(1);  // equal returns
  Trainer keeps(a, {.gradient_steps = 1});
  Trainer drops(b, {.drop_constant_groups = true, .gradient_steps = 1});
  const auto kept = keeps.update(groups);
  const auto dropped = drops.update(groups);
  CHECK(kept.groups_without_signal == 1);
  CHECK(dropped.groups_without_signal == 1);
  CHECK(kept.samples == 16 + 48);
  CHECK(dropped.samples == 48);
  CHECK(dropped.gradient_norm == doctest::Approx(kept.gradient_norm * 64 / 48).epsilon(1e-3));
}

TEST_CASE("answers that were cut off carry no loss when asked for, but their scores count in the group") {
  toy::NetPolicy policy(10);
  auto groups = play(policy, 1);
  groups[1][2].turns[0].sample.truncated = true;
  CHECK(Trainer(policy).update(groups).samples == 96);
  const auto stats = Trainer(policy, {.mask_truncated = true}).update(groups);
  CHECK(stats.samples == 95);
  CHECK(stats.samples_truncated == 1);
}

TEST_CASE("a KL penalty keeps the policy close to a reference that is not trained") {
  const auto distance_after = [](double weight) {
    toy::NetPolicy policy(11);
    toy::NetPolicy reference(11);
    toy::NetPolicy untouched(11);
    GrpoConfig config{.learning_rate = 0.02, .max_gradient_norm = 5};
    config.objective.kl_weight = weight;
    Trainer trainer(policy, config, &reference);
    kevin::agent::UpdateStats stats;
    for (std::uint64_t update = 0; update < 20; ++update) stats = trainer.update(play(policy, update));
    CHECK(same_parameters(reference.module(), untouched.module()));
    double distance = 0;
    for (std::size_t i = 0; i < 4; ++i)
      distance += (policy.module().parameters()[i] - reference.module().parameters()[i]).norm().item<double>();
    return distance;
  };
  CHECK(distance_after(3.0) < 0.5 * distance_after(0));
}

TEST_CASE("no groups are no samples and no step") {
  toy::NetPolicy policy(7);
  Trainer trainer(policy);
  CHECK(trainer.update(std::span<const kevin::GroupOf<toy::Secret>>{}).samples == 0);
}

TEST_CASE("an impossible configuration is refused and the text names the field") {
  toy::NetPolicy policy(8);
  const auto refused = [&](GrpoConfig config, const char* field) {
    CHECK_THROWS_WITH_AS(Trainer(policy, config), doctest::Contains(field), kevin::Error);
  };
  refused({.gradient_steps = 0}, "gradient_steps");
  refused({.learning_rate = -1}, "learning_rate");
  refused({.max_gradient_norm = 0}, "max_gradient_norm");
  refused({.returns = {.gamma = 2}}, "gamma");
  refused({.objective = {.clip_low = -0.1}}, "clip_low");
  refused({.objective = {.dual_clip = 1.0}}, "dual_clip");
  refused({.objective = {.constant = 0}}, "constant");
}
