#ifndef KEVIN_EVAL_CUDA_DRIVER_TYPES_HPP
#define KEVIN_EVAL_CUDA_DRIVER_TYPES_HPP

#include <cstddef>
#include <cstdint>

/// The few types of NVIDIA's driver API that are used, in own words, so that nothing of CUDA is needed to compile.
/// Names, numbers and layouts: CUDA Driver API reference, version 12 and 13 (a test compares them with cuda.h where
/// that is installed).
namespace kevin::cuda::driver {

using Result = int;
inline constexpr Result success = 0;
inline constexpr Result not_ready = 600;

using Device = int;
using DevicePointer = std::uint64_t;
using MemoryHandle = std::uint64_t;
using Context = struct OpaqueContext*;
using Module = struct OpaqueModule*;
using Function = struct OpaqueFunction*;
using Stream = struct OpaqueStream*;
using Event = struct OpaqueEvent*;
using Graph = struct OpaqueGraph*;
using GraphExecutable = struct OpaqueGraphExecutable*;

struct Location {
  int type;  ///< 1 = a device
  int id;
};

/// CUmemAllocationProp
struct AllocationProperties {
  int type;          ///< 1 = pinned
  int handle_types;  ///< 1 = POSIX file descriptor
  Location location;
  void* windows;
  struct {
    unsigned char compression;
    unsigned char rdma;
    unsigned short usage;
    unsigned char reserved[4];
  } flags;
};

/// CUmemAccessDesc
struct AccessDescription {
  Location location;
  int flags;  ///< 0 = none, 1 = read, 3 = read and write
};

/// CUdevice_attribute
enum Attribute : int {
  max_threads_per_block = 1,
  max_block_x = 2,
  max_block_y = 3,
  max_block_z = 4,
  max_grid_x = 5,
  max_grid_y = 6,
  max_grid_z = 7,
  clock_rate_khz = 13,
  multiprocessors = 16,
  memory_clock_khz = 36,
  memory_bus_bits = 37,
  l2_bytes = 38,
  compute_major = 75,
  compute_minor = 76,
  shared_per_block_optin = 97,
  virtual_memory_supported = 102,
  posix_handles_supported = 103,
  cluster_launch = 120,
};

}  // namespace kevin::cuda::driver

#endif  // KEVIN_EVAL_CUDA_DRIVER_TYPES_HPP
