#ifndef KEVIN_AGENT_KERNEL_SPACE_CUDA_ELEMENTWISE_HPP
#define KEVIN_AGENT_KERNEL_SPACE_CUDA_ELEMENTWISE_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kevin/agent/kernel_space/broadcast.hpp"
#include "kevin/agent/kernel_space/chain.hpp"
#include "kevin/agent/kernel_space/cuda/device_code.hpp"
#include "kevin/agent/kernel_space/space.hpp"

namespace kevin::agent::detail::cuda {

/// Chains of element-wise ops over any number of tensors, in one launch. Knobs: threads of a block; width of a vector
/// and how many a thread takes; whether a block walks on or ends; what is done with the rest that fills no vector;
/// hints to the caches; precision; accuracy of functions.
class Elementwise {
 public:
  explicit Elementwise(const Task& task)
      : task_(std::make_shared<Task>(task)),
        graph_(*task_),
        chain_(graph_, task.ops, "", graph_.output_shape()),
        rows_(graph_.output_shape(), chain_.operands(), graph_.output_shape().size()),
        count_(element_count(graph_.output_shape())) {}

  [[nodiscard]] KernelSpace space() const {
    std::vector<Knob> knobs = {threads_knob(),
                               width_knob(),
                               {"unroll", {"1", "2", "4", "8"}},
                               {"walk", {"once", "stride"}},
                               {"tail", {"scalar", "ignore", "past", "overlap"}},
                               access_knob(),
                               precision_knob()};
    if (chain_.functions().has_levels()) knobs.push_back(math_knob());
    return KernelSpace("elementwise", std::move(knobs),
                       [self = *this](const KernelSpace::Picks& pick) { return self.render(pick); });
  }

 private:
  [[nodiscard]] std::string render(const KernelSpace::Picks& pick) const {
    const std::string precision = pick("precision");
    const std::string tail = pick("tail");
    const int threads = pick.integer("threads");
    const int width = pick.integer("width");
    const int unroll = pick.integer("unroll");
    const std::int64_t vectors = tail == "past" ? divide_up(count_, width) : count_ / width;
    const std::int64_t tile = std::int64_t{threads} * unroll;

    std::string code =
        source_head(graph_, pick("threads") + " threads, width " + pick("width") + ", unroll " + pick("unroll"), "1");
    code += number_prelude(precision) + vector_prelude(pick("width"), pick("access"));
    code += chain_.functions().text(pick("math", "libm"), precision, Backend::cuda);
    code += chain_.definition(precision);
    code += fill("typedef $index Index;\nconstexpr Index N = $n, VECTORS = $v;  // elements, vectors that are taken\n",
                 {{"$index", count_ > (std::int64_t{1} << 30U) ? "long long" : "int"},
                  {"$n", std::to_string(count_)},
                  {"$v", std::to_string(vectors)}});
    for (std::size_t i = 0; i < chain_.operands().size(); ++i) {
      if (!whole(i)) code += fetch(i, width);
    }
    code += tile_function() + one_function();
    code += kernel_head("elementwise", threads) + '(' + parameters(graph_) + ") {\n";
    const std::string first = "(Index)blockIdx.x * " + std::to_string(tile) + " + threadIdx.x";
    if (pick("walk") == "once") {
      code += "  {\n    const Index v = " + first + ";\n";
    } else {
      code += "  for (Index v = " + first + "; v < VECTORS; v += (Index)gridDim.x * " + std::to_string(tile) + ") {\n";
    }
    const std::string names = argument_names(graph_);
    const std::string all = "tile<" + pick("unroll") + ", " + pick("threads") + ">(" + names + ", v * W);\n";
    if (tail == "past") {
      code += "    " + all;
    } else if (unroll == 1) {
      code += "    if (v < VECTORS) " + all;
    } else {
      code += "    if (v + " + std::to_string(tile - threads) + " < VECTORS) " + all;
      code += "    else for (Index w = v; w < VECTORS; w += " + pick("threads") + ") tile<1, " + pick("threads") +
              ">(" + names + ", w * W);\n";
    }
    code += "  }\n";
    const std::string rest = std::to_string(count_ % width);
    if (tail == "scalar" && count_ % width != 0) {
      code +=
          "  if (blockIdx.x == 0 && threadIdx.x < " + rest + ") one(" + names + ", N - " + rest + " + threadIdx.x);\n";
    }
    if (tail == "overlap" && count_ % width != 0)
      code += "  if (blockIdx.x == 0 && threadIdx.x == 0) tile<1, 1>(" + names + ", N - W);\n";
    code += "}\n";
    std::int64_t blocks = std::max<std::int64_t>(1, divide_up(vectors, tile));
    if (pick("walk") == "stride")
      blocks = std::min<std::int64_t>(blocks, multiprocessors * std::max(1, resident_threads / threads));
    return code + plan(graph_, launch("elementwise", std::to_string(blocks), threads, names));
  }

