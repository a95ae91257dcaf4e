#ifndef KEVIN_RL_OBJECTIVE_HPP
#define KEVIN_RL_OBJECTIVE_HPP

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
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
  /// log pi_ref(token), for the KL penalty; empty: the sampling policy is the reference.
  std::vector<double> reference_logprobs{};
};

/// What becomes of a token's ratio rho = pi_theta / pi_old and advantage A.
enum class Surrogate {
  clipped,  ///< min(rho A, clip(rho, 1 - low, 1 + high) A) (PPO, arXiv 1707.06347, equation 7; GRPO)
  cispo,    ///< clip(rho, 1 - low, 1 + high) A log pi_theta, the clipped ratio held constant (arXiv 2506.13585, eq. 4)
};

/// Of what the ratio is taken.
enum class RatioLevel {
  token,     ///< each token's own
  sequence,  ///< (pi_theta(answer) / pi_old(answer))^(1 / tokens), the same for all (GSPO, arXiv 2507.18071, eq. 7)
};

/// What the token sum of a sample is divided by, and how samples are averaged.
enum class LengthNorm {
  sequence,          ///< mean over samples of the mean over their tokens (GRPO, arXiv 2402.03300)
  constant,          ///< mean over samples of the sum over tokens / constant (Dr. GRPO, arXiv 2503.20783; Kevin)
  token_mean,        ///< sum over all tokens / number of all tokens (DAPO, arXiv 2503.14476)
  local_token_mean,  ///< the same in each minibatch, and the mean of these (BNPO, as TRL's loss_type "bnpo")
};

struct ObjectiveOptions {
  double clip_low = 0.2;    ///< ratio is clipped below at 1 - clip_low; 1 or more: not at all
  double clip_high = 0.28;  ///< and above at 1 + clip_high: clip-higher (DAPO, arXiv 2503.14476, equation 10)
  LengthNorm length_norm = LengthNorm::constant;
  double constant = 1;   ///< the constant of LengthNorm::constant, tokens
  double kl_weight = 0;  ///< beta: weight of the k3 penalty, k3 = exp(d) - d - 1, d = log pi_ref - log pi_theta
  Surrogate surrogate = Surrogate::clipped;
  RatioLevel ratio = RatioLevel::token;
  /// c > 1: for A < 0 the surrogate is not less than c A, so that a token whose ratio has run away cannot pull without
  /// bound (dual-clip PPO, arXiv 1912.09729, equation 5; 3 in verl). Of Surrogate::clipped alone.
  std::optional<double> dual_clip{};
};

/// The losses of the literature by name, with the clip range that their papers give: "kevin" (0.2, 0.28, constant),
/// "grpo" (0.2, 0.2, sequence), "dr_grpo" (0.2, 0.2, constant), "dapo" (0.2, 0.28, token_mean), "bnpo" (0.2, 0.2,
/// local_token_mean), "cispo" (no lower bound; the paper does not state its upper one: 4, as TRL recommends),
/// "gspo" (3e-4, 4e-4, sequence). Error(bad_input) for another name.
[[nodiscard]] inline ObjectiveOptions objective_named(std::string_view name) {
  if (name == "kevin") return {};
  if (name == "grpo") return {.clip_high = 0.2, .length_norm = LengthNorm::sequence};
  if (name == "dr_grpo") return {.clip_high = 0.2, .length_norm = LengthNorm::constant};
  if (name == "dapo") return {.length_norm = LengthNorm::token_mean};
  if (name == "bnpo") return {.clip_high = 0.2, .length_norm = LengthNorm::local_token_mean};
  if (name == "cispo") {
    return {.clip_low = 1, .clip_high = 4, .length_norm = LengthNorm::token_mean, .surrogate = Surrogate::cispo};
  }
  if (name == "gspo") {
    return {.clip_low = 3e-4, .clip_high = 4e-4, .length_norm = LengthNorm::sequence, .ratio = RatioLevel::sequence};
  }
  throw Error(ErrorCode::bad_input, "there is no loss '" + std::string(name) +
                                        "'; there are kevin, grpo, dr_grpo, dapo, bnpo, cispo and gspo");
}

/// How many samples and tokens count, of a whole batch.
struct ObjectiveCounts {
  std::size_t samples = 0;  ///< with at least one token that counts
  std::size_t tokens = 0;
};

/// The objective (to be maximised) and its gradient with respect to each log pi_theta.
struct Objective {
  double value = 0;
  std::vector<std::vector<double>> gradient;  ///< same shape as the samples' logprobs; 0 for masked tokens
  double clip_fraction = 0;  ///< share of counted tokens where a clip cuts the gradient off (cispo: bounds the ratio)
  double mean_ratio = 1;
  double mean_kl = 0;  ///< mean of k3 over counted tokens
};

/// The k3 estimator of KL(pi_theta || pi_reference) from d = log pi_reference - log pi_theta: exp(d) - d - 1 >= 0
/// (Schulman 2020; used by GRPO, arXiv 2402.03300, equation 4).
[[nodiscard]] inline double k3(double d) noexcept { return kevin::detail::expm1(d) - d; }

