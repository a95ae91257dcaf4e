#ifndef KEVIN_TASKS_TF32_HPP
#define KEVIN_TASKS_TF32_HPP

#include <string_view>

/// TF32 on NVIDIA's tensor cores: float32 operations whose factors are rounded to 11 bits, relative errors of up to
/// 5e-4 of each product instead of 6e-8. LibTorch has one setting for the whole process, and allows it for convolutions
/// unless told otherwise.
namespace kevin::tasks {

/// Which of LibTorch's float32 operations may use TF32.
enum class Tf32 {
  none,          ///< strict float32
  convolutions,  ///< PyTorch's own setting, hence that of KernelBench's baselines
  all,           ///< matrix products too
};

[[nodiscard]] constexpr std::string_view to_string(Tf32 t) noexcept {
  switch (t) {
    case Tf32::none:
      return "none";
    case Tf32::convolutions:
      return "convolutions";
    case Tf32::all:
      return "all";
  }
  return "none";
}

}  // namespace kevin::tasks

#endif  // KEVIN_TASKS_TF32_HPP
