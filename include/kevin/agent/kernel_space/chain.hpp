#ifndef KEVIN_AGENT_KERNEL_SPACE_CHAIN_HPP
#define KEVIN_AGENT_KERNEL_SPACE_CHAIN_HPP

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kevin/agent/kernel_space/function_code.hpp"
#include "kevin/agent/kernel_space/graph_reader.hpp"

namespace kevin::agent::detail {

/// A run of element-wise ops as one function of vectors: `chain(value, operands...)`, where `value` is what a heavier
/// op computed (absent when the chain stands alone) and the operands are kernel arguments that broadcast to the chain's
/// shape.
class Chain {
 public:
  /// Whether Chain can write `op`.
  [[nodiscard]] static bool knows(const Op& op) { return statement(op, {"a", "b"}, nullptr).has_value(); }

  /// `entry` is the name of the value that the chain starts from; empty for none. An op that Chain does not know is
  /// unsupported.
  Chain(const GraphReader& graph, std::vector<Op> ops, std::string entry, Shape shape)
      : shape_(std::move(shape)), ops_(std::move(ops)), entry_(std::move(entry)) {
    if (!entry_.empty()) names_[entry_] = "value";
    std::size_t count = 0;
    for (const Op& op : ops_) {
      if (op.out_shape != shape_) unsupported(graph.task(), op.op + " changes the shape within a chain");
      std::vector<std::string> in;
      for (const std::string& name : op.in) in.push_back(name_of(graph, name, {}));
      if (argument(op, "parameter") != nullptr) {
        in.push_back(name_of(graph, "param:" + text(op, "parameter"), integers(op, "parameter_viewed_as")));
      }
      std::optional<std::string> s = statement(op, in, &functions_);
      if (!s) unsupported(graph.task(), "no element-wise code for " + op.op);
      const std::string result = "v" + std::to_string(++count);
      statements_.push_back({result, *s});
      names_[op.out] = result;
    }
  }

  [[nodiscard]] bool empty() const noexcept { return ops_.empty(); }
  [[nodiscard]] std::size_t size() const noexcept { return ops_.size(); }
  [[nodiscard]] const Shape& shape() const noexcept { return shape_; }
  /// Kernel arguments, each with the shape that it broadcasts from.
  [[nodiscard]] const std::vector<Operand>& operands() const noexcept { return operands_; }
  [[nodiscard]] const FunctionCode& functions() const noexcept { return functions_; }

  /// The function's definition. In bfloat16 each step is rounded.
  [[nodiscard]] std::string definition(const std::string& precision) const {
    std::string code = "static inline D chain(";
    bool first = true;
    if (!entry_.empty()) {
      code += "D value";
      first = false;
    }
    for (const Operand& o : operands_) {
      code += (first ? "D in_" : ", D in_") + o.argument;
      first = false;
    }
    code += ") {\n";
    for (const auto& [result, expression] : statements_) {
      code +=
          "  const D " + result + " = " + (precision == "bfloat16" ? "wide(" + expression + ")" : expression) + ";\n";
    }
    return code + "  return " + (statements_.empty() ? "value" : statements_.back().first) + ";\n}\n";
  }

  /// A call of it, given an expression of type D for the value (ignored when there is none) and for each operand.
  [[nodiscard]] std::string call(const std::string& value, const std::vector<std::string>& operands) const {
    std::string s = "chain(";
    if (!entry_.empty()) s += value;
    for (std::size_t i = 0; i < operands.size(); ++i) s += (i == 0 && entry_.empty() ? "" : ", ") + operands[i];
    return s + ')';
  }

 private:
  [[nodiscard]] std::string name_of(const GraphReader& graph, const std::string& name, const Shape& viewed_as) {
    if (const auto it = names_.find(name); it != names_.end()) return it->second;
    Operand o = graph.operand(name);
    if (!viewed_as.empty()) o.shape = viewed_as;
    for (const Operand& other : operands_) {
      if (other.argument == o.argument && other.shape != o.shape)
        unsupported(graph.task(), o.argument + " is used in two shapes");
      if (other.argument == o.argument) return "in_" + o.argument;
    }
    operands_.push_back(o);
    return "in_" + o.argument;
  }

