#ifndef KEVIN_AGENT_KERNEL_SPACE_PRODUCT_OPS_HPP
#define KEVIN_AGENT_KERNEL_SPACE_PRODUCT_OPS_HPP

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kevin/agent/kernel_space/broadcast.hpp"
#include "kevin/agent/kernel_space/chain.hpp"
#include "kevin/agent/kernel_space/graph_reader.hpp"
#include "kevin/agent/kernel_space/row_plan.hpp"

namespace kevin::agent::detail {

/// A matrix product [m, k] x [k, n] (matmul, linear), then a chain of element-wise ops, then at most one op on rows.
struct ProductOps {
  std::string left, right;        ///< arguments
  bool left_transposed = false;   ///< left lies as [k, m]
  bool right_transposed = false;  ///< right lies as [n, k]
  std::int64_t m = 1, n = 1, k = 1;
  Chain chain;     ///< of `value`, the sum; may be empty
  Broadcast rows;  ///< of the chain's operands over rows of n
  std::optional<LineOps> line;

  [[nodiscard]] FunctionCode functions() const {
    FunctionCode f = chain.functions();
    if (line) line->ask(f);
    return f;
  }
};

/// Nothing when the graph is not of this form.
[[nodiscard]] inline std::optional<ProductOps> read_product(const GraphReader& graph) {
  const std::vector<Op>& ops = graph.ops();
  const Op& op = ops[0];
  std::string left, right;
  bool left_transposed = false;
  bool right_transposed = false;
  std::int64_t m = 1, n = 1, k = 1;
  std::vector<Op> chain;
  if (op.op == "linear") {
    const Operand weight = graph.parameter(op, "weight");
    left = graph.operand(op.in[0]).argument;
    right = weight.argument;
    n = weight.shape[0];
    k = weight.shape[1];
    m = element_count(op.out_shape) / n;
    right_transposed = true;
    if (argument(op, "bias") != nullptr) {
      chain.push_back({"add_parameter", {{"parameter", text(op, "bias")}}, {op.out}, op.out + "+bias", op.out_shape});
    }
  } else if (op.op == "matmul" && op.in.size() == 2) {
    const Operand a = graph.operand(op.in[0]);
    const Operand b = graph.operand(op.in[1]);
    if (a.shape.size() != 2 || b.shape.size() != 2) return std::nullopt;
    left = a.argument;
    right = b.argument;
    left_transposed = flag(op, "transpose_a");
    right_transposed = flag(op, "transpose_b");
    m = op.out_shape[0];
    n = op.out_shape[1];
    k = a.shape[left_transposed ? 0 : 1];
  } else {
    return std::nullopt;
  }
  const bool biased = !chain.empty();
  std::size_t next = 1;
  for (; next < ops.size() && Chain::knows(ops[next]) && ops[next].out_shape == op.out_shape; ++next) {
    Op copy = ops[next];
    if (biased) {  // what later ops know by the name of the product is the sum
      for (std::string& in : copy.in) in = in == op.out ? op.out + "+bias" : in;
    }
    chain.push_back(copy);
  }
  std::optional<LineOps> line;
  if (next < ops.size()) {
    line = read_line_ops(graph, next);
    const bool last = line && next + line->ops == ops.size();
    if (!last || line->inner != 1 || line->length != n || line->reduces() || ops[next].in[0] != ops[next - 1].out)
      return std::nullopt;
  }
  Chain fused(graph, std::move(chain), op.out, op.out_shape);
  Broadcast rows(op.out_shape, fused.operands(), 1);
  if (rows.inner_dims() != 1) return std::nullopt;
  return ProductOps{left, right, left_transposed, right_transposed, m, n, k, std::move(fused), std::move(rows), line};
}

}  // namespace kevin::agent::detail

#endif  // KEVIN_AGENT_KERNEL_SPACE_PRODUCT_OPS_HPP
