#ifndef KEVIN_AGENT_KERNEL_SPACE_COLUMNS_HPP
#define KEVIN_AGENT_KERNEL_SPACE_COLUMNS_HPP

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

/// Softmax, normalisations and reductions over a middle dim: vectors lie across the lines, so that no sum within a
/// vector is needed. Orders: "tile" keeps the statistics of some columns in registers and walks down; "sweep" walks
/// along the memory and keeps the statistics of all columns in a buffer (on the stack, which holds no line of
/// millions).
class Columns {
 public:
  Columns(const Task& task, LineOps line)
      : task_(std::make_shared<Task>(task)), graph_(*task_), line_(std::move(line)) {
    line_.ask(functions_);
  }

  [[nodiscard]] KernelSpace space() const {
    std::vector<Knob> knobs = {{"order", {"tile", "sweep"}}};
    if (line_.algorithms().size() > 1) knobs.push_back({"algorithm", line_.algorithms()});
    knobs.push_back({"width", {"4", "8", "16", "32", "12"}});
    knobs.push_back({"unroll", {"1", "2", "4", "8"}});
    knobs.push_back({"lines", {"1", "2", "4"}});
    knobs.push_back({"tail", {"scalar", "pad", "overlap", "ignore", "past"}});
    if (line_.scales()) knobs.push_back({"scale", {"multiply", "divide"}});
    knobs.push_back({"precision", {"float32", "float64", "bfloat16"}});
    if (functions_.has_levels()) knobs.push_back({"math", {"libm", "exact", "fast", "coarse"}});
    knobs.push_back({"threads", {"1", "2"}});
    return KernelSpace("columns", std::move(knobs),
                       [self = *this](const KernelSpace::Picks& pick) { return self.render(pick); });
  }

 private:
  [[nodiscard]] std::string render(const KernelSpace::Picks& pick) const {
    const std::string precision = pick("precision");
    const LinePlan plan = line_.plan(pick("algorithm", "direct"), pick("scale", "multiply"));
    std::string code =
        source_head(graph_, pick("order") + ", width " + pick("width") + ", unroll " + pick("unroll"), pick("threads"));
    code += vector_prelude({pick("width"), precision});
    FunctionCode functions = functions_;
    functions.need("sqrt");
    if (functions_.has_levels()) functions.need("log");
    code += functions.text(pick("math", "exact"), precision);
    code += "static inline D root(D v) { return sqrt_(v); }\n";
    if (functions_.has_levels()) code += "static inline D logarithm(D v) { return log_(v); }\n";
    code += "constexpr long R = " + std::to_string(line_.length) + ", C = " + std::to_string(line_.inner) +
            ";  // lines of R, C side by side\n";
    const std::string x = graph_.operand(task_->ops[0].in[0]).argument;
    const std::string head =
        "static void work(" + parameters(graph_) +
        ", long begin, long end) {\n  for (long a = begin; a < end; ++a) {\n    const float* in = " + x +
        " + a * (R * C);\n    float* o = out + a * (" + (plan.reduces ? "C" : "R * C") + ");\n";
    if (pick("order") == "tile") {
      code += tiles(plan, pick) + head + tile_walk(pick);
    } else {
      code +=
          "typedef T DM __attribute__((vector_size(W * sizeof(T)), aligned(sizeof(T)), may_alias));\n"
          "static inline D load_number(const T* p) { return *(const DM*)p; }\n"
          "static inline void store_number(T* p, D v) { *(DM*)p = v; }\n";
      code += head + sweeps(plan, pick);
    }
    code += "  }\n}\n";
    return code + kernel_entry(graph_, std::to_string(line_.outer), pick("threads"));
  }

  // --- order "tile" ---

  /// tileU for U vectors of columns, tile1 for one, and for the tail tile_scalar (one column) or tile_part (some
  /// columns).
  [[nodiscard]] std::string tiles(const LinePlan& plan, const KernelSpace::Picks& pick) const {
    const int unroll = pick.integer("unroll");
    const int lines = pick.integer("lines");
    std::string code = tile(plan, lines, "tile1", "", 1, vector_loads(), vector_stores());
    if (unroll > 1)
      code += tile(plan, lines, "tile" + std::to_string(unroll), "", unroll, vector_loads(), vector_stores());
    if (pick("tail") == "scalar") {
      code += tile(
          plan, lines, "tile_scalar", "", 1,
          [](const std::string& at, int, const std::string&) { return "splat(in[" + at + "])"; },
          [](const std::string& at, int, const std::string& v) { return "o[" + at + "] = narrow(" + v + ")[0];"; });
    }
    if (pick("tail") == "pad") {
      code += tile(
          plan, lines, "tile_part", ", long n", 1,
          [](const std::string& at, int, const std::string& rest) {
            return "load_part(in + " + at + ", n, " + rest + ")";
          },
          [](const std::string& at, int, const std::string& v) {
            return "store_part(o + " + at + ", narrow(" + v + "), n);";
          });
    }
    return code;
  }

