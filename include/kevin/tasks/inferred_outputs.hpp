#ifndef KEVIN_TASKS_INFERRED_OUTPUTS_HPP
#define KEVIN_TASKS_INFERRED_OUTPUTS_HPP

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kevin/core/error.hpp"
#include "kevin/core/random.hpp"
#include "kevin/refine/task.hpp"
#include "kevin/tasks/draw.hpp"
#include "kevin/tasks/graph.hpp"
#include "kevin/tasks/program.hpp"
#include "kevin/tasks/reference.hpp"
#include "kevin/tasks/torch.hpp"

namespace kevin::tasks {

/// kevin's name of an element type; nothing for one that tasks do not know.
[[nodiscard]] constexpr std::optional<DType> dtype_of(torch::ScalarType type) noexcept {
  for (const DType t :
       {DType::float32, DType::float64, DType::float16, DType::bfloat16, DType::int32, DType::int64, DType::boolean}) {
    if (scalar_type(t) == type) return t;
  }
  return std::nullopt;
}

/// Fills in the outputs of a task whose reference is a program, from two runs of it on the cpu: all of them when there
/// are none (called y, or y0, y1, ...), otherwise the shapes and types that `gaps` names. Error(bad_input) when the
/// runs differ, or give what is no output of a task; and what run_program throws.
inline void infer_outputs(Task& task, const Gaps& gaps = {}) {
  const Program* program = program_of(task);
  if (program == nullptr) throw Error(ErrorCode::bad_input, "task " + detail::quote(task.id) + ": has no program");
  Task draft = task;
  draft.outputs = {{.name = "y", .shape = {}}};
  check_task(draft);  // before anything is drawn for it
  std::vector<torch::Tensor> operands[2];
  for (const auto* specs : {&task.inputs, &task.parameters}) {
    for (const TensorSpec& t : *specs) {
      torch::Tensor& drawn =
          operands[specs == &task.inputs ? 0 : 1].emplace_back(torch::empty(t.shape, scalar_type(t.dtype)));
      draw_into(t, derive_seed(0, t.name), drawn.data_ptr());
    }
  }
  const torch::NoGradGuard no_grad;
  const std::vector<torch::Tensor> outputs = detail::raw_outputs(*program, task, operands[0], operands[1]);
  const std::vector<torch::Tensor> again = detail::raw_outputs(*program, task, operands[0], operands[1]);
  const auto fail = [&](const std::string& text) { detail::program_fails(task, ErrorCode::bad_input, text); };
  const bool listed = !task.outputs.empty();
  if (outputs.empty()) fail("gives no output");
  if (listed && outputs.size() != task.outputs.size()) {
    fail("gives " + std::to_string(outputs.size()) + " output(s), the task lists " +
         std::to_string(task.outputs.size()));
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const torch::Tensor& t = outputs[i];
    const std::string which = "output " + std::to_string(i);
    if (!t.defined()) fail("gives no tensor as " + which);
    const std::optional<DType> type = dtype_of(t.scalar_type());
    if (!type) fail("gives " + which + " as " + std::string(c10::toString(t.scalar_type())) + ", which no task has");
    const bool real = t.is_floating_point();
    if (again.size() != outputs.size() || !again[i].defined() || !again[i].sizes().equals(t.sizes()) ||
        !(real ? torch::allclose(t, again[i], 1e-3, 1e-5, true) : torch::equal(t, again[i])))
      fail("gives another " + which +
           " when it is run again on the same operands: no candidate could be held against it");
    if (!listed) {
      task.outputs.push_back({.name = outputs.size() == 1 ? "y" : "y" + std::to_string(i), .shape = {}});
    }
    TensorSpec& spec = task.outputs[i];
    if (!listed || gaps.output_shapes.contains(i)) spec.shape = t.sizes().vec();
    if (!listed || gaps.output_types.contains(i)) spec.dtype = *type;
    if (spec.shape != t.sizes().vec() || spec.dtype != *type) {
      fail("gives " + which + " as " + std::string(to_string(*type)) + ' ' + detail::shape_text(t.sizes().vec()) +
           ", the task lists " + std::string(to_string(spec.dtype)) + ' ' + detail::shape_text(spec.shape));
    }
  }
}

}  // namespace kevin::tasks

#endif  // KEVIN_TASKS_INFERRED_OUTPUTS_HPP
