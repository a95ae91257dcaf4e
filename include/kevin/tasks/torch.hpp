#ifndef KEVIN_TASKS_TORCH_HPP
#define KEVIN_TASKS_TORCH_HPP

/// The one way into LibTorch for kevin's headers. The order matters: up to LibTorch 2.0, clang and nvcc in C++20 reject
/// torch.h unless ATen/core/ivalue.h came first (a template of it is named by another header before it is complete).
// clang-format off
#include <ATen/core/ivalue.h>
#include <torch/torch.h>
// clang-format on

#endif  // KEVIN_TASKS_TORCH_HPP
