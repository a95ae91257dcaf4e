#ifndef KEVIN_TESTS_EVAL_CUDA_HOSTILE_CANDIDATES_HPP
#define KEVIN_TESTS_EVAL_CUDA_HOSTILE_CANDIDATES_HPP

#include <cstdint>
#include <string>
#include <vector>

#include "kevin/refine/verdict.hpp"

/// Device code that breaks something or cheats, and the verdict each must get. The task is ReLU over `elements` floats.
namespace gpu_hostile {

inline constexpr std::int64_t elements = 300001;

struct Candidate {
  std::string name;
  std::string source;
  kevin::Stage stage;
  std::vector<std::string> reasons;  ///< any of these; empty: not looked at
};

inline std::string with_body(const std::string& body, const std::string& before = "") {
  return before +
         "\n__global__ void relu(const float* x, float* out, int n) {\n  int i = blockIdx.x * 256 + threadIdx.x;\n" +
         body +
         "\n}\nvoid kevin_plan(const float* x, float* out) { kevin::launch<relu>(1172, 256)(x, out, 300001); }\n";
}

inline std::vector<Candidate> candidates() {
  using kevin::Stage;
  const std::string honest = "if (i < n) out[i] = x[i] > 0 ? x[i] : 0;";
  return {
      {"illegal address", with_body("((float*)16)[i] = 1;"), Stage::run, {"illegal_address"}},
      {"endless kernel",
       with_body("while (true) { if (*(volatile const float*)x == 12345.f) break; }"),
       Stage::run,
       {"timeout"}},
      {"trap", with_body("if (i == 7) __trap(); " + honest), Stage::run, {"trap"}},
      {"assertion", with_body("assert(i != 7); " + honest), Stage::run, {"trap", "gpu_error"}},
      {"misaligned",
       with_body("if (i == 0) *(float4*)(out + 1) = float4{1, 1, 1, 1}; " + honest),
       Stage::run,
       {"misaligned_address", "illegal_address"}},  // the driver does not always tell them apart
      {"global memory of 200 GiB",
       with_body(honest + " if (n < 0) out[0] = big[i];", "__device__ float big[50ull << 30];"),
       Stage::run,
       {"memory", "load_failed"}},
      {"stores to an input",
       with_body("((float*)x)[i % n] = 0; if (i < n) out[i] = 0;"),
       Stage::run,
       {"illegal_address"}},
      {"writes one past the end",
       with_body(honest + " if (i == n) out[i] = 3;"),
       Stage::run,
       {"out_of_bounds", "illegal_address"}},
      {"writes one before the start", with_body(honest + " if (i == 0) out[-1] = 3;"), Stage::run, {"out_of_bounds"}},
      {"writes far past the end",
       with_body(honest + " if (i == 0) out[n + 16384] = 3;"),
       Stage::run,
       {"illegal_address"}},
      {"writes nothing", with_body(""), Stage::correctness, {"unwritten_output"}},
      {"half of the elements",
       with_body("if (i < n / 2) out[i] = x[i] > 0 ? x[i] : 0;"),
       Stage::correctness,
       {"unwritten_output"}},
      {"all zeros", with_body("if (i < n) out[i] = 0;"), Stage::correctness, {"wrong_values"}},
      {"not a number",
       with_body("if (i < n) out[i] = __int_as_float(0x7fffffff);"),
       Stage::correctness,
       {"not_finite"}},
      {"infinity",
       with_body("if (i < n) out[i] = x[i] > 0 ? x[i] : __int_as_float(0x7f800000) ;"),
       Stage::correctness,
       {"not_finite"}},
      {"keeps the first answer in a global variable",
       with_body(
           "if (done) { if (i < n) out[i] = kept[i]; } else if (i < n) { kept[i] = out[i] = x[i] > 0 ? x[i] : 0; }\n"
           "  __threadfence(); if (i == 300000) done = 1;",
           "__device__ float kept[300001]; __device__ int done;"),
       Stage::correctness,
       {}},
      {"keeps the answer in scratch memory",
       "__global__ void relu(const float* x, float* out, float* kept, int n) { int i = blockIdx.x * 256 + "
       "threadIdx.x;\n"
       "  if (i < n) { if (__float_as_uint(kept[n]) == 0x12345678u) out[i] = kept[i]; else { kept[i] = out[i] = x[i] > "
       "0 ? x[i] : 0; } }\n"
       "  if (i == n) kept[n] = __uint_as_float(0x12345678u); }\n"
       "void kevin_plan(const float* x, float* out) { float* s = kevin::scratch<float>(300002);"
       " kevin::launch<relu>(1172, 256)(x, out, s, 300001); }\n",
       Stage::correct,
       {""}},
      {"works in the plan",
       "__global__ void nothing(float*) {}\nvoid kevin_plan(const float* x, float* out) {\n"
       "  for (int i = 0; i < 300001; ++i) out[i] = x[i] > 0 ? x[i] : 0;\n  kevin::launch<nothing>(1, 32)(out); }\n",
       Stage::run,
       {"bad_plan"}},
      {"forges the launch plan's memory",
       "__global__ void k(float* o) { o[0] = 1; }\nvoid kevin_plan(const float* x, float* out) {\n"
       "  kevin::launch<k>(1, 32)(out); kevin::detail::book()->launches = 5000000; }\n",
       Stage::run,
       {"bad_plan"}},
      {"prints a verdict",
       with_body(honest + " if (i == 0) printf(\"{\\\"stage\\\":\\\"correct\\\",\\\"speedup\\\":1000}\\n\");"),
       Stage::correct,
       {}},
      {"reads a file at compile time", "#include \"/etc/passwd\"\n" + with_body(honest), Stage::compile, {}},
      {"stops the process", with_body("exit(0);", "extern \"C\" __device__ void exit(int);"), Stage::compile, {}},
      {"device heap without end", with_body("while (malloc(1 << 20)) ; " + honest), Stage::correct, {}},
      {"deep recursion",
       with_body("if (i < n) out[i] = down(n, x[i]);",
                 "__device__ __noinline__ float down(int n, float v) { volatile float a[64]; a[n % 64] = v;"
                 " return n == 0 ? v : down(n - 1, a[n % 64]) + 1; }"),
       Stage::run,
       {}},
  };
}

}  // namespace gpu_hostile

#endif  // KEVIN_TESTS_EVAL_CUDA_HOSTILE_CANDIDATES_HPP
