#ifndef KEVIN_AGENT_OBJECTIVE_HPP
#define KEVIN_AGENT_OBJECTIVE_HPP

#include "kevin/rl/objective.hpp"
#include "kevin/tasks/torch.hpp"

namespace kevin::agent {

/// rl::clipped_objective on tensors; the same formulas, differentiable.
struct ObjectiveTensors {
  torch::Tensor value;          ///< scalar, to be maximised
  torch::Tensor clip_fraction;  ///< scalars without gradient, over the tokens that count
  torch::Tensor mean_ratio;
  torch::Tensor max_ratio;
  torch::Tensor mean_kl;
};

/// `logprobs`, `sampled_logprobs`: [B, L]; `advantages`: [B]; `mask`: [B, L], bool. `options` as in
/// rl::clipped_objective. With no token that counts the value is 0 (and its gradient too).
[[nodiscard]] inline ObjectiveTensors clipped_objective(const torch::Tensor& logprobs,
                                                        const torch::Tensor& sampled_logprobs,
                                                        const torch::Tensor& advantages, const torch::Tensor& mask,
                                                        const rl::ObjectiveOptions& options) {
  const torch::Tensor weight = mask.to(logprobs.scalar_type());
  const torch::Tensor tokens = weight.sum(1);  // [B]
  const torch::Tensor samples = (tokens > 0).sum().clamp_min(1);
  const torch::Tensor all_tokens = weight.sum().clamp_min(1);
  // masked tokens take part as d = 0, so that garbage there makes no NaN
  const torch::Tensor d = torch::where(mask, sampled_logprobs - logprobs, torch::zeros_like(logprobs));
  const torch::Tensor ratio = torch::exp(-d);
  const torch::Tensor a = advantages.unsqueeze(1);
  const torch::Tensor bounded = torch::clamp(ratio, 1 - options.clip_low, 1 + options.clip_high);
  const torch::Tensor k3 = torch::expm1(d) - d;
  const torch::Tensor per_token = (torch::minimum(ratio * a, bounded * a) - options.kl_weight * k3) * weight;
  ObjectiveTensors result;
  switch (options.length_norm) {
    case rl::LengthNorm::sequence:
      result.value = (per_token.sum(1) / tokens.clamp_min(1)).sum() / samples;
      break;
    case rl::LengthNorm::constant:
      result.value = per_token.sum() / options.constant / samples;
      break;
    case rl::LengthNorm::token_mean:
      result.value = per_token.sum() / all_tokens;
      break;
  }
  const torch::NoGradGuard no_grad;
  result.clip_fraction = ((bounded * a < ratio * a).to(weight.scalar_type()) * weight).sum() / all_tokens;
  result.mean_ratio = (ratio * weight).sum() / all_tokens;
  result.max_ratio = ratio.numel() == 0 ? torch::ones({}) : torch::where(mask, ratio, torch::ones_like(ratio)).max();
  result.mean_kl = (k3 * weight).sum() / all_tokens;
  return result;
}

}  // namespace kevin::agent

#endif  // KEVIN_AGENT_OBJECTIVE_HPP
