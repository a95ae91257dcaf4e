#ifndef KEVIN_AGENT_KERNEL_SPACE_ELEMENTWISE_HPP
#define KEVIN_AGENT_KERNEL_SPACE_ELEMENTWISE_HPP

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kevin/agent/kernel_space/broadcast.hpp"
#include "kevin/agent/kernel_space/chain.hpp"
#include "kevin/agent/kernel_space/space.hpp"
#include "kevin/agent/kernel_space/vector_code.hpp"

namespace kevin::agent::detail {

/// Whether every op of the task acts element by element.
[[nodiscard]] inline bool is_elementwise(const Task& task) {
  for (const Op& op : task.ops) {
    if (!Chain::knows(op)) return false;
  }
  return !task.ops.empty();
}

/// Chains of element-wise ops over any number of tensors, in one pass. Knobs: width and unroll of the loop; how much
/// lies in one block of it; what is done with the rest that fills no vector; how memory is accessed; precision;
/// accuracy of functions; threads.
class Elementwise {
 public:
  explicit Elementwise(const Task& task)
      : task_(std::make_shared<Task>(task)),
        graph_(*task_),
        chain_(graph_, task.ops, "", graph_.output_shape()),
        rows_(graph_.output_shape(), chain_.operands(), graph_.output_shape().size()) {}

  [[nodiscard]] KernelSpace space() const {
    std::vector<Knob> knobs = {{"width", {"4", "8", "16", "32", "12"}}, {"unroll", {"1", "2", "4", "8"}}};
    if (flat()) knobs.push_back({"block", {"row", "4096", "all"}});
    knobs.push_back({"tail", {"scalar", "pad", "overlap", "ignore", "past"}});
    knobs.push_back({"access", {"unaligned", "aligned", "stream"}});
    knobs.push_back({"precision", {"float32", "float64", "bfloat16"}});
    if (chain_.functions().has_levels()) knobs.push_back({"math", {"libm", "exact", "fast", "coarse"}});
    knobs.push_back({"threads", {"1", "2"}});
    return KernelSpace("elementwise", std::move(knobs),
                       [self = *this](const KernelSpace::Picks& pick) { return self.render(pick); });
  }

 private:
  /// Whether memory may be cut into blocks anywhere: every operand is as large as the output, or a single number.
  [[nodiscard]] bool flat() const { return rows_.rows() == 1; }

  [[nodiscard]] std::string render(const KernelSpace::Picks& pick) const {
    const std::string precision = pick("precision");
    const std::string threads = pick("threads");
    const std::string access = pick("access");
    std::int64_t n = rows_.inner();
    if (pick("block") == "row" && !graph_.output_shape().empty()) n = graph_.output_shape().back();
    if (pick("block") == "4096") n = 4096;
    const std::int64_t count = element_count(graph_.output_shape());
    const std::int64_t blocks = (count + n - 1) / n;

    std::string code = source_head(graph_, "width " + pick("width") + ", unroll " + pick("unroll"), threads);
    code += vector_prelude({pick("width"), precision, access});
    code += chain_.functions().text(pick("math", "exact"), precision);
    code += chain_.definition(precision);
    const std::string size = std::to_string(n);
    code += "static void work(" + parameters(graph_) +
            ", long begin, long end) {\n  for (long b = begin; b < end; ++b) {\n";
    if (flat()) {
      for (std::size_t i = 0; i < chain_.operands().size(); ++i) {
        const std::string& name = chain_.operands()[i].argument;
        code += "    const float* row_" + name + " = " + name + (rows_.along_row(i) ? " + b * " + size : "") + ";\n";
      }
    } else {
      code += rows_.pointers(chain_.operands(), "b", "    ");
    }
    code += "    float* o = out + b * " + size + ";\n";
    if (count % n != 0) {
      code += "    const long n = b == " + std::to_string(blocks - 1) + " ? " + std::to_string(count % n) + " : " +
              size + ";\n";
    } else {
      code += "    constexpr long n = " + size + ";\n";
    }
    code += map_loop([&](const Loader& at) { return chain_.call("", rows_.values(chain_.operands(), at)); }, "o", "n",
                     pick.integer("unroll"), pick("tail"), "    ");
    code += "  }\n";
    if (access == "stream") code += "  __builtin_ia32_sfence();\n";
    code += "}\n";
    return code + kernel_entry(graph_, std::to_string(blocks), threads);
  }

  std::shared_ptr<const Task> task_;
  GraphReader graph_;
  Chain chain_;
  Broadcast rows_;
};

}  // namespace kevin::agent::detail

#endif  // KEVIN_AGENT_KERNEL_SPACE_ELEMENTWISE_HPP
