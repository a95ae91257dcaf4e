#ifndef KEVIN_AGENT_GRPO_TRAINER_HPP
#define KEVIN_AGENT_GRPO_TRAINER_HPP

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kevin/agent/grpo_config.hpp"
#include "kevin/agent/objective.hpp"
#include "kevin/agent/trainable_policy.hpp"
#include "kevin/core/trajectory.hpp"

namespace kevin::agent {

/// GRPO over groups of multi-turn trajectories: each turn is a sample of its own, credited with the discounted sum of
/// its own and later scores; advantages are normalised over all turns of a task; the clipped objective is maximised by
/// AdamW.
///
/// Generic over the environment: it sees observations, samples and rewards only. Keeps references to the policies.
template <Env E, TrainablePolicy<E> P>
class GrpoTrainer {
 public:
  using Group = GroupOf<E>;

  /// `reference`: whom the KL penalty keeps the policy close to; null: the policy that sampled the batch. It is not
  /// trained and not part of save(). Throws Error(bad_input) when the configuration is impossible.
  explicit GrpoTrainer(P& policy, GrpoConfig config = {}, P* reference = nullptr)
      : policy_(&policy),
        reference_(reference),
        config_(checked(std::move(config))),
        optimizer_(parameters_of(policy), optimizer_options(config_)) {}

  /// One update from freshly sampled groups, one group a task. Trajectories that are not valid take no part.
  UpdateStats update(std::span<const Group> groups) {
    UpdateStats stats;
    const Batch batch = gather(groups, stats);
    stats.samples = batch.samples.size();
    ++updates_;
    if (batch.samples.empty()) return stats;
    set_learning_rate();
    for (int step = 0; step < config_.gradient_steps; ++step) gradient_step(batch, step == 0, stats);
    return stats;
  }

  /// One update from the group of one task.
  UpdateStats update(const Group& group) { return update(std::span(&group, 1)); }

  [[nodiscard]] const GrpoConfig& config() const noexcept { return config_; }
  [[nodiscard]] P& policy() noexcept { return *policy_; }
  /// Updates made so far; part of a checkpoint.
  [[nodiscard]] std::int64_t updates() const noexcept { return updates_; }

