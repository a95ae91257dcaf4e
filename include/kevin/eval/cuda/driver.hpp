#ifndef KEVIN_EVAL_CUDA_DRIVER_HPP
#define KEVIN_EVAL_CUDA_DRIVER_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include <dlfcn.h>

#include "kevin/core/error.hpp"
#include "kevin/eval/cuda/driver_types.hpp"
#include "kevin/eval/cuda/plan.hpp"

namespace kevin::cuda {

/// The functions of libcuda.so.1 that the judge uses, opened at run time: programs start on machines without a driver.
class DriverApi {
 public:
  /// Opens and initialises the driver. Throws Error(unsupported) that says what is missing.
  DriverApi() {
    handle_.reset(::dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL));
    if (!handle_) {
      throw Error(
          ErrorCode::unsupported,
          "NVIDIA's driver is missing (libcuda.so.1 cannot be loaded), so CUDA candidates cannot run here: install "
          "the driver, or evaluate with --compile-only or --backend cpu");
    }
    load(initialize, "cuInit");
    load(error_name, "cuGetErrorName");
    load(error_text, "cuGetErrorString");
    load(driver_version, "cuDriverGetVersion");
    load(device_count, "cuDeviceGetCount");
    load(device_get, "cuDeviceGet");
    load(device_name, "cuDeviceGetName");
    load(device_attribute, "cuDeviceGetAttribute");
    load(device_uuid, "cuDeviceGetUuid");
    load(device_memory, "cuDeviceTotalMem_v2");
    load(primary_retain, "cuDevicePrimaryCtxRetain");
    load(primary_release, "cuDevicePrimaryCtxRelease_v2");
    load(set_current, "cuCtxSetCurrent");
    load(synchronize, "cuCtxSynchronize");
    load(reset_persisting_l2, "cuCtxResetPersistingL2Cache");
    load(memory_info, "cuMemGetInfo_v2");
    load(granularity, "cuMemGetAllocationGranularity");
    load(reserve, "cuMemAddressReserve");
    load(unreserve, "cuMemAddressFree");
    load(create, "cuMemCreate");
    load(release, "cuMemRelease");
    load(export_handle, "cuMemExportToShareableHandle");
    load(map, "cuMemMap");
    load(unmap, "cuMemUnmap");
    load(set_access, "cuMemSetAccess");
    load(fill8, "cuMemsetD8Async");
    load(fill32, "cuMemsetD32Async");
    load(copy_to_host, "cuMemcpyDtoH_v2");
    load(copy_to_device, "cuMemcpyHtoD_v2");
    load(module_load, "cuModuleLoadData");
    load(module_unload, "cuModuleUnload");
    load(module_function, "cuModuleGetFunction");
    load(launch, "cuLaunchKernel");
    load(event_create, "cuEventCreate");
    load(event_destroy, "cuEventDestroy_v2");
    load(event_record, "cuEventRecord");
    load(event_query, "cuEventQuery");
    load(event_synchronize, "cuEventSynchronize");
    load(event_elapsed, "cuEventElapsedTime");
    load(begin_capture, "cuStreamBeginCapture_v2");
    load(end_capture, "cuStreamEndCapture");
    load(graph_instantiate, "cuGraphInstantiateWithFlags");
    load(graph_launch, "cuGraphLaunch");
    load(graph_destroy, "cuGraphDestroy");
    load(graph_exec_destroy, "cuGraphExecDestroy");
    if (const driver::Result r = initialize(0); r != driver::success) {
      throw Error(ErrorCode::unsupported, "NVIDIA's driver does not start (" + name_of(r) +
                                              "): is there a GPU, and may this user open /dev/nvidia*?");
    }
    int count = 0;
    if (device_count(&count) != driver::success || count < 1)
      throw Error(ErrorCode::unsupported, "NVIDIA's driver is there, but no GPU (CUDA_VISIBLE_DEVICES?)");
  }

  /// "CUDA_ERROR_ILLEGAL_ADDRESS".
  [[nodiscard]] std::string name_of(driver::Result r) const {
    const char* text = nullptr;
    return error_name(r, &text) == driver::success && text != nullptr ? text : "CUDA error " + std::to_string(r);
  }

  /// Throws Error(resource) for lack of memory and Error(worker_lost) for all else: after other errors the context of
  /// this process can be unusable.
  void check(driver::Result r, const char* what) const {
    if (r == driver::success) return;
    throw Error(r == 2 ? ErrorCode::resource : ErrorCode::worker_lost,
                std::string("the judge's GPU work failed (") + what + ": " + name_of(r) + ')');
  }

