#ifndef KEVIN_TASKS_GENERATOR_ESTIMATE_HPP
#define KEVIN_TASKS_GENERATOR_ESTIMATE_HPP

#include <algorithm>
#include <map>
#include <string>

#include "kevin/refine/task.hpp"

namespace kevin::tasks {

/// Peak figures of NVIDIA's data sheet for the H200 SXM: what no launch exceeds, not what one reaches.
struct DevicePeaks {
  double bytes_per_second = 4.8e12;
  double operations_per_second = 494.5e12;  ///< TF32 on tensor cores, dense: the fastest that float32 operands get
};

/// Milliseconds that running the task's steps one after another takes at the very least: for each step the longer of
/// moving its operands and its result once and, for products and convolutions, of its 2 * multiply-adds. A reference
/// that LibTorch runs eagerly is slower, since no call reaches a peak and each has a start-up; only where a result
/// stays in the L2 cache can a step be a little faster than this. No bound for a candidate, which may fuse the steps.
[[nodiscard]] inline double least_eager_milliseconds(const Task& task, const DevicePeaks& peaks = {}) {
  std::map<std::string, const Shape*> shapes;
  for (const TensorSpec& t : task.inputs) shapes[t.name] = &t.shape;
  std::map<std::string, const Shape*> parameters;
  for (const TensorSpec& t : task.parameters) parameters[t.name] = &t.shape;
  const auto elements = [](const Shape& s) { return static_cast<double>(element_count(s)); };
  double seconds = 0;
  for (const Op& op : task.ops) {
    double moved = elements(op.out_shape);
    for (const std::string& name : op.in) {
      const auto it = shapes.find(name);
      if (it != shapes.end()) moved += elements(*it->second);
    }
    double products = 0;
    const Shape* weight = nullptr;
    for (const auto& [name, value] : op.args) {
      const auto* text = std::get_if<std::string>(&value);
      const auto it = text == nullptr ? parameters.end() : parameters.find(*text);
      if (it == parameters.end()) continue;
      moved += elements(*it->second);
      if (name == "weight") weight = it->second;
    }
    const Shape* x = op.in.empty() || !shapes.contains(op.in[0]) ? nullptr : shapes[op.in[0]];
    if (x != nullptr && (op.op == "matmul" || op.op == "bmm")) {
      products = elements(op.out_shape) * static_cast<double>(x->back());
    } else if (x != nullptr && weight != nullptr) {
      const double taps = elements(*weight) / static_cast<double>(weight->front());
      if (op.op == "linear" || op.op == "conv1d" || op.op == "conv2d" || op.op == "conv3d")
        products = elements(op.out_shape) * taps;
      if (op.op.starts_with("conv_transpose")) products = elements(*x) * taps;
    }
    seconds += std::max(moved * 4 / peaks.bytes_per_second, products * 2 / peaks.operations_per_second);
    shapes[op.out] = &op.out_shape;
  }
  return seconds * 1e3;
}

}  // namespace kevin::tasks

#endif  // KEVIN_TASKS_GENERATOR_ESTIMATE_HPP
