#ifndef KEVIN_TASKS_WORK_HPP
#define KEVIN_TASKS_WORK_HPP

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

#include "kevin/refine/task.hpp"
#include "kevin/tasks/operation.hpp"
#include "kevin/tasks/operations/convolution.hpp"

namespace kevin::tasks {

/// Operations of a step or task, as its formulas say them; real numbers, since there can be more than 2^53.
struct Work {
  double matrix_products = 0;       ///< multiply-adds of matrix products, which matrix units can do
  double convolution_products = 0;  ///< multiply-adds of convolutions, padding not counted
  double arithmetic = 0;            ///< additions, multiplications, comparisons
  double transcendental = 0;        ///< exp, log, tanh, erf, roots and divisions of elements

  Work& operator+=(const Work& w) noexcept {
    matrix_products += w.matrix_products;
    convolution_products += w.convolution_products;
    arithmetic += w.arithmetic;
    transcendental += w.transcendental;
    return *this;
  }
  friend bool operator==(const Work&, const Work&) = default;
};

namespace detail {

/// A window that moves along one dim.
struct Window {
  std::int64_t extent = 1;  ///< of what it moves over
  std::int64_t places = 1;
  std::int64_t size = 1;
  std::int64_t stride = 1;
  std::int64_t padding = 0;
  std::int64_t dilation = 1;

  /// Pairs of a place and an element of the window that lie within the extent, not in the padding.
  [[nodiscard]] std::int64_t taps() const {
    std::int64_t count = 0;
    for (std::int64_t k = 0; k < size; ++k) {
      const std::int64_t offset = k * dilation - padding;  // of place 0; wanted: 0 <= place * stride + offset < extent
      const std::int64_t first = offset >= 0 ? 0 : (-offset + stride - 1) / stride;
      const std::int64_t end = offset >= extent ? 0 : (extent - offset + stride - 1) / stride;
      count += std::max<std::int64_t>(0, std::min(end, places) - first);
    }
    return count;
  }

