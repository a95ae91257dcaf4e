#ifndef KEVIN_TASKS_TASK_READING_HPP
#define KEVIN_TASKS_TASK_READING_HPP

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "kevin/refine/task.hpp"
#include "kevin/tasks/graph.hpp"
#include "kevin/tasks/json_fields.hpp"
#include "kevin/tasks/module_task.hpp"

/// A task's record between the reading of its fields (task_json.hpp) and the finished task.
namespace kevin::tasks::detail {

/// A record as it is read, before what depends on shapes is filled in.
struct Reading {
  Task task;
  Gaps gaps;
  std::optional<ModuleFields> module;
  /// Of each input, then of each parameter: the parameter whose fan-in bounds its values; "" = none.
  std::vector<std::string> fan_in;
};

/// The members of an object, each with its place; Complaint for anything else.
[[nodiscard]] inline std::vector<std::pair<std::string, Field>> members(const Field& field) {
  if (!field.value().is_object()) field.fail("must be an object");
  std::vector<std::pair<std::string, Field>> list;
  for (const auto& [key, value] : field.value().items())
    list.emplace_back(key, Field(value, field.place() + '.' + key));
  return list;
}

/// Computes the bounds that depend on a fan-in: uniform in +-1/sqrt(fan-in), the fan-in of a weight being the product
/// of all extents but the first (PyTorch's default for linear layers and convolutions, kaiming_uniform_ with a = sqrt
/// 5).
inline void fill_bounds(Reading& reading) {
  Task& task = reading.task;
  for (std::size_t i = 0; i < reading.fan_in.size(); ++i) {
    const std::string& name = reading.fan_in[i];
    if (name.empty()) continue;
    const bool input = i < task.inputs.size();
    const std::size_t k = input ? i : i - task.inputs.size();
    const std::string place =
        (input ? "inputs[" : "parameters[") + std::to_string(k) + (input ? "].distribution.fan_in" : "].init.fan_in");
    const auto weight = std::find_if(task.parameters.begin(), task.parameters.end(),
                                     [&](const TensorSpec& t) { return t.name == name; });
    if (weight == task.parameters.end()) complain(place, quote(name) + " is not a parameter");
    if (weight->shape.size() < 2) complain(place, quote(name) + " has fewer than two dims, so no fan-in");
    double fan_in = 1;
    for (std::size_t d = 1; d < weight->shape.size(); ++d) fan_in *= static_cast<double>(weight->shape[d]);
    if (!(fan_in >= 1)) complain(place, quote(name) + " has an extent below 1");
    Distribution& distribution = (input ? task.inputs[k] : task.parameters[k]).distribution;
    distribution.b = 1 / std::sqrt(fan_in);
    distribution.a = -distribution.b;
  }
}

inline void check_preset_name(const Field& preset, std::string_view id, std::string_view name) {
  constexpr std::string_view allowed = "abcdefghijklmnopqrstuvwxyz0123456789_-";
  if (name.empty() || name.size() > 32 || name.find_first_not_of(allowed) != std::string_view::npos)
    preset.fail("needs a name of 1 to 32 small letters, digits, '_' and '-'");
  if (id.find('@') != std::string_view::npos) preset.fail("cannot be: the id has an '@' already");
}

/// "task 'x': " where the id can be read, for messages.
[[nodiscard]] inline std::string task_label(const nlohmann::json& json) {
  if (!json.is_object() || !json.contains("id") || !json["id"].is_string()) return "task: ";
  return "task " + quote(json["id"].get_ref<const std::string&>()) + ": ";
}

}  // namespace kevin::tasks::detail

#endif  // KEVIN_TASKS_TASK_READING_HPP
