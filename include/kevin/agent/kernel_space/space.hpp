#ifndef KEVIN_AGENT_KERNEL_SPACE_SPACE_HPP
#define KEVIN_AGENT_KERNEL_SPACE_SPACE_HPP

#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kevin/config.hpp"

namespace kevin::agent {

/// One decision about a kernel: what it is about, and what there is to choose from.
struct Knob {
  std::string name;
  std::vector<std::string> options;
  friend bool operator==(const Knob&, const Knob&) = default;
};

/// For each knob of a space, in order, the index of the option taken.
using Choices = std::vector<std::size_t>;

/// Every kernel that one template can write for one task: a list of knobs, and a renderer that turns a choice for each
/// into the complete source of a candidate. Nothing is checked beyond the number of choices: whether a combination
/// compiles, is right and is fast is for the evaluator to find out.
///
/// Immutable; safe to share between threads.
class KernelSpace {
 public:
  /// What a renderer sees: the chosen option of each knob, by name.
  class Picks {
   public:
    Picks(const std::vector<Knob>& knobs, const Choices& choices) : knobs_(knobs), choices_(choices) {}

    /// The option chosen for the knob `name`; `fallback` when the space has no such knob.
    [[nodiscard]] std::string operator()(std::string_view name, std::string_view fallback = {}) const {
      for (std::size_t i = 0; i < knobs_.size(); ++i) {
        if (knobs_[i].name == name) return knobs_[i].options[choices_[i]];
      }
      return std::string(fallback);
    }
    [[nodiscard]] int integer(std::string_view name) const { return std::stoi(operator()(name)); }

   private:
    const std::vector<Knob>& knobs_;
    const Choices& choices_;
  };
  using Renderer = std::function<std::string(const Picks&)>;

  KernelSpace(std::string family, std::vector<Knob> knobs, Renderer renderer)
      : family_(std::move(family)), knobs_(std::move(knobs)), renderer_(std::move(renderer)) {
    for ([[maybe_unused]] const Knob& k : knobs_) KEVIN_ASSERT(!k.options.empty());
  }

  /// "elementwise", "rows", "columns" or "product".
  [[nodiscard]] const std::string& family() const noexcept { return family_; }
  [[nodiscard]] const std::vector<Knob>& knobs() const noexcept { return knobs_; }

  /// Whether there is one choice for each knob, each of an option that exists.
  [[nodiscard]] bool valid(const Choices& choices) const noexcept {
    if (choices.size() != knobs_.size()) return false;
    for (std::size_t i = 0; i < choices.size(); ++i) {
      if (choices[i] >= knobs_[i].options.size()) return false;
    }
    return true;
  }

  /// The source of a candidate. `choices` must be valid.
  [[nodiscard]] std::string render(const Choices& choices) const {
    KEVIN_ASSERT(valid(choices));
    return renderer_(Picks(knobs_, choices));
  }

  /// "width=16 unroll=4 ...": the choices in words, which read_summary understands. `choices` must be valid.
  [[nodiscard]] std::string summary(const Choices& choices) const {
    KEVIN_ASSERT(valid(choices));
    std::string text;
    for (std::size_t i = 0; i < knobs_.size(); ++i) {
      if (i > 0) text += ' ';
      text += knobs_[i].name + '=' + knobs_[i].options[choices[i]];
    }
    return text;
  }

  /// What any text says about this space's knobs: for each the option of its first "name=option", or nothing. Never
  /// fails: words that are no such pair, unknown names and unknown options are passed over.
  [[nodiscard]] std::vector<std::optional<std::size_t>> read_summary(std::string_view text) const {
    std::vector<std::optional<std::size_t>> found(knobs_.size());
    constexpr std::string_view ends = " \t\r\n\f\v,;";
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t begin = std::min(text.find_first_not_of(ends, at), text.size());
      at = std::min(text.find_first_of(ends, begin), text.size());
      const std::string_view word = text.substr(begin, at - begin);
      const std::size_t equals = word.find('=');
      if (equals == std::string_view::npos) continue;
      for (std::size_t i = 0; i < knobs_.size(); ++i) {
        if (found[i] || knobs_[i].name != word.substr(0, equals)) continue;
        const auto& options = knobs_[i].options;
        const auto option = std::find(options.begin(), options.end(), word.substr(equals + 1));
        if (option != options.end()) found[i] = static_cast<std::size_t>(option - options.begin());
      }
    }
    return found;
  }

  /// The choices that take the named options and the first one of every other knob. Names and options must exist.
  [[nodiscard]] Choices choose(const std::vector<std::pair<std::string, std::string>>& named) const {
    Choices choices(knobs_.size(), 0);
    for (const auto& [name, option] : named) {
      [[maybe_unused]] bool known = false;
      for (std::size_t i = 0; i < knobs_.size(); ++i) {
        if (knobs_[i].name != name) continue;
        const auto& options = knobs_[i].options;
        const auto it = std::find(options.begin(), options.end(), option);
        KEVIN_ASSERT(it != options.end());
        choices[i] = static_cast<std::size_t>(it - options.begin());
        known = true;
      }
      KEVIN_ASSERT(known);
    }
    return choices;
  }

 private:
  std::string family_;
  std::vector<Knob> knobs_;
  Renderer renderer_;
};

}  // namespace kevin::agent

#endif  // KEVIN_AGENT_KERNEL_SPACE_SPACE_HPP
