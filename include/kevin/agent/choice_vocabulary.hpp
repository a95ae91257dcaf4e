#ifndef KEVIN_AGENT_CHOICE_VOCABULARY_HPP
#define KEVIN_AGENT_CHOICE_VOCABULARY_HPP

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kevin/agent/kernel_space.hpp"
#include "kevin/refine/context.hpp"

namespace kevin::agent {

/// The kernel spaces of several tasks over one vocabulary: a token is a knob together with one of its options
/// ("width=16"), and tasks that have a knob in common share its tokens. Also: the numbers that a network reads of a
/// Context. Immutable; safe to share between threads.
class ChoiceVocabulary {
 public:
  /// Throws Error(unsupported) for a task without a kernel space, Error(bad_input) when there are no tasks.
  explicit ChoiceVocabulary(const std::vector<Task>& tasks, Backend backend = Backend::cpu) {
    if (tasks.empty()) throw Error(ErrorCode::bad_input, "ChoiceVocabulary: no tasks");
    for (const Task& task : tasks) {
      Entry entry{task.id, kernel_space(task, backend), {}, size_features(task)};
      for (const Knob& knob : entry.space.knobs()) {
        std::vector<std::size_t> ids;
        for (const std::string& option : knob.options) ids.push_back(id_of(knob.name + '=' + option));
        entry.tokens.push_back(std::move(ids));
      }
      entries_.push_back(std::move(entry));
    }
  }

  /// Tokens in all.
  [[nodiscard]] std::size_t size() const noexcept { return words_.size(); }
  /// "width=16"
  [[nodiscard]] const std::string& word(std::size_t token) const { return words_.at(token); }

  /// The task's number. Throws Error(not_found) for a task that the vocabulary was not made for.
  [[nodiscard]] std::size_t index(const Task& task) const {
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      if (entries_[i].id == task.id) return i;
    }
    throw Error(ErrorCode::not_found,
                "the policy was not made for task '" + task.id + "': name it when the policy is constructed");
  }
  [[nodiscard]] const KernelSpace& space(std::size_t task) const { return entries_.at(task).space; }
  /// For each knob of the task, in order, the token of each option.
  [[nodiscard]] const std::vector<std::vector<std::size_t>>& tokens(std::size_t task) const {
    return entries_.at(task).tokens;
  }

  /// Numbers of features(): which task and its sizes; how many turns; the last turn and the best; both turns' choices.
  [[nodiscard]] std::size_t feature_count() const noexcept {
    return entries_.size() + sizes + turn_features + 2 * words_.size();
  }
  /// Where the choices of the last turn begin among the features, and those of the best: 1 for each token taken.
  [[nodiscard]] std::size_t last_choices() const noexcept { return entries_.size() + sizes + turn_features; }
  [[nodiscard]] std::size_t best_choices() const noexcept { return last_choices() + words_.size(); }

  /// What a network reads of a context. Choices of earlier turns are read from the summaries that the agent wrote
  /// itself; the best turn is the one with the highest score. Everything is 0 where there is no earlier turn.
  [[nodiscard]] std::vector<float> features(const Context& context) const {
    const std::size_t task = index(*context.task);
    std::vector<float> f(feature_count(), 0.0F);
    f[task] = 1;
    std::copy(entries_[task].size_features.begin(), entries_[task].size_features.end(),
              f.begin() + static_cast<std::ptrdiff_t>(entries_.size()));
    float* turn = f.data() + entries_.size() + sizes;
    turn[0] = std::min(static_cast<float>(context.turn) / 4, 2.0F);
    if (context.history.empty()) return f;
    const PastTurn& last = context.history.back();
    const auto score = [](const PastTurn& a, const PastTurn& b) { return a.score.value < b.score.value; };
    const PastTurn& best = *std::max_element(context.history.begin(), context.history.end(), score);
    describe(last, turn + 1);
    describe(best, turn + 1 + verdict_features);
    mark(last, task, f.data() + last_choices());
    mark(best, task, f.data() + best_choices());
    return f;
  }

 private:
  static constexpr std::size_t sizes = 6;
  static constexpr std::size_t verdict_features = 7;
  static constexpr std::size_t turn_features = 1 + 2 * verdict_features;

  struct Entry {
    std::string id;
    KernelSpace space;
    std::vector<std::vector<std::size_t>> tokens;
    std::array<float, sizes> size_features;
  };

  std::size_t id_of(std::string word) {
    const auto id = static_cast<std::size_t>(std::find(words_.begin(), words_.end(), word) - words_.begin());
    if (id == words_.size()) words_.push_back(std::move(word));
    return id;
  }

  /// How large the output and its last extent are (logarithmic), whether vectors of 4, 8, 16 fit, how many steps.
  [[nodiscard]] static std::array<float, sizes> size_features(const Task& task) {
    const Shape& shape = task.outputs[0].shape;
    const std::int64_t inner = shape.empty() ? 1 : shape.back();
    const auto log2 = [](std::int64_t n) {
      return static_cast<float>(std::log2(static_cast<double>(std::max<std::int64_t>(1, n))));
    };
    return {log2(element_count(shape)) / 24, log2(inner) / 12,
            inner % 4 == 0 ? 1.0F : 0.0F,    inner % 8 == 0 ? 1.0F : 0.0F,
            inner % 16 == 0 ? 1.0F : 0.0F,   static_cast<float>(task.ops.size()) / 4};
  }

  /// That there is such a turn, the stage reached (one of five), and log2 of the speedup.
  static void describe(const PastTurn& past, float* out) {
    out[0] = 1;
    out[1 + static_cast<std::size_t>(past.verdict.stage)] = 1;
    const double speedup = past.verdict.correct() ? past.verdict.speedup.value_or(1) : 1;
    out[6] = static_cast<float>(std::clamp(std::log2(std::max(speedup, 1e-6)) / 3, -2.0, 2.0));
  }

  void mark(const PastTurn& past, std::size_t task, float* out) const {
    const auto choices = entries_[task].space.read_summary(past.summary);
    for (std::size_t k = 0; k < choices.size(); ++k) {
      if (choices[k]) out[entries_[task].tokens[k][*choices[k]]] = 1;
    }
  }

  std::vector<std::string> words_;
  std::vector<Entry> entries_;
};

}  // namespace kevin::agent

#endif  // KEVIN_AGENT_CHOICE_VOCABULARY_HPP
