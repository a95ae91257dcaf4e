#ifndef KEVIN_EVAL_CUDA_DEVICE_MEMORY_HPP
#define KEVIN_EVAL_CUDA_DEVICE_MEMORY_HPP

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "kevin/core/error.hpp"
#include "kevin/eval/cuda/driver.hpp"
#include "kevin/eval/descriptor.hpp"

namespace kevin::cuda {

/// GPU memory of its own pages that can be shared with a runner: made with cuMemCreate, mapped here for reading and
/// writing, exported as a file descriptor. Nothing else lies in its pages, so sharing it shows nothing else; CUDA IPC
/// would show whatever has been allocated beside it.
class SharedMemory {
 public:
  /// At least `bytes`. The GPU's context must be current. Throws Error(resource) when memory runs out.
  SharedMemory(const Gpu& gpu, std::size_t bytes) : gpu_(&gpu) {
    const DriverApi& api = gpu.api();
    const std::size_t step = gpu.granularity();
    bytes_ = (bytes + step - 1) / step * step;
    const driver::AllocationProperties properties = gpu.properties();
    api.check(api.create(&handle_, bytes_, &properties, 0), "cuMemCreate");
    try {
      api.check(api.reserve(&address_, bytes_, 0, 0, 0), "cuMemAddressReserve");
      api.check(api.map(address_, bytes_, 0, handle_, 0), "cuMemMap");
      mapped_ = true;
      const driver::AccessDescription access{properties.location, 3};
      api.check(api.set_access(address_, bytes_, &access, 1), "cuMemSetAccess");
      int file = -1;
      api.check(api.export_handle(&file, handle_, 1, 0), "cuMemExportToShareableHandle");
      file_.reset(file);
    } catch (...) {
      clear();
      throw;
    }
  }
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  ~SharedMemory() { clear(); }

  [[nodiscard]] driver::DevicePointer address() const noexcept { return address_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] int descriptor() const noexcept { return file_.get(); }

 private:
  void clear() noexcept {
    const DriverApi& api = gpu_->api();
    if (mapped_) static_cast<void>(api.unmap(address_, bytes_));
    if (address_ != 0) static_cast<void>(api.unreserve(address_, bytes_));
    static_cast<void>(api.release(handle_));
  }

  const Gpu* gpu_;
  std::size_t bytes_ = 0;
  driver::MemoryHandle handle_ = 0;
  driver::DevicePointer address_ = 0;
  bool mapped_ = false;
  eval::Descriptor file_;
};

/// Keeps shared memory that is not in use for the next candidate: making gigabytes anew costs milliseconds. What was in
/// it is not secret: it held an earlier evaluation's inputs and a candidate's own outputs, and is overwritten before
/// it is shared again. Thread safe.
class MemoryPool {
 public:
  /// `keep`: bytes of unused memory that are kept at most.
  MemoryPool(const Gpu& gpu, std::size_t keep) : gpu_(gpu), keep_(keep) {}

  /// Memory of at least `bytes`. The GPU's context must be current.
  [[nodiscard]] std::unique_ptr<SharedMemory> take(std::size_t bytes) {
    const std::size_t step = gpu_.granularity();
    const std::size_t size = (bytes + step - 1) / step * step;
    {
      const std::lock_guard lock(mutex_);
      if (const auto found = free_.find(size); found != free_.end()) {
        auto memory = std::move(found->second);
        free_.erase(found);
        kept_ -= size;
        return memory;
      }
    }
    try {
      return std::make_unique<SharedMemory>(gpu_, size);
    } catch (const Error& e) {
      if (e.code() != ErrorCode::resource) throw;
      trim(0);
    }
    return std::make_unique<SharedMemory>(gpu_, size);
  }

  /// Takes memory back. No runner may have it mapped for writing any more once it is taken again.
  void give(std::unique_ptr<SharedMemory> memory) {
    {
      const std::lock_guard lock(mutex_);
      kept_ += memory->bytes();
      free_.emplace(memory->bytes(), std::move(memory));
    }
    trim(keep_);
  }

 private:
  void trim(std::size_t limit) {
    const std::lock_guard lock(mutex_);
    while (kept_ > limit && !free_.empty()) {
      const auto largest = std::prev(free_.end());
      kept_ -= largest->first;
      free_.erase(largest);
    }
  }

  const Gpu& gpu_;
  std::size_t keep_;
  std::mutex mutex_;
  std::multimap<std::size_t, std::unique_ptr<SharedMemory>> free_;
  std::size_t kept_ = 0;
};

}  // namespace kevin::cuda

#endif  // KEVIN_EVAL_CUDA_DEVICE_MEMORY_HPP
