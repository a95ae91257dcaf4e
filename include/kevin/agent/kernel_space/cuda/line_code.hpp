#ifndef KEVIN_AGENT_KERNEL_SPACE_CUDA_LINE_CODE_HPP
#define KEVIN_AGENT_KERNEL_SPACE_CUDA_LINE_CODE_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "kevin/agent/kernel_space/cuda/device_code.hpp"
#include "kevin/agent/kernel_space/row_plan.hpp"

namespace kevin::agent::detail::cuda {

/// How threads share lines of elements.
struct LineStyle {
  int threads = 256;               ///< of a block
  std::string team = "block";      ///< who has a line: "block", "warp", or "column" (inner > 1): a column of threads
  int columns = 32;                ///< "column": lines side by side that a block takes
  std::string reduce = "shuffle";  ///< between threads: "shuffle" or "shared" (a tree in shared memory)
  bool sync = true;                ///< whether threads wait for each other around shared memory
  std::string keep = "no";         ///< where a line is kept between sweeps: "no", "registers" or "shared"
  int width = 1;                   ///< of vectors along a line; 1 for columns
  std::string unroll = "1";        ///< vectors that a thread takes in one turn of its loop
  std::string tail = "scalar";     ///< "scalar": any length is right; "ignore": what fills no vector is left out, and
                                   ///< lines are taken to begin at a vector; "past": beyond the end of the line
};

/// The kernel `lines(from, row_OPERAND..., to)`, which computes a LinePlan for each line, and its launch. The source
/// stands after number_prelude, vector_prelude and the plan's functions.
class LineCode {
 public:
  LineCode(const LineOps& line, const LinePlan& plan, LineStyle style, std::string precision)
      : line_(line), plan_(plan), style_(std::move(style)), precision_(std::move(precision)) {
    style_.columns = std::min(style_.columns, style_.threads);
    team_ = style_.team == "block" ? style_.threads : style_.team == "warp" ? 32 : style_.threads / style_.columns;
    const std::int64_t vectors =
        style_.tail == "past" ? divide_up(line_.length, style_.width) : line_.length / style_.width;
    items_ = divide_up(vectors, team_);
  }

  /// Whether lines may begin between two vectors, and end there.
  [[nodiscard]] bool ragged() const { return style_.tail == "scalar" && line_.length % style_.width != 0; }

  [[nodiscard]] std::string text() const {
    const bool wide = precision_ == "float64";
    std::string code = fill(R"(constexpr long long LINES = $lines;
constexpr int N = $n, C = $c;        // elements of a line, from one to the next
constexpr int TEAM = $team, ITEMS = $items;  // threads on a line, vectors that each takes
static inline T root(T v) { return $root(v); }
static inline T logarithm(T v) { return $log(v); }
)",
                            {{"$lines", std::to_string(line_.outer * line_.inner)},
                             {"$n", std::to_string(line_.length)},
                             {"$c", std::to_string(line_.inner)},
                             {"$team", std::to_string(team_)},
                             {"$items", std::to_string(items_)},
                             {"$root", wide ? "sqrt" : "sqrtf"},
                             {"$log", wide ? "log" : "logf"}});
    code += walk() + reduce() + kernel_head("lines", style_.threads) + "(const float* __restrict__ from";
    for (const Operand& o : line_.operands) code += ", const float* __restrict__ row_" + o.argument;
    code += ", float* __restrict__ to) {\n" + place() + storage();
    bool kept = false;  // the first statistic's elements stand where the line's own were
    for (std::size_t i = 0; i < plan_.sweeps.size(); ++i) {
      code += sweep(i, kept);
      kept = kept || plan_.sweeps[i].keep;
    }
    if (plan_.reduces) {
      code += "  if (t == 0" + std::string(partial() ? " && mine" : "") + ") *o = narrow(" + plan_.result + ");\n";
    } else {
      code += loop(
          plan_.sweeps.size(), kept, {},
          [&](const std::string& k) {
            return "{ " + operands(plan_.result, k) + "w.at[" + k + "] = narrow(" + plan_.result + "); }";
          },
          "o");
    }
    return code + "}\n";
  }

