#ifndef KEVIN_TESTS_EVAL_CUDA_NVRTC_HERE_HPP
#define KEVIN_TESTS_EVAL_CUDA_NVRTC_HERE_HPP

#include "kevin/eval/cuda/nvrtc.hpp"

#include <doctest/doctest.h>

/// Whether this machine has NVRTC; says so in one line when it has not. A test that needs it returns then.
[[nodiscard]] inline bool nvrtc_here() {
  try {
    static_cast<void>(kevin::cuda::find_nvrtc({}));
    return true;
  } catch (const kevin::Error&) {
    MESSAGE("skipped: no NVRTC on this machine (set KEVIN_NVRTC, or pip install nvidia-cuda-nvrtc)");
    return false;
  }
}

#endif  // KEVIN_TESTS_EVAL_CUDA_NVRTC_HERE_HPP
