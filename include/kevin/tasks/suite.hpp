#ifndef KEVIN_TASKS_SUITE_HPP
#define KEVIN_TASKS_SUITE_HPP

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kevin/core/error.hpp"
#include "kevin/refine/task.hpp"
#include "kevin/tasks/generator.hpp"
#include "kevin/tasks/json_fields.hpp"
#include "kevin/tasks/nearest.hpp"
#include "kevin/tasks/suite_records.hpp"
#include "kevin/tasks/task_file.hpp"
#include "kevin/tasks/task_json.hpp"

/// The tasks that come with the library, as data; a record is parsed when it is asked for.
///
///   kernelbench/l1/19        KernelBench v0.1 (Ouyang et al. 2025, arXiv 2502.10517; commit 423217d), levels 1 and 2:
///                            its operations, shapes, distributions and tolerance
///   kevin/l1/19@small  the same at a size that suits a cpu
///   kevin/l1/19@small        hardened: normal inputs, random norms, and tolerances under which zeros, the mean of the
///                            output, another seed's output and a copy of the input are all wrong
namespace kevin::tasks {

/// The ids of all embedded tasks, by suite, level and number, each followed by its presets'.
[[nodiscard]] inline std::vector<std::string> ids() {
  std::vector<std::string> names;
  detail::for_each_task([&](const detail::Record& record, std::string_view preset) {
    names.push_back(std::string(record.id) + (preset.empty() ? "" : "@" + std::string(preset)));
  });
  return names;
}

/// Every embedded task, in the order of ids(). Parsed at the first call, which any thread may make.
[[nodiscard]] inline const std::vector<Task>& all() {
  static const std::vector<Task> tasks = [] {
    std::vector<Task> result;
    for (const detail::Record& record : detail::suite_records) {
      std::vector<Task> some = parse_tasks(record.json, std::string(record.id));
      std::move(some.begin(), some.end(), std::back_inserter(result));
    }
    return result;
  }();
  return tasks;
}

/// The embedded task called `id`, a generated one ("generated/7/12", "generated/7/12@small": seed, index; see
/// kevin/tasks/generator.hpp; Error(bad_input) when it is written otherwise), or that of a file: "mine.json" where it
/// holds one task, "mine.json#ID" where it holds several. Error(not_found) names the tasks whose id or name has `id` in
/// it, or whose id is close to it.
[[nodiscard]] inline Task find(std::string_view id) {
  const std::string_view file = id.substr(0, id.find('#'));
  if (file.ends_with(".json") || file.ends_with(".jsonl")) {
    return find_in_file(file, file.size() < id.size() ? id.substr(file.size() + 1) : std::string_view());
  }
  if (id.starts_with(generated_prefix)) {
    if (const std::optional<GeneratedId> generated = parse_generated_id(id))
      return Generator(generated->seed).task(generated->index, generated->small ? "small" : "");
    throw Error(ErrorCode::bad_input, detail::quote(id) +
                                          " is no id of a generated task: write generated/SEED/INDEX or "
                                          "generated/SEED/INDEX@small with whole numbers below 2^64, as in "
                                          "'generated/7/12@small'");
  }
  const detail::Record* found = nullptr;
  std::string_view in_preset;
  detail::for_each_task([&](const detail::Record& record, std::string_view preset) {
    const bool same = preset.empty() ? id == record.id
                                     : id.size() == record.id.size() + 1 + preset.size() && id.starts_with(record.id) &&
                                           id[record.id.size()] == '@' && id.ends_with(preset);
    if (same) found = &record, in_preset = preset;
  });
  if (found != nullptr) return read_task(detail::parse_strictly(found->json), in_preset);

  const std::string wanted = detail::lower_case(id.substr(0, 128));
  std::string matches;
  std::size_t count = 0;
  for (const Task& t : all()) {
    const bool preset = t.id.starts_with(wanted + '@');  // "kevin/l1/19": only the preset is missing
    const bool name = wanted.size() > 2 && detail::lower_case(t.name).find(wanted) != std::string::npos;
    if ((preset || name) && ++count <= 5) matches += (matches.empty() ? "; near: '" : "', '") + t.id;
  }
  if (count > 5)
    matches += "' and " + std::to_string(count - 5) + " more";
  else if (count > 0)
    matches += '\'';
  throw Error(ErrorCode::not_found,
              "there is no task " + detail::quote(id) + (matches.empty() ? detail::nearest_text(id, ids()) : matches) +
                  "; `evaluate --list` prints the " + std::to_string(ids().size()) + " embedded ones");
}

}  // namespace kevin::tasks

#endif  // KEVIN_TASKS_SUITE_HPP
