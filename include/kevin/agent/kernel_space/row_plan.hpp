#ifndef KEVIN_AGENT_KERNEL_SPACE_ROW_PLAN_HPP
#define KEVIN_AGENT_KERNEL_SPACE_ROW_PLAN_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kevin/agent/kernel_space/function_code.hpp"
#include "kevin/agent/kernel_space/graph_reader.hpp"

namespace kevin::agent::detail {

/// A number found by a sweep over a line of elements: the sum or the greatest of an expression in the element `x`.
struct Statistic {
  std::string name;
  std::string element;  ///< in x, in earlier statistics and in derived numbers
  bool greatest = false;
};

/// One sweep over a line, and what is computed from its statistics afterwards.
struct Sweep {
  std::vector<Statistic> statistics;
  std::vector<std::pair<std::string, std::string>> derived;  ///< name and expression
  std::string rest = "0.0f";                                 ///< an element that changes none of the statistics
  bool keep = false;  ///< the first statistic's elements are stored to the output, where the result finds them as `x`
  bool online =
      false;  ///< the statistics are m, the greatest, and s, the sum of exp(x - m), both kept up to date together
};

/// How a line (a row, or a column of a middle dim) becomes its result.
struct LinePlan {
  std::vector<Sweep> sweeps;
  std::string result;    ///< in x and the numbers found (in these alone when `reduces`)
  bool reduces = false;  ///< one number for each line instead of one for each element
};

/// What the ops at the start of a list say about lines: softmax, normalisations, reductions, and a vector norm that its
/// own input is divided by. Lines are the tensor seen as [outer, length, inner], along the middle.
struct LineOps {
  std::string kind;  ///< "softmax", "log_softmax", "layer_norm", "rms_norm", "norm", "divide_by_norm", "sum", "mean",
                     ///< "max", "min", "logsumexp", "dot"
  std::size_t ops = 1;  ///< number of ops that it takes in
  std::int64_t outer = 1, length = 1, inner = 1;
  double eps = 0;
  double p = 2;                   ///< of the norm: 1 or 2
  std::vector<Operand> operands;  ///< along the line: the weight and bias of a layer norm, the vector of a dot product

  /// The names of the algorithms there are, simplest first.
  [[nodiscard]] std::vector<std::string> algorithms() const {
    if (kind == "softmax") return {"three_pass", "keep", "online"};
    if (kind == "log_softmax" || kind == "logsumexp") return {"two_pass", "online"};
    if (kind == "layer_norm") return {"two_pass", "moments"};
    return {"direct"};
  }
  /// Whether elements are scaled by a number of their line, so that there is a choice between dividing and multiplying.
  [[nodiscard]] bool scales() const { return kind == "layer_norm" || kind == "rms_norm" || kind == "divide_by_norm"; }
  [[nodiscard]] bool reduces() const { return kind != "softmax" && kind != "log_softmax" && !scales(); }

  void ask(FunctionCode& functions) const {
    if (kind == "softmax" || kind == "log_softmax" || kind == "logsumexp") functions.need("exp");
  }

  /// `scale` is "multiply" or "divide".
  [[nodiscard]] LinePlan plan(const std::string& algorithm, const std::string& scale) const {
    LinePlan plan;
    plan.reduces = reduces();
    const std::string per_length = literal(1 / static_cast<double>(length));
    const auto scaled = [&](const std::string& x) { return scale == "divide" ? x + " / norm" : x + " * inverse"; };
    const auto norm = [&](const std::string& square) {
      std::vector<std::pair<std::string, std::string>> d = {{"norm", square}};
      if (scale != "divide") d.emplace_back("inverse", "1.0f / norm");
      return d;
    };
    if (kind == "softmax" || kind == "log_softmax" || kind == "logsumexp") {
      const std::string out_of_range = "-1e30f";
      if (algorithm == "online") {
        plan.sweeps = {{{{"m", "x", true}, {"s", "exp_(x - m)"}}, {}, out_of_range, false, true}};
      } else {
        plan.sweeps = {{{{"m", "x", true}}, {}, out_of_range},
                       {{{"s", "exp_(x - m)"}}, {}, out_of_range, algorithm == "keep"}};
      }
      if (kind == "softmax") {
        plan.sweeps.back().derived = {{"inverse", "1.0f / s"}};
        plan.result = algorithm == "keep" ? "x * inverse" : "exp_(x - m) * inverse";
      } else {
        plan.sweeps.back().derived = {{"shift", "m + logarithm(s)"}};
        plan.result = kind == "log_softmax" ? "x - shift" : "shift";
      }
    } else if (kind == "layer_norm") {
      if (algorithm == "moments") {
        plan.sweeps = {{{{"s", "x"}, {"q", "x * x"}}, {{"mean", "s * " + per_length}}}};
        for (const auto& d : norm("root(q * " + per_length + " - mean * mean + " + literal(eps) + ")"))
          plan.sweeps[0].derived.push_back(d);
      } else {
        plan.sweeps = {{{{"s", "x"}}, {{"mean", "s * " + per_length}}},
                       {{{"q", "(x - mean) * (x - mean)"}},
                        norm("root(q * " + per_length + " + " + literal(eps) + ")"),
                        "float(mean)"}};
      }
      plan.result = scaled("(x - mean)");
      if (!operands.empty()) plan.result += " * in_" + operands[0].argument;
      if (operands.size() > 1) plan.result += " + in_" + operands[1].argument;
    } else if (kind == "rms_norm") {
      plan.sweeps = {{{{"q", "x * x"}}, norm("root(q * " + per_length + " + " + literal(eps) + ")")}};
      plan.result = scaled("x");
    } else if (kind == "norm" || kind == "divide_by_norm") {
      const std::string element = p == 1 ? "most(x, -x)" : "x * x";
      plan.sweeps = {{{{"q", element}},
                      kind == "norm"
                          ? std::vector<std::pair<std::string, std::string>>{{"norm", p == 1 ? "q" : "root(q)"}}
                          : norm(p == 1 ? "q" : "root(q)")}};
      plan.result = kind == "norm" ? "norm" : scaled("x");
    } else if (kind == "dot") {
      plan.sweeps = {{{{"s", "x * in_" + operands[0].argument}}, {}}};
      plan.result = "s";
    } else if (kind == "max" || kind == "min") {
      plan.sweeps = {{{{"m", kind == "max" ? "x" : "-x", true}}, {}, kind == "max" ? "-1e38f" : "1e38f"}};
      plan.result = kind == "max" ? "m" : "-m";
    } else {
      plan.sweeps = {{{{"s", "x"}}, {}}};
      plan.result = kind == "mean" ? "s * " + per_length : "s";
    }
    return plan;
  }
};

/// [outer, length, inner] of `shape` when the reduced dims follow each other.
[[nodiscard]] inline bool split_line(const Shape& shape, const std::vector<bool>& reduced, LineOps& line) {
  int part = 0;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (reduced[d] ? part == 2 : part == 1) ++part;
    if (reduced[d] && part == 0) part = 1;
    if (part > 2 || (reduced[d] && part != 1)) return false;
    (part == 0 ? line.outer : part == 1 ? line.length : line.inner) *= shape[d];
  }
  return part > 0;
}

