#ifndef KEVIN_EVAL_CUDA_PEAKS_HPP
#define KEVIN_EVAL_CUDA_PEAKS_HPP

#include <limits>

#include "kevin/eval/cuda/driver.hpp"
#include "kevin/tasks/peaks.hpp"

namespace kevin::cuda {

/// What is known of this GPU: the peaks kept under its name, else the nominal speed of its memory, which is above what
/// can be measured, and no bound on operations.
[[nodiscard]] inline tasks::MeasuredPeaks peaks_of(const Gpu& gpu) {
  if (auto stored = tasks::stored_peaks(gpu.name())) return *std::move(stored);
  constexpr double unknown = std::numeric_limits<double>::infinity();
  const double transfers = 2.0 * 1e3 * gpu.attribute(driver::memory_clock_khz);  // a second; two in a clock
  const double speed = transfers * gpu.attribute(driver::memory_bus_bits) / 8;
  return {.device = gpu.name(),
          .measured = "nominal speed of the memory, as the driver tells",
          .bytes_per_s = speed > 0 ? speed : unknown,
          .cache_bytes = static_cast<double>(gpu.attribute(driver::l2_bytes)),
          .float32_per_s = unknown,
          .matrix_per_s = unknown,
          .transcendental_per_s = unknown};
}

}  // namespace kevin::cuda

#endif  // KEVIN_EVAL_CUDA_PEAKS_HPP
