#ifndef KEVIN_TASKS_OPERATIONS_POOLING_HPP
#define KEVIN_TASKS_OPERATIONS_POOLING_HPP

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kevin/tasks/operation.hpp"
#include "kevin/tasks/operations/convolution.hpp"

/// Maximum, average and adaptive average pools in one to three dims.
namespace kevin::tasks {

namespace detail {

/// The window of a pool over `Dims` spatial dims; the stride is the kernel's size unless given.
template <std::size_t Dims>
struct PoolArguments {
  std::vector<std::int64_t> kernel, stride, padding, dilation;
  bool ceil_mode = false;
  bool count_include_pad = true;
  std::int64_t divisor = 0;  ///< 0: the window's own count

  explicit PoolArguments(const Arguments& a)
      : kernel(per_dim(a, "kernel_size", Dims, 1, 1)),
        stride(a.has("stride") ? per_dim(a, "stride", Dims, 1, 1) : kernel),
        padding(per_dim(a, "padding", Dims, 0, 0)),
        dilation(per_dim(a, "dilation", Dims, 1, 1)),
        ceil_mode(a.flag("ceil_mode", false)),
        count_include_pad(a.flag("count_include_pad", true)),
        divisor(a.integer("divisor_override", 0)) {
    if (a.has("divisor_override") && divisor < 1) complain("args.divisor_override", "is not positive");
  }
};

template <std::size_t Dims>
[[nodiscard]] TensorInfo infer_pool(const Infos& in, const Arguments& a) {
  const TensorInfo& x = *in[0];
  const PoolArguments<Dims> p(a);
  require_real(x);
  require_rank(x, Dims + 2, Dims + 2);
  if (a.flag("return_indices", false)) complain("args.return_indices", "must be false: a step has one result");
  TensorInfo out{{x.shape[0], x.shape[1]}, x.dtype};
  for (std::size_t i = 0; i < Dims; ++i) {
    const std::int64_t n = x.shape[i + 2];
    if (p.padding[i] > p.kernel[i] / 2) complain("args.padding", "is more than half the kernel");
    const std::int64_t room = n + 2 * p.padding[i] - p.dilation[i] * (p.kernel[i] - 1) - 1;
    if (room < 0) complain("args.kernel_size", "does not fit an input of " + shape_text(x.shape));
    std::int64_t extent = (room + (p.ceil_mode ? p.stride[i] - 1 : 0)) / p.stride[i] + 1;
    // no window may start in the padding on the right
    if (p.ceil_mode && (extent - 1) * p.stride[i] >= n + p.padding[i]) --extent;
    out.shape.push_back(extent);
  }
  return out;
}

template <std::size_t Dims>
[[nodiscard]] torch::Tensor max_pool(const torch::Tensor& x, const PoolArguments<Dims>& c) {
  const at::IntArrayRef k = c.kernel;
  const at::IntArrayRef s = c.stride;
  const at::IntArrayRef p = c.padding;
  const at::IntArrayRef d = c.dilation;
  if constexpr (Dims == 1) return torch::max_pool1d(x, k, s, p, d, c.ceil_mode);
  if constexpr (Dims == 2) return torch::max_pool2d(x, k, s, p, d, c.ceil_mode);
  if constexpr (Dims == 3) return torch::max_pool3d(x, k, s, p, d, c.ceil_mode);
}

template <std::size_t Dims>
[[nodiscard]] torch::Tensor avg_pool(const torch::Tensor& x, const PoolArguments<Dims>& c) {
  const at::IntArrayRef k = c.kernel;
  const at::IntArrayRef s = c.stride;
  const at::IntArrayRef p = c.padding;
  if constexpr (Dims == 1) {
    return torch::avg_pool1d(x, k, s, p, c.ceil_mode, c.count_include_pad);
  } else {
    const auto call = [&](const auto&... divisor) {
      if constexpr (Dims == 2) return torch::avg_pool2d(x, k, s, p, c.ceil_mode, c.count_include_pad, divisor...);
      if constexpr (Dims == 3) return torch::avg_pool3d(x, k, s, p, c.ceil_mode, c.count_include_pad, divisor...);
    };
    return c.divisor == 0 ? call() : call(c.divisor);
  }
}

template <std::size_t Dims, bool Max>
[[nodiscard]] Operation pool(std::string_view name) {
  std::vector<ArgumentRule> rules = {{"kernel_size", ArgumentType::integers, true},
                                     {"stride", ArgumentType::integers},
                                     {"padding", ArgumentType::integers},
                                     {"ceil_mode", ArgumentType::flag}};
  if (Max) {
    rules.push_back({"dilation", ArgumentType::integers});
    rules.push_back({"return_indices", ArgumentType::flag});
  } else {
    rules.push_back({"count_include_pad", ArgumentType::flag});
    if (Dims > 1) rules.push_back({"divisor_override", ArgumentType::integer});
  }
  return {
      .name = name, .rules = rules, .infer = infer_pool<Dims>, .bind = [](const Infos&, const Arguments& a) -> Kernel {
        return [c = PoolArguments<Dims>(a)](Operands x) {
          return Max ? max_pool<Dims>(*x[0], c) : avg_pool<Dims>(*x[0], c);
        };
      }};
}

template <std::size_t Dims>
[[nodiscard]] Operation adaptive_avg_pool(std::string_view name) {
  return {.name = name,
          .rules = {{"output_size", ArgumentType::integers, true}},
          .infer = [](const Infos& in, const Arguments& a) -> TensorInfo {
            require_real(*in[0]);
            require_rank(*in[0], Dims + 2, Dims + 2);
            TensorInfo out = *in[0];
            const std::vector<std::int64_t> size = per_dim(a, "output_size", Dims, 1, 1);
            for (std::size_t i = 0; i < Dims; ++i) out.shape[i + 2] = size[i];
            return out;
          },
          .bind = [](const Infos&, const Arguments& a) -> Kernel {
            return [size = a.integers("output_size")](Operands x) {
              if constexpr (Dims == 1) return torch::adaptive_avg_pool1d(*x[0], at::IntArrayRef(size));
              if constexpr (Dims == 2) return torch::adaptive_avg_pool2d(*x[0], at::IntArrayRef(size));
              if constexpr (Dims == 3) return torch::adaptive_avg_pool3d(*x[0], at::IntArrayRef(size));
            };
          }};
}

}  // namespace detail

[[nodiscard]] inline std::vector<Operation> pooling_operations() {
  using namespace detail;
  return {pool<1, true>("max_pool1d"),
          pool<2, true>("max_pool2d"),
          pool<3, true>("max_pool3d"),
          pool<1, false>("avg_pool1d"),
          pool<2, false>("avg_pool2d"),
          pool<3, false>("avg_pool3d"),
          adaptive_avg_pool<1>("adaptive_avg_pool1d"),
          adaptive_avg_pool<2>("adaptive_avg_pool2d"),
          adaptive_avg_pool<3>("adaptive_avg_pool3d")};
}

}  // namespace kevin::tasks

#endif  // KEVIN_TASKS_OPERATIONS_POOLING_HPP
