#ifndef KEVIN_TASKS_PEAKS_HPP
#define KEVIN_TASKS_PEAKS_HPP

#include <optional>
#include <string>
#include <string_view>

namespace kevin::tasks {

/// What a device can do at most, as measured once by a micro-benchmark (benchmarks/cuda_peaks.cpp), not as a data
/// sheet says. A multiply-add counts as one.
struct MeasuredPeaks {
  std::string device;               ///< "NVIDIA H200"
  std::string measured;             ///< by what, and when
  double bytes_per_s = 0;           ///< reading the device's memory
  double cache_bytes = 0;           ///< of the last cache: so much that is written need not reach the memory in time
  double float32_per_s = 0;         ///< float32 multiply-adds of the ordinary units
  double matrix_per_s = 0;          ///< multiply-adds of float16 by the matrix units
  double transcendental_per_s = 0;  ///< exp of float32
  friend bool operator==(const MeasuredPeaks&, const MeasuredPeaks&) = default;
};

/// What was measured on devices of that name and is kept here; nothing for others, whose owners run
/// benchmarks/cuda_peaks and load what it prints (peaks_json.hpp).
[[nodiscard]] inline std::optional<MeasuredPeaks> stored_peaks(std::string_view) { return std::nullopt; }

}  // namespace kevin::tasks

#endif  // KEVIN_TASKS_PEAKS_HPP
