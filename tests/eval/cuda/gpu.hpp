#ifndef KEVIN_TESTS_EVAL_CUDA_GPU_HPP
#define KEVIN_TESTS_EVAL_CUDA_GPU_HPP

#include <doctest/doctest.h>

#include <optional>
#include <string>

#include "kevin/core/error.hpp"
#include "kevin/eval/cuda/evaluator.hpp"

/// What the tests of this folder share: one evaluator for each process, where there is a GPU.
namespace gpu_test {

inline kevin::cuda::EvaluatorOptions quick() {
  kevin::cuda::EvaluatorOptions o;
  o.judge.launch_ms = 1000;
  o.judge.timing.max_rounds = 12;
  return o;
}

/// Null where this machine has no GPU, driver, NVRTC or LibTorch with CUDA; says which, in one line.
inline kevin::cuda::Evaluator* evaluator() {
  static std::optional<kevin::cuda::Evaluator> instance;
  static std::string why;
  if (!instance && why.empty()) {
    try {
      instance.emplace(quick());
    } catch (const kevin::Error& e) {
      if (e.code() != kevin::ErrorCode::unsupported) throw;
      why = e.what();
    }
  }
  if (!instance) MESSAGE("skipped: " << why);
  return instance ? &*instance : nullptr;
}

/// ReLU over n elements.
inline kevin::Task relu_task(std::int64_t n) {
  kevin::Task t;
  t.id = "test/relu";
  t.name = "ReLU";
  t.inputs = {{"x", {n}, kevin::DType::float32, {kevin::Distribution::Kind::normal, 0, 1}}};
  t.ops = {{"relu", {}, {"x"}, "y", {n}}};
  t.outputs = {{"y", {n}}};
  return t;
}

inline std::string relu_source(std::int64_t n, const std::string& body = "out[i] = x[i] > 0 ? x[i] : 0;",
                               const std::string& extra = "") {
  return extra + "__global__ void relu(const float* x, float* out, int n) {\n" +
         "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < n) { " + body + " }\n}\n" +
         "__device__ void kevin_plan(const float* x, float* out) {\n  kevin::launch<relu>((" + std::to_string(n) +
         " + 255) / 256, 256)(x, out, " + std::to_string(n) + ");\n}\n";
}

}  // namespace gpu_test

#endif  // KEVIN_TESTS_EVAL_CUDA_GPU_HPP
