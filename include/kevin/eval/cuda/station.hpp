#ifndef KEVIN_EVAL_CUDA_STATION_HPP
#define KEVIN_EVAL_CUDA_STATION_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <utility>

#include "kevin/eval/cuda/device_memory.hpp"
#include "kevin/eval/cuda/driver.hpp"
#include "kevin/eval/cuda/judge_kernels.hpp"
#include "kevin/eval/cuda/runner_pool.hpp"
#include "kevin/eval/cuda/throttle.hpp"
#include "kevin/eval/memory_file.hpp"

namespace kevin::cuda {

/// What a judge works with on one GPU. Whoever works there holds `exclusive`: two candidates that run at the same time
/// would time each other.
struct Station {
  /// `cubin`: judge_source compiled for this GPU; `one_at_a_time`: shared by all stations of the same GPU.
  Station(const Gpu& g, std::string_view cubin, RunnerPool& r, std::shared_ptr<std::mutex> one_at_a_time)
      : gpu((g.use(), g)),
        runners(r),
        kernels(g, cubin),
        memory(g, g.memory() / 4),
        own_code(eval::sealed_memory_file("kevin-judge", std::as_bytes(std::span(cubin)), false)),
        own_code_bytes(cubin.size()),
        l2_bytes(static_cast<std::uint64_t>(g.attribute(driver::l2_bytes))),
        throttle(g.uuid()),
        mutex_(std::move(one_at_a_time)),
        exclusive(*mutex_) {
    flush = memory.take(2 * l2_bytes);
    for (driver::Event& e : events) gpu.api().check(gpu.api().event_create(&e, 0), "cuEventCreate");
  }
  ~Station() {
    for (driver::Event e : events) static_cast<void>(gpu.api().event_destroy(e));
  }
  Station(const Station&) = delete;
  Station& operator=(const Station&) = delete;

  const Gpu& gpu;
  RunnerPool& runners;
  JudgeKernels kernels;
  MemoryPool memory;
  eval::Descriptor own_code;  ///< a file with the judge's cubin, which has the runners' tools too
  std::size_t own_code_bytes;
  std::uint64_t l2_bytes;
  ThrottleWatch throttle;
  std::unique_ptr<SharedMemory> flush;  ///< twice the L2 cache; its content does not matter
  std::array<driver::Event, 2> events{};

 private:
  std::shared_ptr<std::mutex> mutex_;

 public:
  std::mutex& exclusive;
};

}  // namespace kevin::cuda

#endif  // KEVIN_EVAL_CUDA_STATION_HPP
