#ifndef KEVIN_AGENT_KERNEL_SPACE_ROWS_HPP
#define KEVIN_AGENT_KERNEL_SPACE_ROWS_HPP

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kevin/agent/kernel_space/row_plan.hpp"
#include "kevin/agent/kernel_space/space.hpp"
#include "kevin/agent/kernel_space/vector_code.hpp"

namespace kevin::agent::detail {

/// The function `row(in, o, row_OPERAND...)`, which turns the row at `in` into the row at `o`, or into the one number
/// at `o`.
class RowCode {
 public:
  RowCode(const LineOps& line, const LinePlan& plan, int unroll, std::string tail, std::string precision)
      : line_(line), plan_(plan), unroll_(unroll), tail_(std::move(tail)), precision_(std::move(precision)) {}

  [[nodiscard]] std::string text() const {
    std::string code = "static inline T root(T v) { return __builtin_sqrt" +
                       std::string(precision_ == "float64" ? "" : "f") + "(v); }\n";
    code += "static inline T logarithm(T v) { return __builtin_log" + std::string(precision_ == "float64" ? "" : "f") +
            "(v); }\n";
    code += "static inline void row(const float* in, float* o" + operand_parameters() +
            ") {\n  constexpr long n = " + std::to_string(line_.length) + ";\n";
    bool kept = false;
    for (const Sweep& s : plan_.sweeps) {
      code += s.online ? online(s) : sweep(s);
      for (const auto& [name, expression] : s.derived) code += "  const T " + name + " = " + expression + ";\n";
      kept = kept || s.keep;
    }
    if (plan_.reduces) {
      code += "  *o = float(" + plan_.result + ");\n";
    } else {
      code += "  {\n" +
              map_loop([&](const Loader& at) { return substituted(plan_.result, at, kept ? "o" : "in"); }, "o", "n",
                       unroll_, tail_, "    ") +
              "  }\n";
    }
    return code + "}\n";
  }

  /// ", row_weight, row_bias" as arguments of a call: operands lie along every row alike.
  [[nodiscard]] std::string operand_arguments() const {
    std::string s;
    for (const Operand& o : line_.operands) s += ", " + o.argument;
    return s;
  }

 private:
  [[nodiscard]] std::string operand_parameters() const {
    std::string s;
    for (const Operand& o : line_.operands) s += ", const float* row_" + o.argument;
    return s;
  }

  /// `expression` with the element's and the operands' loads in place of `x` and `in_NAME`, as a call of a lambda: each
  /// is loaded once.
  [[nodiscard]] std::string substituted(const std::string& expression, const Loader& at,
                                        const std::string& pointer) const {
    std::string head = "[&](D x";
    std::string tail = ") -> D { return " + expression + "; }(wide(" + at(pointer) + ")";
    for (const Operand& o : line_.operands) {
      if (expression.find("in_" + o.argument) == std::string::npos) continue;
      head += ", D in_" + o.argument;
      tail += ", wide(" + at("row_" + o.argument) + ")";
    }
    return head + tail + ")";
  }

  [[nodiscard]] static std::string accumulate(const Statistic& s, const std::string& into, const std::string& value) {
    return into + (s.greatest ? " = most(" + into + ", " + value + ")" : " += " + value) + ";";
  }

  /// Accumulators of all vectors at a time, one more scalar for a tail taken element by element, and their end.
  [[nodiscard]] std::string sweep(const Sweep& sweep) const {
    std::string code;
    for (const Statistic& s : sweep.statistics) {
      const std::string start = s.greatest ? "D{} - 1e38f" : "D{}";
      code += "  D " + s.name + "0 = " + start;
      for (int u = 1; u < unroll_; ++u) code += ", " + s.name + std::to_string(u) + " = " + start;
      code += ";\n  T " + s.name + "_rest = " + (s.greatest ? "-1e38f" : "0") + ";\n";
    }
    const auto elements = [&](const Loader& at, const std::function<std::string(const Statistic&)>& use,
                              const std::string& store) {
      std::string t = "{";
      for (std::size_t i = 0; i < sweep.statistics.size(); ++i) {
        const Statistic& s = sweep.statistics[i];
        t += " const D e" + std::to_string(i) + " = " + substituted(s.element, at, "in") + "; ";
        if (i == 0 && sweep.keep) t += store + ' ';
        t += use(s);
      }
      return t + " }";
    };
    const auto number_of = [&](const Statistic& s) { return std::to_string(&s - sweep.statistics.data()); };
    LoopText text;
    text.step = [&](const Loader& at, const std::string& index, int u) {
      return elements(
          at, [&](const Statistic& s) { return accumulate(s, s.name + std::to_string(u), "e" + number_of(s)); },
          "store(o + " + index + ", narrow(e0));");
    };
    text.scalar = [&] {
      return elements(
          scalar_at("i"),
          [&](const Statistic& s) { return accumulate(s, s.name + "_rest", "e" + number_of(s) + "[0]"); },
          "o[i] = narrow(e0)[0];");
    };
    text.part = [&] {
      return elements(
          part_at("i", "n", sweep.rest),
          [&](const Statistic& s) { return accumulate(s, s.name + "0", "e" + number_of(s)); },
          "store_part(o + i, narrow(e0), n - i);");
    };
    code += "  {\n" + vector_loop(text, "n", unroll_, tail_, "    ") + "  }\n";
    for (const Statistic& s : sweep.statistics) {
      std::string all = s.name + "0";
      for (int u = 1; u < unroll_; ++u) {
        const std::string next = s.name + std::to_string(u);
        all = s.greatest ? "most(" + all + ", " + next + ")" : all + " + " + next;
      }
      code += "  const T " + s.name + " = " +
              (s.greatest ? "most(greatest(" + all + "), " + s.name + "_rest)"
                          : "total(" + all + ") + " + s.name + "_rest") +
              ";\n";
    }
    return code;
  }

