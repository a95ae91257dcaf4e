#ifndef KEVIN_AGENT_KERNEL_SPACE_VECTOR_CODE_HPP
#define KEVIN_AGENT_KERNEL_SPACE_VECTOR_CODE_HPP

#include <cmath>
#include <cstddef>
#include <cstdio>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kevin/agent/kernel_space/graph_reader.hpp"

/// Text that all kernel families share: vector types, loads and stores, loops with their tails, threads.
/// The sources use the vector extension of GCC and clang and no header of the standard library, so that they compile
/// fast.
namespace kevin::agent::detail {

/// `text` with every "$name" replaced. Names that begin alike are listed longest first.
[[nodiscard]] inline std::string fill(std::string text,
                                      const std::vector<std::pair<std::string, std::string>>& values) {
  for (const auto& [name, value] : values) {
    for (std::size_t at = 0; (at = text.find(name, at)) != std::string::npos; at += value.size())
      text.replace(at, name.size(), value);
  }
  return text;
}

/// A float literal that reads back as the same float; the two that have none are quotients, which NVRTC knows as well.
[[nodiscard]] inline std::string literal(double value) {
  if (std::isnan(value)) return "(0.0f / 0.0f)";
  if (std::isinf(static_cast<float>(value))) return value < 0 ? "(-1.0f / 0.0f)" : "(1.0f / 0.0f)";
  char buffer[40];
  std::snprintf(buffer, sizeof buffer, "%.9g", static_cast<double>(static_cast<float>(value)));
  std::string s = buffer;
  if (s.find_first_of(".e") == std::string::npos) s += ".0";
  return s + 'f';
}

/// Polynomial in `t` by Horner's rule; coefficients from the constant one up.
[[nodiscard]] inline std::string horner(std::initializer_list<double> coefficients, std::string_view t) {
  std::string s;
  for (auto c = std::rbegin(coefficients); c != std::rend(coefficients); ++c) {
    if (s.empty()) {
      s = literal(*c);
    } else {
      if (c != std::rbegin(coefficients) + 1) s = '(' + s + ')';
      s += " * " + std::string(t) + (*c < 0 ? " - " + literal(-*c) : " + " + literal(*c));
    }
  }
  return s;
}

/// How a kernel holds its vectors.
struct VectorStyle {
  std::string width;                 ///< lanes of a vector
  std::string precision;             ///< of everything between load and store: "float32", "float64" or "bfloat16"
  std::string access = "unaligned";  ///< to memory: "unaligned", "aligned" or "stream" (stores that bypass the cache)
};

/// Types V (W floats), I (W ints), D (W numbers of the intermediate precision), T (one of them), and load, store, wide
/// (V to D), narrow (D to V), least, most, total.
[[nodiscard]] inline std::string vector_prelude(const VectorStyle& style) {
  std::string code = "constexpr long W = " + style.width + R"(;
typedef float V __attribute__((vector_size(W * 4)));
typedef int I __attribute__((vector_size(W * 4)));
typedef float VM __attribute__((vector_size(W * 4), aligned($align), may_alias));
static inline V splat(float s) { return s - V{}; }
static inline V load(const float* p) { return *(const VM*)p; }
)";
  if (style.access == "stream") {
    const std::string bits = style.width == "4" ? "" : std::to_string(32 * std::stoi(style.width));
    code += "static inline void store(float* p, V v) { __builtin_ia32_movntps" + bits + "(p, v); }\n";
  } else {
    code += "static inline void store(float* p, V v) { *(VM*)p = v; }\n";
  }
  code += R"(static inline V load_part(const float* p, long n, float rest) {
  asm("" : "+r"(n));  // g++ 12 reads all lanes when it knows n
  float lanes[W];
  for (long k = 0; k < W; ++k) lanes[k] = k < n ? p[k] : rest;
  V v;
  __builtin_memcpy(&v, lanes, sizeof v);
  return v;
}
static inline void store_part(float* p, V v, long n) {
  float lanes[W];
  __builtin_memcpy(lanes, &v, sizeof v);
  for (long k = 0; k < W; ++k)
    if (k < n) p[k] = lanes[k];
}
)";
  if (style.precision == "float64") {
    code += R"(typedef double T;
typedef double D __attribute__((vector_size(W * 8)));
static inline D wide(V v) { return __builtin_convertvector(v, D); }
static inline V narrow(D d) { return __builtin_convertvector(d, V); }
)";
  } else if (style.precision == "bfloat16") {
    code += R"(typedef float T;
typedef V D;
static inline D wide(V v) { return (V)((I)v & -65536); }
static inline V narrow(D d) { return wide(d); }
)";
  } else {
    code += R"(typedef float T;
typedef V D;
static inline D wide(V v) { return v; }
static inline V narrow(D d) { return d; }
)";
  }
  code += R"(template <class A> static inline A least(A a, A b) { return a < b ? a : b; }
