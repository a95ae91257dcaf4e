#ifndef KEVIN_REFINE_TEXT_ACTION_HPP
#define KEVIN_REFINE_TEXT_ACTION_HPP

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "kevin/core/env.hpp"
#include "kevin/refine/format.hpp"

namespace kevin {

/// An environment that also takes a model's raw text, as RefinementEnv does.
template <class E>
concept TextSteppable = Env<E> && requires(E& env, std::string_view text, FormatMode mode) {
  { env.step_text(text, mode) } -> std::same_as<StepOf<E>>;
};

/// `E` with raw text as its action, for agents that are language models: the text is parsed, and one that cannot be
/// read is a verdict of Stage::format. Models Env.
///
///     kevin::TextAction env{kevin::RefinementEnv{task, evaluator}};
///     auto step = env.step(model(kevin::prompt_text(env.reset(42))));
template <TextSteppable E>
class TextAction {
 public:
  using Observation = typename E::Observation;
  using Action = std::string;

  explicit TextAction(E env, FormatMode mode = FormatMode::lenient) : env_(std::move(env)), mode_(mode) {}

  Observation reset(std::uint64_t seed) { return env_.reset(seed); }
  StepOf<E> step(std::string_view text) { return env_.step_text(text, mode_); }

  [[nodiscard]] E& unwrapped() noexcept { return env_; }
  [[nodiscard]] const E& unwrapped() const noexcept { return env_; }

 private:
  E env_;
  FormatMode mode_;
};

}  // namespace kevin

#endif  // KEVIN_REFINE_TEXT_ACTION_HPP
