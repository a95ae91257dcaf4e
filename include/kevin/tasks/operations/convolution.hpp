#ifndef KEVIN_TASKS_OPERATIONS_CONVOLUTION_HPP
#define KEVIN_TASKS_OPERATIONS_CONVOLUTION_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kevin/tasks/operation.hpp"

/// Convolutions and transposed convolutions in one to three dims.
namespace kevin::tasks {

namespace detail {

/// A list argument with one entry for each spatial dim, each in [least, 2^20].
[[nodiscard]] inline std::vector<std::int64_t> per_dim(const Arguments& a, std::string_view name, std::size_t dims,
                                                       std::int64_t least, std::int64_t fallback) {
  std::vector<std::int64_t> values = a.integers(name, std::vector<std::int64_t>(dims, fallback));
  if (values.size() != dims) complain("args." + std::string(name), "needs " + std::to_string(dims) + " numbers");
  for (std::int64_t v : values) {
    if (v < least || v > (std::int64_t{1} << 20)) {
      complain("args." + std::string(name), std::to_string(v) + " is outside [" + std::to_string(least) + ", 2^20]");
    }
  }
  return values;
}

/// The arguments of a convolution over `Dims` spatial dims.
template <std::size_t Dims>
struct ConvolutionArguments {
  std::vector<std::int64_t> stride, padding, dilation, output_padding;
  std::int64_t groups = 1;