  [[nodiscard]] int attribute(driver::Device device, driver::Attribute a) const {
    int value = 0;
    check(device_attribute(&value, a, device), "cuDeviceGetAttribute");
    return value;
  }

  driver::Result (*initialize)(unsigned) = nullptr;
  driver::Result (*error_name)(driver::Result, const char**) = nullptr;
  driver::Result (*error_text)(driver::Result, const char**) = nullptr;
  driver::Result (*driver_version)(int*) = nullptr;
  driver::Result (*device_count)(int*) = nullptr;
  driver::Result (*device_get)(driver::Device*, int) = nullptr;
  driver::Result (*device_name)(char*, int, driver::Device) = nullptr;
  driver::Result (*device_attribute)(int*, int, driver::Device) = nullptr;
  driver::Result (*device_uuid)(unsigned char*, driver::Device) = nullptr;
  driver::Result (*device_memory)(std::size_t*, driver::Device) = nullptr;
  driver::Result (*primary_retain)(driver::Context*, driver::Device) = nullptr;
  driver::Result (*primary_release)(driver::Device) = nullptr;
  driver::Result (*set_current)(driver::Context) = nullptr;
  driver::Result (*synchronize)() = nullptr;
  driver::Result (*reset_persisting_l2)() = nullptr;
  driver::Result (*memory_info)(std::size_t*, std::size_t*) = nullptr;
  driver::Result (*granularity)(std::size_t*, const driver::AllocationProperties*, int) = nullptr;
  driver::Result (*reserve)(driver::DevicePointer*, std::size_t, std::size_t, driver::DevicePointer,
                            unsigned long long) = nullptr;
  driver::Result (*unreserve)(driver::DevicePointer, std::size_t) = nullptr;
  driver::Result (*create)(driver::MemoryHandle*, std::size_t, const driver::AllocationProperties*,
                           unsigned long long) = nullptr;
  driver::Result (*release)(driver::MemoryHandle) = nullptr;
  driver::Result (*export_handle)(void*, driver::MemoryHandle, int, unsigned long long) = nullptr;
  driver::Result (*map)(driver::DevicePointer, std::size_t, std::size_t, driver::MemoryHandle,
                        unsigned long long) = nullptr;
  driver::Result (*unmap)(driver::DevicePointer, std::size_t) = nullptr;
  driver::Result (*set_access)(driver::DevicePointer, std::size_t, const driver::AccessDescription*,
                               std::size_t) = nullptr;
  driver::Result (*fill8)(driver::DevicePointer, unsigned char, std::size_t, driver::Stream) = nullptr;
  driver::Result (*fill32)(driver::DevicePointer, unsigned, std::size_t, driver::Stream) = nullptr;
  driver::Result (*copy_to_host)(void*, driver::DevicePointer, std::size_t) = nullptr;
  driver::Result (*copy_to_device)(driver::DevicePointer, const void*, std::size_t) = nullptr;
  driver::Result (*module_load)(driver::Module*, const void*) = nullptr;
  driver::Result (*module_unload)(driver::Module) = nullptr;
  driver::Result (*module_function)(driver::Function*, driver::Module, const char*) = nullptr;
  driver::Result (*launch)(driver::Function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                           driver::Stream, void**, void**) = nullptr;
  driver::Result (*event_create)(driver::Event*, unsigned) = nullptr;
  driver::Result (*event_destroy)(driver::Event) = nullptr;
  driver::Result (*event_record)(driver::Event, driver::Stream) = nullptr;
  driver::Result (*event_query)(driver::Event) = nullptr;
  driver::Result (*event_synchronize)(driver::Event) = nullptr;
  driver::Result (*event_elapsed)(float*, driver::Event, driver::Event) = nullptr;
  driver::Result (*begin_capture)(driver::Stream, int) = nullptr;
  driver::Result (*end_capture)(driver::Stream, driver::Graph*) = nullptr;
  driver::Result (*graph_instantiate)(driver::GraphExecutable*, driver::Graph, unsigned long long) = nullptr;
  driver::Result (*graph_launch)(driver::GraphExecutable, driver::Stream) = nullptr;
  driver::Result (*graph_destroy)(driver::Graph) = nullptr;
  driver::Result (*graph_exec_destroy)(driver::GraphExecutable) = nullptr;

