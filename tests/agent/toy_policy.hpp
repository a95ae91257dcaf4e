#ifndef KEVIN_TESTS_AGENT_TOY_POLICY_HPP
#define KEVIN_TESTS_AGENT_TOY_POLICY_HPP

// A small multi-turn environment and a LibTorch policy for it, shared by the tests of floor 4.

#include <cmath>
#include <cstdint>
#include <vector>

#include "kevin/agent/trainable_policy.hpp"

namespace toy {

/// A secret number in {0, ..., 7} that is the same in all episodes of a task; the observation tells the last guess and
/// whether it was right. Deterministic.
struct Secret {
  using Observation = std::vector<float>;  // one-hot of the task (2), of the last guess (8), right or not (1)
  using Action = int;
  std::size_t task = 0;
  std::size_t steps = 0;
  bool hopeless = false;  ///< no guess is right

  Observation observe(int guess, bool right) const {
    Observation o(11, 0.0F);
    o[task] = 1;
    if (guess >= 0) o[2 + static_cast<std::size_t>(guess)] = 1;
    o[10] = right ? 1.0F : 0.0F;
    return o;
  }
  Observation reset(std::uint64_t) {
    steps = 0;
    return observe(-1, false);
  }
  kevin::Step<Observation> step(int guess) {
    kevin::Step<Observation> s;
    const bool right = !hopeless && guess == (task == 0 ? 5 : 2);
    s.reward = right ? 1.0 : 0.0;
    s.observation = observe(guess, right);
    s.terminated = ++steps >= 3;
    return s;
  }
};

struct NetImpl : torch::nn::Module {
  torch::nn::Linear first{nullptr};
  torch::nn::Linear second{nullptr};
  explicit NetImpl(std::uint64_t seed) {
    first = register_module("first", torch::nn::Linear(11, 16));
    second = register_module("second", torch::nn::Linear(16, 8));
    kevin::Rng rng(seed, "toy policy");
    const torch::NoGradGuard no_grad;
    for (torch::Tensor& p : parameters()) {
      for (std::int64_t i = 0; i < p.numel(); ++i) p.view({-1})[i] = 0.1 * rng.normal();
    }
  }
  torch::Tensor forward(const torch::Tensor& x) { return torch::log_softmax(second(torch::tanh(first(x))), -1); }
};
TORCH_MODULE(Net);

class NetPolicy {
 public:
  explicit NetPolicy(std::uint64_t seed) : net_(seed) {}

  kevin::Decision<int> act(const std::vector<float>& observation, kevin::Rng& rng) const {
    const torch::NoGradGuard no_grad;
    Net net = net_;  // shares the parameters
    const torch::Tensor logp = net(torch::tensor(observation));
    double u = rng.uniform();
    int choice = 7;
    for (int i = 0; i < 8; ++i) {
      u -= std::exp(logp[i].item<double>());
      if (u < 0) {
        choice = i;
        break;
      }
    }
    return {.action = choice,
            .sample = {.prompt_ids = {}, .completion_ids = {choice}, .logprobs = {logp[choice].item<float>()}}};
  }

  kevin::agent::TokenEvaluation evaluate(std::span<const std::vector<float>* const> observations,
                                         std::span<const kevin::Sample* const> samples) {
    std::vector<torch::Tensor> rows;
    std::vector<std::int64_t> ids;
    for (const auto* o : observations) rows.push_back(torch::tensor(*o));
    for (const auto* s : samples) ids.push_back(s->completion_ids.at(0));
    const torch::Tensor logp = net_(torch::stack(rows));
    const torch::Tensor chosen = logp.gather(1, torch::tensor(ids).unsqueeze(1));
    return {chosen, -(logp.exp() * logp).sum(1, true), torch::ones_like(chosen, torch::kBool)};
  }
  torch::nn::Module& module() { return *net_; }

 private:
  Net net_;
};

}  // namespace toy

#endif  // KEVIN_TESTS_AGENT_TOY_POLICY_HPP
