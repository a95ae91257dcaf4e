#ifndef KEVIN_EVAL_CUDA_COMPILER_OPTIONS_HPP
#define KEVIN_EVAL_CUDA_COMPILER_OPTIONS_HPP

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "kevin/core/error.hpp"

namespace kevin::cuda {

/// How candidates are compiled.
struct CompilerOptions {
  std::filesystem::path nvrtc;                 ///< libnvrtc.so or its folder; "" = found, see find_nvrtc()
  std::vector<std::filesystem::path> include;  ///< further folders of headers (CUTLASS, ...); candidates may read them
  std::vector<std::string> flags;              ///< for NVRTC, after our own
  std::string architecture;                    ///< "sm_90a"; "" = architecture_for() `capability`
  int capability = 0;       ///< compute capability of the GPU to compile for, 90 = 9.0; 0 = the best one up to 9.0
  std::size_t workers = 0;  ///< processes that compile at the same time; 0 = one for each processor, at most 16
  std::size_t compiles_per_worker = 256;  ///< then a process is replaced by a fresh one
  /// Keep precompiled headers: what sources include first is parsed once by each worker.
  bool precompiled_headers = true;
  std::uint64_t headers_limit = std::uint64_t{512} << 20;  ///< bytes of precompiled headers that a worker keeps
  /// Where; "" = /dev/shm (memory) when it has room for all workers' limits, else the temporary folder.
  std::filesystem::path headers_directory;
  std::chrono::milliseconds time_limit{20000};          ///< of one compilation
  std::uint64_t memory_limit = std::uint64_t{8} << 30;  ///< bytes of address space of a worker
  std::size_t source_limit = std::size_t{256} << 10;    ///< bytes
  std::size_t diagnostics_limit = 2000;                 ///< bytes
  std::filesystem::path cache_directory;                ///< "" = eval::default_cache_directory()
  std::uint64_t cache_limit = std::uint64_t{1} << 30;   ///< bytes
};

/// What to compile for on a device of compute capability `major`.`minor`, given what NVRTC knows (each 10 * major +
/// minor): its own machine code, from 9.0 on with what only this architecture has ("sm_90a"); for a device that NVRTC
/// does not know the nearest lower architecture as PTX ("compute_90"), which the driver compiles further.
/// Throws Error(unsupported) when the device is older than all.
[[nodiscard]] inline std::string architecture_for(int major, int minor, const std::vector<int>& supported) {
  const int wanted = 10 * major + minor;
  int best = 0;
  for (const int known : supported) {
    if (known <= wanted) best = std::max(best, known);
  }
  if (best == 0) {
    throw Error(ErrorCode::unsupported, "this NVRTC does not compile for compute capability " + std::to_string(major) +
                                            '.' + std::to_string(minor) + ": an older CUDA toolkit does");
  }
  if (best != wanted) return "compute_" + std::to_string(best);
  return "sm_" + std::to_string(best) + (best >= 90 ? "a" : "");
}

}  // namespace kevin::cuda

#endif  // KEVIN_EVAL_CUDA_COMPILER_OPTIONS_HPP
