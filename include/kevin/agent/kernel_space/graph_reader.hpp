#ifndef KEVIN_AGENT_KERNEL_SPACE_GRAPH_READER_HPP
#define KEVIN_AGENT_KERNEL_SPACE_GRAPH_READER_HPP

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "kevin/core/error.hpp"
#include "kevin/refine/signature.hpp"
#include "kevin/refine/task.hpp"

/// How the kernel families read a task's op graph. A graph comes from a checked task; what a family cannot write is
/// Error(unsupported).
namespace kevin::agent::detail {

[[noreturn]] inline void unsupported(const Task& task, const std::string& why) {
  throw Error(ErrorCode::unsupported, "task '" + task.id + "' has no kernel space: " + why);
}

[[nodiscard]] inline const OpArgument* argument(const Op& op, std::string_view name) {
  const auto it = op.args.find(std::string(name));
  return it == op.args.end() ? nullptr : &it->second;
}

[[nodiscard]] inline double number(const Op& op, std::string_view name, double fallback) {
  const OpArgument* a = argument(op, name);
  if (a == nullptr) return fallback;
  if (const auto* i = std::get_if<std::int64_t>(a)) return static_cast<double>(*i);
  if (const auto* d = std::get_if<double>(a)) return *d;
  return fallback;
}

[[nodiscard]] inline bool flag(const Op& op, std::string_view name) {
  const OpArgument* a = argument(op, name);
  const bool* b = a == nullptr ? nullptr : std::get_if<bool>(a);
  return b != nullptr && *b;
}

[[nodiscard]] inline std::string text(const Op& op, std::string_view name) {
  const OpArgument* a = argument(op, name);
  const std::string* s = a == nullptr ? nullptr : std::get_if<std::string>(a);
  return s == nullptr ? std::string() : *s;
}

/// A list of integers; a single integer is a list of one.
[[nodiscard]] inline std::vector<std::int64_t> integers(const Op& op, std::string_view name,
                                                        std::vector<std::int64_t> fallback = {}) {
  const OpArgument* a = argument(op, name);
  if (a == nullptr) return fallback;
  if (const auto* list = std::get_if<std::vector<std::int64_t>>(a)) return *list;
  if (const auto* one = std::get_if<std::int64_t>(a)) return {*one};
  return fallback;
}

/// The dims that a reduction names, from the front; all of them for "all".
[[nodiscard]] inline std::vector<bool> reduced_dims(const Op& op, std::size_t rank) {
  if (!text(op, "dim").empty() || argument(op, "dim") == nullptr) return std::vector<bool>(rank, true);
  std::vector<bool> reduced(rank, false);
  for (std::int64_t d : integers(op, "dim")) {
    const std::int64_t from_front = d < 0 ? d + static_cast<std::int64_t>(rank) : d;
    if (from_front >= 0 && from_front < static_cast<std::int64_t>(rank))
      reduced[static_cast<std::size_t>(from_front)] = true;
  }
  return reduced;
}

/// A tensor that the kernel gets as an argument: the argument's name in the signature, and its shape.
struct Operand {
  std::string argument;
  Shape shape;
};

/// A task's tensors by the names that its ops use.
class GraphReader {
 public:
  /// Keeps a reference to `task`.
  explicit GraphReader(const Task& task) : task_(&task), arguments_(kernel_arguments(task)) {
    if (task.outputs.size() != 1) {
      unsupported(task, "it has " + std::to_string(task.outputs.size()) + " outputs, kernels are written for one");
    }
    for (const auto* specs : {&task.inputs, &task.parameters, &task.outputs}) {
      for (const TensorSpec& t : *specs) {
        if (t.dtype != DType::float32) {
          unsupported(task, t.name + " is " + std::string(to_string(t.dtype)) + ", kernels are written for float32");
        }
        if (element_count(t.shape) < 1) unsupported(task, t.name + " has no element");
      }
    }
    if (task.external != nullptr)
      unsupported(task, "its reference is a module or a function, and kernels are written from an op graph");
    if (task.ops.empty()) unsupported(task, "its graph is empty");
    if (task.outputs[0].name != task.ops.back().out) unsupported(task, "its output is not its last step");
    // A definition may call its parameters what it likes: names of the templates' own must not hide them.
    for (KernelArgument& a : arguments_) {
      if (a.name != "x" && a.name != "y" && a.name != "A" && a.name != "B") a.name = "arg_" + a.name;
    }
    arguments_.back().name = "out";
  }

  [[nodiscard]] const Task& task() const noexcept { return *task_; }
  [[nodiscard]] const std::vector<Op>& ops() const noexcept { return task_->ops; }
  /// As kernel_arguments(task), but under the names that sources use: the output is "out".
  [[nodiscard]] const std::vector<KernelArgument>& arguments() const noexcept { return arguments_; }
  [[nodiscard]] const Shape& output_shape() const noexcept { return task_->outputs[0].shape; }

  /// The argument that `name` (as in Op::in) stands for; a result of an earlier op is unsupported.
  [[nodiscard]] Operand operand(std::string_view name) const {
    const KernelArgument* a = find(name);
    if (a == nullptr) unsupported(*task_, std::string(name) + " is neither input nor parameter");
    return {a->name, a->shape};
  }

  /// The parameter that the argument `name` of `op` names.
  [[nodiscard]] Operand parameter(const Op& op, std::string_view name) const {
    return operand("param:" + text(op, name));
  }

  [[nodiscard]] const Shape& shape_of(std::string_view name) const {
    if (const KernelArgument* a = find(name)) return a->shape;
    for (const Op& op : task_->ops) {
      if (op.out == name) return op.out_shape;
    }
    unsupported(*task_, std::string(name) + " is not defined");
  }

 private:
  [[nodiscard]] const KernelArgument* find(std::string_view name) const {
    constexpr std::string_view prefix = "param:";
    if (name.substr(0, prefix.size()) == prefix) {
      for (std::size_t i = 0; i < task_->parameters.size(); ++i) {
        if (task_->parameters[i].name == name.substr(prefix.size())) return &arguments_[task_->inputs.size() + i];
      }
      return nullptr;
    }
    for (std::size_t i = 0; i < task_->inputs.size(); ++i) {
      if (task_->inputs[i].name == name) return &arguments_[i];
    }
    return nullptr;
  }

  const Task* task_;
  std::vector<KernelArgument> arguments_;
};

}  // namespace kevin::agent::detail

#endif  // KEVIN_AGENT_KERNEL_SPACE_GRAPH_READER_HPP
