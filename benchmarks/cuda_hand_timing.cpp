// The kernels of `cuda_verdicts spread`, timed by hand in one process without any sandbox: the L2 cache is evicted, an
// event recorded, the kernel launched, an event recorded, 100 times; median, with what the events themselves take. To
// be set beside the evaluator's medians, and to be run under a profiler (cuda_profile.sh), which cannot look into the
// evaluator's walls.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "cuda_kernels.hpp"
#include "kevin/core/error.hpp"
#include "kevin/eval/cuda/compiler.hpp"
#include "kevin/eval/cuda/device_memory.hpp"
#include "kevin/eval/cuda/driver.hpp"
#include "kevin/eval/cuda/judge_kernels.hpp"
#include "kevin/eval/cuda/judge_source.hpp"
#include "kevin/eval/cuda/plan.hpp"
#include "kevin/eval/cuda/plan_header.hpp"

namespace {

namespace cuda = kevin::cuda;

int time_by_hand(int runs) {
  const cuda::Gpu gpu;
  gpu.use();
  const cuda::DriverApi& api = gpu.api();
  cuda::Compiler compiler;
  const cuda::JudgeKernels judge(gpu, compiler.compile(cuda::judge_source, "").cubin);
  const cuda::SharedMemory flush(gpu, 2 * static_cast<std::size_t>(gpu.attribute(cuda::driver::l2_bytes)));
  cuda::driver::Event before = nullptr;
  cuda::driver::Event after = nullptr;
  api.check(api.event_create(&before, 0), "cuEventCreate");
  api.check(api.event_create(&after, 0), "cuEventCreate");
  const auto median_of = [&](int count, auto&& launch) {
    std::vector<double> times;
    for (int i = -3; i < count; ++i) {
      judge.evict(flush.address(), flush.bytes());
      api.check(api.event_record(before, nullptr), "cuEventRecord");
      launch();
      api.check(api.event_record(after, nullptr), "cuEventRecord");
      api.check(api.event_synchronize(after), "the kernel");
      float ms = 0;
      api.check(api.event_elapsed(&ms, before, after), "cuEventElapsedTime");
      if (i >= 0) times.push_back(static_cast<double>(ms));
    }
    return cuda_kernels::quantile(times, 0.5);
  };
  std::printf("events around nothing: %.5f ms\n", median_of(runs, [] {}));
  std::printf("%-20s | kernel ms by hand (median of %d)\n", "kernel", runs);
  for (const cuda_kernels::Row& row : cuda_kernels::timed_kernels()) {
    const cuda::Compiled code = compiler.compile(row.candidate.source, cuda::plan_prelude(row.task));
    if (code.cubin.empty()) throw kevin::Error(kevin::ErrorCode::internal, code.diagnostics);
    cuda::driver::Module module = nullptr;
    cuda::driver::Function kernel = nullptr;
    api.check(api.module_load(&module, code.cubin.data()), "cuModuleLoadData");
    api.check(api.module_function(&kernel, module, cuda::tagged_kernels(code.ptx).kernels.at(0).c_str()), "the kernel");
    std::vector<std::unique_ptr<cuda::SharedMemory>> memory;
    std::vector<cuda::driver::DevicePointer> pointers;
    const auto add = [&](const kevin::TensorSpec& t) {
      memory.push_back(
          std::make_unique<cuda::SharedMemory>(gpu, 4 * static_cast<std::size_t>(kevin::element_count(t.shape))));
      pointers.push_back(memory.back()->address());
    };
    for (const auto& t : row.task.inputs) {
      add(t);
      judge.draw(t, 1, pointers.back());
    }
    add(row.task.outputs[0]);
    std::int64_t count = kevin::element_count(row.task.outputs[0].shape) / 4;
    std::vector<void*> arguments;
    for (auto& p : pointers) arguments.push_back(&p);
    if (row.counted) arguments.push_back(&count);
    const double ms = median_of(runs, [&] {
      api.check(api.launch(kernel, row.blocks[0], row.blocks[1], 1, 256, 1, 1, 0, nullptr, arguments.data(), nullptr),
                "cuLaunchKernel");
    });
    std::printf("%-20s | %.5f\n", row.name.c_str(), ms);
    api.check(api.module_unload(module), "cuModuleUnload");
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return time_by_hand(argc > 1 ? std::max(1, std::atoi(argv[1])) : 100);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "cuda_hand_timing: %s\n", e.what());
    return 2;
  }
}
