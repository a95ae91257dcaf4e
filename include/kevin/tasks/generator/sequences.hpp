#ifndef KEVIN_TASKS_GENERATOR_SEQUENCES_HPP
#define KEVIN_TASKS_GENERATOR_SEQUENCES_HPP

#include <set>
#include <string>
#include <string_view>

#include "kevin/refine/task.hpp"
#include "kevin/tasks/json_fields.hpp"
#include "kevin/tasks/suite_records.hpp"

namespace kevin::tasks {

namespace detail {

/// One name for what is the same step in other words, "" for a step that moves nothing: two tasks whose operations have
/// the same names have the same sequence, and so have some whose names differ.
[[nodiscard]] constexpr std::string_view step_kind(std::string_view op) noexcept {
  if (op == "reshape" || op == "squeeze" || op == "unsqueeze" || op == "dropout") return "";
  if (op == "matmul") return "linear";
  if (op == "hardtanh") return "clamp";
  if (op == "sub_scalar") return "add_scalar";
  if (op == "div_scalar") return "mul_scalar";
  if (op == "sub_parameter") return "add_parameter";
  if (op == "div_parameter") return "mul_parameter";
  if (op == "add_tensor") return "residual_add";
  if (op.starts_with("adaptive_avg_pool")) return "mean";
  return op;
}

inline void append_step(std::string& sequence, std::string_view op) {
  const std::string_view kind = step_kind(op);
  if (kind.empty()) return;
  if (!sequence.empty()) sequence += ' ';
  sequence += kind;
}

}  // namespace detail

/// The task's operations in order, in one word each: "conv2d relu add_parameter". Steps that only rename a shape are
/// left out, and steps of the same kind (add and subtract a number, clamp and hardtanh, ...) share a word.
[[nodiscard]] inline std::string step_sequence(const Task& task) {
  std::string sequence;
  for (const Op& op : task.ops) detail::append_step(sequence, op.op);
  return sequence;
}

/// The sequences of KernelBench's tasks, levels 1 and 2, read from the embedded records (some milliseconds).
[[nodiscard]] inline std::set<std::string> kernelbench_sequences() {
  std::set<std::string> sequences;
  for (const detail::Record& record : detail::suite_records) {
    if (!record.id.starts_with("kernelbench/")) continue;
    const nlohmann::json json = detail::parse_strictly(record.json);
    std::string sequence;
    for (const nlohmann::json& op : json.at("ops"))
      detail::append_step(sequence, op.at("op").get_ref<const std::string&>());
    sequences.insert(sequence);
  }
  return sequences;
}

}  // namespace kevin::tasks

#endif  // KEVIN_TASKS_GENERATOR_SEQUENCES_HPP
