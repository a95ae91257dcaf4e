#ifndef KEVIN_EVAL_CUDA_RUNNER_DRIVER_SOURCE_HPP
#define KEVIN_EVAL_CUDA_RUNNER_DRIVER_SOURCE_HPP

#include <string_view>

namespace kevin::cuda {

/// The part of the runner's program (runner_source.hpp) that opens the driver.
inline constexpr std::string_view runner_driver_source = R"runner(
// ---- the driver ----
struct Location { int type, id; };
struct AllocationProperties { int type, handles; Location location; void* windows; unsigned char flags[8]; };
struct AccessDescription { Location location; int flags; };
struct LaunchAttribute { int id; int pad; union { u32 cluster[3]; int cooperative; char room[64]; } value; };
struct LaunchConfig { u32 grid[3], block[3], shared; void* stream; LaunchAttribute* attributes; u32 count; };
struct alignas(64) TensorMapBytes { u64 opaque[16]; };

int (*cuInit)(unsigned);
int (*cuDeviceGet)(int*, int);
int (*cuCtxCreate)(void**, unsigned, int);
int (*cuCtxSetLimit)(int, std::size_t);
int (*cuCtxResetPersistingL2Cache)();
int (*cuMemAlloc)(u64*, std::size_t);
int (*cuMemcpyHtoD)(u64, const void*, std::size_t);
int (*cuMemcpyDtoH)(void*, u64, std::size_t);
int (*cuMemsetD8Async)(u64, unsigned char, std::size_t, void*);
int (*cuMemsetD32Async)(u64, unsigned, std::size_t, void*);
int (*cuMemCreate)(u64*, std::size_t, const AllocationProperties*, unsigned long long);
int (*cuMemImport)(u64*, void*, int);
int (*cuMemRelease)(u64);
int (*cuMemAddressReserve)(u64*, std::size_t, std::size_t, u64, unsigned long long);
int (*cuMemAddressFree)(u64, std::size_t);
int (*cuMemMap)(u64, std::size_t, std::size_t, u64, unsigned long long);
int (*cuMemUnmap)(u64, std::size_t);
int (*cuMemSetAccess)(u64, std::size_t, const AccessDescription*, std::size_t);
int (*cuModuleLoadData)(void**, const void*);
int (*cuModuleUnload)(void*);
int (*cuModuleGetFunction)(void**, void*, const char*);
int (*cuModuleGetGlobal)(u64*, std::size_t*, void*, const char*);
int (*cuFuncGetAttribute)(int*, int, void*);
int (*cuFuncSetAttribute)(void*, int, int);
int (*cuFuncGetParamInfo)(void*, std::size_t, std::size_t*, std::size_t*);  // from CUDA 12.4 on, else null
int (*cuOccupancy)(int*, void*, int, std::size_t);
int (*cuLaunchKernelEx)(const LaunchConfig*, void*, void**, void**);
int (*cuStreamCreate)(void**, unsigned);
int (*cuStreamSynchronize)(void*);
int (*cuStreamBeginCapture)(void*, int);
int (*cuStreamEndCapture)(void*, void**);
int (*cuGraphInstantiate)(void**, void*, unsigned long long);
int (*cuGraphUpload)(void*, void*);
int (*cuGraphLaunch)(void*, void*);
int (*cuGraphDestroy)(void*);
int (*cuGraphExecDestroy)(void*);
int (*cuEventCreate)(void**, unsigned);
int (*cuEventRecord)(void*, void*);
int (*cuEventQuery)(void*);
int (*cuEventElapsedTime)(float*, void*, void*);
int (*cuTensorMapEncodeTiled)(void*, int, u32, void*, const u64*, const u64*, const u32*, const u32*, int, int, int, int);

template <class F>
void find(void* library, F& function, const char* name) {
  void* symbol = dlsym(library, name);
  if (symbol == nullptr) fail(ENOSYS, at_start, 0, failed);
  function = reinterpret_cast<F>(symbol);
}

int device = 0;
void* stream = nullptr;
void* before = nullptr;
void* after = nullptr;

void open_driver(int index) {
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  if (library == nullptr) fail(ENOENT, at_start, 0, failed);
  const auto get = [&](auto& f, const char* name) { find(library, f, name); };
  get(cuInit, "cuInit"); get(cuDeviceGet, "cuDeviceGet"); get(cuCtxCreate, "cuCtxCreate_v2");
  get(cuCtxSetLimit, "cuCtxSetLimit"); get(cuCtxResetPersistingL2Cache, "cuCtxResetPersistingL2Cache");
  get(cuMemAlloc, "cuMemAlloc_v2");
  get(cuMemcpyHtoD, "cuMemcpyHtoD_v2"); get(cuMemcpyDtoH, "cuMemcpyDtoH_v2");
  get(cuMemsetD8Async, "cuMemsetD8Async"); get(cuMemsetD32Async, "cuMemsetD32Async");
  get(cuMemCreate, "cuMemCreate"); get(cuMemImport, "cuMemImportFromShareableHandle"); get(cuMemRelease, "cuMemRelease");
  get(cuMemAddressReserve, "cuMemAddressReserve"); get(cuMemAddressFree, "cuMemAddressFree");
  get(cuMemMap, "cuMemMap"); get(cuMemUnmap, "cuMemUnmap"); get(cuMemSetAccess, "cuMemSetAccess");
  get(cuModuleLoadData, "cuModuleLoadData"); get(cuModuleUnload, "cuModuleUnload");
  get(cuModuleGetFunction, "cuModuleGetFunction"); get(cuModuleGetGlobal, "cuModuleGetGlobal_v2");
  get(cuFuncGetAttribute, "cuFuncGetAttribute"); get(cuFuncSetAttribute, "cuFuncSetAttribute");
  get(cuOccupancy, "cuOccupancyMaxActiveBlocksPerMultiprocessor"); get(cuLaunchKernelEx, "cuLaunchKernelEx");
  get(cuStreamCreate, "cuStreamCreate"); get(cuStreamSynchronize, "cuStreamSynchronize");
  get(cuStreamBeginCapture, "cuStreamBeginCapture_v2"); get(cuStreamEndCapture, "cuStreamEndCapture");
  get(cuGraphInstantiate, "cuGraphInstantiateWithFlags"); get(cuGraphUpload, "cuGraphUpload");
  get(cuGraphLaunch, "cuGraphLaunch"); get(cuGraphDestroy, "cuGraphDestroy"); get(cuGraphExecDestroy, "cuGraphExecDestroy");
  get(cuEventCreate, "cuEventCreate"); get(cuEventRecord, "cuEventRecord"); get(cuEventQuery, "cuEventQuery");
  get(cuEventElapsedTime, "cuEventElapsedTime");
  if (void* symbol = dlsym(library, "cuFuncGetParamInfo"))
    cuFuncGetParamInfo = reinterpret_cast<decltype(cuFuncGetParamInfo)>(symbol);
  if (void* symbol = dlsym(library, "cuTensorMapEncodeTiled"))
    cuTensorMapEncodeTiled = reinterpret_cast<decltype(cuTensorMapEncodeTiled)>(symbol);
  const auto check = [](int r) { if (r != 0) fail(r, at_start); };
  void* context = nullptr;
  check(cuInit(0));
  check(cuDeviceGet(&device, index));
  check(cuCtxCreate(&context, 0, device));
  check(cuStreamCreate(&stream, 1));  // does not wait for the default stream
  check(cuEventCreate(&before, 0));
  check(cuEventCreate(&after, 0));
}

}  // namespace

// The driver names its threads through /proc and gives up where it cannot, though nothing depends on it. It finds this
// function before the C library's.
extern "C" FILE* fopen(const char* path, const char* mode) {
  static const auto real = reinterpret_cast<FILE* (*)(const char*, const char*)>(dlsym(RTLD_NEXT, "fopen"));
  const bool thread_name = std::strncmp(path, "/proc/self/task/", 16) == 0 && mode[0] == 'w';
  return real(thread_name ? "/dev/null" : path, mode);
}

namespace {

)runner";

}  // namespace kevin::cuda

#endif  // KEVIN_EVAL_CUDA_RUNNER_DRIVER_SOURCE_HPP
