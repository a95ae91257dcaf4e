#ifndef KEVIN_TESTS_AGENT_KERNEL_SPACE_CUDA_RENDERINGS_HPP
#define KEVIN_TESTS_AGENT_KERNEL_SPACE_CUDA_RENDERINGS_HPP

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <unistd.h>

#include "agent/kernel_space/cuda/cases.hpp"
#include "eval/cuda/nvrtc_here.hpp"
#include "kevin/agent/kernel_space.hpp"
#include "kevin/eval/cuda/compiler.hpp"
#include "kevin/eval/cuda/plan_header.hpp"

namespace kevin_test {

/// The default choices but for the options in `words` ("width=4 tail=ignore").
inline kevin::agent::Choices choices_of(const kevin::agent::KernelSpace& space, const std::string& words) {
  kevin::agent::Choices choices(space.knobs().size(), 0);
  const auto read = space.read_summary(words);
  for (std::size_t i = 0; i < choices.size(); ++i) choices[i] = read[i].value_or(0);
  return choices;
}

/// Calls `visit(words)` for the default, and for each option of each knob that is not its first.
inline void each_option(const kevin::agent::KernelSpace& space, const std::function<void(const std::string&)>& visit) {
  visit("");
  for (const kevin::agent::Knob& knob : space.knobs()) {
    for (std::size_t i = 1; i < knob.options.size(); ++i) visit(knob.name + '=' + knob.options[i]);
  }
}

/// Calls `visit(words)` for `count` random choices among the options that are not wrong by themselves; the tail is
/// always the one that is right at any width.
inline void each_mixture(const kevin::agent::KernelSpace& space, const SpaceCase& c, int count,
                         const std::function<void(const std::string&)>& visit) {
  std::mt19937 random(3);
  for (int n = 0; n < count; ++n) {
    std::string words;
    for (const kevin::agent::Knob& knob : space.knobs()) {
      std::vector<std::string> left;
      for (std::size_t i = 0; i < knob.options.size() && (i == 0 || knob.name != "tail"); ++i) {
        const std::string word = knob.name + '=' + knob.options[i];
        const bool bad =
            std::any_of(c.wrong.begin(), c.wrong.end(), [&](const WrongChoice& w) { return w.words == word; }) ||
            std::find(c.unmixed.begin(), c.unmixed.end(), word) != c.unmixed.end();
        if (!bad) left.push_back(word);
      }
      words += left[random() % left.size()] + ' ';
    }
    visit(words);
  }
}

/// Compiles sources of a task's space as candidates are; NVRTC must be here.
class Renderings {
 public:
  explicit Renderings(kevin::Task task)
      : task_(std::move(task)), space_(kevin::agent::kernel_space(task_, kevin::Backend::cuda)) {}

  [[nodiscard]] const kevin::agent::KernelSpace& space() const noexcept { return space_; }

  /// Why it does not compile: "", "syntax", ...
  [[nodiscard]] std::string failure(const std::string& words) const {
    const std::string source = space_.render(choices_of(space_, words));
    const auto compiled = compiler().compile(source, kevin::cuda::plan_prelude(task_));
    if (!compiled.reason.empty() && words.find("width=8") == std::string::npos)
      MESSAGE(words << ": " << compiled.diagnostics);
    return compiled.reason;
  }

  /// Every option by itself compiles, but for those that the case says do not; so do mixtures.
  void check(const SpaceCase& c, int mixtures) const {
    each_option(space_, [&](const std::string& words) {
      CAPTURE(words);
      const bool expected = std::any_of(c.wrong.begin(), c.wrong.end(), [&](const WrongChoice& w) {
        return w.words == words && w.stage == kevin::Stage::compile;
      });
      CHECK(failure(words) == (expected ? "syntax" : ""));
    });
    for (const WrongChoice& w : c.wrong) {
      CAPTURE(w.words);
      CHECK((failure(w.words).empty() || w.stage == kevin::Stage::compile));
    }
    each_mixture(space_, c, mixtures, [&](const std::string& words) {
      CAPTURE(words);
      CHECK(failure(words) == "");
    });
  }

 private:
  static kevin::cuda::Compiler& compiler() {
    struct Shared {
      std::filesystem::path folder =
          std::filesystem::temp_directory_path() / ("kevin-test-" + std::to_string(::getpid()) + "-cuda-space");
      kevin::cuda::Compiler compiler{[&] {
        kevin::cuda::CompilerOptions options;
        options.cache_directory = folder;
        options.workers = 1;
        return options;
      }()};
      ~Shared() { std::filesystem::remove_all(folder); }
    };
    static Shared shared;
    return shared.compiler;
  }

  kevin::Task task_;
  kevin::agent::KernelSpace space_;
};

}  // namespace kevin_test

#endif  // KEVIN_TESTS_AGENT_KERNEL_SPACE_CUDA_RENDERINGS_HPP
