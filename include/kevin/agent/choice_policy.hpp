#ifndef KEVIN_AGENT_CHOICE_POLICY_HPP
#define KEVIN_AGENT_CHOICE_POLICY_HPP

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kevin/agent/choice_vocabulary.hpp"
#include "kevin/agent/trainable_policy.hpp"
#include "kevin/core/policy.hpp"
#include "kevin/core/random.hpp"
#include "kevin/refine/response.hpp"

namespace kevin::agent {

namespace detail {

/// Logits over the vocabulary from what is known before a turn and the choices already made in it.
///
/// One hidden layer. Two of its outputs say how much each choice of the last and of the best earlier turn is worth
/// repeating, a pointer back into the history: with it "keep what worked, change the rest" needs no weight per token.
struct ChoiceNetImpl : torch::nn::Module {
  std::size_t vocabulary;
  std::size_t last;
  std::size_t best;
  torch::nn::Linear known{nullptr};   // features -> hidden
  torch::nn::Linear chosen{nullptr};  // tokens of this turn -> hidden
  torch::nn::Linear tokens{nullptr};  // hidden -> logits
  torch::nn::Linear repeat{nullptr};  // hidden -> 2

  ChoiceNetImpl(const ChoiceVocabulary& words, std::int64_t hidden, std::uint64_t seed)
      : vocabulary(words.size()), last(words.last_choices()), best(words.best_choices()) {
    const auto v = static_cast<std::int64_t>(vocabulary);
    const auto f = static_cast<std::int64_t>(words.feature_count());
    known = register_module("known", torch::nn::Linear(f, hidden));
    chosen = register_module("chosen", torch::nn::Linear(torch::nn::LinearOptions(v, hidden).bias(false)));
    tokens = register_module("tokens", torch::nn::Linear(hidden, v));
    repeat = register_module("repeat", torch::nn::Linear(hidden, 2));
    const torch::NoGradGuard no_grad;
    for (torch::Tensor& p : parameters()) p.zero_();
    Rng rng(seed, "choice policy");
    for (torch::Tensor* weight : {&known->weight, &chosen->weight}) {
      float* data = weight->data_ptr<float>();
      for (std::int64_t i = 0; i < weight->numel(); ++i) data[i] = static_cast<float>(0.3 * rng.normal());
    }
  }

  /// `features`: [B, F] float32, `taken`: [B, V], 1 for each token of this turn so far. Result: [B, V].
  torch::Tensor forward(const torch::Tensor& features, const torch::Tensor& taken) {
    const torch::Tensor h = torch::tanh(known(features) + chosen(taken));
    const torch::Tensor gates = repeat(h);
    const auto part = [&](std::size_t from) {
      return features.slice(1, static_cast<std::int64_t>(from), static_cast<std::int64_t>(from + vocabulary));
    };
    return tokens(h) + gates.slice(1, 0, 1) * part(last) + gates.slice(1, 1, 2) * part(best);
  }
};
TORCH_MODULE(ChoiceNet);

}  // namespace detail

/// A policy that writes kernels by choosing, knob by knob, from the KernelSpace of a task; models TrainablePolicy for a
/// RefinementEnv. It reads the task and, of earlier turns, the choices (from its own summaries), the stage reached and
/// the speedup, and chooses the knobs in order, each given those before it. One token per knob. Untrained it draws
/// uniformly.
class ChoicePolicy {
 public:
  /// A policy for these tasks; the same seed gives the same initial weights. Throws as ChoiceVocabulary.
  ChoicePolicy(const std::vector<Task>& tasks, std::uint64_t seed, std::int64_t hidden = 64,
               Backend backend = Backend::cpu)
      : words_(tasks, backend), net_(words_, hidden, seed) {}

  /// Throws Error(not_found) for a task that the policy was not made for.
  [[nodiscard]] Decision<Response> act(const Context& context, Rng& rng) const {
    const torch::NoGradGuard no_grad;
    detail::ChoiceNet net = net_;  // shares the weights
    const std::size_t task = words_.index(*context.task);
    const auto& knobs = words_.tokens(task);
    std::vector<float> features = words_.features(context);
    const torch::Tensor known = torch::from_blob(features.data(), {1, static_cast<std::int64_t>(features.size())});
    const torch::Tensor taken = torch::zeros({1, static_cast<std::int64_t>(words_.size())});
    Choices choices;
    Decision<Response> decision;
    for (const std::vector<std::size_t>& options : knobs) {
      const torch::Tensor logits = net(known, taken);
      const auto [choice, logprob] = draw(logits.data_ptr<float>(), options, rng);
      taken.data_ptr<float>()[options[choice]] = 1;
      choices.push_back(choice);
      decision.sample.completion_ids.push_back(static_cast<std::int64_t>(options[choice]));
      decision.sample.logprobs.push_back(logprob);
    }
    const KernelSpace& space = words_.space(task);
    decision.action.summary = space.summary(choices);
    decision.action.thought = thought(context, task, choices);
    decision.action.source = space.render(choices);
    return decision;
  }