  /// Writes parameters, optimizer state and the count of updates into an archive; restore reads them back bit for bit.
  /// Equal states give equal bytes: the moments are written by the parameter's place (LibTorch's own archive of an
  /// optimizer names them by address). restore throws when an archive is of another module.
  void save(torch::serialize::OutputArchive& archive) const {
    torch::serialize::OutputArchive module(archive.compilation_unit());
    policy_->module().save(module);
    archive.write("policy", module);
    torch::serialize::OutputArchive optimizer(archive.compilation_unit());
    const auto parameters = parameters_of(*policy_);
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const auto found = optimizer_.state().find(state_key(parameters[i]));
      if (found == optimizer_.state().end()) continue;  // no gradient has reached it yet
      torch::serialize::OutputArchive moments(archive.compilation_unit());
      found->second->serialize(moments);
      optimizer.write(std::to_string(i), moments);
    }
    archive.write("optimizer", optimizer);
    archive.write("updates", torch::tensor(updates_, torch::kInt64), true);
  }
  void restore(torch::serialize::InputArchive& archive) {
    torch::serialize::InputArchive module;
    archive.read("policy", module);
    policy_->module().load(module);
    torch::serialize::InputArchive optimizer;
    archive.read("optimizer", optimizer);
    const auto parameters = parameters_of(*policy_);
    optimizer_.state().clear();
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      torch::serialize::InputArchive moments;
      if (!optimizer.try_read(std::to_string(i), moments)) continue;
      auto state = std::make_unique<torch::optim::AdamWParamState>();
      state->serialize(moments);
      optimizer_.state()[state_key(parameters[i])] = std::move(state);
    }
    torch::Tensor updates;
    archive.read("updates", updates, true);
    updates_ = updates.item<std::int64_t>();
  }

 private:
  struct Batch {
    std::vector<const ObservationOf<E>*> observations;
    std::vector<const Sample*> samples;
    std::vector<float> advantages;
    rl::ObjectiveCounts counts;
  };

  static GrpoConfig checked(GrpoConfig config) {
    config.check();
    return config;
  }
  static auto state_key(const torch::Tensor& parameter) {
#if TORCH_VERSION_MAJOR < 2
    return c10::guts::to_string(parameter.unsafeGetTensorImpl());
#else
    return static_cast<void*>(parameter.unsafeGetTensorImpl());
#endif
  }
  static std::vector<torch::Tensor> parameters_of(P& policy) {
    torch::nn::Module& module = policy.module();
    return module.parameters();
  }
  static torch::optim::AdamWOptions optimizer_options(const GrpoConfig& config) {
    return torch::optim::AdamWOptions(config.learning_rate).weight_decay(config.weight_decay);
  }

  [[nodiscard]] Batch gather(std::span<const Group> groups, UpdateStats& stats) const {
    Batch batch;
    for (const Group& group : groups) {
      const rl::PerTurn advantages = rl::group_advantages(rl::returns(group, config_.returns), config_.advantages);
      if (!rl::has_signal(advantages)) {
        ++stats.groups_without_signal;
        if (config_.drop_constant_groups) continue;
      }
      for (std::size_t j = 0; j < group.size(); ++j) {
        for (std::size_t t = 0; t < advantages[j].size(); ++t) {
          const auto& turn = group[j].turns[t];
          if (turn.sample.completion_ids.empty()) continue;
          if (turn.sample.truncated) ++stats.samples_truncated;
          if (turn.sample.truncated && config_.mask_truncated) continue;
          batch.observations.push_back(&turn.observation);
          batch.samples.push_back(&turn.sample);
          batch.advantages.push_back(static_cast<float>(advantages[j][t]));
          ++batch.counts.samples;
          batch.counts.tokens += turn.sample.completion_ids.size();
        }
      }
    }
    return batch;
  }

  void set_learning_rate() {
    const double warm = config_.warmup_updates > 0
                            ? std::min(1.0, static_cast<double>(updates_) / static_cast<double>(config_.warmup_updates))
                            : 1.0;
    for (auto& group : optimizer_.param_groups()) {
      static_cast<torch::optim::AdamWOptions&>(group.options()).lr(config_.learning_rate * warm);
    }
  }

  /// Log-probabilities as they were sampled, [B, L], padded with 0.
  [[nodiscard]] static torch::Tensor sampled_logprobs(std::span<const Sample* const> samples, std::int64_t length) {
    torch::Tensor t = torch::zeros({static_cast<std::int64_t>(samples.size()), length});
    for (std::size_t i = 0; i < samples.size(); ++i) {
      const auto& p = samples[i]->logprobs;
      std::copy_n(p.begin(), std::min(p.size(), static_cast<std::size_t>(length)),
                  t.data_ptr<float>() + static_cast<std::int64_t>(i) * length);
    }
    return t;
  }

  void gradient_step(const Batch& batch, bool first, UpdateStats& stats) {
    optimizer_.zero_grad();
    const std::size_t n = batch.samples.size();
    UpdateStats sums;
    sums.mean_ratio = 0;
    sums.max_ratio = 0;
    bool finite = true;
    for (std::size_t from = 0; from < n && finite; from += config_.minibatch_samples) {
      const std::size_t count = std::min(config_.minibatch_samples, n - from);
      const auto observations = std::span(batch.observations).subspan(from, count);
      const auto samples = std::span(batch.samples).subspan(from, count);
      const TokenEvaluation now = policy_->evaluate(observations, samples);
      ObjectiveBatch part{.logprobs = now.logprobs,
                          .sampled_logprobs = sampled_logprobs(samples, now.logprobs.size(1)).to(now.logprobs.device()),
                          .advantages = torch::from_blob(const_cast<float*>(batch.advantages.data() + from),
                                                         {static_cast<std::int64_t>(count)})
                                            .to(now.logprobs.device()),
                          .mask = now.mask};
      if (reference_ != nullptr && config_.objective.kl_weight > 0) {
        const torch::NoGradGuard no_grad;
        part.reference_logprobs = reference_->evaluate(observations, samples).logprobs;
      }
      const ObjectiveTensors parts = clipped_objective(part, config_.objective, batch.counts);
      const torch::Tensor entropy =
          (now.entropy * now.mask).sum() / static_cast<double>(std::max<std::size_t>(1, batch.counts.tokens));
      const torch::Tensor loss = -(parts.value + config_.entropy_weight * entropy);
      finite = std::isfinite(loss.template item<double>());
      if (!finite) break;
      loss.backward();
      sums.objective += parts.value.template item<double>();
      sums.entropy += entropy.template item<double>();
      sums.mean_ratio += parts.mean_ratio.template item<double>();
      sums.max_ratio = std::max(sums.max_ratio, parts.max_ratio.template item<double>());
      sums.clip_fraction += parts.clip_fraction.template item<double>();
      sums.approx_kl += parts.mean_kl.template item<double>();
    }
    const double norm =
        finite ? torch::nn::utils::clip_grad_norm_(parameters_of(*policy_), config_.max_gradient_norm) : 0;
    if (!finite || !std::isfinite(norm)) {
      ++stats.steps_skipped;
      optimizer_.zero_grad();
      return;
    }
    optimizer_.step();
    stats.objective = sums.objective;
    if (first) stats.entropy = sums.entropy;
    stats.mean_ratio = sums.mean_ratio;
    stats.max_ratio = sums.max_ratio;
    stats.clip_fraction = sums.clip_fraction;
    stats.approx_kl = sums.approx_kl;
    stats.gradient_norm = norm;
  }

  P* policy_;
  P* reference_;
  GrpoConfig config_;
  torch::optim::AdamW optimizer_;
  std::int64_t updates_ = 0;
};

}  // namespace kevin::agent

#endif  // KEVIN_AGENT_GRPO_TRAINER_HPP
