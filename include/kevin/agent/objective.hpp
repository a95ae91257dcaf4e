#ifndef KEVIN_AGENT_OBJECTIVE_HPP
#define KEVIN_AGENT_OBJECTIVE_HPP

#include <optional>

#include "kevin/rl/objective.hpp"
#include "kevin/tasks/torch.hpp"

namespace kevin::agent {

/// B samples of at most L tokens.
struct ObjectiveBatch {
  torch::Tensor logprobs;              ///< [B, L], log pi_theta, differentiable
  torch::Tensor sampled_logprobs;      ///< [B, L], log pi_old
  torch::Tensor advantages;            ///< [B]
  torch::Tensor mask;                  ///< [B, L], bool: tokens that count; others may hold anything
  torch::Tensor reference_logprobs{};  ///< [B, L], log pi_ref; undefined: the sampling policy is the reference
};

/// rl::clipped_objective on tensors; the same formulas, differentiable.
struct ObjectiveTensors {
  torch::Tensor value;          ///< scalar, to be maximised
  torch::Tensor clip_fraction;  ///< scalars without gradient, over the tokens that count
  torch::Tensor mean_ratio;
  torch::Tensor max_ratio;
  torch::Tensor mean_kl;
};

/// How many samples and tokens of `mask` count.
[[nodiscard]] inline rl::ObjectiveCounts counts_of(const torch::Tensor& mask) {
  return {static_cast<std::size_t>(mask.any(1).sum().item<std::int64_t>()),
          static_cast<std::size_t>(mask.sum().item<std::int64_t>())};
}

/// `options` as in rl::clipped_objective. `all`: the counts of the whole batch of which this is a part; then the values
/// (and all figures but max_ratio) of the parts add up to the batch's. With no token that counts the value is 0 (and
/// its gradient too).
[[nodiscard]] inline ObjectiveTensors clipped_objective(const ObjectiveBatch& batch,
                                                        const rl::ObjectiveOptions& options,
                                                        std::optional<rl::ObjectiveCounts> all = {}) {
  const torch::Tensor& mask = batch.mask;
  const torch::Tensor weight = mask.to(batch.logprobs.scalar_type());
  const torch::Tensor tokens = weight.sum(1).clamp_min(1);  // [B]
  const rl::ObjectiveCounts own = counts_of(mask);
  const rl::ObjectiveCounts whole = all.value_or(own);
  const auto samples = static_cast<double>(std::max<std::size_t>(1, whole.samples));
  const auto all_tokens = static_cast<double>(std::max<std::size_t>(1, whole.tokens));
  // masked tokens take part as 0, so that garbage there makes no NaN
  const torch::Tensor nothing = torch::zeros_like(batch.logprobs);
  const torch::Tensor logprobs = torch::where(mask, batch.logprobs, nothing);
  const torch::Tensor own_drift = logprobs - torch::where(mask, batch.sampled_logprobs, nothing);
  const torch::Tensor ratio = options.ratio == rl::RatioLevel::token
                                  ? own_drift.exp()
                                  : (own_drift.sum(1) / tokens).exp().unsqueeze(1).expand_as(logprobs);
  const torch::Tensor a = batch.advantages.unsqueeze(1);
  const torch::Tensor bounded = torch::clamp(ratio, 1 - options.clip_low, 1 + options.clip_high);
  torch::Tensor surrogate;
  torch::Tensor cut;
  if (options.surrogate == rl::Surrogate::cispo) {
    surrogate = bounded.detach() * a * logprobs;
    cut = bounded != ratio;
  } else {
    surrogate = torch::minimum(ratio * a, bounded * a);
    cut = bounded * a < ratio * a;
    if (options.dual_clip) {
      const torch::Tensor runaway = (a < 0).logical_and(ratio > *options.dual_clip);
      surrogate = torch::where(runaway, (*options.dual_clip * a).expand_as(surrogate), surrogate);
      cut = cut.logical_or(runaway);
    }
  }
  const torch::Tensor d = batch.reference_logprobs.defined()
                              ? torch::where(mask, batch.reference_logprobs, nothing) - logprobs
                              : -own_drift;
  const torch::Tensor k3 = torch::expm1(d) - d;
  const torch::Tensor per_token = (surrogate - options.kl_weight * k3) * weight;
  ObjectiveTensors result;
  switch (options.length_norm) {
    case rl::LengthNorm::sequence:
      result.value = (per_token.sum(1) / tokens).sum() / samples;
      break;
    case rl::LengthNorm::constant:
      result.value = per_token.sum() / options.constant / samples;
      break;
    case rl::LengthNorm::token_mean:
      result.value = per_token.sum() / all_tokens;
      break;
    case rl::LengthNorm::local_token_mean:
      result.value = per_token.sum() / static_cast<double>(std::max<std::size_t>(1, own.tokens)) *
                     (static_cast<double>(own.samples) / samples);
      break;
  }
  const torch::NoGradGuard no_grad;
  result.clip_fraction = (cut.to(weight.scalar_type()) * weight).sum() / all_tokens;
  result.mean_ratio = whole.tokens == 0 ? torch::ones({}) : (ratio * weight).sum() / all_tokens;
  result.max_ratio = ratio.numel() == 0 ? torch::ones({}) : torch::where(mask, ratio, torch::ones_like(ratio)).max();
  result.mean_kl = (k3 * weight).sum() / all_tokens;
  return result;
}

}  // namespace kevin::agent

#endif  // KEVIN_AGENT_OBJECTIVE_HPP
