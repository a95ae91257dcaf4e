#ifndef KEVIN_EVAL_CUDA_THROTTLE_HPP
#define KEVIN_EVAL_CUDA_THROTTLE_HPP

#include <array>
#include <cstddef>
#include <cstdio>
#include <string>

#include <dlfcn.h>

namespace kevin::cuda {

/// Asks NVIDIA's management library, where there is one, whether a GPU runs slower than it could: for its power limit,
/// its temperature or by order of the board. Names: NVML's reference, nvmlClocksEventReasons.
class ThrottleWatch {
 public:
  /// `uuid`: the 16 bytes that cuDeviceGetUuid gives. Without the library nothing is ever noticed.
  explicit ThrottleWatch(const std::array<unsigned char, 16>& uuid) {
    library_ = ::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library_ == nullptr) return;
    const auto initialize = reinterpret_cast<int (*)()>(::dlsym(library_, "nvmlInit_v2"));
    const auto find = reinterpret_cast<int (*)(const char*, void**)>(::dlsym(library_, "nvmlDeviceGetHandleByUUID"));
    reasons_ = reinterpret_cast<int (*)(void*, unsigned long long*)>(
        ::dlsym(library_, "nvmlDeviceGetCurrentClocksThrottleReasons"));
    std::string text = "GPU-";
    for (std::size_t i = 0; i < uuid.size(); ++i) {
      char byte[3];
      std::snprintf(byte, sizeof byte, "%02x", uuid[i]);
      if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
      text += byte;
    }
    if (initialize == nullptr || find == nullptr || initialize() != 0 || find(text.c_str(), &device_) != 0)
      device_ = nullptr;
  }

  /// Whether it is so now.
  [[nodiscard]] bool throttled() const noexcept {
    constexpr unsigned long long slower = 0x04     // power limit
                                          | 0x08   // slowed down by the hardware
                                          | 0x20   // temperature
                                          | 0x40   // temperature, by the hardware
                                          | 0x80;  // power brake
    unsigned long long now = 0;
    return device_ != nullptr && reasons_ != nullptr && reasons_(device_, &now) == 0 && (now & slower) != 0;
  }

 private:
  void* library_ = nullptr;  // never closed: another part of the program may use it
  void* device_ = nullptr;
  int (*reasons_)(void*, unsigned long long*) = nullptr;
};

}  // namespace kevin::cuda

#endif  // KEVIN_EVAL_CUDA_THROTTLE_HPP
