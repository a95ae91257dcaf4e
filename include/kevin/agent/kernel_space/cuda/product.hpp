#ifndef KEVIN_AGENT_KERNEL_SPACE_CUDA_PRODUCT_HPP
#define KEVIN_AGENT_KERNEL_SPACE_CUDA_PRODUCT_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kevin/agent/kernel_space/cuda/device_code.hpp"
#include "kevin/agent/kernel_space/cuda/line_code.hpp"
#include "kevin/agent/kernel_space/cuda/multiply_code.hpp"
#include "kevin/agent/kernel_space/product_ops.hpp"
#include "kevin/agent/kernel_space/space.hpp"

namespace kevin::agent::detail::cuda {

/// A matrix product, then a chain of element-wise ops, then at most one op on rows. A block sums one tile of the
/// result from panels of both factors in shared memory. Knobs: rows and columns of the tile, depth of the panels, sums
/// of a thread, what multiplies, padding and number of the panels, how they are loaded, the order of tiles, parts of k
/// that different blocks sum, what happens at the edges, where the chain is applied.
class Product {
 public:
  /// Nothing when the task's graph is not of this form.
  [[nodiscard]] static std::optional<Product> read(const Task& task) {
    auto shared = std::make_shared<Task>(task);
    const GraphReader graph(*shared);
    std::optional<ProductOps> ops = read_product(graph);
    if (!ops) return std::nullopt;
    for (const std::int64_t extent : {ops->m, ops->n, ops->k}) {
      if (extent > (std::int64_t{1} << 30U)) unsupported(task, "a factor has an extent of more than 2^30");
    }
    return Product(std::move(shared), graph, std::move(*ops));
  }

  [[nodiscard]] KernelSpace space() const {
    std::vector<Knob> knobs = {{"rows", {"64", "32", "128", "16"}},
                               {"columns", {"64", "32", "128", "16"}},
                               {"depth", {"16", "8", "32"}},
                               {"micro", {"4x4", "8x8", "8x4", "2x2", "1x1"}},
                               {"engine", {"fma", "tf32x3", "bf16x3", "tf32", "half"}},
                               {"buffers", {"1", "2"}},
                               {"pad", {"4", "8", "0", "1"}},
                               {"width", {"1", "2", "4", "8"}},
                               {"load", {"coalesced", "swapped"}},
                               {"order", {"rows", "columns"}},
                               {"split", {"1", "2", "4", "8"}},
                               {"tail", {"guard", "past"}},
                               {"sync", {"yes", "missing"}}};
    if (!ops_.chain.empty()) knobs.push_back({"chain", {"fused", "separate"}});
    if (ops_.line) {
      if (ops_.line->algorithms().size() > 1) knobs.push_back({"algorithm", ops_.line->algorithms()});
      knobs.push_back({"team", {"block", "warp"}});
    }
    knobs.push_back(precision_knob());
    if (ops_.functions().has_levels()) knobs.push_back(math_knob());
    return KernelSpace("product", std::move(knobs),
                       [self = *this](const KernelSpace::Picks& pick) { return self.render(pick); });
  }

 private:
  Product(std::shared_ptr<const Task> task, const GraphReader& graph, ProductOps ops)
      : task_(std::move(task)), graph_(graph), ops_(std::move(ops)) {}

  /// A factor's panel in shared memory: BK steps of k by `extent` rows or columns of the tile.
  struct Panel {
    std::string name;     ///< "left" or "right"
    std::string pointer;  ///< the argument
    int extent;
    std::string limit;   ///< M or N
    bool along_k;        ///< whether k is what lies side by side in memory
    std::string stride;  ///< LDA or LDB
  };

