#ifndef KEVIN_AGENT_KERNEL_SPACE_CUDA_DEVICE_CODE_HPP
#define KEVIN_AGENT_KERNEL_SPACE_CUDA_DEVICE_CODE_HPP

#include <cstdint>
#include <string>
#include <vector>

#include "kevin/agent/kernel_space/graph_reader.hpp"
#include "kevin/agent/kernel_space/space.hpp"
#include "kevin/agent/kernel_space/vector_code.hpp"

/// The kernel families in CUDA C++ (docs/cuda.md: kernels, and a kevin_plan that launches them). What a chain of ops or
/// a line of elements computes is written by the parts shared with the cpu families, over a D that is one number here.
namespace kevin::agent::detail::cuda {

/// Multiprocessors of the GPUs that sources are written for (H100, H200). Others run them as well.
inline constexpr int multiprocessors = 132;
/// Threads that one multiprocessor holds.
inline constexpr int resident_threads = 2048;

/// Types V (a float), D and T (a number of the intermediate precision), and splat, wide (float to D), narrow, least,
/// most.
[[nodiscard]] inline std::string number_prelude(const std::string& precision) {
  std::string code = "typedef float V;\n";
  if (precision == "float64") {
    code +=
        "typedef double T;\ntypedef T D;\nstatic inline D wide(float v) { return v; }\n"
        "static inline float narrow(D d) { return (float)d; }\n";
  } else if (precision == "bfloat16") {
    code +=
        "typedef float T;\ntypedef T D;\n"
        "static inline D wide(float v) { return __uint_as_float(__float_as_uint(v) & 0xffff0000u); }\n"
        "static inline float narrow(D d) { return wide(d); }\n";
  } else {
    code +=
        "typedef float T;\ntypedef T D;\nstatic inline D wide(float v) { return v; }\n"
        "static inline float narrow(D d) { return d; }\n";
  }
  return code +
         "static inline V splat(float s) { return s; }\n"
         "template <class A> static inline A least(A a, A b) { return a < b ? a : b; }\n"
         "template <class A> static inline A most(A a, A b) { return a > b ? a : b; }\n";
}

/// Vector (W floats that are read or written at once, at an address that is a multiple of their size) and `read` (one
/// float), `load`, `store`. `access`: "plain", "readonly" (the cache for what no kernel writes) or "stream" (evicted
/// first). There is no vector of 8: a source with one does not compile.
[[nodiscard]] inline std::string vector_prelude(const std::string& width, const std::string& access) {
  const std::string from = access == "readonly" ? "__ldg" : access == "stream" ? "__ldcs" : "*";
  return fill(R"(constexpr int W = $width;
typedef float$suffix Packed;
union Vector {
  Packed packed;
  float at[W];
};
static inline float read(const float* p) { return $one(p); }
static inline Vector load(const float* p) {
  Vector v;
  v.packed = $many((const Packed*)p);
  return v;
}
static inline void store(float* p, Vector v) { $store; }
)",
              {{"$width", width},
               {"$suffix", width == "1" ? "" : width},
               {"$one", access == "readonly" ? "__ldg" : "*"},
               {"$many", from},
               {"$store", access == "stream" ? "__stcs((Packed*)p, v.packed)" : "*(Packed*)p = v.packed"}});
}

/// "__global__ void __launch_bounds__(256) NAME": no bound where there can be no such block.
[[nodiscard]] inline std::string kernel_head(const std::string& name, int threads) {
  return "__global__ void " + (threads > 1024 ? "" : "__launch_bounds__(" + std::to_string(threads) + ") ") + name;
}

/// The candidate's kevin_plan around `body`.
[[nodiscard]] inline std::string plan(const GraphReader& graph, const std::string& body) {
  std::string list;
  for (const KernelArgument& a : graph.arguments()) list += (list.empty() ? "" : ", ") + a.type + ' ' + a.name;
  return "void kevin_plan(" + list + ") {\n" + body + "}\n";
}

/// "  kevin::launch<NAME>(grid, threads[, shared])(arguments);"
[[nodiscard]] inline std::string launch(const std::string& name, const std::string& grid, int threads,
                                        const std::string& arguments, std::int64_t shared = 0) {
  return "  kevin::launch<" + name + ">(" + grid + ", " + std::to_string(threads) +
         (shared > 0 ? ", " + std::to_string(shared) : "") + ")(" + arguments + ");\n";
}

[[nodiscard]] constexpr std::int64_t divide_up(std::int64_t a, std::int64_t b) noexcept { return (a + b - 1) / b; }

/// The numbers of threads of a block: 2048 cannot be launched.
[[nodiscard]] inline Knob threads_knob() { return {"threads", {"256", "128", "64", "32", "512", "1024", "2048"}}; }
[[nodiscard]] inline Knob width_knob() { return {"width", {"1", "2", "4", "8"}}; }
[[nodiscard]] inline Knob access_knob() { return {"access", {"plain", "readonly", "stream"}}; }
[[nodiscard]] inline Knob precision_knob() { return {"precision", {"float32", "float64", "bfloat16"}}; }
[[nodiscard]] inline Knob math_knob() { return {"math", {"libm", "fast", "coarse"}}; }

}  // namespace kevin::agent::detail::cuda

#endif  // KEVIN_AGENT_KERNEL_SPACE_CUDA_DEVICE_CODE_HPP
