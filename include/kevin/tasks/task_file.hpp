#ifndef KEVIN_TASKS_TASK_FILE_HPP
#define KEVIN_TASKS_TASK_FILE_HPP

#include <algorithm>
#include <array>
#include <cstddef>
#include <fstream>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "kevin/core/error.hpp"
#include "kevin/refine/task.hpp"
#include "kevin/tasks/json_fields.hpp"
#include "kevin/tasks/module_task.hpp"
#include "kevin/tasks/nearest.hpp"
#include "kevin/tasks/task_json.hpp"

/// Files of tasks: one task, an array of tasks, or JSON lines; task_json.hpp reads each.
namespace kevin::tasks {

/// Tasks from text: one task, an array of tasks, or JSON lines (one task a line; blank lines are skipped). A task with
/// presets is followed by itself in each of them, with the id "<id>@<preset>".
/// Error(bad_input) begins with `where`, and names the task's number in an array or its line, and the place within it.
/// With `modules`, tasks may name a TorchScript archive; without, that is an error.
[[nodiscard]] inline std::vector<Task> parse_tasks(std::string_view text, const std::string& where = "text",
                                                   ModuleFolder* modules = nullptr) {
  std::vector<Task> tasks;
  std::set<std::string> ids;
  const auto fail = [](const std::string& place, std::string_view what) {
    throw Error(ErrorCode::bad_input, place + ": " + std::string(what));
  };
  /// The same error with its place before it.
  const auto forward = [](const std::string& place, const Error& e) {
    std::string_view what = e.what();
    const std::string code = std::string(to_string(e.code())) + ": ";
    if (what.starts_with(code)) what.remove_prefix(code.size());
    throw Error(e.code(), place + ": " + std::string(what));
  };
  const auto add_in_preset = [&](const nlohmann::json& json, const std::string& preset, const std::string& place) {
    try {
      tasks.push_back(read_task(json, preset, modules));
    } catch (const Error& e) {
      forward(place, e);
    }
    if (!ids.insert(tasks.back().id).second)
      fail(place, "the id " + detail::quote(tasks.back().id) + " is taken by an earlier task");
  };
  const auto add = [&](const nlohmann::json& json, const std::string& place) {
    add_in_preset(json, "", place);
    std::vector<std::string> presets;
    try {
      presets = preset_names(json);
    } catch (const Error& e) {
      forward(place, e);
    }
    for (const std::string& preset : presets) add_in_preset(json, preset, place);
  };
  const auto parse = [&](std::string_view part, const std::string& place) {
    try {
      return detail::parse_strictly(part);
    } catch (const detail::Complaint& c) {
      fail(place, c.what());
      throw;
    }
  };
  constexpr std::string_view blank = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(blank);
  if (begin == std::string_view::npos) fail(where, "holds no task");
  const std::size_t first_end = std::min(text.find('\n', begin), text.size());
  const bool more = text.find_first_not_of(blank, first_end) != std::string_view::npos;
  if (text[begin] == '{' && more && nlohmann::json::accept(text.substr(begin, first_end - begin))) {
    std::size_t line = 1;
    for (std::size_t at = 0; at < text.size(); ++line) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      const std::string_view part = text.substr(at, end - at);
      at = end + 1;
      const std::string place = where + ": line " + std::to_string(line);
      if (part.find_first_not_of(blank) != std::string_view::npos) add(parse(part, place), place);
    }
    return tasks;
  }
  const nlohmann::json json = parse(text, where);
  if (!json.is_array()) {
    add(json, where);
    return tasks;
  }
  for (std::size_t i = 0; i < json.size(); ++i) add(json[i], where + ": [" + std::to_string(i) + ']');
  if (tasks.empty()) fail(where, "holds no task");
  return tasks;
}

/// The tasks of a file (see parse_tasks); TorchScript archives that they name lie in its folder. Error(not_found) when
/// it or an archive cannot be read, Error(bad_input) when it is above 64 MiB or wrong.
[[nodiscard]] inline std::vector<Task> load_tasks(const std::string& path) {
  constexpr std::size_t most = std::size_t{64} << 20;
  std::ifstream file(path, std::ios::binary);
  std::string text;
  std::array<char, 65536> part{};
  while (file && text.size() <= most) {
    file.read(part.data(), static_cast<std::streamsize>(part.size()));
    text.append(part.data(), static_cast<std::size_t>(file.gcount()));
  }
  if (text.size() > most) throw Error(ErrorCode::bad_input, path + ": is above 64 MiB");
  if (!file.eof())
    throw Error(ErrorCode::not_found,
                "cannot read the task file '" + path + "'; give the path of a file in the format of docs/tasks.md");
  const std::size_t slash = path.rfind('/');
  ModuleFolder modules(slash == std::string::npos ? "" : path.substr(0, slash + 1));
  return parse_tasks(text, path, &modules);
}

/// The task of a file: of "mine.json", which holds one, or the one called ID of "mine.json#ID". Error(bad_input) when
/// it holds several and none is named, Error(not_found) for a name that it does not hold; and what load_tasks throws.
[[nodiscard]] inline Task find_in_file(std::string_view file, std::string_view id) {
  std::vector<Task> tasks = load_tasks(std::string(file));
  std::vector<std::string> names;
  for (Task& t : tasks) {
    names.push_back(t.id);
    if (t.id == id || (id.empty() && tasks.size() == 1)) return std::move(t);
  }
  if (id.empty()) {
    throw Error(ErrorCode::bad_input, std::string(file) + " holds " + std::to_string(tasks.size()) +
                                          " tasks: name one, '" + std::string(file) + '#' + tasks[0].id + "'");
  }
  throw Error(ErrorCode::not_found,
              std::string(file) + " has no task " + detail::quote(id) + detail::nearest_text(id, names));
}

}  // namespace kevin::tasks

#endif  // KEVIN_TASKS_TASK_FILE_HPP
