// Measures what a GPU can do at most, for the speed of light of a task (kevin/tasks/cost.hpp): bytes read from memory,
// multiply-adds of float32 and, on the matrix units, of float16, and exponentials. Each figure is the best of 20 runs
// of a kernel that does nothing else. Prints the JSON that `tasks show --peaks` reads.
//
//   cuda_peaks [--compile-only] >h200.json      --compile-only: compiles the kernels for compute capability 9.0, no GPU
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <exception>
#include <limits>
#include <string>
#include <vector>

#include "kevin/core/error.hpp"
#include "kevin/eval/cuda/compiler.hpp"
#include "kevin/eval/cuda/device_memory.hpp"
#include "kevin/eval/cuda/driver.hpp"
#include "kevin/tasks/peaks_json.hpp"

namespace {

namespace cuda = kevin::cuda;

constexpr unsigned threads = 256;         ///< in a block of all kernels but peak_matrix
constexpr unsigned matrix_threads = 128;  ///< one warp group
constexpr unsigned blocks_per_processor = 8;
constexpr int chains = 8;  ///< independent chains in a thread, so that no result is waited for

/// Sums that come out as no such value are never written, but no compiler knows.
constexpr const char* plain_source = R"cuda(
extern "C" __global__ void peak_read(const float4* x, float* out, long n) {
  float4 s{0, 0, 0, 0};
  const long step = (long)gridDim.x * blockDim.x;
  long i = (long)blockIdx.x * blockDim.x + threadIdx.x;
  for (; i + 3 * step < n; i += 4 * step) {
    const float4 a = __ldcs(x + i), b = __ldcs(x + i + step), c = __ldcs(x + i + 2 * step), d = __ldcs(x + i + 3 * step);
    s.x += a.x + b.x + c.x + d.x;
    s.y += a.y + b.y + c.y + d.y;
    s.z += a.z + b.z + c.z + d.z;
    s.w += a.w + b.w + c.w + d.w;
  }
  if (s.x + s.y + s.z + s.w == 1.2345f) *out = s.x;
}
extern "C" __global__ void peak_float32(float* out, int n, float b, float c) {
  float a[8];
  for (int k = 0; k < 8; ++k) a[k] = threadIdx.x + k;
  for (int i = 0; i < n; ++i) {
#pragma unroll
    for (int j = 0; j < 16; ++j)
#pragma unroll
      for (int k = 0; k < 8; ++k) a[k] = fmaf(a[k], b, c);
  }
  float s = 0;
  for (int k = 0; k < 8; ++k) s += a[k];
  if (s == 1.2345f) *out = s;
}
extern "C" __global__ void peak_exponential(float* out, int n) {
  float a[8];
  for (int k = 0; k < 8; ++k) a[k] = -0.001f * (threadIdx.x + k);
  for (int i = 0; i < n; ++i) {
#pragma unroll
    for (int j = 0; j < 16; ++j)
#pragma unroll
      for (int k = 0; k < 8; ++k) asm volatile("ex2.approx.ftz.f32 %0, %0;" : "+f"(a[k]));
  }
  float s = 0;
  for (int k = 0; k < 8; ++k) s += a[k];
  if (s == 1.2345f) *out = s;
}
)cuda";

