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

#include "kevin/agent/kernel_space/product_ops.hpp"
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
    std::optional<ProductOps> ops = read_product(graph);
    if (!ops) return std::nullopt;
    return Product(std::move(shared), graph, std::move(*ops));
  }

  [[nodiscard]] KernelSpace space() const {
    std::vector<Knob> knobs = {{"rows", {"1", "2", "4", "6", "8", "12"}},
                               {"vectors", {"1", "2", "3", "4"}},
                               {"width", {"4", "8", "16", "12"}},
                               {"order", {"rows", "columns"}},
                               {"pack", {"no", "panels"}},
                               {"unroll", {"1", "2", "4"}},
                               {"tail", {"scalar", "pad", "overlap", "ignore", "past"}}};
    if (!ops_.chain.empty()) knobs.push_back({"chain", {"fused", "separate"}});
    if (ops_.line && ops_.line->algorithms().size() > 1) knobs.push_back({"algorithm", ops_.line->algorithms()});
    knobs.push_back({"precision", {"float32", "float64", "bfloat16"}});
    if (ops_.functions().has_levels()) knobs.push_back({"math", {"libm", "exact", "fast", "coarse"}});
    knobs.push_back({"threads", {"1", "2"}});
    return KernelSpace("product", std::move(knobs),
                       [self = *this](const KernelSpace::Picks& pick) { return self.render(pick); });
  }

 private:
  Product(std::shared_ptr<const Task> task, const GraphReader& graph, ProductOps ops)
      : task_(std::move(task)), graph_(graph), ops_(std::move(ops)) {}

  [[nodiscard]] std::string render(const KernelSpace::Picks& pick) const {
    const std::string precision = pick("precision");
    const std::string tail = pick("tail");
    const bool fused = pick("chain", "fused") == "fused";
    const bool packed = pick("pack") == "panels";
    // a tile is no taller than the matrix
    const int height = static_cast<int>(std::min<std::int64_t>(pick.integer("rows"), ops_.m));
    const int vectors = pick.integer("vectors");

    std::string code = source_head(
        graph_, "tiles of " + std::to_string(height) + " rows x " + pick("vectors") + " vectors of " + pick("width"),
        pick("threads"));
    code += vector_prelude({pick("width"), precision});
    code += ops_.functions().text(pick("math", "exact"), precision);
    if (!ops_.chain.empty()) code += ops_.chain.definition(precision);
    code += fill(
        "constexpr long M = $m, N = $n, K = $k;\nconstexpr long P = $v * W;  // columns of a tile\nconstexpr long "
        "panels = (N + P - 1) / P;\n",
        {{"$m", std::to_string(ops_.m)},
         {"$n", std::to_string(ops_.n)},
         {"$k", std::to_string(ops_.k)},
         {"$v", pick("vectors")}});
    code += tail == "overlap" ? "static inline long column(long p) { return p * P + P > N ? N - P : p * P; }\n"
                              : "static inline long column(long p) { return p * P; }\n";
    const std::string element = ops_.right_transposed ? "(n) * K + k" : "k * N + n";
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
      return ops_.left_transposed ? "a[" + std::to_string(row) + " + " + k + " * M]"
                                  : "a[" + std::to_string(row) + " * K + " + k + "]";
    };
    const auto right = [&](bool part) {
      return [=, this](int u, const std::string& k) {
        const std::string first = vector_index("", u);
        if (packed) return "load(b + " + k + " * P" + first + ")";
        if (ops_.right_transposed)
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
        if (fused && !ops_.chain.empty()) {
          const Loader at = [&](const std::string& pointer) {
            const std::string from = pointer + vector_index("", u);
            return part ? "load_part(" + from + ", " + count + ", 0.0f)" : "load(" + from + ")";
          };
          value = ops_.chain.call(sum, ops_.rows.values(ops_.chain.operands(), at));
        }
        return part ? "store_part(" + to + ", narrow(" + value + "), " + count + ");"
                    : "store(" + to + ", narrow(" + value + "));";
      };
    };
    const auto operand_pointers = [&](const std::string& row) {
      return fused ? ops_.rows.pointers(ops_.chain.operands(), row, "  ", "column") : std::string();
    };
    if (!packed && ops_.right_transposed) {
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
    const bool partial = ops_.n % (vectors * std::stoi(pick("width"))) != 0;
    if (partial && (tail == "pad" || (tail == "scalar" && packed))) {
      tile.right = right(true);
      tile.result = result(true);
      code += "static inline void tile_part" + head + tile.text("K", "m") + "}\n";
    }
    if (ops_.line) code += RowCode(*ops_.line, line_plan(pick), pick.integer("unroll"), tail, precision).text();
    code += work(pick, height, packed, fused, partial);
    const std::string before = packed ? "  pack(" + ops_.right + ");\n" : "";
    return code + kernel_entry(graph_, "(M + " + std::to_string(height) + " - 1) / " + std::to_string(height),
                               pick("threads"), before);
  }

  [[nodiscard]] LinePlan line_plan(const KernelSpace::Picks& pick) const {
    return ops_.line->plan(pick("algorithm", "direct"), "multiply");
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
              {"$left", ops_.left},
              {"$lda", ops_.left_transposed ? "1" : "K"},
              {"$b", packed ? "packed + p * K * P" : ops_.right + (ops_.right_transposed ? " + c * K" : " + c")}});
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
    if (!fused && !ops_.chain.empty()) {
      code += each + ops_.rows.pointers(ops_.chain.operands(), "m", "    ");
      code += map_loop(
          [&](const Loader& at) {
            return ops_.chain.call("wide(" + at("o") + ")", ops_.rows.values(ops_.chain.operands(), at));
          },
          "o", "N", pick.integer("unroll"), tail, "    ");
      code += "  }\n";
    }
    if (ops_.line) {
      std::string operands;
      for (const Operand& o : ops_.line->operands) operands += ", " + o.argument;
      code += each + "    row(o, o" + operands + ");\n  }\n";
    }
    return code + "}\n";
  }

  /// The columns that fill no tile, each sum by itself.
  [[nodiscard]] std::string one_by_one(int height, bool fused) const {
    const std::string left = ops_.left_transposed ? "a[i + k * M]" : "a[i * K + k]";
    const std::string right = ops_.right_transposed ? "b[j * K + k]" : "b[k * N + j]";
    std::string value = "(D{} + s)";
    std::string pointers;
    if (fused && !ops_.chain.empty()) {
      pointers = ops_.rows.pointers(ops_.chain.operands(), "(m + i)", "          ", "c");
      value = ops_.chain.call(value, ops_.rows.values(ops_.chain.operands(), scalar_at("j")));
    }
    return "        for (long i = 0; i < " + std::to_string(height) + "; ++i) {\n" + pointers +
           "          for (long j = 0; j < N - c; ++j) {\n            T s = 0;\n            for (long k = 0; k < K; "
           "++k) s += T(" +
           left + ") * T(" + right + ");\n            o[i * N + j] = narrow(" + value +
           ")[0];\n          }\n        }\n";
  }

  std::shared_ptr<const Task> task_;
  GraphReader graph_;
  ProductOps ops_;
};

}  // namespace kevin::agent::detail

#endif  // KEVIN_AGENT_KERNEL_SPACE_PRODUCT_HPP
