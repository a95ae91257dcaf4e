#ifndef KEVIN_AGENT_KERNEL_SPACE_CUDA_LINES_HPP
#define KEVIN_AGENT_KERNEL_SPACE_CUDA_LINES_HPP

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kevin/agent/kernel_space/cuda/device_code.hpp"
#include "kevin/agent/kernel_space/cuda/line_code.hpp"
#include "kevin/agent/kernel_space/row_plan.hpp"
#include "kevin/agent/kernel_space/space.hpp"

namespace kevin::agent::detail::cuda {

/// The knobs about lines, apart from what all kernels have.
[[nodiscard]] inline std::vector<Knob> line_knobs(const LineOps& line) {
  const bool columns = line.inner > 1;
  std::vector<Knob> knobs;
  if (line.algorithms().size() > 1) knobs.push_back({"algorithm", line.algorithms()});
  if (columns) {
    knobs.push_back({"columns", {"32", "16", "64", "8"}});
  } else {
    knobs.push_back({"team", {"block", "warp"}});
    knobs.push_back({"reduce", {"shuffle", "shared"}});
  }
  knobs.push_back({"sync", {"yes", "missing"}});
  if (!line.reduces() || line.algorithms().size() > 1) knobs.push_back({"keep", {"no", "registers", "shared"}});
  if (line.scales()) knobs.push_back({"scale", {"multiply", "divide"}});
  return knobs;
}

/// What is picked of them; `line` has to outlive nothing.
[[nodiscard]] inline LineStyle line_style(const LineOps& line, const KernelSpace::Picks& pick) {
  LineStyle style;
  style.threads = pick.integer("threads");
  style.team = line.inner > 1 ? "column" : pick("team");
  if (line.inner > 1) style.columns = pick.integer("columns");
  style.reduce = pick("reduce", "shared");
  style.sync = pick("sync") == "yes";
  style.keep = pick("keep", "no");
  style.width = std::stoi(pick("width", "1"));
  style.unroll = pick("unroll");
  style.tail = pick("tail");
  return style;
}

/// Softmax, normalisations and reductions: over the last dims ("rows": a block or a warp has a row) or over a middle
/// dim ("columns": a block has some columns side by side, and several threads share each).
class Lines {
 public:
  Lines(const Task& task, LineOps line) : task_(std::make_shared<Task>(task)), graph_(*task_), line_(std::move(line)) {
    line_.ask(functions_);
    if (line_.length > (std::int64_t{1} << 30U) || line_.inner > (std::int64_t{1} << 30U) / line_.length)
      unsupported(*task_, "its lines have more than 2^30 elements");
  }

  [[nodiscard]] KernelSpace space() const {
    std::vector<Knob> knobs = {threads_knob()};
    for (Knob& k : line_knobs(line_)) knobs.push_back(std::move(k));
    if (line_.inner == 1) knobs.push_back(width_knob());
    knobs.push_back({"unroll", {"1", "2", "4", "8"}});
    knobs.push_back({"tail", {"scalar", "ignore", "past"}});
    knobs.push_back(access_knob());
    knobs.push_back(precision_knob());
    if (functions_.has_levels()) knobs.push_back(math_knob());
    return KernelSpace(line_.inner == 1 ? "rows" : "columns", std::move(knobs),
                       [self = *this](const KernelSpace::Picks& pick) { return self.render(pick); });
  }

 private:
  [[nodiscard]] std::string render(const KernelSpace::Picks& pick) const {
    const std::string precision = pick("precision");
    const LinePlan plan = line_.plan(pick("algorithm", "direct"), pick("scale", "multiply"));
    const LineStyle style = line_style(line_, pick);
    const LineCode lines(line_, plan, style, precision);
    std::string code = source_head(
        graph_, pick("threads") + " threads, a " + style.team + " for a line, width " + pick("width", "1"), "1");
    code += number_prelude(precision) + vector_prelude(pick("width", "1"), pick("access"));
    code += functions_.text(pick("math", "libm"), precision, Backend::cuda);
    code += lines.text();
    return code + cuda::plan(graph_, lines.launch_text(graph_.operand(task_->ops[0].in[0]).argument, "out"));
  }

  std::shared_ptr<const Task> task_;
  GraphReader graph_;
  LineOps line_;
  FunctionCode functions_;
};

}  // namespace kevin::agent::detail::cuda

#endif  // KEVIN_AGENT_KERNEL_SPACE_CUDA_LINES_HPP