  [[nodiscard]] std::string render(const KernelSpace::Picks& pick) const {
    const std::string precision = pick("precision");
    MultiplyCode multiply;
    multiply.rows = pick.integer("rows");
    multiply.columns = pick.integer("columns");
    const std::string micro = pick("micro");
    multiply.micro_rows = micro[0] - '0';
    multiply.micro_columns = micro[2] - '0';
    multiply.engine = pick("engine");
    const int threads = multiply.threads();
    const int depth = std::max(pick.integer("depth"), multiply.step());
    const int pad = pick.integer("pad");
    const int buffers = pick.integer("buffers");
    const int split = pick.integer("split");
    const std::int64_t part = divide_up(divide_up(ops_.k, split), depth) * depth;  // steps of k in one part
    const std::int64_t parts = divide_up(ops_.k, part);
    const bool finish = parts > 1 || (!ops_.chain.empty() && pick("chain") == "separate");
    const std::int64_t count = ops_.m * ops_.n;

    std::string code = source_head(graph_,
                                   "tiles of " + pick("rows") + " x " + pick("columns") + " by " + pick("depth") +
                                       ", " + multiply.engine + ", " + std::to_string(threads) + " threads",
                                   "1");
    code += number_prelude(precision) + vector_prelude(pick("width"), "plain");
    code += ops_.functions().text(pick("math", "libm"), precision, Backend::cuda);
    if (!ops_.chain.empty()) code += ops_.chain.definition(precision);
    code += fill(R"(typedef $index Index;
constexpr int M = $m, N = $n, K = $k;
constexpr int BM = $bm, BN = $bn, BK = $bk, LDA = BM + $pad, LDB = BN + $pad, THREADS = $threads;
constexpr int PART = $part, PARTS = $number;  // steps of k that one block sums, how many blocks share a tile
constexpr int DOWN = (M + BM - 1) / BM, ACROSS = (N + BN - 1) / BN;
)",
                 {{"$index", count * parts > (std::int64_t{1} << 30U) || ops_.m * ops_.k > (std::int64_t{1} << 30U) ||
                                     ops_.n * ops_.k > (std::int64_t{1} << 30U)
                                 ? "long long"
                                 : "int"},
                  {"$bm", pick("rows")},
                  {"$bn", pick("columns")},
                  {"$bk", std::to_string(depth)},
                  {"$pad", pick("pad")},
                  {"$part", std::to_string(part)},
                  {"$number", std::to_string(parts)},
                  {"$threads", std::to_string(threads)},
                  {"$m", std::to_string(ops_.m)},
                  {"$n", std::to_string(ops_.n)},
                  {"$k", std::to_string(ops_.k)}});
    const bool guard = pick("tail") == "guard";
    const bool coalesced = pick("load") == "coalesced";
    const Panel left{"left", ops_.left, multiply.rows, "M", !ops_.left_transposed, "LDA"};
    const Panel right{"right", ops_.right, multiply.columns, "N", ops_.right_transposed, "LDB"};
    code += panel_text(left, threads, depth, pick.integer("width"), guard, coalesced);
    code += panel_text(right, threads, depth, pick.integer("width"), guard, coalesced);
    code += multiply.text();
    code += kernel_text(multiply, pick, threads, buffers, finish, guard);
    if (finish) code += finish_text();

    std::optional<LinePlan> plan;
    std::optional<LineCode> lines;
    if (ops_.line) {
      plan = ops_.line->plan(pick("algorithm", "direct"), "multiply");
      LineStyle style;
      style.team = pick("team");
      style.sync = pick("sync") == "yes";
      lines.emplace(*ops_.line, *plan, style, precision);
      code += "namespace on_rows {\n" + vector_prelude("1", "plain") + lines->text() + "}\n";
    }
    const std::string names = argument_names(graph_);
    std::string body;
    const auto scratch = [&](const std::string& name, std::int64_t floats) {
      body += "  float* " + name + " = kevin::scratch<float>(" + std::to_string(floats) + ");\n";
    };
    if (finish) scratch("parts", count * parts);
    if (lines) scratch("rows", count);
    const std::string to = lines ? "rows" : "out";
    body += launch("product", "dim3(DOWN * ACROSS, PARTS)", threads, names + ", " + (finish ? "parts" : to),
                   std::int64_t{4} * buffers * depth * (multiply.rows + multiply.columns + 2 * pad));
    if (finish) body += launch("finish", std::to_string(divide_up(count, 256)), 256, names + ", parts, " + to);
    if (lines) body += lines->launch_text("rows", "out", "on_rows::lines");
    return code + cuda::plan(graph_, body);
  }

