#ifndef KEVIN_AGENT_TRAINABLE_POLICY_HPP
#define KEVIN_AGENT_TRAINABLE_POLICY_HPP

#include <concepts>
#include <span>

#include "kevin/core/env.hpp"
#include "kevin/core/policy.hpp"
#include "kevin/tasks/torch.hpp"

namespace kevin::agent {

/// What a policy says of samples taken earlier, B of them with at most L tokens. All tensors are [B, L].
struct TokenEvaluation {
  torch::Tensor logprobs;  ///< log pi_theta(token), differentiable; any finite value where mask is false
  torch::Tensor entropy;   ///< entropy of the distribution that the token was drawn from, nats, differentiable
  torch::Tensor mask;      ///< bool: the sample has this token
};

/// A Policy whose parameters can be trained: besides act it evaluates samples again under its present parameters.
///
/// Semantics that the compiler cannot check: evaluate(observations, samples) gives, for the parameters that act sampled
/// with, the same log-probabilities as act returned; module() holds every parameter that evaluate depends on.
template <class P, class E>
concept TrainablePolicy = PolicyFor<P, E> &&
    requires(P& policy, std::span<const typename E::Observation* const> observations,
             std::span<const Sample* const> samples) {
  { policy.evaluate(observations, samples) } -> std::same_as<TokenEvaluation>;
  { policy.module() } -> std::convertible_to<torch::nn::Module&>;
};

}  // namespace kevin::agent

#endif  // KEVIN_AGENT_TRAINABLE_POLICY_HPP
