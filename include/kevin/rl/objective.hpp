#ifndef KEVIN_RL_OBJECTIVE_HPP
#define KEVIN_RL_OBJECTIVE_HPP

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "kevin/core/error.hpp"
#include "kevin/core/math.hpp"

namespace kevin::rl {

/// One sample: the tokens of one turn with the log-probabilities of the policy being trained and of the one that
/// sampled.
struct TokenSample {
  std::vector<double> logprobs;          ///< log pi_theta(token)
  std::vector<double> sampled_logprobs;  ///< log pi_old(token); same length
  double advantage = 0;
  std::vector<bool> mask{};  ///< tokens that count; empty: all
};

/// What the token sum of a sample is divided by, and how samples are averaged.
enum class LengthNorm {
  sequence,    ///< mean over samples of the mean over their tokens (GRPO, arXiv 2402.03300)
  constant,    ///< mean over samples of the sum over tokens / constant (Dr. GRPO, arXiv 2503.20783; Kevin)
  token_mean,  ///< sum over all tokens / number of all tokens (DAPO, arXiv 2503.14476)
};

struct ObjectiveOptions {
  double clip_low = 0.2;    ///< ratio is clipped below at 1 - clip_low
  double clip_high = 0.28;  ///< and above at 1 + clip_high: clip-higher (DAPO, arXiv 2503.14476, equation 10)
  LengthNorm length_norm = LengthNorm::constant;
  double constant = 1;   ///< the constant of LengthNorm::constant, tokens
  double kl_weight = 0;  ///< beta: weight of the k3 penalty against the sampling policy, k3 = exp(d) - d - 1, d = log
                         ///< pi_old - log pi_theta
};

/// The objective (to be maximised) and its gradient with respect to each log pi_theta.
struct Objective {
  double value = 0;
  std::vector<std::vector<double>> gradient;  ///< same shape as the samples' logprobs; 0 for masked tokens
  double clip_fraction = 0;                   ///< share of counted tokens where the clip cuts the gradient off
  double mean_ratio = 1;
  double mean_kl = 0;  ///< mean of k3 over counted tokens
};

/// The k3 estimator of KL(pi_theta || pi_reference) from d = log pi_reference - log pi_theta: exp(d) - d - 1 >= 0
/// (Schulman 2020; used by GRPO, arXiv 2402.03300, equation 4).
[[nodiscard]] inline double k3(double d) noexcept { return kevin::detail::expm1(d) - d; }

/// The clipped surrogate of GRPO with clip-higher: for each token min(rho A, clip(rho, 1 - low, 1 + high) A) - beta k3,
/// rho = exp(log pi_theta - log pi_old), normalised as asked. Samples whose tokens are all masked are left out of the
/// mean, not counted as zero. This plain code is what the LibTorch trainer is tested against.
/// Throws Error(bad_input) when lengths differ.
[[nodiscard]] inline Objective clipped_objective(std::span<const TokenSample> samples,
                                                 const ObjectiveOptions& options = {}) {
  Objective result;
  std::size_t counted_samples = 0;
  std::size_t counted_tokens = 0;
  const auto counts = [](const TokenSample& s, std::size_t i) { return s.mask.empty() || s.mask[i]; };
  for (std::size_t j = 0; j < samples.size(); ++j) {
    const TokenSample& s = samples[j];
    if (s.logprobs.size() != s.sampled_logprobs.size() || (!s.mask.empty() && s.mask.size() != s.logprobs.size())) {
      throw Error(ErrorCode::bad_input, "clipped_objective: sample " + std::to_string(j) + " has " +
                                            std::to_string(s.logprobs.size()) + " logprobs, " +
                                            std::to_string(s.sampled_logprobs.size()) +
                                            " sampled logprobs and a mask of " + std::to_string(s.mask.size()));
    }
    std::size_t tokens = 0;
    for (std::size_t i = 0; i < s.logprobs.size(); ++i) tokens += counts(s, i) ? 1 : 0;
    counted_tokens += tokens;
    counted_samples += tokens > 0 ? 1 : 0;
  }
  double ratio_sum = 0;
  double kl_sum = 0;
  std::size_t clipped = 0;
  result.gradient = std::vector<std::vector<double>>(samples.size());
  for (std::size_t j = 0; j < samples.size(); ++j) {
    const TokenSample& s = samples[j];
    std::vector<double>& gradient = result.gradient[j];
    gradient.resize(s.logprobs.size());
    std::size_t tokens = 0;
    for (std::size_t i = 0; i < s.logprobs.size(); ++i) tokens += counts(s, i) ? 1 : 0;
    if (tokens == 0) continue;
    double weight = 0;
    switch (options.length_norm) {
      case LengthNorm::sequence:
        weight = 1.0 / static_cast<double>(tokens) / static_cast<double>(counted_samples);
        break;
      case LengthNorm::constant:
        weight = 1.0 / options.constant / static_cast<double>(counted_samples);
        break;
      case LengthNorm::token_mean:
        weight = 1.0 / static_cast<double>(counted_tokens);
        break;
    }
    for (std::size_t i = 0; i < s.logprobs.size(); ++i) {
      if (!counts(s, i)) continue;
      const double d = s.sampled_logprobs[i] - s.logprobs[i];
      const double ratio = kevin::detail::exp(-d);
      const double bounded = std::min(std::max(ratio, 1 - options.clip_low), 1 + options.clip_high);
      const bool cut = bounded * s.advantage < ratio * s.advantage;
      result.value += weight * (std::min(ratio * s.advantage, bounded * s.advantage) - options.kl_weight * k3(d));
      // d(rho)/d(log pi) = rho; d(k3)/d(log pi) = 1 - exp(d)
      gradient[i] = weight * ((cut ? 0.0 : ratio * s.advantage) - options.kl_weight * (1 - kevin::detail::exp(d)));
      ratio_sum += ratio;
      kl_sum += k3(d);
      clipped += cut ? 1 : 0;
    }
  }
  if (counted_tokens > 0) {
    result.clip_fraction = static_cast<double>(clipped) / static_cast<double>(counted_tokens);
    result.mean_ratio = ratio_sum / static_cast<double>(counted_tokens);
    result.mean_kl = kl_sum / static_cast<double>(counted_tokens);
  }
  return result;
}

}  // namespace kevin::rl

#endif  // KEVIN_RL_OBJECTIVE_HPP