  using Load = std::function<std::string(const std::string& at, int vector, const std::string& rest)>;
  using Store = std::function<std::string(const std::string& at, int vector, const std::string& value)>;

  [[nodiscard]] static Load vector_loads() {
    return [](const std::string& at, int u, const std::string&) { return "load(in + " + vector_index(at, u) + ")"; };
  }
  [[nodiscard]] static Store vector_stores() {
    return [](const std::string& at, int u, const std::string& v) {
      return "store(o + " + vector_index(at, u) + ", narrow(" + v + "));";
    };
  }

  [[nodiscard]] std::string tile(const LinePlan& plan, int lines, const std::string& name, const std::string& more,
                                 int vectors, const Load& load, const Store& store) const {
    std::string code = "static inline void " + name + "(const float* in, float* o" + more + ") {\n";
    bool kept = false;
    for (const Sweep& s : plan.sweeps) {
      for (int u = 0; u < vectors; ++u) {
        for (const Statistic& t : s.statistics) {
          for (int g = 0; g < lines; ++g) code += "  D " + one(t.name, u, g) + " = " + start(t, s) + ";\n";
        }
      }
      const auto line = [&](const std::string& r, int g) {
        std::string t;
        for (int u = 0; u < vectors; ++u)
          t += "    " + take(s, u, g, "wide(" + load(r + " * C", u, "0.0f") + ")", store, r) + "\n";
        return t;
      };
      code += "  long r" + std::to_string(&s - plan.sweeps.data()) + " = 0;\n";
      const std::string r = "r" + std::to_string(&s - plan.sweeps.data());
      if (lines > 1) {
        code +=
            "  for (; " + r + " + " + std::to_string(lines) + " <= R; " + r + " += " + std::to_string(lines) + ") {\n";
        for (int g = 0; g < lines; ++g) code += line(g == 0 ? r : "(" + r + " + " + std::to_string(g) + ")", g);
        code += "  }\n";
      }
      code += "  for (; " + r + " < R; ++" + r + ") {\n" + line(r, 0) + "  }\n";
      for (int u = 0; u < vectors; ++u) {
        code += merge(s, u, lines);
        for (const auto& [n, expression] : s.derived)
          code += "  const D " + n + std::to_string(u) + " = " + renamed(plan, expression, u) + ";\n";
      }
      kept = kept || s.keep;
    }
    if (plan.reduces) {
      for (int u = 0; u < vectors; ++u) code += "  " + store("0", u, renamed(plan, plan.result, u)) + "\n";
    } else {
      code += "  for (long r = 0; r < R; ++r) {\n";
      for (int u = 0; u < vectors; ++u) {
        std::string from = load("r * C", u, "0.0f");
        if (kept) from = fill(from, {{"in + ", "o + "}, {"in[", "o["}});
        code += "    { const D x = wide(" + from + "); " + store("r * C", u, renamed(plan, plan.result, u)) + " }\n";
      }
      code += "  }\n";
    }
    return code + "}\n";
  }

  [[nodiscard]] static std::string one(const std::string& name, int vector, int line) {
    return name + std::to_string(vector) + (line == 0 ? "" : "_" + std::to_string(line));
  }
  [[nodiscard]] static std::string start(const Statistic& t, const Sweep& s) {
    return t.greatest ? (s.online ? "D{} - 1e30f" : "D{} - 1e38f") : "D{}";
  }

  /// What one line of elements does to the statistics of vector `u`.
  [[nodiscard]] std::string take(const Sweep& s, int u, int g, const std::string& x, const Store& store,
                                 const std::string& r) const {
    if (s.online) {
      return fill("{ const D x = $x, b = most($m, x); $s = $s * exp_($m - b) + exp_(x - b); $m = b; }",
                  {{"$x", x}, {"$m", one("m", u, g)}, {"$s", one("s", u, g)}});
    }
    std::string t = "{ const D x = " + x + ";";
    for (std::size_t i = 0; i < s.statistics.size(); ++i) {
      const Statistic& statistic = s.statistics[i];
      const std::string e = "e" + std::to_string(i);
      const std::string a = one(statistic.name, u, g);
      t += " const D " + e + " = " + renamed(statistic.element, {"m", "mean"}, u) + ";";
      if (i == 0 && s.keep) t += ' ' + store(r + " * C", u, e);
      t += ' ' + a + (statistic.greatest ? " = most(" + a + ", " + e + ");" : " += " + e + ";");
    }
    return t + " }";
  }

