#include "kevin/eval/cuda/driver_types.hpp"

#include <doctest/doctest.h>

// Our own words for the driver's types against NVIDIA's header, where that is installed.
#if __has_include(<cuda.h>)
#include <cuda.h>

#include <cstddef>

namespace mine = kevin::cuda::driver;

TEST_CASE("driver types: sizes, offsets and numbers are those of cuda.h") {
  CHECK(sizeof(mine::AllocationProperties) == sizeof(CUmemAllocationProp));
  CHECK(offsetof(mine::AllocationProperties, location) == offsetof(CUmemAllocationProp, location));
  CHECK(sizeof(mine::AccessDescription) == sizeof(CUmemAccessDesc));
  CHECK(offsetof(mine::AccessDescription, flags) == offsetof(CUmemAccessDesc, flags));
  CHECK(sizeof(mine::DevicePointer) == sizeof(CUdeviceptr));
  CHECK(static_cast<int>(mine::l2_bytes) == CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
  CHECK(static_cast<int>(mine::multiprocessors) == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  CHECK(static_cast<int>(mine::memory_clock_khz) == CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
  CHECK(static_cast<int>(mine::memory_bus_bits) == CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
  CHECK(static_cast<int>(mine::shared_per_block_optin) == CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  CHECK(static_cast<int>(mine::virtual_memory_supported) == CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
  CHECK(static_cast<int>(mine::posix_handles_supported) ==
        CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED);
  CHECK(static_cast<int>(mine::cluster_launch) == CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH);
  // the runner's own structures
  CHECK(sizeof(CUlaunchConfig) == 56);
  CHECK(offsetof(CUlaunchConfig, hStream) == 32);
  CHECK(offsetof(CUlaunchConfig, attrs) == 40);
  CHECK(sizeof(CUlaunchAttribute) == 72);
  CHECK(CU_LAUNCH_ATTRIBUTE_COOPERATIVE == 2);
  CHECK(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION == 4);
  CHECK(sizeof(CUtensorMap) == 128);
}
#else
TEST_CASE("driver types: cuda.h is not installed here, nothing to compare with") { MESSAGE("skipped: no cuda.h"); }
#endif
