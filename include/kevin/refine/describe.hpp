#ifndef KEVIN_REFINE_DESCRIBE_HPP
#define KEVIN_REFINE_DESCRIBE_HPP

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "kevin/refine/signature.hpp"
#include "kevin/refine/task.hpp"

namespace kevin {

namespace detail::description {

/// The shortest text that reads back as the same number: 2, 0.1, 1e-05.
[[nodiscard]] inline std::string number_text(double value) {
  char buffer[32];
  const std::to_chars_result result = std::to_chars(buffer, buffer + sizeof buffer, value);
  return std::string(buffer, result.ptr);
}

[[nodiscard]] inline std::string list_text(const std::vector<std::int64_t>& values) {
  std::string text = "[";
  for (std::size_t i = 0; i < values.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(values[i]);
  return text + ']';
}

/// The argument of this name; null without one. A loop, since map::find would be compiled in every file that includes
/// this.
[[nodiscard]] inline const OpArgument* find_argument(const Op& op, std::string_view name) {
  for (const auto& [key, value] : op.args) {
    if (key == name) return &value;
  }
  return nullptr;
}

/// The same for an argument that is a text; null when it is anything else.
[[nodiscard]] inline const std::string* find_text(const Op& op, std::string_view name) {
  const OpArgument* value = find_argument(op, name);
  return value == nullptr ? nullptr : std::get_if<std::string>(value);
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
    case Distribution::Kind::given:
      text = "always the same values";
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
  static constexpr std::string_view always[] = {"in_features",
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
  for (const std::string_view other : always) {
    if (name == other) return true;
  }
  if (name == "kernel_size" && op.op.starts_with("conv")) return true;
  if (const auto* flag = std::get_if<bool>(&value)) return !*flag && name != "training";
  if (const auto* number = std::get_if<std::int64_t>(&value)) return name == "groups" && *number == 1;
  if (const auto* list = std::get_if<std::vector<std::int64_t>>(&value)) {
    const bool ones = name == "dilation" || (name == "stride" && op.op.starts_with("conv"));
    const bool zeros = name == "padding" || name == "output_padding";
    for (const std::int64_t v : *list) {
      if (!(ones && v == 1) && !(zeros && v == 0)) return false;
    }
    return ones || zeros;
  }
  return false;
}

/// One step as an expression: `t1 * 2`, `linear(x, weight=gemm_weight, bias=gemm_bias)`.
/// Inputs ("x") and parameters ("param:weight") are called what they are called in the kernel's arguments.
[[nodiscard]] inline std::string op_text(const Op& op, const Task& task, const std::vector<KernelArgument>& arguments) {
  const auto name_of = [&](const std::string& key) {
    std::size_t i = 0;  // arguments begin with the inputs, then the parameters
    for (const TensorSpec& t : task.inputs) {
      if (t.name == key) return arguments[i].name;
      ++i;
    }
    for (const TensorSpec& t : task.parameters) {
      if ("param:" + t.name == key) return arguments[i].name;
      ++i;
    }
    return key;
  };
  std::vector<std::string> operands = op.in;
  for (std::string& operand : operands) operand = name_of(operand);
  const auto flag = [&](std::string_view name) {
    const OpArgument* value = find_argument(op, name);
    const bool* set = value == nullptr ? nullptr : std::get_if<bool>(value);
    return set != nullptr && *set;
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
    if (const OpArgument* value = find_argument(op, "value")) right = argument_text(*value);
    if (const std::string* parameter = find_text(op, "parameter")) {
      right = name_of("param:" + *parameter);
      if (const OpArgument* view = find_argument(op, "parameter_viewed_as"))
        right += ".view(" + argument_text(*view) + ')';
    }
    struct Infix {
      std::string_view word;
      std::string_view sign;
    };
    static constexpr Infix infix[] = {
        {"add", " + "}, {"sub", " - "}, {"mul", " * "}, {"div", " / "}, {"residual", " + "}};
    if (!operands.empty() && !right.empty()) {
      for (const Infix& i : infix) {
        if (verb == i.word) return operands[0] + std::string(i.sign) + right;
      }
      if (verb == "rsub") return right + " - " + operands[0];
      if (verb == "min" || verb == "max") return verb + "imum(" + operands[0] + ", " + right + ')';
    }
  }

  std::string text = op.op == "max_reduce" ? "amax(" : op.op == "min_reduce" ? "amin(" : op.op + '(';
  bool first = true;
  const auto add = [&](const std::string& part) {
    if (!first) text += ", ";
    first = false;
    text += part;
  };
  for (const std::string& o : operands) add(o);
  for (const char* key : {"weight", "bias"}) {
    if (const std::string* parameter = find_text(op, key)) add(std::string(key) + '=' + name_of("param:" + *parameter));
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

/// Every line of `lines`, moved in by four blanks; empty ones stay empty.
[[nodiscard]] inline std::string indented(std::string_view lines) {
  std::string text;
  while (!lines.empty()) {
    const std::string_view line = lines.substr(0, lines.find('\n'));
    if (!line.empty()) text += "    ";
    text += line;
    text += '\n';
    lines.remove_prefix(line.size() < lines.size() ? line.size() + 1 : line.size());
  }
  return text;
}

}  // namespace detail::description

/// The reference as short, PyTorch-like pseudo code: what each input, parameter and step is, with shapes, and when a
/// result passes. Names are those of the kernel's arguments (kernel_arguments). For prompts and for people. Where the
/// reference is no graph, its own text stands in place of the steps.
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
  std::size_t introduced = 0;
  std::string list;
  std::string comments;
  const auto introduce = [&](const TensorSpec& t, const std::string& note) {
    const std::string& identifier = arguments[introduced++].name;
    list += (list.empty() ? "" : ", ") + identifier;
    comments += "    # " + identifier + ": " + std::string(to_string(t.dtype)) + ' ' +
                detail::description::list_text(t.shape) + note + '\n';
  };
  for (const TensorSpec& t : task.inputs) introduce(t, ", " + detail::description::distribution_text(t.distribution));
  for (const TensorSpec& t : task.parameters) {
    const bool given = t.distribution.kind == Distribution::Kind::given;
    introduce(t, given ? ", a learned parameter with fixed values" : ", a learned parameter");
  }

  std::string text = "# " + task.name + "\ndef reference(" + list + "):\n" + comments;
  for (const Op& op : task.ops) {
    text += "    " + op.out + " = " + detail::description::op_text(op, task, arguments) + "  # " +
            detail::description::list_text(op.out_shape) + '\n';
  }
  if (task.external != nullptr) {
    text += detail::description::indented(task.external->text());
  } else {
    text += "    return ";
    for (std::size_t i = 0; i < task.outputs.size(); ++i) text += (i == 0 ? "" : ", ") + task.outputs[i].name;
    text += '\n';
  }
  for (std::size_t i = 0; i < task.outputs.size(); ++i) {
    const TensorSpec& t = task.outputs[i];
    const std::string result = task.external == nullptr   ? t.name
                               : task.outputs.size() == 1 ? "what it returns"
                                                          : "result " + std::to_string(i);
    text += "# " + arguments[arguments.size() - task.outputs.size() + i].name + " receives " + result + ": " +
            std::string(to_string(t.dtype)) + ' ' + detail::description::list_text(t.shape) + '\n';
  }
  text += "# correct when every element has |out - expected| <= " +
          detail::description::number_text(task.tolerance.absolute) + " + " +
          detail::description::number_text(task.tolerance.relative) + " * |expected|";
  if (task.tolerance.spread > 0) {
    text += " + " + detail::description::number_text(task.tolerance.spread) + " * (standard deviation of " +
            (task.outputs.size() > 1 ? "that" : "the") + " expected output over all its elements)";
  }
  text += '\n';
  return text;
}

}  // namespace kevin

#endif  // KEVIN_REFINE_DESCRIBE_HPP