  /// `from`, `to`: expressions for the tensors in kevin_plan; `name`: the kernel's, from there.
  [[nodiscard]] std::string launch_text(const std::string& from, const std::string& to,
                                        const std::string& name = "lines") const {
    std::string arguments = from;
    for (const Operand& o : line_.operands) arguments += ", " + o.argument;
    const std::int64_t together = style_.threads / team_;  // lines of a block
    const std::int64_t blocks =
        style_.team == "column" ? line_.outer * divide_up(line_.inner, together) : divide_up(line_.outer, together);
    return launch(name, std::to_string(blocks), style_.threads, arguments + ", " + to,
                  style_.keep == "shared" ? together * line_.length * 4 : 0);
  }

 private:
  [[nodiscard]] bool column() const { return style_.team == "column"; }
  /// Whether some threads have no column of their own.
  [[nodiscard]] bool partial() const {
    return column() && style_.tail == "scalar" && line_.inner % style_.columns != 0;
  }

  [[nodiscard]] std::string walk() const {
    const bool all = style_.keep == "registers" && items_ * style_.width <= 128;
    std::string code =
        "// full(i, slot) for each vector of thread t, one(i, slot) for single elements; slot counts what it takes\n"
        "template <class Full, class One> static inline void walk(int t, int head, Full full, One one) {\n#pragma "
        "unroll" +
        std::string(all ? "" : ' ' + style_.unroll) +
        "\n  for (int j = 0; j < ITEMS; ++j) {\n    const int i = head + (j * TEAM + t) * W;\n    " +
        (style_.tail == "past" ? "" : "if (i + W <= N) ") + "full(i, j * W);\n  }\n";
    if (ragged()) {
      code +=
          "  if (t < head) one(t, ITEMS * W);\n  const int rest = head + (N - head) / W * W;\n"
          "  if (rest + t < N) one(rest + t, ITEMS * W + 1);\n";
    }
    return code + "}\n";
  }

