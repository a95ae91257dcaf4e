#ifndef KEVIN_REFINE_SIGNATURE_HPP
#define KEVIN_REFINE_SIGNATURE_HPP

#include <string>
#include <string_view>
#include <vector>

#include "kevin/refine/task.hpp"

namespace kevin {

/// What a candidate is written for.
enum class Backend {
  cpu,   ///< C++: one function that computes
  cuda,  ///< CUDA C++ device code: kernels, and a function that says how they are launched
};

/// One pointer argument of a candidate's function.
struct KernelArgument {
  std::string type;  ///< e.g. "const float*"
  std::string name;  ///< a C++ identifier
  Shape shape;
};

namespace detail {
[[nodiscard]] constexpr std::string_view cpp_type(DType t, Backend backend = Backend::cpu) noexcept {
  if (backend == Backend::cuda && t == DType::float16) return "__half";
  if (backend == Backend::cuda && t == DType::bfloat16) return "__nv_bfloat16";
  switch (t) {
    case DType::float32:
      return "float";
    case DType::float64:
      return "double";
    case DType::float16:
    case DType::bfloat16:
      return "unsigned short";  // the raw 16 bits
    case DType::int32:
      return "int";
    case DType::int64:
      return "long long";
    case DType::boolean:
      return "bool";
  }
  return "float";
}

/// Whether `id` cannot name an argument because C++20 (or a common extension) has it for itself.
[[nodiscard]] inline bool is_cpp_keyword(std::string_view id) {
  for (const std::string_view word : {"alignas",     "alignof",      "and",       "and_eq",
                                      "asm",         "auto",         "bitand",    "bitor",
                                      "bool",        "break",        "case",      "catch",
                                      "char",        "char16_t",     "char32_t",  "char8_t",
                                      "class",       "co_await",     "co_return", "co_yield",
                                      "compl",       "concept",      "const",     "const_cast",
                                      "consteval",   "constexpr",    "constinit", "continue",
                                      "decltype",    "default",      "delete",    "do",
                                      "double",      "dynamic_cast", "else",      "enum",
                                      "explicit",    "export",       "extern",    "false",
                                      "float",       "for",          "friend",    "goto",
                                      "if",          "inline",       "int",       "linux",
                                      "long",        "mutable",      "namespace", "new",
                                      "noexcept",    "not",          "not_eq",    "nullptr",
                                      "operator",    "or",           "or_eq",     "private",
                                      "protected",   "public",       "register",  "reinterpret_cast",
                                      "requires",    "restrict",     "return",    "short",
                                      "signed",      "sizeof",       "static",    "static_assert",
                                      "static_cast", "struct",       "switch",    "template",
                                      "this",        "thread_local", "throw",     "true",
                                      "try",         "typedef",      "typeid",    "typename",
                                      "typeof",      "union",        "unix",      "unsigned",
                                      "using",       "virtual",      "void",      "volatile",
                                      "wchar_t",     "while",        "xor",       "xor_eq",
                                      "NULL",        "assert"}) {
    if (word == id) return true;
  }
  return false;
}

/// `name` with everything but letters, digits and '_' replaced, made unique among `others` and the
/// kernel's own name; no keyword.
[[nodiscard]] inline std::string cpp_identifier(std::string_view name, const std::vector<KernelArgument>& others) {
  std::string id;
  for (char c : name) {
    const bool ok = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    id += ok ? c : '_';
  }
  if (id.empty() || (id[0] >= '0' && id[0] <= '9')) id.insert(0, "p_");
  const auto taken = [&] {
    for (const KernelArgument& other : others) {
      if (other.name == id) return true;
    }
    return id == "kernel" || id == "kevin" || is_cpp_keyword(id);
  };
  while (taken()) id += '_';
  return id;
}
}  // namespace detail

/// The arguments of a candidate's function, in order: inputs, parameters, outputs. A single output is called `out`,
/// several are `out0`, `out1`, ...
[[nodiscard]] inline std::vector<KernelArgument> kernel_arguments(const Task& task, Backend backend = Backend::cpu) {
  std::vector<KernelArgument> arguments;
  const auto add = [&](const TensorSpec& t, std::string_view name, std::string_view prefix) {
    arguments.push_back({std::string(prefix) + std::string(detail::cpp_type(t.dtype, backend)) + "*",
                         detail::cpp_identifier(name, arguments), t.shape});
  };
  for (const TensorSpec& t : task.inputs) add(t, t.name, "const ");
  for (const TensorSpec& t : task.parameters) add(t, t.name, "const ");
  for (std::size_t i = 0; i < task.outputs.size(); ++i) {
    add(task.outputs[i], task.outputs.size() == 1 ? "out" : "out" + std::to_string(i), "");
  }
  return arguments;
}

/// The declaration that a candidate defines. cpu: `extern "C" void kernel(const float* x, float* out)`; cuda:
/// `__device__ void kevin_plan(const float* x, float* out)`, which launches the kernels.
[[nodiscard]] inline std::string kernel_signature(const Task& task, Backend backend = Backend::cpu) {
  std::string text = backend == Backend::cpu ? "extern \"C\" void kernel(" : "__device__ void kevin_plan(";
  bool first = true;
  for (const KernelArgument& a : kernel_arguments(task, backend)) {
    if (!first) text += ", ";
    first = false;
    text += a.type + ' ' + a.name;
  }
  return text + ')';
}

}  // namespace kevin

#endif  // KEVIN_REFINE_SIGNATURE_HPP
