#ifndef KEVIN_TASKS_FUNCTION_TASK_HPP
#define KEVIN_TASKS_FUNCTION_TASK_HPP

#include <concepts>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "kevin/refine/task.hpp"
#include "kevin/tasks/inferred_outputs.hpp"
#include "kevin/tasks/program.hpp"
#include "kevin/tasks/torch.hpp"

namespace kevin::tasks {

/// Tensors in the order in which a task lists them.
using Tensors = std::vector<torch::Tensor>;

/// What can be a reference: called with the inputs and the parameters, or with the inputs alone; gives a tensor or
/// Tensors. It is called from several threads at once, with float64 operands too, and with those of a GPU, so it may
/// neither change its operands nor any state, and must give the same result for the same operands.
template <class F>
concept ReferenceFunction = std::copy_constructible<F> &&
    (std::is_invocable_r_v<torch::Tensor, const F&, const Tensors&, const Tensors&> ||
     std::is_invocable_r_v<Tensors, const F&, const Tensors&, const Tensors&> ||
     std::is_invocable_r_v<torch::Tensor, const F&, const Tensors&> ||
     std::is_invocable_r_v<Tensors, const F&, const Tensors&>);

namespace detail {

template <ReferenceFunction F>
class FunctionProgram final : public Program {
 public:
  FunctionProgram(F function, std::string text) : Program(std::move(text)), function_(std::move(function)) {}

  [[nodiscard]] Tensors forward(const Tensors& inputs, const Tensors& parameters) const override {
    if constexpr (std::is_invocable_v<const F&, const Tensors&, const Tensors&>)
      return listed(std::invoke(function_, inputs, parameters));
    else
      return listed(std::invoke(function_, inputs));
  }

 private:
  template <class Result>
  [[nodiscard]] static Tensors listed(Result&& result) {
    if constexpr (std::is_convertible_v<Result, torch::Tensor>)
      return {std::forward<Result>(result)};
    else
      return std::forward<Result>(result);
  }

  F function_;
};

/// Every line as a comment.
[[nodiscard]] inline std::string comment_lines(std::string_view text) {
  std::string lines;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    lines += (line.empty() ? "#" : "# ") + std::string(line) + '\n';
    text.remove_prefix(line.size() < text.size() ? line.size() + 1 : line.size());
  }
  return lines;
}

}  // namespace detail

/// A task whose reference is a function of this program. `task` has at least an id, a name and inputs; outputs that it
/// does not list are found by running the function twice on the cpu, and are called y, or y0, y1, ... `description` is
/// what an agent gets to read in place of a graph: say in it what is to be computed. Error(bad_input) names what is
/// wrong with the task, or with what the function gave.
///
///     const kevin::Task task = kevin::tasks::task_from_function(
///         {.id = "mine/scale", .name = "Scale", .inputs = {{.name = "x", .shape = {64, 256}}},
///          .parameters = {{.name = "weight", .shape = {256}}}},
///         [](const kevin::tasks::Tensors& in, const kevin::tasks::Tensors& p) { return torch::relu(in[0]) * p[0]; },
///         "out = max(x, 0) * weight, weight along the last dim");
template <ReferenceFunction F>
[[nodiscard]] Task task_from_function(Task task, F function, std::string_view description) {
  task.external =
      std::make_shared<const detail::FunctionProgram<F>>(std::move(function), detail::comment_lines(description));
  if (task.outputs.empty()) infer_outputs(task);
  check_task(task);
  return task;
}

}  // namespace kevin::tasks

#endif  // KEVIN_TASKS_FUNCTION_TASK_HPP