  /// reduce<number>(value, op): over the threads of a line; every one of them has the result.
  [[nodiscard]] std::string reduce() const {
    std::string code = R"(struct Add { T operator()(T a, T b) const { return a + b; } };
struct Most { T operator()(T a, T b) const { return most(a, b); } };
)";
    const bool online = std::any_of(plan_.sweeps.begin(), plan_.sweeps.end(), [](const Sweep& s) { return s.online; });
    if (style_.reduce == "shuffle")
      code += "static inline T exchange(T v, int d) { return __shfl_xor_sync(0xffffffffu, v, d); }\n";
    if (online) {
      code += R"(struct Online { T m, s; };  // the greatest element, the sum of exp(x - m)
struct Merge {
  Online operator()(Online a, Online b) const {
    const T m = most(a.m, b.m);
    return {m, a.s * exp_(a.m - m) + b.s * exp_(b.m - m)};
  }
};
)";
      if (style_.reduce == "shuffle")
        code += "static inline Online exchange(Online v, int d) { return {exchange(v.m, d), exchange(v.s, d)}; }\n";
    }
    code += "template <int number, class A, class Op> static inline A reduce(A v, Op op) {\n";
    const std::string threads = std::to_string(style_.threads);
    const std::string wait = !style_.sync ? "" : style_.team == "warp" ? "  __syncwarp();\n" : "  __syncthreads();\n";
    if (column()) {
      code += "  __shared__ A part[" + threads + "];\n  part[threadIdx.x] = v;\n" + wait;
      const std::string c = std::to_string(style_.columns);
      code += "  const int c = threadIdx.x % " + c +
              ";\n  v = part[c];\n  for (int y = 1; y < TEAM; ++y) v = op(v, part[y * " + c + " + c]);\n";
    } else if (style_.reduce == "shuffle") {
      code += "  for (int d = 16; d > 0; d /= 2) v = op(v, exchange(v, d));\n";
      if (style_.team == "block" && style_.threads > 32) {
        const std::string warps = std::to_string(style_.threads / 32);
        code +=
            "  __shared__ A part[" + warps + "];\n  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;\n" + wait;
        code += "  v = part[0];\n  for (int w = 1; w < " + warps + "; ++w) v = op(v, part[w]);\n";
      }
    } else {
      code += "  __shared__ A part[" + threads +
              "];\n  A* mine = part + threadIdx.x;\n  const int t = threadIdx.x % TEAM;\n  *mine = v;\n" + wait +
              "  for (int d = TEAM / 2; d > 0; d /= 2) {\n    if (t < d) *mine = op(*mine, mine[d]);\n  " + wait +
              "  }\n  v = mine[-t];\n";
    }
    return code + "  return v;\n}\n";
  }

  /// Which line: `in`, `o`, the thread's number t on it, how many elements lie before its first whole vector.
  [[nodiscard]] std::string place() const {
    std::string code;
    if (column()) {
      const std::string c = std::to_string(style_.columns);
      const std::string across = std::to_string(divide_up(line_.inner, style_.columns));
      code = "  const int t = threadIdx.x / " + c + ";\n  const long long a = blockIdx.x / " + across +
             ";\n  int c = blockIdx.x % " + across + " * " + c + " + threadIdx.x % " + c + ";\n";
      // threads beyond the last column read it as well, for all must take part in what is shared, but write nothing
      if (partial()) code += "  const bool mine = c < C;\n  if (!mine) c = C - 1;\n";
      if (style_.tail == "ignore" && line_.inner % style_.columns != 0)
        code += "  if (blockIdx.x % " + across + " == " + across + " - 1) return;\n";
      code += "  const float* in = from + a * N * C + c;\n  float* o = to + a * " +
              std::string(plan_.reduces ? "C" : "N * C") + " + c;\n";
    } else if (style_.team == "warp") {
      code = "  const int t = threadIdx.x % 32;\n  const long long r = (long long)blockIdx.x * " +
             std::to_string(style_.threads / 32) + " + threadIdx.x / 32;\n";
      if (style_.tail != "past") code += "  if (r >= LINES) return;\n";
    } else {
      code = "  const int t = threadIdx.x;\n  const long long r = blockIdx.x;\n";
    }
    if (!column()) {
      code +=
          "  const float* in = from + r * N;\n  float* o = to + r" + std::string(plan_.reduces ? "" : " * N") + ";\n";
    }
    return code + (ragged() ? "  const int head = least<int>(N, (int)(-(r * N) & (W - 1)));\n"
                            : "  constexpr int head = 0;\n");
  }

  [[nodiscard]] std::string storage() const {
    if (style_.keep == "registers") return "  float kept[ITEMS * W + 2];\n";
    if (style_.keep != "shared") return "";
    const std::string shared = "  extern __shared__ __align__(16) float shared[];\n  float* kept = shared + ";
    if (column()) return shared + "threadIdx.x % " + std::to_string(style_.columns) + ";\n";
    return shared + (style_.team == "warp" ? "threadIdx.x / 32 * N" : "0") + ";\n";
  }

  /// Index of element i (slot) in what is kept.
  [[nodiscard]] std::string kept_at(const std::string& k) const {
    if (style_.keep == "registers") return "kept[slot + " + k + "]";
    return column() ? "kept[i * " + std::to_string(style_.columns) + "]" : "kept[i + " + k + "]";
  }

  /// Declarations of the operands that `expression` reads, for element i + k.
  [[nodiscard]] std::string operands(const std::string& expression, const std::string& k) const {
    std::string code;
    for (const Operand& o : line_.operands) {
      if (expression.find("in_" + o.argument) == std::string::npos) continue;
      const bool together = k == "k" && line_.length % style_.width == 0;
      code += "const D in_" + o.argument + " = wide(" +
              (together ? "v_" + o.argument + ".at[k]" : "row_" + o.argument + "[i + " + k + "]") + "); ";
    }
    return code;
  }

  /// One walk over the line. `body(k)`: the statement for element x. `written`: what the vector w is stored to: "o",
  /// "kept" or nothing.
  template <class Body>
  [[nodiscard]] std::string loop(std::size_t number, bool kept, const std::string& uses, const Body& body,
                                 const std::string& written) const {
    const bool memory = style_.keep == "no" || number == 0;  // else what is kept is read
    const bool fills = style_.keep != "no" && number == 0 && plan_.sweeps.size() + (plan_.reduces ? 0 : 1) > 1;
    const std::string step = column() ? " * C" : "";
    const auto statements = [&](bool full) {
      const std::string k = full ? "k" : "0";
      std::string code;
      if (!memory) {
        code += full ? "      Vector v;\n      for (int k = 0; k < W; ++k) v.at[k] = " + kept_at("k") + ";\n"
                     : "      Vector v;\n      v.at[0] = " + kept_at("0") + ";\n";
      } else if (kept) {
        code += full ? "      Vector v;\n      v.packed = *(const Packed*)(o + i" + step + ");\n"
                     : "      Vector v;\n      v.at[0] = o[i" + step + "];\n";
      } else {
        code += full ? "      const Vector v = load(in + i" + step + ");\n"
                     : "      Vector v;\n      v.at[0] = in[i" + step + "];\n";
      }
      if (full && line_.length % style_.width == 0) {
        for (const Operand& o : line_.operands) {
          if ((uses + (number == plan_.sweeps.size() ? plan_.result : "")).find("in_" + o.argument) !=
              std::string::npos)
            code += "      const Vector v_" + o.argument + " = load(row_" + o.argument + " + i);\n";
        }
      }
      if (!written.empty()) code += "      Vector w;\n";
      const std::string each = full ? "#pragma unroll\n      for (int k = 0; k < W; ++k) " : "      ";
      std::string element = "{ const D x = wide(v.at[" + k + "]); ";
      if (fills && written != "kept") element += kept_at(k) + " = v.at[" + k + "]; ";
      code += each + element + body(k) + " }\n";
      if (written == "kept") {
        code += each + kept_at(k) + " = w.at[" + k + "];\n";
      } else if (!written.empty()) {
        code += full ? "      " + std::string(partial() ? "if (mine) " : "") + "store(o + i" + step + ", w);\n"
                     : "      o[i" + step + "] = w.at[0];\n";
      }
      return code;
    };
    return "  walk(t, head, [&](int i, int slot) {\n" + statements(true) + "  }, [&](int i, int slot) {\n" +
           (ragged() ? statements(false) : "") + "  });\n";
  }

  [[nodiscard]] std::string sweep(std::size_t number, bool kept) const {
    const Sweep& s = plan_.sweeps[number];
    const std::string id = std::to_string(number);
    std::string code;
    if (s.online) {
      code += "  Online online = {-1e30f, 0};\n";
      code += loop(
          number, kept, "",
          [](const std::string&) {
            return "const T b = most(online.m, x); online.s = online.s * exp_(online.m - b) + exp_(x - b); online.m = "
                   "b;";
          },
          "");
      code += "  online = reduce<" + id + ">(online, Merge());\n  const T m = online.m, s = online.s;\n";
    } else {
      std::string uses;
      for (const Statistic& t : s.statistics) {
        code += "  T " + t.name + " = " + (t.greatest ? "-1e38f" : "0") + ";\n";
        uses += t.element + ' ';
      }
      const std::string written = !s.keep ? "" : style_.keep == "no" ? "o" : "kept";
      code += loop(
          number, kept, uses,
          [&](const std::string& k) {
            std::string body = operands(uses, k);
            for (std::size_t i = 0; i < s.statistics.size(); ++i) {
              const Statistic& t = s.statistics[i];
              const std::string e = "e" + std::to_string(i);
              body += "const D " + e + " = " + t.element + "; ";
              if (i == 0 && s.keep) body += "w.at[" + k + "] = narrow(e0); ";
              body += t.greatest ? t.name + " = most(" + t.name + ", " + e + "); " : t.name + " += " + e + "; ";
            }
            return body;
          },
          written);
      for (std::size_t i = 0; i < s.statistics.size(); ++i) {
        const Statistic& t = s.statistics[i];
        code += "  " + t.name + " = reduce<" + std::to_string(10 * number + i) + ">(" + t.name + ", " +
                (t.greatest ? "Most" : "Add") + "());\n";
      }
    }
    for (const auto& [name, expression] : s.derived) code += "  const T " + name + " = " + expression + ";\n";
    return code;
  }

  const LineOps& line_;
  const LinePlan& plan_;
  LineStyle style_;
  std::string precision_;
  int team_ = 1;
  std::int64_t items_ = 1;
};

}  // namespace kevin::agent::detail::cuda

#endif  // KEVIN_AGENT_KERNEL_SPACE_CUDA_LINE_CODE_HPP
