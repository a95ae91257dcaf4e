#ifndef KEVIN_AGENT_GRPO_CONFIG_HPP
#define KEVIN_AGENT_GRPO_CONFIG_HPP

#include <cmath>
#include <cstddef>
#include <string>

#include "kevin/core/error.hpp"
#include "kevin/rl/advantages.hpp"
#include "kevin/rl/objective.hpp"
#include "kevin/rl/returns.hpp"

namespace kevin::agent {

/// The choices of GRPO training. The defaults are Kevin-32B's where the paper (arXiv 2507.11948) states one; learning
/// rate and optimizer settings fit small policies (the paper's 2e-6 is for a language model of 32 billion parameters).
struct GrpoConfig {
  rl::ReturnOptions returns{};        ///< gamma 0.4, sum (section 4.3)
  rl::AdvantageOptions advantages{};  ///< over all turns of a task, divided by the standard deviation (section 3.3)
  rl::ObjectiveOptions
      objective{};  ///< clip 0.2 / 0.28 (section 3.3), constant length normalisation (section 6.1), no KL
  /// Groups whose returns are all equal take no part. Else their samples pull nowhere (KL and entropy excepted), yet
  /// count in the mean. (DAPO, arXiv 2503.14476, section 3.2, also samples others instead:
  /// TrainingOptions::resample_rounds.)
  bool drop_constant_groups = false;
  /// Answers that were cut off at their length limit carry no loss; their scores stay in the group (overlong
  /// filtering, arXiv 2503.14476, section 3.4).
  bool mask_truncated = false;
  int gradient_steps = 2;  ///< per batch: one on-policy, one off-policy (section 3.3)
  double learning_rate = 3e-3;
  int warmup_updates = 0;   ///< the learning rate rises linearly over these
  double weight_decay = 0;  ///< decoupled (AdamW)
  /// The gradient of all parameters together is scaled down to this 2-norm where it is longer; infinity: never. 0.5 is
  /// what Kevin's blog states for its single-turn runs; the stabilised multi-turn runs have 0.05 (section 6.1).
  double max_gradient_norm = 0.5;
  double entropy_weight = 0;             ///< added to the objective: weight * mean entropy per token
  std::size_t minibatch_samples = 4096;  ///< samples evaluated at a time; gradients of a step are accumulated over them

  /// Throws Error(bad_input) naming the field.
  void check() const {
    const auto need = [](bool ok, const char* field, const char* rule) {
      if (!ok) throw Error(ErrorCode::bad_input, std::string("GrpoConfig.") + field + " must be " + rule);
    };
    need(returns.gamma >= 0 && returns.gamma <= 1, "returns.gamma", "in [0, 1]");
    need(advantages.epsilon >= 0, "advantages.epsilon", "0 or more");
    need(objective.clip_low >= 0 && std::isfinite(objective.clip_low), "objective.clip_low", "0 or more");
    need(objective.clip_high >= 0 && std::isfinite(objective.clip_high), "objective.clip_high", "0 or more");
    need(objective.constant > 0, "objective.constant", "positive");
    need(!objective.dual_clip || *objective.dual_clip > 1, "objective.dual_clip", "above 1");
    need(objective.kl_weight >= 0, "objective.kl_weight", "0 or more");
    need(gradient_steps >= 1, "gradient_steps", "1 or more");
    need(learning_rate > 0 && std::isfinite(learning_rate), "learning_rate", "positive");
    need(warmup_updates >= 0, "warmup_updates", "0 or more");
    need(weight_decay >= 0, "weight_decay", "0 or more");
    need(max_gradient_norm > 0, "max_gradient_norm", "positive");
    need(std::isfinite(entropy_weight), "entropy_weight", "finite");
    need(minibatch_samples >= 1, "minibatch_samples", "1 or more");
  }
};

/// What one update did. Figures of the last gradient step unless said.
struct UpdateStats {
  std::size_t samples = 0;                ///< turns that took part
  std::size_t groups_without_signal = 0;  ///< groups whose advantages are all 0, as when all returns are equal
  std::size_t samples_truncated = 0;      ///< answers that were cut off at their length limit
  int steps_skipped = 0;                  ///< gradient steps left out because loss or gradient was not finite
  double objective = 0;
  double entropy = 0;  ///< mean per token, of the first step
  double mean_ratio = 1;
  double max_ratio = 1;
  double clip_fraction = 0;
  double approx_kl = 0;      ///< mean k3 against the reference
  double gradient_norm = 0;  ///< before clipping
};

}  // namespace kevin::agent

#endif  // KEVIN_AGENT_GRPO_CONFIG_HPP