  /// fetch_NAME(p, first, k, end, registers): this thread's part of a panel, from k on, vectors along memory;
  /// put_NAME(shared, registers).
  [[nodiscard]] static std::string panel_text(const Panel& p, int threads, int depth, int width, bool guard,
                                              bool coalesced) {
    const int along = (p.along_k ? depth : p.extent) / width;  // vectors side by side
    const int across = p.along_k ? p.extent : depth;
    const int each = static_cast<int>(divide_up(std::int64_t{along} * across, threads));
    const bool even = along * across % threads == 0;
    const std::string place = fill(
        "    const int q = threadIdx.x + j * THREADS;\n$skip"
        "    const int along = $along * W, across = $across;\n",
        {{"$skip", even ? "" : "    if (q >= " + std::to_string(along * across) + ") break;\n"},
         {"$along", coalesced ? "q % " + std::to_string(along) : "q / " + std::to_string(across)},
         {"$across", coalesced ? "q / " + std::to_string(along) : "q % " + std::to_string(across)}});
    // the numbers of the panel's row (or column) and of k, and where they end
    const std::string inner = p.along_k ? "k + along" : "first + along";
    const std::string outer = p.along_k ? "first + across" : "k + across";
    const std::string inner_end = p.along_k ? "end" : p.limit;
    const std::string outer_end = p.along_k ? p.limit : "end";
    const std::string length = p.along_k ? "K" : p.limit;
    std::string code = "constexpr int EACH_" + p.name + " = " + std::to_string(each) + ";\n";
    code += "static inline void fetch_" + p.name +
            "(const float* __restrict__ p, int first, int k, int end, Vector (&to)[EACH_" + p.name +
            "]) {\n#pragma unroll\n  for (int j = 0; j < EACH_" + p.name + "; ++j) {\n" + place;
    code += "    const int inner = " + inner + ", outer = " + outer + ";\n    const float* from = p + (Index)outer * " +
            length + " + inner;\n";
    if (guard) {
      code += fill(R"(    if (outer < $o && inner + W <= $i) {
      to[j] = load(from);
    } else {
#pragma unroll
      for (int w = 0; w < W; ++w) to[j].at[w] = outer < $o && inner + w < $i ? from[w] : 0;
    }
)",
                   {{"$o", outer_end}, {"$i", inner_end}});
    } else {
      code += "    to[j] = load(from);\n";
    }
    code += "  }\n}\nstatic inline void put_" + p.name + "(float* shared, const Vector (&from)[EACH_" + p.name +
            "]) {\n#pragma unroll\n  for (int j = 0; j < EACH_" + p.name + "; ++j) {\n" + place;
    code += "#pragma unroll\n    for (int w = 0; w < W; ++w) shared[" +
            (p.along_k ? "(along + w) * " + p.stride + " + across" : "across * " + p.stride + " + along + w") +
            "] = from[j].at[w];\n  }\n}\n";
    return code;
  }

  [[nodiscard]] std::string kernel_text(const MultiplyCode& multiply, const KernelSpace::Picks& pick, int threads,
                                        int buffers, bool finish, bool guard) const {
    const std::string wait = pick("sync") == "yes" ? "    __syncthreads();\n" : "";
    std::string code = kernel_head("product", threads) + '(' + parameters(graph_) + ", float* __restrict__ to) {\n";
    code += "  extern __shared__ __align__(16) float shared[];\n";
    code += pick("order") == "rows" ? "  const int m0 = blockIdx.x / ACROSS * BM, n0 = blockIdx.x % ACROSS * BN;\n"
                                    : "  const int m0 = blockIdx.x % DOWN * BM, n0 = blockIdx.x / DOWN * BN;\n";
    code += "  const int begin = blockIdx.y * PART, end = least(K, begin + PART);\n";
    code += fill(R"(  Sums sums = {};
  Vector left[EACH_left], right[EACH_right];
  fetch_left($a, m0, begin, end, left);
  fetch_right($b, n0, begin, end, right);
)",
                 {{"$a", ops_.left}, {"$b", ops_.right}});
    const std::string next = fill("fetch_left($a, m0, k + BK, end, left), fetch_right($b, n0, k + BK, end, right);\n",
                                  {{"$a", ops_.left}, {"$b", ops_.right}});
    if (buffers == 1) {
      code +=
          "  for (int k = begin; k < end; k += BK) {\n    put_left(shared, left);\n"
          "    put_right(shared + BK * LDA, right);\n" +
          wait + "    if (k + BK < end) " + next + "    multiply(shared, shared + BK * LDA, sums);\n" + wait + "  }\n";
    } else {
      code +=
          "  float* now = shared;\n  float* then = shared + BK * (LDA + LDB);\n  put_left(now, left);\n"
          "  put_right(now + BK * LDA, right);\n" +
          wait + "  for (int k = begin; k < end; k += BK) {\n    const bool more = k + BK < end;\n    if (more) " +
          next +
          "    multiply(now, now + BK * LDA, sums);\n"
          "    if (more) put_left(then, left), put_right(then + BK * LDA, right);\n" +
          wait + "    float* const last = now;\n    now = then;\n    then = last;\n  }\n";
    }
    if (finish) code += "  to += (Index)blockIdx.y * M * N;\n";
    code += multiply.each_sum([&](const std::string& row, const std::string& column, const std::string& sum) {
      const std::string at = "to[(Index)(" + row + ") * N + " + column + "]";
      const std::string value = finish || ops_.chain.empty()
                                    ? sum
                                    : ops_.chain.call(sum, operand_values("(" + row + ")", "(" + column + ")"));
      return (guard ? "if (" + row + " < M && " + column + " < N) " : std::string()) + at + " = narrow(" + value + ");";
    });
    return code + "}\n";
  }

  /// The kernel that adds the parts and applies the chain.
  [[nodiscard]] std::string finish_text() const {
    return kernel_head("finish", 256) + '(' + parameters(graph_) +
           R"(, const float* __restrict__ parts, float* __restrict__ to) {
  const Index e = (Index)blockIdx.x * 256 + threadIdx.x;
  if (e >= (Index)M * N) return;
  D sum = 0;
#pragma unroll
  for (int p = 0; p < PARTS; ++p) sum += wide(parts[(Index)p * M * N + e]);
  to[e] = narrow()" +
           (ops_.chain.empty() ? "sum" : ops_.chain.call("sum", operand_values("(e / N)", "(e % N)"))) + ");\n}\n";
  }

  [[nodiscard]] std::vector<std::string> operand_values(const std::string& row, const std::string& column) const {
    std::vector<std::string> values;
    for (std::size_t i = 0; i < ops_.chain.operands().size(); ++i) {
      const std::string offset = ops_.rows.offset(i, "(Index)" + row);
      values.push_back("wide(read(" + ops_.chain.operands()[i].argument + (offset == "0" ? "" : " + " + offset) +
                       (ops_.rows.along_row(i) ? " + " + column : "") + "))");
    }
    return values;
  }

  std::shared_ptr<const Task> task_;
  GraphReader graph_;
  ProductOps ops_;
};

}  // namespace kevin::agent::detail::cuda

#endif  // KEVIN_AGENT_KERNEL_SPACE_CUDA_PRODUCT_HPP