  [[nodiscard]] TokenEvaluation evaluate(std::span<const Context* const> contexts,
                                         std::span<const Sample* const> samples) {
    const auto v = static_cast<std::int64_t>(words_.size());
    std::size_t length = 0;
    for (const Sample* s : samples) length = std::max(length, s->completion_ids.size());
    const auto b = static_cast<std::int64_t>(contexts.size());
    const auto l = static_cast<std::int64_t>(length);
    const auto f = static_cast<std::int64_t>(words_.feature_count());
    torch::Tensor features = torch::zeros({b, f});
    torch::Tensor taken = torch::zeros({b, l, v});
    torch::Tensor open = torch::zeros({b, l, v}, torch::kBool);  // the options that the token was drawn from
    torch::Tensor ids = torch::zeros({b, l}, torch::kInt64);
    torch::Tensor mask = torch::zeros({b, l}, torch::kBool);
    for (std::int64_t i = 0; i < b; ++i) {
      const Context& context = *contexts[static_cast<std::size_t>(i)];
      const Sample& sample = *samples[static_cast<std::size_t>(i)];
      const auto& knobs = words_.tokens(words_.index(*context.task));
      KEVIN_ASSERT(sample.completion_ids.size() == knobs.size());
      const std::vector<float> row = words_.features(context);
      std::copy(row.begin(), row.end(), features.data_ptr<float>() + i * f);
      for (std::int64_t k = 0; k < static_cast<std::int64_t>(knobs.size()); ++k) {
        float* now = taken.data_ptr<float>() + (i * l + k) * v;
        if (k > 0) {
          std::copy(now - v, now, now);
          now[sample.completion_ids[static_cast<std::size_t>(k) - 1]] = 1;
        }
        bool* allowed = open.data_ptr<bool>() + (i * l + k) * v;
        for (std::size_t token : knobs[static_cast<std::size_t>(k)]) allowed[token] = true;
        ids.data_ptr<std::int64_t>()[i * l + k] = sample.completion_ids[static_cast<std::size_t>(k)];
        mask.data_ptr<bool>()[i * l + k] = true;
      }
    }
    const torch::Tensor repeated = features.unsqueeze(1).expand({b, l, f}).reshape({b * l, f});
    const torch::Tensor logits = net_(repeated, taken.reshape({b * l, v})).reshape({b, l, v});
    // not -infinity: 0 * -infinity would make the entropy's gradient NaN
    const torch::Tensor logp = torch::log_softmax(logits.masked_fill(open.logical_not(), -1e9), -1);
    return {logp.gather(2, ids.unsqueeze(2)).squeeze(2), -(logp.exp() * logp).sum(2), mask};
  }

  [[nodiscard]] torch::nn::Module& module() { return *net_; }
  [[nodiscard]] const ChoiceVocabulary& vocabulary() const noexcept { return words_; }

 private:
  /// An option by its probability among `options`, and the logarithm of that.
  static std::pair<std::size_t, float> draw(const float* logits, const std::vector<std::size_t>& options, Rng& rng) {
    float greatest = logits[options[0]];
    for (std::size_t token : options) greatest = std::max(greatest, logits[token]);
    double total = 0;
    for (std::size_t token : options) total += std::exp(static_cast<double>(logits[token] - greatest));
    double left = rng.uniform() * total;
    std::size_t choice = 0;
    for (; choice + 1 < options.size(); ++choice) {
      left -= std::exp(static_cast<double>(logits[options[choice]] - greatest));
      if (left < 0) break;
    }
    return {choice, static_cast<float>(static_cast<double>(logits[options[choice]] - greatest) - std::log(total))};
  }

  /// What changes against the last turn, in words.
  [[nodiscard]] std::string thought(const Context& context, std::size_t task, const Choices& choices) const {
    if (context.history.empty()) return "a first try";
    const PastTurn& last = context.history.back();
    const KernelSpace& space = words_.space(task);
    const auto before = space.read_summary(last.summary);
    std::string text;
    for (std::size_t k = 0; k < choices.size(); ++k) {
      if (!before[k] || *before[k] == choices[k]) continue;
      const Knob& knob = space.knobs()[k];
      text +=
          (text.empty() ? "" : ", ") + knob.name + ' ' + knob.options[*before[k]] + " -> " + knob.options[choices[k]];
    }
    return "after stage " + std::string(to_string(last.verdict.stage)) + ": " +
           (text.empty() ? "the same again" : text);
  }

  ChoiceVocabulary words_;
  detail::ChoiceNet net_;
};

}  // namespace kevin::agent

#endif  // KEVIN_AGENT_CHOICE_POLICY_HPP