/// Hopper's matrix units take their operands from shared memory: 64 x 16 times 16 x 256 of float16 into float32, again
/// and again. All operands are 0, which draws the least power and so gives the highest clock.
std::string hopper_matrix_source() {
  std::string sums, bound;
  for (int k = 0; k < 128; ++k) {
    sums += (k == 0 ? "%" : ", %") + std::to_string(k);
    bound += std::string(k == 0 ? "" : ", ") + "\"+f\"(d[" + std::to_string(k) + "])";
  }
  return R"cuda(
extern "C" __global__ void __launch_bounds__(128) peak_matrix(float* out, int n) {
  __shared__ __align__(1024) unsigned short a[64 * 16];
  __shared__ __align__(1024) unsigned short b[256 * 16];
  for (int i = threadIdx.x; i < 64 * 16; i += blockDim.x) a[i] = 0;
  for (int i = threadIdx.x; i < 256 * 16; i += blockDim.x) b[i] = 0;
  __syncthreads();
  asm volatile("fence.proxy.async;" ::: "memory");
  const auto descriptor = [](const void* p) {
    const unsigned long long at = __cvta_generic_to_shared(p);
    return (at >> 4 & 0x3fffull) | 8ull << 16 | 16ull << 32;  // no swizzle; 128 and 256 bytes between cores
  };
  const unsigned long long da = descriptor(a), db = descriptor(b);
  float d[128];
  for (int k = 0; k < 128; ++k) d[k] = 0;
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  for (int i = 0; i < n; ++i) {
#pragma unroll
    for (int j = 0; j < 4; ++j)
      asm volatile("wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 {)cuda" +
         sums + R"cuda(}, %128, %129, 1, 1, 1, 0, 0;" : )cuda" + bound + R"cuda( : "l"(da), "l"(db));
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
  }
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  float s = 0;
  for (int k = 0; k < 128; ++k) s += d[k];
  if (s == 1.2345f) *out = s;
}
)cuda";
}
constexpr double hopper_products = 4.0 * 64 * 16 * 256;  ///< of a warp group in one round

/// Ampere's and Ada's: a warp multiplies 16 x 16 by 16 x 8 of float16 into float32, eight at a time.
constexpr const char* ampere_matrix_source = R"cuda(
extern "C" __global__ void __launch_bounds__(128) peak_matrix(float* out, int n) {
  float d[8][4];
  for (int k = 0; k < 8; ++k)
    for (int e = 0; e < 4; ++e) d[k][e] = 0;
  const unsigned z = n < 0 ? 1 : 0;
  for (int i = 0; i < n; ++i) {
#pragma unroll
    for (int k = 0; k < 8; ++k)
      asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%4,%4,%4}, {%4,%4}, {%0,%1,%2,%3};"
                   : "+f"(d[k][0]), "+f"(d[k][1]), "+f"(d[k][2]), "+f"(d[k][3]) : "r"(z));
  }
  float s = 0;
  for (int k = 0; k < 8; ++k) s += d[k][0] + d[k][1] + d[k][2] + d[k][3];
  if (s == 1.2345f) *out = s;
}
)cuda";
constexpr double ampere_products = 4.0 * 8 * 16 * 16 * 8;  ///< of a block's four warps in one round

cuda::Compiled compiled(cuda::Compiler& compiler, const std::string& source) {
  cuda::Compiled code = compiler.compile(source, "");
  if (code.cubin.empty()) throw kevin::Error(kevin::ErrorCode::internal, "the kernels: " + code.diagnostics);
  return code;
}

class Meter {
 public:
  explicit Meter(const cuda::Gpu& gpu) : api_(gpu.api()) {
    for (cuda::driver::Event& e : events_) api_.check(api_.event_create(&e, 0), "cuEventCreate");
  }
  ~Meter() {
    for (cuda::driver::Event e : events_) static_cast<void>(api_.event_destroy(e));
  }
  Meter(const Meter&) = delete;
  Meter& operator=(const Meter&) = delete;

