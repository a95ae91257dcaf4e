#ifndef KEVIN_TASKS_COST_HPP
#define KEVIN_TASKS_COST_HPP

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kevin/refine/task.hpp"
#include "kevin/tasks/graph.hpp"
#include "kevin/tasks/operation.hpp"
#include "kevin/tasks/peaks.hpp"
#include "kevin/tasks/work.hpp"

namespace kevin::tasks {

/// What a task takes at least in bytes, and what its graph does in operations.
struct Cost {
  double input_bytes = 0;      ///< of the elements that the outputs depend on
  double parameter_bytes = 0;  ///< the same of parameters
  double output_bytes = 0;
  Work work;  ///< of the graph as written, which fused or reduced forms may do with less
  /// Whether no way is known to need fewer matrix products than the graph has.
  bool products_needed = false;

  [[nodiscard]] double bytes() const noexcept { return input_bytes + parameter_bytes + output_bytes; }
};

namespace detail {

/// Flags of tasks whose outputs can be had, exactly or within KernelBench's tolerance, with less work than is written.
inline constexpr std::array<std::string_view, 8> shortcut_flags = {
    "reducible",   "structured_input", "analytic_shortcut",    "constant_output",
    "zero_output", "constant_subterm", "linearisable_at_1e-4", "zeros_pass_at_1e-4"};

/// Whether the operation is linear in its first operand, another operand being a number or a parameter (or nothing).
[[nodiscard]] inline bool linear_in_first(std::string_view op) {
  constexpr std::array<std::string_view, 18> names = {
      "add_scalar", "sub_scalar",    "mul_scalar",    "div_scalar",    "rsub_scalar", "add_parameter",
      "neg",        "sub_parameter", "mul_parameter", "div_parameter", "reshape",     "squeeze",
      "unsqueeze",  "permute",       "flip",          "narrow",        "dropout",     "residual_add"};
  return std::find(names.begin(), names.end(), op) != names.end();
}

[[nodiscard]] inline bool sums(std::string_view op) {
  return op == "sum" || op == "mean" || op.starts_with("avg_pool") || op.starts_with("adaptive_avg_pool");
}

/// Whether fewer products would do because some matrix product is only summed afterwards, or goes into another product
/// with nothing in between that is not linear.
[[nodiscard]] inline bool products_can_merge(const Graph& graph) {
  std::vector<bool> affine(graph.values().size(), false);  // a product, or linear in one
  for (const Graph::Step& step : graph.steps()) {
    const std::string_view op = step.operation->name;
    const bool product = op == "linear" || op == "matmul" || op == "bmm" || op == "einsum";
    if (product && std::any_of(step.operands.begin(), step.operands.end(),
                               [&](std::size_t o) { return o != Graph::absent && affine[o]; })) {
      return true;
    }
    const bool follows = !step.operands.empty() && affine[step.operands[0]];
    if (follows && sums(op)) return true;
    affine[step.result] = product || (follows && linear_in_first(op));
  }
  return false;
}

/// How many elements of an operand the outputs depend on: 0 when no step takes it, fewer than all when its only step
/// is a narrow or a window that leaves some out, or when part of them is 0 by its structure.
[[nodiscard]] inline double elements_needed(const Task& task, const Graph& graph, std::size_t value,
                                            const TensorSpec& spec) {
  const Graph::Step* only = nullptr;
  std::size_t number = 0;
  std::size_t uses = 0;
  for (std::size_t s = 0; s < graph.steps().size(); ++s) {
    for (const std::size_t o : graph.steps()[s].operands) {
      if (o == value) only = &graph.steps()[number = s], ++uses;
    }
  }
  const double all = count(spec.shape);
  if (uses == 0) return 0;
  const Distribution::Structure structure = spec.distribution.structure;
  if (structure == Distribution::Structure::upper || structure == Distribution::Structure::lower) {
    std::int64_t rows = spec.shape[spec.shape.size() - 2];
    std::int64_t columns = spec.shape.back();
    if (structure == Distribution::Structure::lower) std::swap(rows, columns);
    double kept = 0;  // row i has columns i, i + 1, ...
    for (std::int64_t i = 0; i < std::min(rows, columns); ++i) kept += static_cast<double>(columns - i);
    return all * kept / (static_cast<double>(rows) * static_cast<double>(columns));
  }
  if (uses > 1 || only->operands[0] != value) return all;
  const std::string_view op = only->operation->name;
  const TensorInfo& out = graph.values()[only->result];
  if (op == "narrow") return count(out.shape);
  if (op.starts_with("conv_transpose")) return all;
  std::vector<const TensorInfo*> infos;
  for (const std::size_t o : only->operands) infos.push_back(o == Graph::absent ? nullptr : &graph.values()[o]);
  double needed = all;
  for (const Window& w : windows(op, infos, Arguments(task.ops[number].args), out))
    needed *= static_cast<double>(w.touched()) / static_cast<double>(w.extent);
  return needed;
}

}  // namespace detail

/// The cost of a checked task. For a reference that is no graph (a module, a function) the bytes are all of its
/// operands' and the work is unknown, that is 0.
[[nodiscard]] inline Cost cost_of(const Task& task, const Graph& graph) {
  Cost cost;
  const auto bytes = [&](const TensorSpec& s, std::size_t value) {
    const double elements =
        task.external != nullptr ? detail::count(s.shape) : detail::elements_needed(task, graph, value, s);
    return elements * static_cast<double>(size_of(s.dtype));
  };
  for (std::size_t i = 0; i < task.inputs.size(); ++i) cost.input_bytes += bytes(task.inputs[i], i);
  for (std::size_t i = 0; i < task.parameters.size(); ++i)
    cost.parameter_bytes += bytes(task.parameters[i], task.inputs.size() + i);
  for (const TensorSpec& s : task.outputs)
    cost.output_bytes += detail::count(s.shape) * static_cast<double>(size_of(s.dtype));
  for (std::size_t s = 0; s < graph.steps().size(); ++s) {
    const Graph::Step& step = graph.steps()[s];
    std::vector<const TensorInfo*> infos;
    for (const std::size_t o : step.operands) infos.push_back(o == Graph::absent ? nullptr : &graph.values()[o]);
    cost.work += work_of(step.operation->name, infos, Arguments(task.ops[s].args), graph.values()[step.result]);
  }
  const bool shortcut = std::any_of(task.flags.begin(), task.flags.end(), [](const std::string& flag) {
    return std::find(detail::shortcut_flags.begin(), detail::shortcut_flags.end(), flag) !=
           detail::shortcut_flags.end();
  });
  cost.products_needed = cost.work.matrix_products > 0 && !shortcut && !detail::products_can_merge(graph);
  return cost;
}

/// Checks the task first: Error(bad_input).
[[nodiscard]] inline Cost cost_of(Task task) {
  const Graph graph(task);
  return cost_of(task, graph);
}

/// Times below which no correct kernel can stay, in milliseconds.
struct SpeedOfLight {
  /// Moving the bytes; always holds. What fits into the last cache need not be written back within the time.
  double memory_ms = 0;
  /// Doing the matrix products at the speed of float16 on the matrix units, the fastest way that a tolerance may allow;
  /// 0 where fewer products may do. Convolutions have no such bound: Winograd's and Fourier's forms need fewer.
  double products_ms = 0;

  [[nodiscard]] double ms() const noexcept { return std::max(memory_ms, products_ms); }
};

[[nodiscard]] inline SpeedOfLight speed_of_light(const Cost& cost, const MeasuredPeaks& peaks) {
  const double written = std::max(0.0, cost.output_bytes - peaks.cache_bytes);
  SpeedOfLight bound;
  bound.memory_ms = 1e3 * (cost.input_bytes + cost.parameter_bytes + written) / peaks.bytes_per_s;
  // one level of Strassen's form saves an eighth of the products
  if (cost.products_needed) bound.products_ms = 1e3 * 7.0 / 8.0 * cost.work.matrix_products / peaks.matrix_per_s;
  return bound;
}

}  // namespace kevin::tasks

#endif  // KEVIN_TASKS_COST_HPP
