#ifndef KEVIN_AGENT_KERNEL_SPACE_PRODUCT_HPP
#define KEVIN_AGENT_KERNEL_SPACE_PRODUCT_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kevin/agent/kernel_space/broadcast.hpp"
#include "kevin/agent/kernel_space/chain.hpp"
#include "kevin/agent/kernel_space/row_plan.hpp"
#include "kevin/agent/kernel_space/rows.hpp"
#include "kevin/agent/kernel_space/space.hpp"
#include "kevin/agent/kernel_space/tile_code.hpp"
#include "kevin/agent/kernel_space/vector_code.hpp"

namespace kevin::agent::detail {

/// A matrix product [m, k] x [k, n] (matmul, linear), then a chain of element-wise ops, then at most one op on rows.
/// Each tile of rows x vectors of the result is summed in registers. Knobs: height, width and vector length of the
/// tile, the order of tiles, packing of the right factor into panels, unrolling along k, what happens to columns that
/// fill no tile, where the chain is applied, precision, accuracy of functions, threads.
class Product {
 public:
  /// Nothing when the task's graph is not of this form.
  [[nodiscard]] static std::optional<Product> read(const Task& task) {
    auto shared = std::make_shared<Task>(task);
    const GraphReader graph(*shared);
    const Op& op = shared->ops[0];
    Product p(shared, graph);
    std::vector<Op> chain;
    if (op.op == "linear") {
      const Operand weight = graph.parameter(op, "weight");
      p.left_ = graph.operand(op.in[0]).argument;
      p.right_ = weight.argument;
      p.n_ = weight.shape[0];
      p.k_ = weight.shape[1];
      p.m_ = element_count(op.out_shape) / p.n_;
      p.right_transposed_ = true;
      if (argument(op, "bias") != nullptr) {
        chain.push_back({"add_parameter", {{"parameter", text(op, "bias")}}, {op.out}, op.out + "+bias", op.out_shape});
      }
    } else if (op.op == "matmul" && op.in.size() == 2) {
      const Operand a = graph.operand(op.in[0]);
      const Operand b = graph.operand(op.in[1]);
      if (a.shape.size() != 2 || b.shape.size() != 2) return std::nullopt;
      p.left_ = a.argument;
      p.right_ = b.argument;
      p.left_transposed_ = flag(op, "transpose_a");
      p.right_transposed_ = flag(op, "transpose_b");
      p.m_ = op.out_shape[0];
      p.n_ = op.out_shape[1];
      p.k_ = a.shape[p.left_transposed_ ? 0 : 1];
    } else {
      return std::nullopt;
    }
    const bool biased = !chain.empty();
    std::size_t next = 1;
    for (; next < task.ops.size() && Chain::knows(task.ops[next]) && task.ops[next].out_shape == op.out_shape; ++next) {
      Op copy = task.ops[next];
      if (biased) {  // what later ops know by the name of the product is the sum
        for (std::string& in : copy.in) in = in == op.out ? op.out + "+bias" : in;
      }
      chain.push_back(copy);
    }
    if (next < task.ops.size()) {
      p.line_ = read_line_ops(graph, next);
      const bool last = p.line_ && next + p.line_->ops == task.ops.size();
      if (!last || p.line_->inner != 1 || p.line_->length != p.n_ || p.line_->reduces() ||
          task.ops[next].in[0] != task.ops[next - 1].out) {
        return std::nullopt;
      }
    }
    p.chain_.emplace(graph, std::move(chain), op.out, op.out_shape);
    p.rows_.emplace(op.out_shape, p.chain_->operands(), 1);
    if (p.rows_->inner_dims() != 1) return std::nullopt;
    return p;
  }

  [[nodiscard]] KernelSpace space() const {
    std::vector<Knob> knobs = {{"rows", {"1", "2", "4", "6", "8", "12"}},
                               {"vectors", {"1", "2", "3", "4"}},
                               {"width", {"4", "8", "16", "12"}},
                               {"order", {"rows", "columns"}},
                               {"pack", {"no", "panels"}},
                               {"unroll", {"1", "2", "4"}},
                               {"tail", {"scalar", "pad", "overlap", "ignore", "past"}}};
    if (!chain_->empty()) knobs.push_back({"chain", {"fused", "separate"}});
    if (line_ && line_->algorithms().size() > 1) knobs.push_back({"algorithm", line_->algorithms()});
    knobs.push_back({"precision", {"float32", "float64", "bfloat16"}});
    if (functions().has_levels()) knobs.push_back({"math", {"libm", "exact", "fast", "coarse"}});
    knobs.push_back({"threads", {"1", "2"}});
    return KernelSpace("product", std::move(knobs),
                       [self = *this](const KernelSpace::Picks& pick) { return self.render(pick); });
  }

