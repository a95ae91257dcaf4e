#ifndef KEVIN_TASKS_REFERENCE_HPP
#define KEVIN_TASKS_REFERENCE_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kevin/core/error.hpp"
#include "kevin/core/random.hpp"
#include "kevin/refine/task.hpp"
#include "kevin/tasks/draw.hpp"
#include "kevin/tasks/graph.hpp"
#include "kevin/tasks/program.hpp"
#include "kevin/tasks/torch.hpp"

namespace kevin::tasks {

/// LibTorch's name of an element type.
[[nodiscard]] constexpr torch::ScalarType scalar_type(DType t) noexcept {
  switch (t) {
    case DType::float32:
      return torch::kFloat32;
    case DType::float64:
      return torch::kFloat64;
    case DType::float16:
      return torch::kFloat16;
    case DType::bfloat16:
      return torch::kBFloat16;
    case DType::int32:
      return torch::kInt32;
    case DType::int64:
      return torch::kInt64;
    case DType::boolean:
      return torch::kBool;
  }
  return torch::kFloat32;
}

/// A task that can be run: draws its inputs and parameters and computes what a candidate should, with LibTorch on the
/// cpu, eagerly, without gradients, with as many threads as at::get_num_threads() says.
///
/// Everything is const and may be called from several threads at once. Draws depend on the seed alone (see draw.hpp).
class Reference {
 public:
  /// Checks the task; Error(bad_input) names the place of a fault.
  explicit Reference(Task task) : task_(std::move(task)), graph_(task_), program_(program_of(task_)) {}

  [[nodiscard]] const Task& task() const noexcept { return task_; }
  /// Without steps where the reference is a module or a function.
  [[nodiscard]] const Graph& graph() const noexcept { return graph_; }

  /// Fresh tensors, one for each input of the task, in order.
  [[nodiscard]] std::vector<torch::Tensor> draw_inputs(std::uint64_t seed) const {
    return draw(task_.inputs, "input", seed);
  }
  [[nodiscard]] std::vector<torch::Tensor> draw_parameters(std::uint64_t seed) const {
    return draw(task_.parameters, "parameter", seed);
  }

  /// Draws into given cpu tensors, which have the shape and type that the task says and are contiguous:
  /// Error(bad_input) else.
  void draw_inputs(std::uint64_t seed, std::span<torch::Tensor> into) const { draw(task_.inputs, "input", seed, into); }
  void draw_parameters(std::uint64_t seed, std::span<torch::Tensor> into) const {
    draw(task_.parameters, "parameter", seed, into);
  }

  /// The task's outputs, contiguous, in order. Real operands may all be float64 instead of the task's own type: the
  /// same graph is then an oracle for the rounding of the float32 one. Error(bad_input) when number or shapes do not
  /// fit the task; Error(unsupported) when LibTorch refuses a step on this machine (a type that it has no cpu kernel
  /// for), or when a module or function does not take float64; Error(resource) when memory runs out.
  [[nodiscard]] std::vector<torch::Tensor> forward(const std::vector<torch::Tensor>& inputs,
                                                   const std::vector<torch::Tensor>& parameters) const {
    const torch::NoGradGuard no_grad;
    check_operands(task_.inputs, inputs, "input");
    check_operands(task_.parameters, parameters, "parameter");
    if (program_ != nullptr) return run_program(*program_, task_, inputs, parameters);
    std::vector<torch::Tensor> values(graph_.values().size());
    std::copy(inputs.begin(), inputs.end(), values.begin());
    std::copy(parameters.begin(), parameters.end(), values.begin() + static_cast<std::ptrdiff_t>(inputs.size()));

    const torch::Tensor undefined;
    std::vector<const torch::Tensor*> operands;
    for (const Graph::Step& step : graph_.steps()) {
      operands.clear();
      for (std::size_t o : step.operands) operands.push_back(o == Graph::absent ? &undefined : &values[o]);
      if (operands.empty()) operands.push_back(&values[0]);  // tells a step that has none where to make its result
      values[step.result] = run(step, operands);
      for (std::size_t v : step.last_use) values[v].reset();
    }
    std::vector<torch::Tensor> outputs;
    outputs.reserve(graph_.outputs().size());
    for (std::size_t o : graph_.outputs()) outputs.push_back(values[o].contiguous());
    return outputs;
  }

 private:
  static std::vector<torch::Tensor> draw(const std::vector<TensorSpec>& specs, std::string_view what,
                                         std::uint64_t seed) {
    std::vector<torch::Tensor> tensors;
    tensors.reserve(specs.size());
    for (const TensorSpec& s : specs) tensors.push_back(torch::empty(s.shape, scalar_type(s.dtype)));
    draw(specs, what, seed, tensors);
    return tensors;
  }

  static void draw(const std::vector<TensorSpec>& specs, std::string_view what, std::uint64_t seed,
                   std::span<torch::Tensor> into) {
    check_count(specs.size(), into.size(), what);
    for (std::size_t i = 0; i < specs.size(); ++i) {
      const TensorSpec& s = specs[i];
      const torch::Tensor& t = into[i];
      if (!t.defined() || !t.device().is_cpu() || !t.is_contiguous() || t.scalar_type() != scalar_type(s.dtype) ||
          t.sizes() != at::IntArrayRef(s.shape)) {
        throw Error(ErrorCode::bad_input, std::string(what) + ' ' + detail::quote(s.name) +
                                              " needs a contiguous cpu tensor of " + std::string(to_string(s.dtype)) +
                                              ' ' + detail::shape_text(s.shape) + " to be drawn into");
      }
      draw_into(s, derive_seed(seed, what, i), t.data_ptr());
    }
  }

  static void check_count(std::size_t needed, std::size_t given, std::string_view what) {
    if (needed == given) return;
    throw Error(ErrorCode::bad_input, "the task has " + std::to_string(needed) + ' ' + std::string(what) + "(s), " +
                                          std::to_string(given) + " given");
  }

  static void check_operands(const std::vector<TensorSpec>& specs, const std::vector<torch::Tensor>& given,
                             std::string_view what) {
    check_count(specs.size(), given.size(), what);
    for (std::size_t i = 0; i < specs.size(); ++i) {
      if (given[i].defined() && given[i].sizes() == at::IntArrayRef(specs[i].shape)) continue;
      throw Error(ErrorCode::bad_input, std::string(what) + ' ' + detail::quote(specs[i].name) + " needs shape " +
                                            detail::shape_text(specs[i].shape));
    }
  }

  [[nodiscard]] torch::Tensor run(const Graph::Step& step, Operands operands) const {
    try {
      return step.kernel(operands);
    } catch (const std::exception& e) {  // c10::Error, or what a backend of LibTorch throws
      const std::string_view text = e.what();
      const bool memory = dynamic_cast<const std::bad_alloc*>(&e) != nullptr ||
                          text.find("not enough memory") != std::string_view::npos ||
                          text.find("out of memory") != std::string_view::npos;
      const std::string place =
          "task " + detail::quote(task_.id) + ": ops[" + std::to_string(&step - graph_.steps().data()) + "] (" +
          detail::quote(step.operation->name) + "): LibTorch says: " + std::string(text.substr(0, text.find('\n')));
      throw Error(memory ? ErrorCode::resource : ErrorCode::unsupported, place);
    }
  }

  Task task_;
  Graph graph_;
  const Program* program_;  ///< task_'s; null: there is a graph
};

}  // namespace kevin::tasks

#endif  // KEVIN_TASKS_REFERENCE_HPP
