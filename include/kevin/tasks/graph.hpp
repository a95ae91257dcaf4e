#ifndef KEVIN_TASKS_GRAPH_HPP
#define KEVIN_TASKS_GRAPH_HPP

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "kevin/core/error.hpp"
#include "kevin/refine/task.hpp"
#include "kevin/tasks/nearest.hpp"
#include "kevin/tasks/operation.hpp"
#include "kevin/tasks/operations.hpp"
#include "kevin/tasks/spec_check.hpp"

namespace kevin::tasks {

/// Which shapes and types of a task are to be filled in from inference instead of compared with it. Empty: none.
struct Gaps {
  std::set<std::size_t> op_shapes;      ///< numbers of ops
  std::set<std::size_t> output_shapes;  ///< numbers of outputs
  std::set<std::size_t> output_types;
};

/// A task's graph, checked and bound: every name resolved, every shape inferred and compared with the one listed.
/// Immutable after construction and safe to share between threads. Of a task whose reference is no graph, everything
/// but the steps is checked, and there are none.
class Graph {
 public:
  /// An operand that is not there.
  static constexpr std::size_t absent = static_cast<std::size_t>(-1);

  struct Step {
    const Operation* operation = nullptr;
    std::vector<std::size_t> operands;  ///< numbers of values, or `absent`
    std::size_t result = 0;
    std::vector<std::size_t> last_use;  ///< results that no later step needs
    Kernel kernel;
  };

  /// Checks `task` and fills the gaps. Error(bad_input) names the task and the place: "ops[2].in[0]: 't7' is not
  /// defined before".
  explicit Graph(Task& task, const Gaps& gaps = {}) {
    const std::string where = "task " + detail::quote(task.id) + ": ";
    try {
      build(task, gaps);
    } catch (const detail::Complaint& c) {
      throw Error(ErrorCode::bad_input, where + (c.place().empty() ? "" : c.place() + ": ") + c.what());
    }
  }

  /// Steps in the order in which they run.
  [[nodiscard]] const std::vector<Step>& steps() const noexcept { return steps_; }
  /// Values: the task's inputs, then its parameters, then the results in order.
  [[nodiscard]] const std::vector<TensorInfo>& values() const noexcept { return infos_; }
  /// Numbers of the values that are the task's outputs.
  [[nodiscard]] const std::vector<std::size_t>& outputs() const noexcept { return outputs_; }

 private:
  void build(Task& task, const Gaps& gaps) {
    using detail::complain;
    detail::check_header(task);
    std::map<std::string, std::size_t> values;
    std::map<std::string, std::size_t> parameters;
    for (std::size_t i = 0; i < task.inputs.size(); ++i) {
      const std::string place = "inputs[" + std::to_string(i) + "]";
      detail::check_spec(task.inputs[i], place, "distribution");
      if (!values.emplace(task.inputs[i].name, infos_.size()).second)
        complain(place + ".name", detail::quote(task.inputs[i].name) + " is taken");
      infos_.push_back({task.inputs[i].shape, task.inputs[i].dtype});
    }
    for (std::size_t i = 0; i < task.parameters.size(); ++i) {
      const std::string place = "parameters[" + std::to_string(i) + "]";
      detail::check_spec(task.parameters[i], place, "init");
      if (!parameters.emplace(task.parameters[i].name, infos_.size()).second) {
        complain(place + ".name", detail::quote(task.parameters[i].name) + " is taken");
      }
      infos_.push_back({task.parameters[i].shape, task.parameters[i].dtype});
    }
    first_result_ = infos_.size();
    if (task.external != nullptr) return check_outputs(task);
    for (std::size_t i = 0; i < task.ops.size(); ++i) {
      const std::string place = "ops[" + std::to_string(i) + "]";
      try {
        add_step(task.ops[i], values, parameters, gaps.op_shapes.contains(i));
      } catch (const detail::Complaint& c) {
        const std::string name = task.ops[i].op.empty() ? "" : " (" + detail::quote(task.ops[i].op) + ")";
        complain(place + (c.place().empty() ? "" : "." + c.place()), c.what() + (c.place() == "op" ? "" : name));
      }
    }
    add_outputs(task, values, gaps);
    find_last_uses(task);
  }