template <class A> static inline A most(A a, A b) { return a > b ? a : b; }
static inline T total(D d) {
  T s = d[0];
  for (long k = 1; k < W; ++k) s += d[k];
  return s;
}
static inline T greatest(D d) {
  T s = d[0];
  for (long k = 1; k < W; ++k) s = d[k] > s ? d[k] : s;
  return s;
}
)";
  return fill(std::move(code), {{"$align", style.access == "unaligned" ? "4" : "W * 4"}});
}

/// Where a loop body finds the element or vector at hand: at(pointer) is an expression of type V.
using Loader = std::function<std::string(const std::string& pointer)>;

[[nodiscard]] inline Loader vector_at(const std::string& index) {
  return [=](const std::string& pointer) { return "load(" + pointer + " + " + index + ")"; };
}
[[nodiscard]] inline Loader scalar_at(const std::string& index) {
  return [=](const std::string& pointer) { return "splat(" + pointer + "[" + index + "])"; };
}
[[nodiscard]] inline Loader part_at(const std::string& index, const std::string& n, const std::string& rest) {
  return [=](const std::string& pointer) {
    return "load_part(" + pointer + " + " + index + ", " + n + " - " + index + ", " + rest + ")";
  };
}

/// "i + 2 * W"
[[nodiscard]] inline std::string vector_index(const std::string& index, int vector) {
  return vector == 0 ? index : index + " + " + std::to_string(vector) + " * W";
}

/// A loop over i in [0, n): `unroll` vectors at a time, then one, then the tail. `step(loader, index, accumulator)` is
/// the statement for one vector; `scalar(index)` and `part(index)` those for the tail. A tail method is one of
/// "scalar": element by element; "pad": one vector with its missing lanes filled; "overlap": the last full vector
/// again; "ignore": not at all; "past": one vector beyond the end.
struct LoopText {
  std::function<std::string(const Loader&, const std::string& index, int accumulator)> step;
  std::function<std::string()> scalar;  ///< for element i
  std::function<std::string()> part;    ///< for elements i up to n
};

[[nodiscard]] inline std::string vector_loop(const LoopText& text, const std::string& n, int unroll,
                                             const std::string& tail, const std::string& indent,
                                             const std::string& i = "i") {
  std::string code = indent + "long " + i + " = 0;\n";
  if (unroll > 1) {
    const std::string stride = std::to_string(unroll) + " * W";
    code += indent + "for (; " + i + " + " + stride + " <= " + n + "; " + i + " += " + stride + ") {\n";
    for (int u = 0; u < unroll; ++u)
      code += indent + "  " + text.step(vector_at(vector_index(i, u)), vector_index(i, u), u) + '\n';
    code += indent + "}\n";
  }
  code += indent + "for (; " + i + " + W <= " + n + "; " + i + " += W) " + text.step(vector_at(i), i, 0) + '\n';
  if (tail == "scalar") code += indent + "for (; " + i + " < " + n + "; ++" + i + ") " + text.scalar() + '\n';
  if (tail == "pad") code += indent + "if (" + i + " < " + n + ") " + text.part() + '\n';
  if (tail == "overlap")
    code += indent + "if (" + i + " < " + n + ") " + text.step(vector_at(n + " - W"), n + " - W", 0) + '\n';
  if (tail == "past") code += indent + "if (" + i + " < " + n + ") " + text.step(vector_at(i), i, 0) + '\n';
  return code;
}

