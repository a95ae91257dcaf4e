#ifndef KEVIN_CUDA_HPP
#define KEVIN_CUDA_HPP

/// The CUDA evaluator and the tasks it judges. Compiles without CUDA: driver and NVRTC are opened when an evaluator is
/// made. An opt-in beside kevin/kevin.hpp.
#include "kevin/eval/cuda/evaluator.hpp"
#include "kevin/eval/deterministic_times.hpp"
#include "kevin/refine/cuda_prompt.hpp"
#include "kevin/tasks/reference.hpp"
#include "kevin/tasks/suite.hpp"

#endif  // KEVIN_CUDA_HPP
