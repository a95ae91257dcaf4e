#ifndef KEVIN_BENCHMARKS_CUDA_KERNELS_HPP
#define KEVIN_BENCHMARKS_CUDA_KERNELS_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "kevin/refine/task.hpp"
#include "kevin/refine/verdict.hpp"

/// Tasks and kernels that the CUDA benchmarks share.
namespace cuda_kernels {

using kevin::Candidate;
using kevin::Task;

inline double quantile(std::vector<double> v, double q) {
  std::sort(v.begin(), v.end());
  return v[static_cast<std::size_t>(q * static_cast<double>(v.size() - 1) + 0.5)];
}

inline Task elementwise(const std::string& op, std::vector<std::string> inputs, kevin::Shape shape) {
  Task t;
  t.id = "benchmark/" + op;
  t.name = op;
  for (const std::string& name : inputs)
    t.inputs.push_back({name, shape, kevin::DType::float32, {kevin::Distribution::Kind::uniform, 0, 1}});
  t.ops = {{op, {}, std::move(inputs), "y", shape}};
  t.outputs = {{"y", shape}};
  return t;
}

/// float4 ReLU; `number` makes sources distinct.
inline Candidate relu(std::int64_t n, int number = 0) {
  return {
      "__global__ void relu(const float4* x, float4* out, long n) {\n"
      "  long i = blockIdx.x * (long)blockDim.x + threadIdx.x;\n"
      "  if (i >= n) return;\n  float4 v = __ldcs(x + i);\n"
      "  v.x = fmaxf(v.x, 0); v.y = fmaxf(v.y, 0); v.z = fmaxf(v.z, 0); v.w = fmaxf(v.w, 0);\n"
      "  __stcs(out + i, v);\n}\n"
      "void kevin_plan(const float* x, float* out) {  // " +
      std::to_string(number) + "\n" + "  const long n = " + std::to_string(n / 4) + ";\n" +
      "  kevin::launch<relu>((n + 255) / 256, 256)((const float4*)x, (float4*)out, n);\n}\n"};
}

/// float4 GELU in its tanh form.
inline Candidate gelu(std::int64_t n) {
  return {
      "__device__ float gelu_of(float v) {\n"
      "  return 0.5f * v * (1 + tanhf(0.7978845608f * (v + 0.044715f * v * v * v)));\n}\n"
      "__global__ void gelu(const float4* x, float4* out, long n) {\n"
      "  long i = blockIdx.x * (long)blockDim.x + threadIdx.x;\n"
      "  if (i >= n) return;\n  float4 v = x[i];\n"
      "  out[i] = float4{gelu_of(v.x), gelu_of(v.y), gelu_of(v.z), gelu_of(v.w)};\n}\n"
      "void kevin_plan(const float* x, float* out) {\n  const long n = " +
      std::to_string(n / 4) +
      ";\n  kevin::launch<gelu>((n + 255) / 256, 256)((const float4*)x, (float4*)out, n);\n}\n"};
}

inline Candidate add(std::int64_t n) {
  return {
      "__global__ void add(const float4* a, const float4* b, float4* out, long n) {\n"
      "  long i = blockIdx.x * (long)blockDim.x + threadIdx.x;\n"
      "  if (i >= n) return;\n  float4 u = a[i], v = b[i];\n"
      "  out[i] = float4{u.x + v.x, u.y + v.y, u.z + v.z, u.w + v.w};\n}\n"
      "void kevin_plan(const float* a, const float* b, float* out) {\n  const long n = " +
      std::to_string(n / 4) +
      ";\n  kevin::launch<add>((n + 255) / 256, 256)((const float4*)a, (const float4*)b, (float4*)out, n);\n}\n"};
}

inline Candidate matmul(int n) {
  return {"constexpr int n = " + std::to_string(n) + R"(, T = 64, K = 16;
__global__ void __launch_bounds__(256) product(const float* a, const float* b, float* c) {
  __shared__ float s[K][T + 4], t[K][T + 4];
  const int row = blockIdx.y * T, column = blockIdx.x * T, ty = threadIdx.x / 16, tx = threadIdx.x % 16;
  float sum[4][4] = {};
  for (int k = 0; k < n; k += K) {
    for (int i = threadIdx.x; i < T * K; i += 256) {
      s[i % K][i / K] = a[(row + i / K) * n + k + i % K];
      t[i / T][i % T] = b[(k + i / T) * n + column + i % T];
    }
    __syncthreads();
    for (int j = 0; j < K; ++j) {
      float u[4], v[4];
      for (int q = 0; q < 4; ++q) u[q] = s[j][ty * 4 + q], v[q] = t[j][tx * 4 + q];
      for (int p = 0; p < 4; ++p)
        for (int q = 0; q < 4; ++q) sum[p][q] += u[p] * v[q];
    }
    __syncthreads();
  }
  for (int p = 0; p < 4; ++p)
    for (int q = 0; q < 4; ++q) c[(row + ty * 4 + p) * n + column + tx * 4 + q] = sum[p][q];
}
void kevin_plan(const float* a, const float* b, float* out) { kevin::launch<product>(dim3(n / T, n / T), 256)(a, b, out); }
)"};
}

struct Row {
  std::string name;
  Task task;
  Candidate candidate;
  unsigned blocks[2];   ///< as its plan launches it, 256 threads each
  bool counted = true;  ///< its last argument is the number of float4
};

inline std::vector<Row> timed_kernels() {
  std::vector<Row> rows;
  for (const int millions : {1, 16, 32, 64, 256}) {
    const std::int64_t n = std::int64_t{millions} << 20;
    const auto blocks = static_cast<unsigned>((n / 4 + 255) / 256);
    rows.push_back(
        {"float4 ReLU, " + std::to_string(millions) + "M", elementwise("relu", {"x"}, {n}), relu(n), {blocks, 1}});
    if (millions == 16 || millions == 256) {
      rows.push_back({"float4 add, " + std::to_string(millions) + "M",
                      elementwise("add_tensor", {"a", "b"}, {n}),
                      add(n),
                      {blocks, 1}});
    }
  }
  for (const int n : {512, 2048}) {
    const auto blocks = static_cast<unsigned>(n / 64);
    rows.push_back({"tiled product, " + std::to_string(n),
                    elementwise("matmul", {"a", "b"}, {n, n}),
                    matmul(n),
                    {blocks, blocks},
                    false});
  }
  return rows;
}

}  // namespace cuda_kernels

#endif  // KEVIN_BENCHMARKS_CUDA_KERNELS_HPP