namespace detail {

/// A surrogate's value for a ratio, and the factor of d(log pi_theta) in its gradient.
struct SurrogateAt {
  double value = 0;
  double slope = 0;
  bool clipped = false;
};

/// `logprob` is log pi_theta of the token, which cispo alone needs.
[[nodiscard]] inline SurrogateAt surrogate_at(double ratio, double advantage, double logprob,
                                              const ObjectiveOptions& options) {
  const double bounded = std::min(std::max(ratio, 1 - options.clip_low), 1 + options.clip_high);
  if (options.surrogate == Surrogate::cispo)
    return {bounded * advantage * logprob, bounded * advantage, bounded != ratio};
  // d(rho)/d(log pi_theta) = rho; of the sequence's ratio rho / tokens, for each of the tokens' sum: the same
  if (bounded * advantage < ratio * advantage) return {bounded * advantage, 0, true};
  if (options.dual_clip && advantage < 0 && ratio > *options.dual_clip)
    return {*options.dual_clip * advantage, 0, true};
  return {ratio * advantage, ratio * advantage, false};
}

}  // namespace detail

/// The surrogate of each token, less beta k3, normalised as asked. Samples whose tokens are all masked are left out of
/// the mean, not counted as zero. This plain code is what the LibTorch trainer is tested against.
/// Throws Error(bad_input) when lengths differ.
[[nodiscard]] inline Objective clipped_objective(std::span<const TokenSample> samples,
                                                 const ObjectiveOptions& options = {}) {
  const auto counts = [](const TokenSample& s, std::size_t i) { return s.mask.empty() || s.mask[i]; };
  const auto tokens_of = [&](const TokenSample& s) {
    std::size_t tokens = 0;
    for (std::size_t i = 0; i < s.logprobs.size(); ++i) tokens += counts(s, i) ? 1 : 0;
    return tokens;
  };
  ObjectiveCounts all;
  for (std::size_t j = 0; j < samples.size(); ++j) {
    const TokenSample& s = samples[j];
    const std::size_t length = s.logprobs.size();
    if (s.sampled_logprobs.size() != length || (!s.mask.empty() && s.mask.size() != length) ||
        (!s.reference_logprobs.empty() && s.reference_logprobs.size() != length)) {
      throw Error(ErrorCode::bad_input, "clipped_objective: sample " + std::to_string(j) + " has " +
                                            std::to_string(length) + " logprobs, " +
                                            std::to_string(s.sampled_logprobs.size()) +
                                            " sampled logprobs, a mask of " + std::to_string(s.mask.size()) + " and " +
                                            std::to_string(s.reference_logprobs.size()) + " logprobs of the reference");
    }
    const std::size_t tokens = tokens_of(s);
    all.tokens += tokens;
    all.samples += tokens > 0 ? 1 : 0;
  }
  Objective result;
  double ratio_sum = 0;
  double kl_sum = 0;
  std::size_t clipped = 0;
  result.gradient = std::vector<std::vector<double>>(samples.size());
  for (std::size_t j = 0; j < samples.size(); ++j) {
    const TokenSample& s = samples[j];
    std::vector<double>& gradient = result.gradient[j];
    gradient.resize(s.logprobs.size());
    const std::size_t tokens = tokens_of(s);
    if (tokens == 0) continue;
    double weight = 0;
    switch (options.length_norm) {
      case LengthNorm::sequence:
        weight = 1.0 / static_cast<double>(tokens) / static_cast<double>(all.samples);
        break;
      case LengthNorm::constant:
        weight = 1.0 / options.constant / static_cast<double>(all.samples);
        break;
      case LengthNorm::token_mean:
      case LengthNorm::local_token_mean:
        weight = 1.0 / static_cast<double>(all.tokens);
        break;
    }
    double drift = 0;  // of the whole sequence, a token
    for (std::size_t i = 0; i < s.logprobs.size(); ++i)
      drift += counts(s, i) ? (s.logprobs[i] - s.sampled_logprobs[i]) / static_cast<double>(tokens) : 0;
    for (std::size_t i = 0; i < s.logprobs.size(); ++i) {
      if (!counts(s, i)) continue;
      const double own = s.logprobs[i] - s.sampled_logprobs[i];
      const double ratio = kevin::detail::exp(options.ratio == RatioLevel::token ? own : drift);
      const double d = (s.reference_logprobs.empty() ? s.sampled_logprobs[i] : s.reference_logprobs[i]) - s.logprobs[i];
      const detail::SurrogateAt at = detail::surrogate_at(ratio, s.advantage, s.logprobs[i], options);
      result.value += weight * (at.value - options.kl_weight * k3(d));
      // d(k3)/d(log pi_theta) = 1 - exp(d)
      gradient[i] = weight * (at.slope - options.kl_weight * (1 - kevin::detail::exp(d)));
      ratio_sum += ratio;
      kl_sum += k3(d);
      clipped += at.clipped ? 1 : 0;
    }
  }
  if (all.tokens > 0) {
    const double n = static_cast<double>(all.tokens);
    result.clip_fraction = static_cast<double>(clipped) / n;
    result.mean_ratio = ratio_sum / n;
    result.mean_kl = kl_sum / n;
  }
  return result;
}

}  // namespace kevin::rl

#endif  // KEVIN_RL_OBJECTIVE_HPP
