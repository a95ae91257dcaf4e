#ifndef KEVIN_TASKS_SUITE_HPP
#define KEVIN_TASKS_SUITE_HPP

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "kevin/core/error.hpp"
#include "kevin/refine/task.hpp"
#include "kevin/tasks/nearest.hpp"
#include "kevin/tasks/task_json.hpp"

/// The tasks that come with the library. "kernelbench/l1/23@small" is task 23 of KernelBench's level 1 (Ouyang et al.
/// 2025, arXiv 2502.10517) in our preset "small": KernelBench's operation, at a size that one cpu core computes in 0.2
/// to 2 ms, with normal inputs and tolerances under which zeros, the mean of the output, another seed's output and a
/// copy of the input are all wrong.
namespace kevin::tasks {

namespace detail {
inline constexpr std::string_view kernelbench_l1_small =
#include "kevin/tasks/data/kernelbench_l1_small.inc"
    ;
inline constexpr std::string_view kernelbench_l2_small =
#include "kevin/tasks/data/kernelbench_l2_small.inc"
    ;
}  // namespace detail

/// Every embedded task, by level and number. Parsed at the first call, which any thread may make.
[[nodiscard]] inline const std::vector<Task>& all() {
  static const std::vector<Task> tasks = [] {
    std::vector<Task> result = parse_tasks(detail::kernelbench_l1_small, "kernelbench_l1_small.inc");
    std::vector<Task> more = parse_tasks(detail::kernelbench_l2_small, "kernelbench_l2_small.inc");
    std::move(more.begin(), more.end(), std::back_inserter(result));
    return result;
  }();
  return tasks;
}

/// The embedded task called `id`. Error(not_found) names the tasks whose id or name has `id` in it, or whose id is
/// close to it.
[[nodiscard]] inline Task find(std::string_view id) {
  std::vector<std::string> ids;
  std::string matches;
  const std::string wanted = detail::lower_case(id.substr(0, 128));
  for (const Task& t : all()) {
    if (t.id == id) return t;
    ids.push_back(t.id);
    const bool preset = t.id.starts_with(wanted + '@');  // "kernelbench/l1/19": only the preset is missing
    if (preset || (wanted.size() > 2 && detail::lower_case(t.name).find(wanted) != std::string::npos)) {
      matches += (matches.empty() ? "; near: '" : "', '") + t.id;
    }
  }
  throw Error(ErrorCode::not_found, "there is no task " + detail::quote(id) +
                                        (matches.empty() ? detail::nearest_text(id, ids) : matches + '\'') +
                                        "; `evaluate --list` prints the " + std::to_string(ids.size()) +
                                        " embedded ones");
}

}  // namespace kevin::tasks

#endif  // KEVIN_TASKS_SUITE_HPP
