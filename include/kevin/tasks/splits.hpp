#ifndef KEVIN_TASKS_SPLITS_HPP
#define KEVIN_TASKS_SPLITS_HPP

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kevin/core/error.hpp"
#include "kevin/core/random.hpp"
#include "kevin/tasks/generator/generated_id.hpp"
#include "kevin/tasks/suite.hpp"

namespace kevin::tasks {

/// Seed of the split and of its generated tasks unless another is given: the number of the Kevin paper on arXiv.
inline constexpr std::uint64_t default_split_seed = 250711948;

/// What the split is made of.
struct SplitOptions {
  std::string suite = "kernelbench";  ///< tasks "<suite>/l1/1" to "<suite>/l2/100"
  std::string preset{};               ///< of every task, generated ones too: "" = full shape, "small"
  std::uint64_t seed = default_split_seed;
  std::size_t held_out_per_level = 10;
  std::size_t unseen = 80;
};

/// Ids of tasks to train on and to be judged by.
struct Split {
  std::vector<std::string> training;  ///< by level and number
  std::vector<std::string> held_out;  ///< of the same suite, never trained on
  std::vector<std::string> unseen;    ///< generated; their sequences of operations are in no suite of KernelBench
};

/// The numbers in 1 to 100 that are held out of a level, ascending. They depend on level and seed alone, so the same
/// tasks are held out of every suite and preset, and a policy trained on one may be judged by another.
[[nodiscard]] inline std::set<int> held_out_numbers(int level, std::uint64_t seed = default_split_seed,
                                                    std::size_t count = 10) {
  constexpr std::size_t tasks = 100;
  if (count > tasks) {
    throw Error(ErrorCode::bad_input, "a level has 100 tasks; " + std::to_string(count) + " cannot be held out");
  }
  std::vector<int> numbers(tasks);
  std::iota(numbers.begin(), numbers.end(), 1);
  Rng rng(seed, "held-out tasks of a level", static_cast<std::uint64_t>(level));
  for (std::size_t i = 0; i < count; ++i)
    std::swap(numbers[i], numbers[i + static_cast<std::size_t>(rng.below(tasks - i))]);
  return {numbers.begin(), numbers.begin() + static_cast<std::ptrdiff_t>(count)};
}

/// The split of the Kevin paper (Baronio et al. 2025, arXiv 2507.11948, section 3.1 and appendix A): 90 tasks of each
/// of the levels 1 and 2 to train on, the other 10 + 10 held out, and 80 unseen ones in the style of level 2. Which
/// tasks the paper held out is not published: here the seed says. The paper's 80 were written by a language model; here
/// they are "generated/<seed>/0" to "generated/<seed>/79", so draw training tasks from another seed of the generator.
///
/// A number that the suite lacks is in neither list. Error(not_found) when the suite has no task in that preset.
[[nodiscard]] inline Split paper_split(const SplitOptions& options = {}) {
  const std::string suffix = options.preset.empty() ? "" : "@" + options.preset;
  if (!suffix.empty() && suffix != "@small")
    throw Error(ErrorCode::not_found, "generated tasks have no preset " + detail::quote(options.preset));
  const std::vector<std::string> names = ids();
  const std::set<std::string> known(names.begin(), names.end());
  Split split;
  for (int level : {1, 2}) {
    const std::set<int> held_out = held_out_numbers(level, options.seed, options.held_out_per_level);
    for (int number = 1; number <= 100; ++number) {
      std::string id = options.suite + "/l" + std::to_string(level) + '/' + std::to_string(number) + suffix;
      if (known.contains(id)) (held_out.contains(number) ? split.held_out : split.training).push_back(std::move(id));
    }
  }
  if (split.training.empty() && split.held_out.empty()) {
    throw Error(ErrorCode::not_found, "there is no task " + detail::quote(options.suite + "/l1/..." + suffix) +
                                          "; suites are 'kernelbench' and those that `evaluate --list` prints");
  }
  for (std::uint64_t index = 0; index < options.unseen; ++index)
    split.unseen.push_back(to_string(GeneratedId{options.seed, index, !suffix.empty()}));
  return split;
}

}  // namespace kevin::tasks

#endif  // KEVIN_TASKS_SPLITS_HPP