  /// Seconds of the fastest of 20 launches.
  double best(const cuda::Compiled& code, const char* name, unsigned blocks, unsigned block_threads,
              std::vector<void*> arguments) {
    cuda::driver::Module module = nullptr;
    cuda::driver::Function kernel = nullptr;
    api_.check(api_.module_load(&module, code.cubin.data()), "cuModuleLoadData");
    api_.check(api_.module_function(&kernel, module, name), name);
    double best = std::numeric_limits<double>::infinity();
    for (int i = -3; i < 20; ++i) {
      api_.check(api_.event_record(events_[0], nullptr), "cuEventRecord");
      api_.check(api_.launch(kernel, blocks, 1, 1, block_threads, 1, 1, 0, nullptr, arguments.data(), nullptr), name);
      api_.check(api_.event_record(events_[1], nullptr), "cuEventRecord");
      api_.check(api_.event_synchronize(events_[1]), name);
      float ms = 0;
      api_.check(api_.event_elapsed(&ms, events_[0], events_[1]), "cuEventElapsedTime");
      if (i >= 0) best = std::min(best, 1e-3 * static_cast<double>(ms));
    }
    api_.check(api_.module_unload(module), "cuModuleUnload");
    return best;
  }

 private:
  const cuda::DriverApi& api_;
  cuda::driver::Event events_[2] = {};
};

std::string today() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char text[16];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%d", &parts)};
}

kevin::tasks::MeasuredPeaks measure() {
  const cuda::Gpu gpu;
  gpu.use();
  const int major = gpu.attribute(cuda::driver::compute_major);
  if (major != 8 && major != 9) {
    throw kevin::Error(kevin::ErrorCode::unsupported,
                       "this program knows the matrix units of compute capability 8.x and 9.0 alone, not of " +
                           gpu.name() + "; what the older instructions reach would be no bound");
  }
  cuda::CompilerOptions options;
  options.capability = 10 * major + gpu.attribute(cuda::driver::compute_minor);
  cuda::Compiler compiler(options);
  const cuda::Compiled plain = compiled(compiler, plain_source);
  const cuda::Compiled matrix = compiled(compiler, major == 9 ? hopper_matrix_source() : ampere_matrix_source);
  const auto blocks = blocks_per_processor * static_cast<unsigned>(gpu.attribute(cuda::driver::multiprocessors));

  const cuda::SharedMemory data(gpu, std::size_t{4} << 30);  // far more than any cache; what it holds does not matter
  const cuda::SharedMemory sum(gpu, 4);
  Meter meter(gpu);
  cuda::driver::DevicePointer x = data.address();
  cuda::driver::DevicePointer out = sum.address();
  long elements = static_cast<long>(data.bytes() / 16);
  int rounds = 2000;
  float factor = 0.999F;
  float addend = 0.5F;
  kevin::tasks::MeasuredPeaks peaks;
  peaks.device = gpu.name();
  peaks.measured = "benchmarks/cuda_peaks, best of 20 runs, NVRTC " + compiler.version() + ", " + today();
  peaks.cache_bytes = gpu.attribute(cuda::driver::l2_bytes);
  peaks.bytes_per_s =
      static_cast<double>(data.bytes()) / meter.best(plain, "peak_read", blocks, threads, {&x, &out, &elements});
  const double lanes = static_cast<double>(blocks) * threads * chains * 16 * rounds;
  peaks.float32_per_s = lanes / meter.best(plain, "peak_float32", blocks, threads, {&out, &rounds, &factor, &addend});
  peaks.transcendental_per_s = lanes / meter.best(plain, "peak_exponential", blocks, threads, {&out, &rounds});
  const double products = static_cast<double>(blocks) * rounds * (major == 9 ? hopper_products : ampere_products);
  peaks.matrix_per_s = products / meter.best(matrix, "peak_matrix", blocks, matrix_threads, {&out, &rounds});
  return peaks;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc > 1 && std::strcmp(argv[1], "--compile-only") == 0) {
      cuda::CompilerOptions options;
      options.capability = 90;
      cuda::Compiler compiler(options);
      for (const std::string& source :
           {std::string(plain_source), hopper_matrix_source(), std::string(ampere_matrix_source)})
        std::printf("%zu bytes for %s\n", compiled(compiler, source).cubin.size(), compiler.architecture().c_str());
      return 0;
    }
    std::printf("%s\n", kevin::tasks::write_peaks(measure()).c_str());
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "cuda_peaks: %s\n", e.what());
    return 2;
  }
}