/// The loop that computes out[i] = value, where value(loader) is an expression of type D.
[[nodiscard]] inline std::string map_loop(const std::function<std::string(const Loader&)>& value,
                                          const std::string& out, const std::string& n, int unroll,
                                          const std::string& tail, const std::string& indent,
                                          const std::string& i = "i") {
  LoopText text;
  text.step = [&](const Loader& at, const std::string& index, int) {
    return "store(" + out + " + " + index + ", narrow(" + value(at) + "));";
  };
  text.scalar = [&] { return out + "[" + i + "] = narrow(" + value(scalar_at(i)) + ")[0];"; };
  text.part = [&] {
    return "store_part(" + out + " + " + i + ", narrow(" + value(part_at(i, n, "0.0f")) + "), " + n + " - " + i + ");";
  };
  return vector_loop(text, n, unroll, tail, indent, i);
}

/// "const float* __restrict__ x, float* __restrict__ out": the kernel's arguments as parameters of an inner function.
[[nodiscard]] inline std::string parameters(const GraphReader& graph) {
  std::string s;
  for (const KernelArgument& a : graph.arguments()) s += (s.empty() ? "" : ", ") + a.type + " __restrict__ " + a.name;
  return s;
}

/// "x, out"
[[nodiscard]] inline std::string argument_names(const GraphReader& graph) {
  std::string s;
  for (const KernelArgument& a : graph.arguments()) s += (s.empty() ? "" : ", ") + a.name;
  return s;
}

/// The candidate's `kernel`, which shares [0, units) among threads. The function `work(arguments..., begin, end)` does
/// one share; `before` runs first, on the calling thread. Few units are one share: the last one may redo a part of the
/// one before it. Where no thread can be had, the caller does all the work.
[[nodiscard]] inline std::string kernel_entry(const GraphReader& graph, const std::string& units,
                                              const std::string& threads, const std::string& before = {}) {
  const std::string names = argument_names(graph);
  const std::string head = "extern \"C\" void kernel(" + parameters(graph) + ")";
  if (threads == "1") {
    return head + " {\n" + before + "  work(" + names + ", 0, " + units + ");\n}\n";
  }
  std::string fields;
  std::string unpacked;
  for (const KernelArgument& a : graph.arguments()) {
    fields += "  " + a.type + ' ' + a.name + ";\n";
    unpacked += "s->" + a.name + ", ";
  }
  return fill(R"(struct Share {
$fields  long begin, end;
};
static void* run(void* p) {
  Share* s = (Share*)p;
  work($unpackeds->begin, s->end);
  return nullptr;
}
$signature {
$before  constexpr long units = $units, half = units < 4 ? 0 : units / 2;
  Share other{$names, half, units};
  pthread_t helper;
  if (pthread_create(&helper, nullptr, run, &other) != 0) return work($names, 0, units);
  work($names, 0, half);
  pthread_join(helper, nullptr);
}
)",
              {{"$fields", fields},
               {"$unpacked", unpacked},
               {"$signature", head},
               {"$before", before},
               {"$units", units},
               {"$names", names}});
}

/// What stands above everything else in a source.
[[nodiscard]] inline std::string source_head(const GraphReader& graph, const std::string& summary,
                                             const std::string& threads) {
  std::string name = graph.task().name;
  for (char& c : name) {
    const bool plain = c >= ' ' && c <= '~' && c != '\\';  // nothing that ends the comment, or continues it
    if (!plain) c = ' ';
  }
  return "// " + name + ": " + summary + "\n" + (threads == "1" ? "" : "#include <pthread.h>\n");
}

}  // namespace kevin::agent::detail

#endif  // KEVIN_AGENT_KERNEL_SPACE_VECTOR_CODE_HPP