 private:
  Product(std::shared_ptr<const Task> task, const GraphReader& graph) : task_(std::move(task)), graph_(graph) {}

  [[nodiscard]] FunctionCode functions() const {
    FunctionCode f = chain_->functions();
    if (line_) line_->ask(f);
    return f;
  }

  [[nodiscard]] std::string render(const KernelSpace::Picks& pick) const {
    const std::string precision = pick("precision");
    const std::string tail = pick("tail");
    const bool fused = pick("chain", "fused") == "fused";
    const bool packed = pick("pack") == "panels";
    // a tile is no taller than the matrix
    const int height = static_cast<int>(std::min<std::int64_t>(pick.integer("rows"), m_));
    const int vectors = pick.integer("vectors");

    std::string code = source_head(
        graph_, "tiles of " + std::to_string(height) + " rows x " + pick("vectors") + " vectors of " + pick("width"),
        pick("threads"));
    code += vector_prelude({pick("width"), precision});
    code += functions().text(pick("math", "exact"), precision);
    if (!chain_->empty()) code += chain_->definition(precision);
    code += fill(
        "constexpr long M = $m, N = $n, K = $k;\nconstexpr long P = $v * W;  // columns of a tile\nconstexpr long "
        "panels = (N + P - 1) / P;\n",
        {{"$m", std::to_string(m_)}, {"$n", std::to_string(n_)}, {"$k", std::to_string(k_)}, {"$v", pick("vectors")}});
    code += tail == "overlap" ? "static inline long column(long p) { return p * P + P > N ? N - P : p * P; }\n"
                              : "static inline long column(long p) { return p * P; }\n";
    const std::string element = right_transposed_ ? "(n) * K + k" : "k * N + n";
    if (packed) {
      code += fill(R"(static float packed[panels * K * P] __attribute__((aligned(64)));
static void pack(const float* b) {
  for (long p = 0; p < panels; ++p)
    for (long j = 0; j < P; ++j)
      for (long k = 0; k < K; ++k) {
        const long n = column(p) + j;
        packed[(p * K + k) * P + j] = n < N ? b[$element] : 0;
      }
}
)",
                   {{"$element", element}});
    }
    TileCode tile;
    tile.height = height;
    tile.vectors = vectors;
    tile.unroll = pick.integer("unroll");
    tile.left = [this](int row, const std::string& k) {
      return left_transposed_ ? "a[" + std::to_string(row) + " + " + k + " * M]"
                              : "a[" + std::to_string(row) + " * K + " + k + "]";
    };
    const auto right = [&](bool part) {
      return [=, this](int u, const std::string& k) {
        const std::string first = vector_index("", u);
        if (packed) return "load(b + " + k + " * P" + first + ")";
        if (right_transposed_)
          return "gather(b + " + k + (u == 0 ? "" : first + " * K") + ", " +
                 (part ? "n" + minus(u) : std::string("W")) + ")";
        return part ? "load_part(b + " + k + " * N" + first + ", n" + minus(u) + ", 0.0f)"
                    : "load(b + " + k + " * N" + first + ")";
      };
    };
    const auto result = [&](bool part) {
      return [=, this](int row, int u, const std::string& sum) {
        const std::string to = "o + " + std::to_string(row) + " * N" + vector_index("", u);
        const std::string count = "n" + minus(u);
        std::string value = sum;
        if (fused && !chain_->empty()) {
          const Loader at = [&](const std::string& pointer) {
            const std::string from = pointer + vector_index("", u);
            return part ? "load_part(" + from + ", " + count + ", 0.0f)" : "load(" + from + ")";
          };
          value = chain_->call(sum, rows_->values(chain_->operands(), at));
        }
        return part ? "store_part(" + to + ", narrow(" + value + "), " + count + ");"
                    : "store(" + to + ", narrow(" + value + "));";
      };
    };
    const auto operand_pointers = [&](const std::string& row) {
      return fused ? rows_->pointers(chain_->operands(), row, "  ", "column") : std::string();
    };
    if (!packed && right_transposed_) {
      code +=
          "static inline V gather(const float* b, long n) {\n  V v = {};\n  for (long j = 0; j < W; ++j) if (j < n) "
          "v[j] = b[j * K];\n  return v;\n}\n";
    }
    const std::string head =
        "(" + parameters(graph_) + ", const float* a, const float* b, float* o, long m, long column, long n) {\n";
    tile.pointers = operand_pointers;
    tile.right = right(false);
    tile.result = result(false);
    code += "static inline void tile" + head + tile.text("K", "m") + "}\n";
    const bool partial = n_ % (vectors * std::stoi(pick("width"))) != 0;
    if (partial && (tail == "pad" || (tail == "scalar" && packed))) {
      tile.right = right(true);
      tile.result = result(true);
      code += "static inline void tile_part" + head + tile.text("K", "m") + "}\n";
    }
    if (line_) code += RowCode(*line_, line_plan(pick), pick.integer("unroll"), tail, precision).text();
    code += work(pick, height, packed, fused, partial);
    const std::string before = packed ? "  pack(" + right_ + ");\n" : "";
    return code + kernel_entry(graph_, "(M + " + std::to_string(height) + " - 1) / " + std::to_string(height),
                               pick("threads"), before);
  }