 private:
  template <class F>
  void load(F& function, const char* name) {
    void* symbol = ::dlsym(handle_.get(), name);
    if (symbol == nullptr)
      throw Error(ErrorCode::unsupported,
                  std::string("NVIDIA's driver lacks ") + name + ": one for CUDA 12 or later is needed");
    function = reinterpret_cast<F>(symbol);
  }

  struct Close {
    void operator()(void*) const noexcept {}  // never closed: the driver does not survive it
  };
  std::unique_ptr<void, Close> handle_;
};

/// One GPU as the judge sees it: its primary context (which LibTorch shares), held while this lives.
class Gpu {
 public:
  /// `index`: as LibTorch counts. Throws Error(bad_input) for one that is not there, Error(unsupported) for a device
  /// without exportable virtual memory.
  explicit Gpu(int index = 0) : index_(index) {
    int count = 0;
    api_.check(api_.device_count(&count), "cuDeviceGetCount");
    if (index < 0 || index >= count)
      throw Error(ErrorCode::bad_input,
                  "GPU " + std::to_string(index) + " does not exist: there are " + std::to_string(count));
    api_.check(api_.device_get(&device_, index), "cuDeviceGet");
    if (attribute(driver::virtual_memory_supported) == 0 || attribute(driver::posix_handles_supported) == 0)
      throw Error(ErrorCode::unsupported,
                  "this GPU or its driver cannot share memory by file descriptors (cuMemCreate)");
    api_.check(api_.primary_retain(&context_, device_), "cuDevicePrimaryCtxRetain");
    char name[128] = {};
    if (api_.device_name(name, sizeof name - 1, device_) == driver::success) name_ = name;
    std::size_t memory = 0;
    api_.check(api_.device_memory(&memory, device_), "cuDeviceTotalMem");
    memory_ = memory;
    driver::AllocationProperties p = properties();
    std::size_t step = 0;
    use();
    api_.check(api_.granularity(&step, &p, 0), "cuMemGetAllocationGranularity");
    granularity_ = step;
  }
  ~Gpu() { static_cast<void>(api_.primary_release(device_)); }
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  /// Makes this GPU's context the calling thread's.
  void use() const { api_.check(api_.set_current(context_), "cuCtxSetCurrent"); }

  [[nodiscard]] const DriverApi& api() const noexcept { return api_; }
  [[nodiscard]] int index() const noexcept { return index_; }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] int attribute(driver::Attribute a) const { return api_.attribute(device_, a); }
  [[nodiscard]] std::array<unsigned char, 16> uuid() const {
    std::array<unsigned char, 16> bytes{};
    api_.check(api_.device_uuid(bytes.data(), device_), "cuDeviceGetUuid");
    return bytes;
  }
  [[nodiscard]] std::uint64_t memory() const noexcept { return memory_; }          ///< bytes in all
  [[nodiscard]] std::size_t granularity() const noexcept { return granularity_; }  ///< of shared memory, bytes

  /// What cuMemCreate is told for memory that is shared with a runner.
  [[nodiscard]] driver::AllocationProperties properties() const noexcept {
    driver::AllocationProperties p{};
    p.type = 1;
    p.handle_types = 1;
    p.location = {1, device_};
    return p;
  }

  /// `scratch`: bytes a plan may ask for.
  [[nodiscard]] DeviceLimits limits(std::uint64_t scratch) const {
    const auto at = [&](driver::Attribute a) { return static_cast<std::uint32_t>(attribute(a)); };
    DeviceLimits l;
    l.block_threads = at(driver::max_threads_per_block);
    l.block = {at(driver::max_block_x), at(driver::max_block_y), at(driver::max_block_z)};
    l.grid = {at(driver::max_grid_x), at(driver::max_grid_y), at(driver::max_grid_z)};
    l.shared = at(driver::shared_per_block_optin);
    l.cluster_blocks = attribute(driver::cluster_launch) != 0 ? 8 : 1;
    l.scratch = scratch;
    return l;
  }

 private:
  DriverApi api_;
  int index_;
  driver::Device device_ = 0;
  driver::Context context_ = nullptr;
  std::string name_;
  std::uint64_t memory_ = 0;
  std::size_t granularity_ = 0;
};

}  // namespace kevin::cuda

#endif  // KEVIN_EVAL_CUDA_DRIVER_HPP