/// The line ops that start at `ops[first]`, which acts on the value `ops[first].in[0]`; nothing when none do.
[[nodiscard]] inline std::optional<LineOps> read_line_ops(const GraphReader& graph, std::size_t first) {
  const Op& op = graph.ops()[first];
  if (op.in.empty()) return std::nullopt;
  const Shape& shape = graph.shape_of(op.in[0]);
  LineOps line;
  std::vector<bool> reduced;
  if (op.op == "softmax" || op.op == "log_softmax") {
    line.kind = op.op;
    reduced = reduced_dims(op, shape.size());
  } else if (op.op == "sum" || op.op == "mean" || op.op == "logsumexp") {
    line.kind = op.op;
    reduced = reduced_dims(op, shape.size());
  } else if (op.op == "max_reduce" || op.op == "min_reduce") {
    line.kind = op.op.substr(0, 3);
    reduced = reduced_dims(op, shape.size());
  } else if (op.op == "vector_norm") {
    line.kind = "norm";
    line.p = number(op, "p", 2);
    if (line.p != 1 && line.p != 2) return std::nullopt;
    reduced = reduced_dims(op, shape.size());
    const bool whole = element_count(op.out_shape) == 1;
    if (first + 1 < graph.ops().size()) {
      const Op& next = graph.ops()[first + 1];
      if (next.op != "div_tensor" || next.in.size() != 2 || next.in[0] != op.in[0] || next.in[1] != op.out ||
          !(whole || flag(op, "keepdim"))) {
        return std::nullopt;
      }
      line.kind = "divide_by_norm";
      line.ops = 2;
    }
  } else if (op.op == "rms_norm" && argument(op, "weight") == nullptr) {
    line.kind = op.op;
    line.eps = number(op, "eps", 1e-5);
    reduced = reduced_dims(op, shape.size());
  } else if (op.op == "layer_norm") {
    line.kind = op.op;
    line.eps = number(op, "eps", 1e-5);
    const std::size_t tail = integers(op, "normalized_shape").size();
    reduced.assign(shape.size(), false);
    for (std::size_t d = shape.size() - std::min(tail, shape.size()); d < shape.size(); ++d) reduced[d] = true;
    if (argument(op, "bias") != nullptr && argument(op, "weight") == nullptr) return std::nullopt;
    for (const char* name : {"weight", "bias"}) {
      if (argument(op, name) != nullptr) line.operands.push_back(graph.parameter(op, name));
    }
  } else if (op.op == "matmul" && op.in.size() == 2 && graph.shape_of(op.in[1]).size() == 2 &&
             graph.shape_of(op.in[1])[1] == 1 && shape.size() == 2 && !flag(op, "transpose_a") &&
             !flag(op, "transpose_b")) {
    line.kind = "dot";  // a matrix times one column
    line.operands.push_back(graph.operand(op.in[1]));
    reduced = {false, true};
  } else {
    return std::nullopt;
  }
  if (!split_line(shape, reduced, line)) return std::nullopt;
  return line;
}

}  // namespace kevin::agent::detail

#endif  // KEVIN_AGENT_KERNEL_SPACE_ROW_PLAN_HPP