  void add_step(Op& op, std::map<std::string, std::size_t>& values,
                const std::map<std::string, std::size_t>& parameters, bool fill_shape) {
    using detail::complain;
    Step step;
    step.operation = find_operation(op.op);
    if (step.operation == nullptr) {
      std::vector<std::string> names;
      for (const Operation& o : operations()) names.emplace_back(o.name);
      complain("op", "there is no operation " + detail::quote(op.op) + detail::nearest_text(op.op, names));
    }
    const Operation& operation = *step.operation;
    if (op.in.size() < operation.least || op.in.size() > operation.most) {
      complain("in", "has " + std::to_string(op.in.size()) + " operand(s), needs " + std::to_string(operation.least) +
                         (operation.least == operation.most ? "" : " to " + std::to_string(operation.most)));
    }
    for (std::size_t k = 0; k < op.in.size(); ++k) {
      constexpr std::string_view prefix = "param:";
      const std::string place = "in[" + std::to_string(k) + "]";
      const bool parameter = op.in[k].starts_with(prefix);
      const auto& table = parameter ? parameters : values;
      const auto it = table.find(parameter ? op.in[k].substr(prefix.size()) : op.in[k]);
      if (it == table.end())
        complain(place, detail::quote(op.in[k]) + (parameter ? " is not a parameter" : " is not defined before"));
      step.operands.push_back(it->second);
    }
    for (const auto& [name, value] : op.args) {
      const ArgumentRule* rule = operation.rule(name);
      if (rule == nullptr) {
        std::vector<std::string> names;
        for (const ArgumentRule& r : operation.rules) names.emplace_back(r.name);
        complain("args", "does not know " + detail::quote(name) + detail::nearest_text(name, names));
      }
      detail::check_argument(*rule, value);
    }
    for (const ArgumentRule& rule : operation.rules) {
      const auto it = op.args.find(std::string(rule.name));
      if (it == op.args.end() && rule.required) complain("args", "lacks " + detail::quote(rule.name));
      if (rule.type != ArgumentType::parameter) continue;
      if (it == op.args.end()) {
        step.operands.push_back(absent);
        continue;
      }
      const std::string& name = std::get<std::string>(it->second);
      const auto parameter = parameters.find(name);
      if (parameter == parameters.end())
        complain("args." + std::string(rule.name), detail::quote(name) + " is not a parameter");
      step.operands.push_back(parameter->second);
    }

    std::vector<const TensorInfo*> infos;
    for (std::size_t o : step.operands) infos.push_back(o == absent ? nullptr : &infos_[o]);
    const Arguments arguments(op.args);
    TensorInfo result = operation.infer(infos, arguments);
    detail::check_shape(result.shape, {});
    if (fill_shape) op.out_shape = result.shape;
    if (op.out_shape != result.shape) {
      complain("out_shape",
               "lists " + detail::shape_text(op.out_shape) + ", the result has " + detail::shape_text(result.shape));
    }
    step.kernel = operation.bind(infos, arguments);
    detail::check_name(op.out, "out");
    step.result = infos_.size();
    if (!values.emplace(op.out, step.result).second) complain("out", detail::quote(op.out) + " is taken");
    infos_.push_back(std::move(result));
    steps_.push_back(std::move(step));
  }

  /// Outputs that no op makes: their shapes and types are as listed.
  static void check_outputs(const Task& task) {
    std::set<std::string> seen;
    for (std::size_t i = 0; i < task.outputs.size(); ++i) {
      const std::string place = "outputs[" + std::to_string(i) + "]";
      detail::check_name(task.outputs[i].name, place + ".name");
      detail::check_shape(task.outputs[i].shape, place + ".shape");
      if (!seen.insert(task.outputs[i].name).second)
        detail::complain(place + ".name", detail::quote(task.outputs[i].name) + " is listed twice");
    }
  }

  void add_outputs(Task& task, const std::map<std::string, std::size_t>& values, const Gaps& gaps) {
    using detail::complain;
    std::set<std::string> seen;
    for (std::size_t i = 0; i < task.outputs.size(); ++i) {
      TensorSpec& output = task.outputs[i];
      const std::string place = "outputs[" + std::to_string(i) + "]";
      const auto it = values.find(output.name);
      if (it == values.end() || it->second < first_result_)
        complain(place + ".name", detail::quote(output.name) + " is not the out of an op");
      if (!seen.insert(output.name).second) complain(place + ".name", detail::quote(output.name) + " is listed twice");
      const TensorInfo& info = infos_[it->second];
      if (gaps.output_shapes.contains(i)) output.shape = info.shape;
      if (gaps.output_types.contains(i)) output.dtype = info.dtype;
      if (output.shape != info.shape) {
        complain(place + ".shape",
                 "lists " + detail::shape_text(output.shape) + ", the result has " + detail::shape_text(info.shape));
      }
      if (output.dtype != info.dtype) {
        complain(place + ".dtype", "lists " + std::string(to_string(output.dtype)) + ", the result has " +
                                       std::string(to_string(info.dtype)));
      }
      outputs_.push_back(it->second);
    }
  }

  /// Finds for every result the step after which it can be freed, as a program that rebinds its variable would; a
  /// result that nothing uses is an error: the reference would spend time on it.
  void find_last_uses(const Task& task) {
    std::vector<std::size_t> last(infos_.size(), absent);
    for (std::size_t s = 0; s < steps_.size(); ++s) {
      for (std::size_t o : steps_[s].operands) {
        if (o != absent) last[o] = s;
      }
    }
    for (std::size_t o : outputs_) last[o] = steps_.size();
    for (std::size_t v = first_result_; v < infos_.size(); ++v) {
      const std::size_t step = v - first_result_;
      if (last[v] == absent)
        detail::complain("ops[" + std::to_string(step) + "].out", detail::quote(task.ops[step].out) + " is never used");
      if (last[v] < steps_.size()) steps_[last[v]].last_use.push_back(v);
    }
  }

  std::vector<Step> steps_;
  std::vector<TensorInfo> infos_;
  std::vector<std::size_t> outputs_;
  std::size_t first_result_ = 0;
};

/// Checks a task however it was made: throws Error(bad_input) that names the place, or returns.
inline void check_task(Task task) { Graph graph(task); }

}  // namespace kevin::tasks

#endif  // KEVIN_TASKS_GRAPH_HPP
