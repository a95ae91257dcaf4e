#ifndef KEVIN_AGENT_KERNEL_SPACE_HPP
#define KEVIN_AGENT_KERNEL_SPACE_HPP

#include <optional>
#include <string>

#include "kevin/agent/kernel_space/columns.hpp"
#include "kevin/agent/kernel_space/cuda/elementwise.hpp"
#include "kevin/agent/kernel_space/cuda/lines.hpp"
#include "kevin/agent/kernel_space/cuda/product.hpp"
#include "kevin/agent/kernel_space/elementwise.hpp"
#include "kevin/agent/kernel_space/product.hpp"
#include "kevin/agent/kernel_space/rows.hpp"
#include "kevin/agent/kernel_space/space.hpp"

namespace kevin::agent {

/// The kernels that a structured agent can write for `task`, in C++ or CUDA C++. Error(unsupported) when no family fits
/// its graph.
[[nodiscard]] inline KernelSpace kernel_space(const Task& task, Backend backend = Backend::cpu) {
  const bool cuda = backend == Backend::cuda;
  if (detail::is_elementwise(task))
    return cuda ? detail::cuda::Elementwise(task).space() : detail::Elementwise(task).space();
  const detail::GraphReader graph(task);
  if (const std::optional<detail::LineOps> line = detail::read_line_ops(graph, 0);
      line && line->ops == task.ops.size()) {
    if (cuda && (line->inner == 1 || line->operands.empty())) return detail::cuda::Lines(task, *line).space();
    if (line->inner == 1) return detail::Rows(task, *line).space();
    if (line->operands.empty()) return detail::Columns(task, *line).space();
  }
  if (cuda) {
    if (const std::optional<detail::cuda::Product> product = detail::cuda::Product::read(task)) return product->space();
  } else if (const std::optional<detail::Product> product = detail::Product::read(task)) {
    return product->space();
  }
  std::string ops;
  for (const Op& op : task.ops) ops += (ops.empty() ? "" : ", ") + op.op;
  detail::unsupported(task, "no family (elementwise, rows, columns, product) writes its ops: " + ops);
}

}  // namespace kevin::agent

#endif  // KEVIN_AGENT_KERNEL_SPACE_HPP