  /// Elements of the extent that some place touches.
  [[nodiscard]] std::int64_t touched() const {
    std::vector<bool> seen(static_cast<std::size_t>(extent), false);
    for (std::int64_t p = 0; p < places; ++p) {
      for (std::int64_t k = 0; k < size; ++k) {
        const std::int64_t at = p * stride + k * dilation - padding;
        if (at >= 0 && at < extent) seen[static_cast<std::size_t>(at)] = true;
      }
    }
    return std::count(seen.begin(), seen.end(), true);
  }
};

/// The windows of a convolution or pool, one for each spatial dim; none for other operations. Those of a transposed
/// convolution move over its result.
[[nodiscard]] inline std::vector<Window> windows(std::string_view op, const Infos& in, const Arguments& a,
                                                 const TensorInfo& out) {
  const bool pool = op.starts_with("max_pool") || op.starts_with("avg_pool");
  const bool convolution = op.starts_with("conv");
  const bool transposed = op.starts_with("conv_transpose");
  if (!pool && !convolution) return {};
  const std::size_t dims = out.shape.size() - 2;
  const Shape kernel =
      pool ? per_dim(a, "kernel_size", dims, 1, 1) : Shape(in[1]->shape.begin() + 2, in[1]->shape.end());
  const Shape stride = pool && !a.has("stride") ? kernel : per_dim(a, "stride", dims, 1, 1);
  const Shape padding = per_dim(a, "padding", dims, 0, 0);
  const Shape dilation = per_dim(a, "dilation", dims, 1, 1);
  std::vector<Window> list;
  for (std::size_t i = 0; i < dims; ++i) {
    const std::int64_t x = in[0]->shape[i + 2];
    const std::int64_t y = out.shape[i + 2];
    list.push_back({transposed ? y : x, transposed ? x : y, kernel[i], stride[i], padding[i], dilation[i]});
  }
  return list;
}

[[nodiscard]] inline double taps(const std::vector<Window>& windows) {
  double product = 1;
  for (const Window& w : windows) product *= static_cast<double>(w.taps());
  return product;
}

/// Operations for each element: of the result, or of the first operand for what reduces or scans it.
struct ElementWork {
  std::string_view op;
  bool of_operand;
  double arithmetic;
  double transcendental;
};

/// The operations whose work is so much for each element. Sigmoid is 1 / (1 + exp(-x)), softplus log(1 + exp(x)), the
/// norms a mean, a variance and a scaling; roots and divisions that are one for a row are left out.
inline constexpr std::array element_work = {
    ElementWork{"abs", false, 1, 0},
    ElementWork{"add_input", false, 1, 0},
    ElementWork{"add_parameter", false, 1, 0},
    ElementWork{"add_scalar", false, 1, 0},
    ElementWork{"add_tensor", false, 1, 0},
    ElementWork{"adaptive_avg_pool1d", true, 1, 0},
    ElementWork{"adaptive_avg_pool2d", true, 1, 0},
    ElementWork{"adaptive_avg_pool3d", true, 1, 0},
    ElementWork{"argmax", true, 1, 0},
    ElementWork{"argmin", true, 1, 0},
    ElementWork{"batch_norm", false, 7, 0},
    ElementWork{"clamp", false, 2, 0},
    ElementWork{"concat", false, 0, 0},
    ElementWork{"cross_entropy", true, 3, 1},
    ElementWork{"cumprod", true, 1, 0},
    ElementWork{"cumsum", true, 1, 0},
    ElementWork{"div_input", false, 0, 1},
    ElementWork{"div_parameter", false, 0, 1},
    ElementWork{"div_scalar", false, 1, 0},
    ElementWork{"div_tensor", false, 0, 1},
    ElementWork{"dropout", false, 0, 0},
    ElementWork{"elu", false, 3, 1},
    ElementWork{"exp", false, 0, 1},
    ElementWork{"flip", false, 0, 0},
    ElementWork{"gelu", false, 4, 1},
    ElementWork{"group_norm", false, 7, 0},
    ElementWork{"hardsigmoid", false, 4, 0},
    ElementWork{"hardswish", false, 5, 0},
    ElementWork{"hardtanh", false, 2, 0},
    ElementWork{"instance_norm", false, 7, 0},
    ElementWork{"kl_div", true, 3, 1},
    ElementWork{"layer_norm", false, 7, 0},
    ElementWork{"leaky_relu", false, 2, 0},
    ElementWork{"log", false, 0, 1},
    ElementWork{"log_softmax", true, 4, 1},
    ElementWork{"logsumexp", true, 3, 1},
    ElementWork{"max_parameter", false, 1, 0},
    ElementWork{"max_reduce", true, 1, 0},
    ElementWork{"max_scalar", false, 1, 0},
    ElementWork{"max_tensor", false, 1, 0},
    ElementWork{"mean", true, 1, 0},
    ElementWork{"min_parameter", false, 1, 0},
    ElementWork{"min_reduce", true, 1, 0},
    ElementWork{"min_scalar", false, 1, 0},
    ElementWork{"min_tensor", false, 1, 0},
    ElementWork{"mish", false, 2, 3},
    ElementWork{"mse_loss", true, 3, 0},
    ElementWork{"mul_input", false, 1, 0},
    ElementWork{"mul_parameter", false, 1, 0},
    ElementWork{"mul_scalar", false, 1, 0},
    ElementWork{"mul_tensor", false, 1, 0},
    ElementWork{"narrow", false, 0, 0},
    ElementWork{"neg", false, 1, 0},
    ElementWork{"permute", false, 0, 0},
    ElementWork{"relu", false, 1, 0},
    ElementWork{"reshape", false, 0, 0},
    ElementWork{"residual_add", false, 1, 0},
    ElementWork{"rms_norm", false, 4, 0},
    ElementWork{"rsub_scalar", false, 1, 0},
    ElementWork{"selu", false, 4, 1},
    ElementWork{"sigmoid", false, 2, 2},
    ElementWork{"silu", false, 3, 2},
    ElementWork{"smooth_l1_loss", true, 6, 0},
    ElementWork{"softmax", true, 3, 2},
    ElementWork{"softplus", false, 3, 2},
    ElementWork{"softsign", false, 2, 1},
    ElementWork{"sqrt", false, 0, 1},
    ElementWork{"square", false, 1, 0},
    ElementWork{"squeeze", false, 0, 0},
    ElementWork{"sub_input", false, 1, 0},
    ElementWork{"sub_parameter", false, 1, 0},
    ElementWork{"sub_scalar", false, 1, 0},
    ElementWork{"sub_tensor", false, 1, 0},
    ElementWork{"sum", true, 1, 0},
    ElementWork{"tanh", false, 0, 1},
    ElementWork{"tril", false, 0, 0},
    ElementWork{"triplet_margin_loss", true, 6, 0},
    ElementWork{"triu", false, 0, 0},
    ElementWork{"unsqueeze", false, 0, 0},
    ElementWork{"vector_norm", true, 2, 0},
    ElementWork{"zeros", false, 0, 0},
};

[[nodiscard]] inline double count(const Shape& shape) { return static_cast<double>(element_count(shape)); }

}  // namespace detail

/// What one step does. `in` and `out` as shape inference has them. Complains about an operation that it does not know:
/// a new one needs an entry here.
[[nodiscard]] inline Work work_of(std::string_view op, const Infos& in, const Arguments& a, const TensorInfo& out) {
  using detail::count;
  const double n = count(out.shape);
  Work w;
  for (const detail::ElementWork& e : detail::element_work) {
    if (e.op != op) continue;
    const double elements = e.of_operand ? count(in[0]->shape) : n;
    w.arithmetic = e.arithmetic * elements;
    w.transcendental = e.transcendental * elements;
    return w;
  }
  const std::vector<detail::Window> windows = detail::windows(op, in, a, out);
  if (op.starts_with("conv")) {
    const double groups = static_cast<double>(a.integer("groups", 1));
    const double channels = static_cast<double>(in[0]->shape[1]) * static_cast<double>(out.shape[1]) / groups;
    w.convolution_products = static_cast<double>(out.shape[0]) * channels * detail::taps(windows);
    if (in[2] != nullptr) w.arithmetic = n;
    return w;
  }
  if (!windows.empty()) {
    w.arithmetic = static_cast<double>(out.shape[0] * out.shape[1]) * detail::taps(windows);
    return w;
  }
  if (op == "matmul" || op == "bmm") {
    const Shape& x = in[0]->shape;
    w.matrix_products = n * static_cast<double>(a.flag("transpose_a", false) ? x[x.size() - 2] : x.back());
    return w;
  }
  if (op == "linear") {
    w.matrix_products = n * static_cast<double>(in[0]->shape.back());
    if (in[2] != nullptr) w.arithmetic = n;
    return w;
  }
  if (op == "einsum") {  // every letter is a loop
    std::map<char, double> extents;
    const std::string equation = a.text("equation");
    std::size_t operand = 0, dim = 0;
    for (const char c : equation.substr(0, equation.find('-'))) {
      if (c == ',')
        ++operand, dim = 0;
      else
        extents[c] = static_cast<double>(in[operand]->shape[dim++]);
    }
    double loops = 1;
    for (const auto& [letter, extent] : extents) loops *= extent;
    (in.size() > 1 ? w.matrix_products : w.arithmetic) = loops;
    return w;
  }
  if (op == "scaled_dot_product_attention") {  // Q K^T, softmax, times V; a causal mask leaves half
    const Shape& q = in[0]->shape;
    const Shape& k = in[1]->shape;
    const double length = static_cast<double>(q[q.size() - 2]);
    const double keys = static_cast<double>(k[k.size() - 2]);
    double scores = count(q) / static_cast<double>(q.back()) * keys;
    if (a.flag("is_causal", false)) scores *= (length + 1) / (2 * length);
    w.matrix_products = scores * static_cast<double>(q.back() + in[2]->shape.back());
    w.arithmetic = 4 * scores;
    w.transcendental = 2 * scores;
    return w;
  }
  detail::complain("op", "has no entry in kevin/tasks/work.hpp, which says what it costs");
}

}  // namespace kevin::tasks

#endif  // KEVIN_TASKS_WORK_HPP