  /// The statistics of vector `u` over all lines taken at a time.
  [[nodiscard]] static std::string merge(const Sweep& s, int u, int lines) {
    std::string code;
    for (int g = 1; g < lines; ++g) {
      if (s.online) {
        code += fill("  { const D b = most($m, $n); $s = $s * exp_($m - b) + $t * exp_($n - b); $m = b; }\n",
                     {{"$m", one("m", u, 0)}, {"$s", one("s", u, 0)}, {"$n", one("m", u, g)}, {"$t", one("s", u, g)}});
        continue;
      }
      for (const Statistic& t : s.statistics) {
        const std::string a = one(t.name, u, 0);
        code += "  " + a +
                (t.greatest ? " = most(" + a + ", " + one(t.name, u, g) + ");\n" : " += " + one(t.name, u, g) + ";\n");
      }
    }
    return code;
  }

  /// `expression` with each of `names`, where it stands as a whole word, followed by the number of the vector.
  [[nodiscard]] static std::string renamed(const std::string& expression, const std::vector<std::string>& names,
                                           int u) {
    const auto letter = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
    };
    std::string out;
    for (std::size_t i = 0; i < expression.size();) {
      std::size_t end = i;
      while (end < expression.size() && letter(expression[end])) ++end;
      if (end == i) ++end;
      const std::string word = expression.substr(i, end - i);
      out += word;
      for (const std::string& n : names) {
        if (word == n) out += std::to_string(u);
      }
      i = end;
    }
    return out;
  }
  [[nodiscard]] static std::string renamed(const LinePlan& plan, const std::string& expression, int u) {
    return renamed(expression, numbers(plan), u);
  }

  /// The names of all statistics and derived numbers.
  [[nodiscard]] static std::vector<std::string> numbers(const LinePlan& plan) {
    std::vector<std::string> names;
    for (const Sweep& s : plan.sweeps) {
      for (const Statistic& t : s.statistics) names.push_back(t.name);
      for (const auto& d : s.derived) names.push_back(d.first);
    }
    return names;
  }

  [[nodiscard]] static std::string tile_walk(const KernelSpace::Picks& pick) {
    const std::string unroll = pick("unroll");
    const std::string tail = pick("tail");
    std::string code = "    long c = 0;\n";
    if (unroll != "1")
      code += "    for (; c + " + unroll + " * W <= C; c += " + unroll + " * W) tile" + unroll + "(in + c, o + c);\n";
    code += "    for (; c + W <= C; c += W) tile1(in + c, o + c);\n";
    if (tail == "scalar") code += "    for (; c < C; ++c) tile_scalar(in + c, o + c);\n";
    if (tail == "pad") code += "    if (c < C) tile_part(in + c, o + c, C - c);\n";
    if (tail == "overlap") code += "    if (c < C) tile1(in + (C - W), o + (C - W));\n";
    if (tail == "past") code += "    if (c < C) tile1(in + c, o + c);\n";
    return code;
  }

  // --- order "sweep" ---

  [[nodiscard]] std::string sweeps(const LinePlan& plan, const KernelSpace::Picks& pick) const {
    const int unroll = pick.integer("unroll");
    const std::string tail = pick("tail");
    std::string code;
    for (const std::string& n : numbers(plan)) code += "    T " + n + "_of[C + W];\n";
    bool kept = false;
    std::vector<std::string> known;
    for (const Sweep& s : plan.sweeps) {
      for (const Statistic& t : s.statistics) {
        code += "    for (long c = 0; c < C; ++c) " + t.name +
                "_of[c] = " + (t.greatest ? (s.online ? "-1e30f" : "-1e38f") : "0") + ";\n";
        known.push_back(t.name);
      }
      code += "    for (long r = 0; r < R; ++r) {\n      const float* line = in + r * C;\n" +
              line_of(s, known, unroll, tail) + "    }\n";
      for (const auto& [name, expression] : s.derived) {
        LoopText text;
        text.step = [&, n = name, e = expression](const Loader&, const std::string& i, int) {
          return "{ " + reads(known, i) + "store_number(" + n + "_of + " + i + ", " + e + "); }";
        };
        text.scalar = [&, n = name, e = expression] {
          return "{ " + reads_one(known) + n + "_of[c] = (" + e + ")[0]; }";
        };
        text.part = [&] { return text.step({}, "c", 0); };  // the buffers have room for a whole vector
        code += "    {\n" + vector_loop(text, "C", unroll, tail, "      ", "c") + "    }\n";
        known.push_back(name);
      }
      kept = kept || s.keep;
    }
    const auto value = [&](const Loader& at) {
      std::string list;
      std::string loads;
      for (const std::string& n : known) {
        list += ", D " + n;
        loads += ", " + number_at(at, n);
      }
      return plan.reduces
                 ? "[](" + list.substr(2) + ") -> D { return " + plan.result + "; }(" + loads.substr(2) + ")"
                 : "[](D x" + list + ") -> D { return " + plan.result + "; }(wide(" + at("line") + ")" + loads + ")";
    };
    if (plan.reduces) return code + "    {\n" + map_loop(value, "o", "C", unroll, tail, "      ", "c") + "    }\n";
    code += "    for (long r = 0; r < R; ++r) {\n      const float* line = " + std::string(kept ? "o" : "in") +
            " + r * C;\n      float* to = o + r * C;\n";
    return code + map_loop(value, "to", "C", unroll, tail, "      ", "c") + "    }\n";
  }

  /// The buffered number `n` where `at` finds elements.
  [[nodiscard]] static std::string number_at(const Loader& at, const std::string& n) {
    const std::string text = at(n + "_of");
    if (text.starts_with("splat(")) return "(D{} + " + n + "_of[c])";
    if (text.starts_with("load_part(")) return "load_number(" + n + "_of + c)";
    return "load_number" + text.substr(text.find('('));
  }
  [[nodiscard]] static std::string reads(const std::vector<std::string>& known, const std::string& index) {
    std::string s;
    for (const std::string& n : known)
      s += "[[maybe_unused]] D " + n + " = load_number(" + n + "_of + " + index + "); ";
    return s;
  }
  [[nodiscard]] static std::string reads_one(const std::vector<std::string>& known) {
    std::string s;
    for (const std::string& n : known) s += "[[maybe_unused]] D " + n + " = D{} + " + n + "_of[c]; ";
    return s;
  }

  /// One line of elements into the buffered statistics.
  [[nodiscard]] std::string line_of(const Sweep& s, const std::vector<std::string>& known, int unroll,
                                    const std::string& tail) const {
    const auto body = [&](const std::string& x, const std::string& read,
                          const std::function<std::string(const std::string&, const std::string&)>& write,
                          const std::string& keep) {
      std::string t = "{ " + read + "const D x = wide(" + x + "); ";
      if (s.online) {
        t += "const D b = most(m, x); s = s * exp_(m - b) + exp_(x - b); m = b; ";
      } else {
        for (std::size_t i = 0; i < s.statistics.size(); ++i) {
          const Statistic& q = s.statistics[i];
          t += "const D e" + std::to_string(i) + " = " + q.element + "; ";
          if (i == 0 && s.keep) t += keep + ' ';
          t += q.name + (q.greatest ? " = most(" + q.name + ", e" + std::to_string(i) + "); "
                                    : " += e" + std::to_string(i) + "; ");
        }
      }
      for (const Statistic& q : s.statistics) t += write(q.name, q.name) + ' ';
      return t + "}";
    };
    LoopText text;
    text.step = [&](const Loader& at, const std::string& i, int) {
      return body(
          at("line"), reads(known, i),
          [&](const std::string& n, const std::string& v) {
            return "store_number(" + n + "_of + " + i + ", " + v + ");";
          },
          "store(o + r * C + " + i + ", narrow(e0));");
    };
    text.scalar = [&] {
      return body(
          "splat(line[c])", reads_one(known),
          [&](const std::string& n, const std::string& v) { return n + "_of[c] = " + v + "[0];"; },
          "o[r * C + c] = narrow(e0)[0];");
    };
    text.part = [&] {
      return body(
          "load_part(line + c, C - c, 0.0f)", reads(known, "c"),
          [&](const std::string& n, const std::string& v) { return "store_number(" + n + "_of + c, " + v + ");"; },
          "store_part(o + r * C + c, narrow(e0), C - c);");
    };
    return vector_loop(text, "C", unroll, tail, "      ", "c");
  }

  std::shared_ptr<const Task> task_;
  GraphReader graph_;
  LineOps line_;
  FunctionCode functions_;
};

}  // namespace kevin::agent::detail

#endif  // KEVIN_AGENT_KERNEL_SPACE_COLUMNS_HPP