  /// Whether the operand has an element for each element of the output.
  [[nodiscard]] bool whole(std::size_t i) const { return element_count(chain_.operands()[i].shape) == count_; }

  /// "p + row / 4 * 8 + column", where the operand's element for element `e` of the output lies.
  [[nodiscard]] std::string place(std::size_t i, const std::string& e) const {
    const std::string inner = std::to_string(rows_.inner());
    const std::string offset = rows_.offset(i, "(" + e + " / " + inner + ")");
    std::string at = offset == "0" ? "p" : "p + " + offset;
    if (rows_.along_row(i)) at += " + " + e + " % " + inner;
    return at;
  }

  /// The operand's elements for those of the output from `e` on: one vector, one number, or one by one.
  [[nodiscard]] std::string fetch(std::size_t i, int width) const {
    const std::string& name = chain_.operands()[i].argument;
    const std::string head = "_" + name + "(const float* p, Index e) {\n";
    std::string code = "static inline Vector fetch" + head;
    const bool together = rows_.inner() % width == 0;
    if (together && rows_.along_row(i)) {
      code += "  return load(" + place(i, "e") + ");\n}\n";
    } else {
      if (together) code += "  const float n = read(" + place(i, "e") + ");\n";
      code += "  Vector v;\n  for (int k = 0; k < W; ++k) v.at[k] = " +
              (together ? "n" : "read(" + place(i, "(e + k)") + ")") + ";\n  return v;\n}\n";
    }
    return code + "static inline float one" + head + "  return read(" + place(i, "e") + ");\n}\n";
  }

  /// U vectors, S vectors from one to the next. All is loaded before anything is stored.
  [[nodiscard]] std::string tile_function() const {
    std::string code = "template <int U, int S> static inline void tile(" + parameters(graph_) + ", Index e) {\n";
    std::string loads;
    std::vector<std::string> values;
    for (std::size_t i = 0; i < chain_.operands().size(); ++i) {
      const std::string& name = chain_.operands()[i].argument;
      code += "  Vector v_" + name + "[U];\n";
      loads +=
          "    v_" + name + "[u] = " +
          (whole(i) ? "load(" + name + " + e + u * (S * W))" : "fetch_" + name + "(" + name + ", e + u * (S * W))") +
          ";\n";
      values.push_back("wide(v_" + name + "[u].at[k])");
    }
    return code + "#pragma unroll\n  for (int u = 0; u < U; ++u) {\n" + loads +
           "  }\n#pragma unroll\n  for (int u = 0; u < U; ++u) {\n    Vector o;\n#pragma unroll\n"
           "    for (int k = 0; k < W; ++k) o.at[k] = narrow(" +
           chain_.call("", values) + ");\n    store(out + e + u * (S * W), o);\n  }\n}\n";
  }

  [[nodiscard]] std::string one_function() const {
    std::vector<std::string> values;
    for (std::size_t i = 0; i < chain_.operands().size(); ++i) {
      const std::string& name = chain_.operands()[i].argument;
      values.push_back("wide(" + (whole(i) ? name + "[e]" : "one_" + name + "(" + name + ", e)") + ")");
    }
    return "static inline void one(" + parameters(graph_) + ", Index e) { out[e] = narrow(" + chain_.call("", values) +
           "); }\n";
  }

  std::shared_ptr<const Task> task_;
  GraphReader graph_;
  Chain chain_;
  Broadcast rows_;
  std::int64_t count_;
};

}  // namespace kevin::agent::detail::cuda

#endif  // KEVIN_AGENT_KERNEL_SPACE_CUDA_ELEMENTWISE_HPP