  /// Greatest element and sum of exponentials in one sweep: each accumulator rescales its sum whenever its greatest
  /// grows.
  [[nodiscard]] std::string online(const Sweep& sweep) const {
    std::string code;
    for (int u = 0; u < unroll_; ++u) {
      code += fill("  D m$u = D{} - 1e30f, s$u = {};\n", {{"$u", std::to_string(u)}});
    }
    code += R"(  const auto take = [](D& m, D& s, D x) {
    const D b = most(m, x);
    s = s * exp_(m - b) + exp_(x - b);
    m = b;
  };
)";
    code += "  D m_rest = D{} - 1e30f, s_rest = {};\n";
    const auto use = [](const std::string& u, const std::string& x) {
      return "take(m" + u + ", s" + u + ", wide(" + x + "));";
    };
    LoopText text;
    text.step = [&](const Loader& at, const std::string&, int u) { return use(std::to_string(u), at("in")); };
    text.scalar = [&] { return use("_rest", scalar_at("i")("in")); };
    text.part = [&] { return use("0", part_at("i", "n", sweep.rest)("in")); };
    code += "  {\n" + vector_loop(text, "n", unroll_, tail_, "    ") + "  }\n";
    std::string all = "m0";
    for (int u = 1; u < unroll_; ++u) all = "most(" + all + ", m" + std::to_string(u) + ")";
    code += "  const T m = most(greatest(" + all + "), m_rest[0]);\n";
    std::string sum = "s0 * exp_(m0 - m)";
    for (int u = 1; u < unroll_; ++u) sum += fill(" + s$u * exp_(m$u - m)", {{"$u", std::to_string(u)}});
    code += "  const T s = total(" + sum + ")";
    // every lane of the scalar tail holds the same
    code += " + (s_rest * exp_(m_rest - m))[0];\n";
    return code;
  }

  const LineOps& line_;
  const LinePlan& plan_;
  int unroll_;
  std::string tail_;
  std::string precision_;
};

/// Softmax, normalisations and reductions over the last dims: each row by itself, vectors along it.
class Rows {
 public:
  Rows(const Task& task, LineOps line) : task_(std::make_shared<Task>(task)), graph_(*task_), line_(std::move(line)) {
    line_.ask(functions_);
  }

  [[nodiscard]] KernelSpace space() const {
    std::vector<Knob> knobs;
    if (line_.algorithms().size() > 1) knobs.push_back({"algorithm", line_.algorithms()});
    knobs.push_back({"width", {"4", "8", "16", "32", "12"}});
    knobs.push_back({"unroll", {"1", "2", "4", "8"}});
    knobs.push_back({"tail", {"scalar", "pad", "overlap", "ignore"}});
    if (line_.scales()) knobs.push_back({"scale", {"multiply", "divide"}});
    knobs.push_back({"precision", {"float32", "float64", "bfloat16"}});
    if (functions_.has_levels()) knobs.push_back({"math", {"libm", "exact", "fast", "coarse"}});
    knobs.push_back({"threads", {"1", "2"}});
    return KernelSpace("rows", std::move(knobs),
                       [self = *this](const KernelSpace::Picks& pick) { return self.render(pick); });
  }

 private:
  [[nodiscard]] std::string render(const KernelSpace::Picks& pick) const {
    const std::string precision = pick("precision");
    const LinePlan plan = line_.plan(pick("algorithm", "direct"), pick("scale", "multiply"));
    const RowCode row(line_, plan, pick.integer("unroll"), pick("tail"), precision);
    std::string code = source_head(graph_, "width " + pick("width") + ", unroll " + pick("unroll"), pick("threads"));
    code += vector_prelude({pick("width"), precision});
    code += functions_.text(pick("math", "exact"), precision);
    code += row.text();
    const std::string n = std::to_string(line_.length);
    code += "static void work(" + parameters(graph_) +
            ", long begin, long end) {\n  for (long r = begin; r < end; ++r) row(" +
            graph_.operand(task_->ops[0].in[0]).argument + " + r * " + n + ", out + r" +
            (plan.reduces ? "" : " * " + n) + row.operand_arguments() + ");\n}\n";
    return code + kernel_entry(graph_, std::to_string(line_.outer), pick("threads"));
  }

  std::shared_ptr<const Task> task_;
  GraphReader graph_;
  LineOps line_;
  FunctionCode functions_;
};

}  // namespace kevin::agent::detail

#endif  // KEVIN_AGENT_KERNEL_SPACE_ROWS_HPP
