#ifndef KEVIN_CPU_HPP
#define KEVIN_CPU_HPP

/// The cpu evaluator and the tasks it judges: everything that needs LibTorch and Boost on the way to a verdict. An
/// opt-in beside kevin/kevin.hpp.
#include "kevin/eval/cpu/evaluator.hpp"
#include "kevin/eval/deterministic_times.hpp"
#include "kevin/tasks/reference.hpp"
#include "kevin/tasks/suite.hpp"

#endif  // KEVIN_CPU_HPP