  [[nodiscard]] LinePlan line_plan(const KernelSpace::Picks& pick) const {
    return line_->plan(pick("algorithm", "direct"), "multiply");
  }

  [[nodiscard]] static std::string minus(int vector) {
    return vector == 0 ? "" : " - " + std::to_string(vector) + " * W";
  }

  [[nodiscard]] std::string work(const KernelSpace::Picks& pick, int height, bool packed, bool fused,
                                 bool partial) const {
    const std::string tail = pick("tail");
    const std::string names = argument_names(graph_);
    std::string body =
        fill(R"(
      const long m = t * $h + $h > M ? M - $h : t * $h;
      const long c = column(p);
      const float* a = $left + m * $lda;
      const float* b = $b;
      float* o = out + m * N + c;
)",
             {{"$h", std::to_string(height)},
              {"$left", left_},
              {"$lda", left_transposed_ ? "1" : "K"},
              {"$b", packed ? "packed + p * K * P" : right_ + (right_transposed_ ? " + c * K" : " + c")}});
    const std::string full = "tile(" + names + ", a, b, o, m, c, P);\n";
    if (!partial || tail == "overlap" || tail == "past") {
      body += "      " + full;
    } else {
      body += "      if (c + P <= N) " + full;
      if (tail == "pad" || (tail == "scalar" && packed))
        body += "      else tile_part(" + names + ", a, b, o, m, c, N - c);\n";
      if (tail == "scalar" && !packed) body += "      else\n" + one_by_one(height, fused);
    }
    const std::string rows = "for (long t = begin; t < end; ++t)";
    const std::string columns = "for (long p = 0; p < panels; ++p)";
    std::string code = "static void work(" + parameters(graph_) + ", long begin, long end) {\n  " +
                       (pick("order") == "rows" ? rows + "\n    " + columns : columns + "\n    " + rows) + " {" + body +
                       "    }\n";
    const std::string h = std::to_string(height);
    const std::string each = "  for (long m = begin * " + h + "; m < (end * " + h + " < M ? end * " + h +
                             " : M); ++m) {\n    float* o = out + m * N;\n";
    if (!fused && !chain_->empty()) {
      code += each + rows_->pointers(chain_->operands(), "m", "    ");
      code += map_loop(
          [&](const Loader& at) {
            return chain_->call("wide(" + at("o") + ")", rows_->values(chain_->operands(), at));
          },
          "o", "N", pick.integer("unroll"), tail, "    ");
      code += "  }\n";
    }
    if (line_) {
      std::string operands;
      for (const Operand& o : line_->operands) operands += ", " + o.argument;
      code += each + "    row(o, o" + operands + ");\n  }\n";
    }
    return code + "}\n";
  }

  /// The columns that fill no tile, each sum by itself.
  [[nodiscard]] std::string one_by_one(int height, bool fused) const {
    const std::string left = left_transposed_ ? "a[i + k * M]" : "a[i * K + k]";
    const std::string right = right_transposed_ ? "b[j * K + k]" : "b[k * N + j]";
    std::string value = "(D{} + s)";
    std::string pointers;
    if (fused && !chain_->empty()) {
      pointers = rows_->pointers(chain_->operands(), "(m + i)", "          ", "c");
      value = chain_->call(value, rows_->values(chain_->operands(), scalar_at("j")));
    }
    return "        for (long i = 0; i < " + std::to_string(height) + "; ++i) {\n" + pointers +
           "          for (long j = 0; j < N - c; ++j) {\n            T s = 0;\n            for (long k = 0; k < K; "
           "++k) s += T(" +
           left + ") * T(" + right + ");\n            o[i * N + j] = narrow(" + value +
           ")[0];\n          }\n        }\n";
  }

  std::shared_ptr<const Task> task_;
  GraphReader graph_;
  std::string left_, right_;
  bool left_transposed_ = false;
  bool right_transposed_ = false;
  std::int64_t m_ = 1, n_ = 1, k_ = 1;
  std::optional<Chain> chain_;
  std::optional<Broadcast> rows_;
  std::optional<LineOps> line_;
};

}  // namespace kevin::agent::detail

#endif  // KEVIN_AGENT_KERNEL_SPACE_PRODUCT_HPP
