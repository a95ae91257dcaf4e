#ifndef KEVIN_REFINE_DESCRIBE_HPP
#define KEVIN_REFINE_DESCRIBE_HPP

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "kevin/refine/signature.hpp"
#include "kevin/refine/task.hpp"

namespace kevin {

namespace detail::description {

/// The shortest text that reads back as the same number: 2, 0.1, 1e-05.
[[nodiscard]] inline std::string number_text(double value) {
  std::array<char, 32> buffer{};
  const auto result = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  return {buffer.data(), result.ptr};
}

template <class T>
[[nodiscard]] std::string list_text(const std::vector<T>& values) {
  std::string text = "[";
  for (std::size_t i = 0; i < values.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(values[i]);
  return text + ']';
}

[[nodiscard]] inline std::string argument_text(const OpArgument& value) {
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "True" : "False";
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return std::to_string(*integer);
  if (const auto* number = std::get_if<double>(&value)) return number_text(*number);
  if (const auto* text = std::get_if<std::string>(&value)) return '"' + *text + '"';
  if (const auto* list = std::get_if<std::vector<std::int64_t>>(&value)) return list_text(*list);
  return {};
}

[[nodiscard]] inline std::string distribution_text(const Distribution& d) {
  std::string text;
  switch (d.kind) {
    case Distribution::Kind::uniform:
      text = "uniform in [" + number_text(d.a) + ", " + number_text(d.b) + ")";
      break;
    case Distribution::Kind::normal:
      text = "normal, mean " + number_text(d.a) + ", std " + number_text(d.b);
      break;
    case Distribution::Kind::constant:
      text = "all " + number_text(d.a);
      break;
    case Distribution::Kind::integer:
      text = "integers in [" + number_text(d.a) + ", " + number_text(d.b) + ")";
      break;
    case Distribution::Kind::sign:
      text = "-1 or +1";
      break;
  }
  if (d.random_scale) text += ", times one number uniform in [0, 1)";
  switch (d.structure) {
    case Distribution::Structure::none:
      break;
    case Distribution::Structure::symmetric:
      text += ", made symmetric";
      break;
    case Distribution::Structure::upper:
      text += ", upper triangle";
      break;
    case Distribution::Structure::lower:
      text += ", lower triangle";
      break;
    case Distribution::Structure::softmax:
      text += ", softmax over the last dim";
      break;
  }
  return text;
}

/// An argument that says nothing to a reader: sizes that the shapes show, and defaults.
[[nodiscard]] inline bool is_noise(const Op& op, const std::string& name, const OpArgument& value) {
  static constexpr std::array<std::string_view, 20> always = {"in_features",
                                                              "out_features",
                                                              "in_channels",
                                                              "out_channels",
                                                              "num_features",
                                                              "num_channels",
                                                              "m",
                                                              "k",
                                                              "n",
                                                              "batch",
                                                              "head_dim",
                                                              "spatial_dims",
                                                              "affine",
                                                              "momentum",
                                                              "composed",
                                                              "parameter_shape",
                                                              "use_input_stats",
                                                              "return_indices",
                                                              "parameter",
                                                              "track_running_stats"};
  if (std::find(always.begin(), always.end(), name) != always.end()) return true;
  if (name == "kernel_size" && op.op.starts_with("conv")) return true;
  if (const auto* flag = std::get_if<bool>(&value)) return !*flag && name != "training";
  if (const auto* number = std::get_if<std::int64_t>(&value)) return name == "groups" && *number == 1;
  if (const auto* list = std::get_if<std::vector<std::int64_t>>(&value)) {
    const bool ones = name == "dilation" || (name == "stride" && op.op.starts_with("conv"));
    const bool zeros = name == "padding" || name == "output_padding";
    return (ones && std::all_of(list->begin(), list->end(), [](std::int64_t v) { return v == 1; })) ||
           (zeros && std::all_of(list->begin(), list->end(), [](std::int64_t v) { return v == 0; }));
  }
  return false;
}

/// What an input ("x") or a parameter ("param:weight") is called in the text.
struct Name {
  std::string key;
  std::string identifier;
};

/// One step as an expression: `t1 * 2`, `linear(x, weight=gemm_weight, bias=gemm_bias)`.
/// `names` maps inputs to their identifiers, and "param:NAME" to those of the parameters.
[[nodiscard]] inline std::string op_text(const Op& op, const std::vector<Name>& names) {
  const auto name_of = [&](const std::string& key) {
    for (const Name& n : names) {
      if (n.key == key) return n.identifier;
    }
    return key;
  };
  std::vector<std::string> operands;
  for (const std::string& in : op.in) operands.push_back(name_of(in));
  const auto flag = [&](const char* name) {
    const auto it = op.args.find(name);
    return it != op.args.end() && std::holds_alternative<bool>(it->second) && std::get<bool>(it->second);
  };
  if (op.op == "matmul" && operands.size() == 2) {
    if (flag("transpose_a")) operands[0] += ".transpose(-2, -1)";
    if (flag("transpose_b")) operands[1] += ".transpose(-2, -1)";
    return "matmul(" + operands[0] + ", " + operands[1] + ')';
  }

  // arithmetic with a number, a parameter or another value
  const std::size_t cut = op.op.find('_');
  const std::string verb = op.op.substr(0, cut);
  const std::string kind = cut == std::string::npos ? "" : op.op.substr(cut + 1);
  if (kind == "scalar" || kind == "parameter" || kind == "input" || kind == "tensor" || op.op == "residual_add") {
    std::string right = operands.size() > 1 ? operands[1] : "";
    if (const auto it = op.args.find("value"); it != op.args.end()) right = argument_text(it->second);
    if (const auto it = op.args.find("parameter");
        it != op.args.end() && std::holds_alternative<std::string>(it->second)) {
      right = name_of("param:" + std::get<std::string>(it->second));
      if (const auto view = op.args.find("parameter_viewed_as"); view != op.args.end())
        right += ".view(" + argument_text(view->second) + ')';
    }
    static constexpr std::array<std::pair<std::string_view, std::string_view>, 5> infix = {
        {{"add", " + "}, {"sub", " - "}, {"mul", " * "}, {"div", " / "}, {"residual", " + "}}};
    if (!operands.empty() && !right.empty()) {
      for (const auto& [word, sign] : infix) {
        if (verb == word) return operands[0] + std::string(sign) + right;
      }
      if (verb == "rsub") return right + " - " + operands[0];
      if (verb == "min" || verb == "max") return verb + "imum(" + operands[0] + ", " + right + ')';
    }
  }

  std::string text = op.op == "max_reduce" ? "amax(" : op.op == "min_reduce" ? "amin(" : op.op + '(';
  std::string separator;
  const auto add = [&](const std::string& part) { text += std::exchange(separator, ", ") + part; };
  for (const std::string& o : operands) add(o);
  for (const char* key : {"weight", "bias"}) {
    const auto it = op.args.find(key);
    if (it == op.args.end() || !std::holds_alternative<std::string>(it->second)) continue;
    add(std::string(key) + '=' + name_of("param:" + std::get<std::string>(it->second)));
  }
  for (const bool minimum : {true, false}) {  // a minimum before its maximum, the rest by name
    for (const auto& [name, value] : op.args) {
      if (name.starts_with("min") != minimum || name == "weight" || name == "bias" || is_noise(op, name, value))
        continue;
      add(name + '=' + argument_text(value));
    }
  }
  return text + ')';
}

}  // namespace detail::description

/// The reference as short, PyTorch-like pseudo code: what each input, parameter and step is, with shapes, and when a
/// result passes. Names are those of the kernel's arguments (kernel_arguments). For prompts and for people.
///
///     # Gemm_Multiply_LeakyReLU
///     def reference(x, gemm_weight, gemm_bias):
///         # x: float32 [509, 32], normal, mean 0, std 1
///         ...
///         t1 = linear(x, weight=gemm_weight, bias=gemm_bias)  # [509, 257]
///         t2 = t1 * 2  # [509, 257]
///         t3 = leaky_relu(t2, negative_slope=0.1)  # [509, 257]
///         return t3
[[nodiscard]] inline std::string describe(const Task& task) {
  const std::vector<KernelArgument> arguments = kernel_arguments(task);
  std::vector<detail::description::Name> names;
  std::string list;
  std::string comments;
  const auto introduce = [&](const TensorSpec& t, const std::string& key, const std::string& note) {
    const std::string& identifier = arguments[names.size()].name;
    names.push_back({key, identifier});
    list += (list.empty() ? "" : ", ") + identifier;
    comments += "    # " + identifier + ": " + std::string(to_string(t.dtype)) + ' ' +
                detail::description::list_text(t.shape) + note + '\n';
  };
  for (const TensorSpec& t : task.inputs)
    introduce(t, t.name, ", " + detail::description::distribution_text(t.distribution));
  for (const TensorSpec& t : task.parameters) introduce(t, "param:" + t.name, ", a learned parameter");

  std::string text = "# " + task.name + "\ndef reference(" + list + "):\n" + comments;
  for (const Op& op : task.ops) {
    text += "    " + op.out + " = " + detail::description::op_text(op, names) + "  # " +
            detail::description::list_text(op.out_shape) + '\n';
  }
  text += "    return ";
  for (std::size_t i = 0; i < task.outputs.size(); ++i) text += (i == 0 ? "" : ", ") + task.outputs[i].name;
  text += '\n';
  for (std::size_t i = 0; i < task.outputs.size(); ++i) {
    const TensorSpec& t = task.outputs[i];
    text += "# " + arguments[arguments.size() - task.outputs.size() + i].name + " receives " + t.name + ": " +
            std::string(to_string(t.dtype)) + ' ' + detail::description::list_text(t.shape) + '\n';
  }
  text += "# correct when every element has |out - expected| <= " +
          detail::description::number_text(task.tolerance.absolute) + " + " +
          detail::description::number_text(task.tolerance.relative) + " * |expected|\n";
  return text;
}

}  // namespace kevin

#endif  // KEVIN_REFINE_DESCRIBE_HPP