  explicit ConvolutionArguments(const Arguments& a)
      : stride(per_dim(a, "stride", Dims, 1, 1)),
        padding(per_dim(a, "padding", Dims, 0, 0)),
        dilation(per_dim(a, "dilation", Dims, 1, 1)),
        output_padding(per_dim(a, "output_padding", Dims, 0, 0)),
        groups(a.integer("groups", 1)) {
    if (groups < 1) complain("args.groups", "is not positive");
  }
};

/// Result of a convolution. Weight [out, in / groups, kernel...], transposed [in, out / groups, kernel...]; extents are
/// (n + 2 p - d (k - 1) - 1) / s + 1 and (n - 1) s - 2 p + d (k - 1) + output_padding + 1.
template <std::size_t Dims, bool Transposed>
[[nodiscard]] TensorInfo infer_convolution(const Infos& in, const Arguments& a) {
  const TensorInfo& x = *in[0];
  const TensorInfo& weight = *in[1];
  const ConvolutionArguments<Dims> c(a);
  require_real(x);
  require_rank(x, Dims + 2, Dims + 2);
  require_rank(weight, Dims + 2, Dims + 2, "args.weight");
  const std::int64_t channels = x.shape[1];
  if (channels % c.groups != 0) complain("args.groups", "does not divide " + std::to_string(channels) + " channels");
  if (weight.shape[1] > (std::int64_t{1} << 40) / c.groups) complain("args.groups", "makes too many channels");
  const std::int64_t in_channels = Transposed ? weight.shape[0] : weight.shape[1] * c.groups;
  const std::int64_t out_channels = Transposed ? weight.shape[1] * c.groups : weight.shape[0];
  if (in_channels != channels) {
    complain("args.weight", "has shape " + shape_text(weight.shape) + ", which does not fit " +
                                std::to_string(channels) + " channels in " + std::to_string(c.groups) + " group(s)");
  }
  if (out_channels % c.groups != 0)
    complain("args.groups", "does not divide " + std::to_string(out_channels) + " output channels");
  if (in[2] != nullptr) require_shape(*in[2], {out_channels}, "args.bias");
  if (weight.dtype != x.dtype || (in[2] != nullptr && in[2]->dtype != x.dtype))
    complain({}, "has operands of different types");
  require_declared(a, "in_channels", in_channels);
  require_declared(a, "out_channels", out_channels);
  const Shape kernel(weight.shape.begin() + 2, weight.shape.end());
  if (a.has("kernel_size") && a.integers("kernel_size") != kernel)
    complain("args.kernel_size", "is not the weight's " + shape_text(kernel));
  TensorInfo out{{x.shape[0], out_channels}, x.dtype};
  for (std::size_t i = 0; i < Dims; ++i) {
    const std::int64_t n = x.shape[i + 2];
    if (kernel[i] > (std::int64_t{1} << 20)) complain("args.weight", "has a kernel above 2^20");
    const std::int64_t span = c.dilation[i] * (kernel[i] - 1);
    std::int64_t extent = 0;
    if constexpr (Transposed) {
      if (c.output_padding[i] >= std::max(c.stride[i], c.dilation[i])) {
        complain("args.output_padding", "must be below stride or dilation");
      }
      if (n > (std::int64_t{1} << 40) / c.stride[i]) complain({}, "result is too large");
      extent = (n - 1) * c.stride[i] - 2 * c.padding[i] + span + c.output_padding[i] + 1;
    } else {
      const std::int64_t room = n + 2 * c.padding[i] - span - 1;
      extent = room < 0 ? 0 : room / c.stride[i] + 1;
    }
    if (extent < 1) complain({}, "kernel " + shape_text(kernel) + " does not fit an input of " + shape_text(x.shape));
    out.shape.push_back(extent);
  }
  return out;
}

template <std::size_t Dims, bool Transposed>
[[nodiscard]] torch::Tensor convolve(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias,
                                     const ConvolutionArguments<Dims>& c) {
  const at::IntArrayRef s = c.stride;
  const at::IntArrayRef p = c.padding;
  const at::IntArrayRef d = c.dilation;
  const at::IntArrayRef o = c.output_padding;
  if constexpr (Transposed) {
    if constexpr (Dims == 1) return torch::conv_transpose1d(x, weight, bias, s, p, o, c.groups, d);
    if constexpr (Dims == 2) return torch::conv_transpose2d(x, weight, bias, s, p, o, c.groups, d);
    if constexpr (Dims == 3) return torch::conv_transpose3d(x, weight, bias, s, p, o, c.groups, d);
  } else {
    if constexpr (Dims == 1) return torch::conv1d(x, weight, bias, s, p, d, c.groups);
    if constexpr (Dims == 2) return torch::conv2d(x, weight, bias, s, p, d, c.groups);
    if constexpr (Dims == 3) return torch::conv3d(x, weight, bias, s, p, d, c.groups);
  }
}

template <std::size_t Dims, bool Transposed>
[[nodiscard]] Operation convolution(std::string_view name) {
  std::vector<ArgumentRule> rules = {{"weight", ArgumentType::parameter, true}, {"bias", ArgumentType::parameter},
                                     {"stride", ArgumentType::integers},        {"padding", ArgumentType::integers},
                                     {"dilation", ArgumentType::integers},      {"groups", ArgumentType::integer},
                                     {"kernel_size", ArgumentType::integers},   {"in_channels", ArgumentType::integer},
                                     {"out_channels", ArgumentType::integer}};
  if (Transposed) rules.push_back({"output_padding", ArgumentType::integers});
  return {.name = name,
          .rules = rules,
          .infer = infer_convolution<Dims, Transposed>,
          .bind = [](const Infos&, const Arguments& a) -> Kernel {
            return [c = ConvolutionArguments<Dims>(a)](Operands x) {
              return convolve<Dims, Transposed>(*x[0], *x[1], *x[2], c);
            };
          }};
}

}  // namespace detail

[[nodiscard]] inline std::vector<Operation> convolution_operations() {
  using namespace detail;
  return {convolution<1, false>("conv1d"),          convolution<2, false>("conv2d"),
          convolution<3, false>("conv3d"),          convolution<1, true>("conv_transpose1d"),
          convolution<2, true>("conv_transpose2d"), convolution<3, true>("conv_transpose3d")};
}

}  // namespace kevin::tasks

#endif  // KEVIN_TASKS_OPERATIONS_CONVOLUTION_HPP