  /// The op as an expression over its operands' names; asks `functions` for what it calls.
  [[nodiscard]] static std::optional<std::string> statement(const Op& op, const std::vector<std::string>& in,
                                                            FunctionCode* functions) {
    if (in.empty() || op.in.size() > 2) return std::nullopt;
    const std::string& x = in[0];
    const std::string y = in.size() > 1 ? in[1] : "";
    const auto call = [&](const std::string& f, const std::string& arguments) {
      if (functions != nullptr) functions->need(f);
      return f + "_(" + arguments + ')';
    };
    const auto constant = [](double c) { return "(D{} + " + literal(c) + ')'; };
    const auto between = [&](const std::string& v, double low, double high) {
      return "least(most(" + v + ", " + constant(low) + "), " + constant(high) + ')';
    };
    // exp(v) - 1 without cancellation: 2 t / (1 - t) with t = tanh(v / 2)
    const auto expm1 = [&](const std::string& v) {
      const std::string t = call("tanh", v + " * 0.5f");
      return call("div", "2.0f * " + t + ", 1.0f - " + t);
    };
    const std::string& f = op.op;
    const double value = number(op, "value", 0);
    if (f == "relu") return "most(" + x + ", D{})";
    if (f == "leaky_relu")
      return x + " > 0.0f ? " + x + " : " + x + " * " + literal(number(op, "negative_slope", 0.01));
    if (f == "abs") return x + " < 0.0f ? -" + x + " : " + x;
    if (f == "neg") return '-' + x;
    if (f == "square") return x + " * " + x;
    if (f == "dropout") return x;
    if (f == "exp" || f == "log" || f == "sqrt" || f == "tanh") return call(f, x);
    if (f == "sigmoid") return call("div", constant(1) + ", 1.0f + " + call("exp", '-' + x));
    if (f == "silu") return call("div", x + ", 1.0f + " + call("exp", '-' + x));
    if (f == "softsign") return call("div", x + ", 1.0f + most(" + x + ", -" + x + ')');
    if (f == "gelu") {
      if (text(op, "approximate") == "tanh") {
        // (1 + tanh(u)) / 2 is 1 / (1 + exp(-2 u)), which does not cancel
        return call("div", x + ", 1.0f + " +
                               call("exp", "-1.59576917f * " + x + " * (1.0f + 0.044715f * " + x + " * " + x + ")"));
      }
      return "0.5f * " + x + " * (1.0f + " + call("erf", x + " * 0.707106769f") + ')';
    }
    if (f == "hardsigmoid") return between(x + " * 0.166666672f + 0.5f", 0, 1);
    if (f == "hardswish") return x + " * " + between(x + " * 0.166666672f + 0.5f", 0, 1);
    if (f == "hardtanh") return between(x, number(op, "min_val", -1), number(op, "max_val", 1));
    if (f == "clamp") {
      std::string v = x;
      if (argument(op, "min") != nullptr) v = "most(" + v + ", " + constant(number(op, "min", 0)) + ')';
      if (argument(op, "max") != nullptr) v = "least(" + v + ", " + constant(number(op, "max", 0)) + ')';
      return v;
    }
    if (f == "elu") return x + " > 0.0f ? " + x + " : " + literal(number(op, "alpha", 1)) + " * " + expm1(x);
    if (f == "selu") return "1.05070102f * (" + x + " > 0.0f ? " + x + " : 1.67326319f * " + expm1(x) + ')';
    if (f == "softplus" && number(op, "beta", 1) == 1) {
      return x + " > " + literal(number(op, "threshold", 20)) + " ? " + x + " : " +
             call("log", "1.0f + " + call("exp", x));
    }
    if (f == "mish") {  // x tanh(log(1 + e)), e = exp(x), is x (e e + 2 e) / (e e + 2 e + 2)
      const std::string e = call("exp", "least(" + x + ", " + constant(20) + ')');
      return call("div", x + " * (" + e + " * (" + e + " + 2.0f)), " + e + " * (" + e + " + 2.0f) + 2.0f");
    }
    if (f == "add_scalar") return x + " + " + literal(value);
    if (f == "sub_scalar") return x + " - " + literal(value);
    if (f == "mul_scalar") return x + " * " + literal(value);
    if (f == "div_scalar" && value != 0) return x + " * " + literal(1 / value);
    if (f == "rsub_scalar") return literal(value) + " - " + x;
    if (f == "min_scalar") return "least(" + x + ", " + constant(value) + ')';
    if (f == "max_scalar") return "most(" + x + ", " + constant(value) + ')';
    if (y.empty()) return std::nullopt;
    if (f == "add_parameter" || f == "add_input" || f == "add_tensor" || f == "residual_add") return x + " + " + y;
    if (f == "sub_parameter" || f == "sub_input" || f == "sub_tensor") return x + " - " + y;
    if (f == "mul_parameter" || f == "mul_input" || f == "mul_tensor") return x + " * " + y;
    if (f == "div_parameter" || f == "div_input" || f == "div_tensor") return call("div", x + ", " + y);
    if (f == "min_parameter" || f == "min_tensor") return "least(" + x + ", " + y + ')';
    if (f == "max_parameter" || f == "max_tensor") return "most(" + x + ", " + y + ')';
    return std::nullopt;
  }

  Shape shape_;
  std::vector<Op> ops_;
  std::string entry_;
  std::map<std::string, std::string> names_;  // of values, in the function
  std::vector<std::pair<std::string, std::string>> statements_;
  std::vector<Operand> operands_;
  FunctionCode functions_;
};

}  // namespace kevin::agent::detail

#endif  // KEVIN_AGENT_KERNEL_SPACE_CHAIN_HPP
