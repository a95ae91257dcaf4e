#ifndef KEVIN_TASKS_OPERATIONS_REDUCTION_HPP
#define KEVIN_TASKS_OPERATIONS_REDUCTION_HPP

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "kevin/tasks/operation.hpp"

/// Reductions, scans and softmax.
namespace kevin::tasks {

namespace detail {

/// `shape` without the dims, or with them at extent 1.
[[nodiscard]] inline Shape reduced(const Shape& shape, const std::vector<std::int64_t>& dims, bool keepdim) {
  Shape out;
  std::size_t next = 0;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const bool gone = next < dims.size() && dims[next] == static_cast<std::int64_t>(i);
    if (gone) ++next;
    if (!gone) out.push_back(shape[i]);
    if (gone && keepdim) out.push_back(1);
  }
  return out;
}

[[nodiscard]] inline TensorInfo infer_reduction(const Infos& in, const Arguments& a) {
  require_real(*in[0]);
  return {reduced(in[0]->shape, a.dims("dim", in[0]->shape.size()), a.flag("keepdim", false)), in[0]->dtype};
}

/// Reduction over one or more dims by `F(x, dims, keepdim)`. An empty list of dims means no reduction here and all dims
/// to LibTorch, so it is refused.
template <auto F>
[[nodiscard]] Operation reduction(std::string_view name) {
  return {.name = name,
          .rules = {{"dim", ArgumentType::dims, true}, {"keepdim", ArgumentType::flag}},
          .infer = [](const Infos& in, const Arguments& a) -> TensorInfo {
            if (a.dims("dim", in[0]->shape.size()).empty()) complain("args.dim", "names no dim to reduce");
            return infer_reduction(in, a);
          },
          .bind = [](const Infos& in, const Arguments& a) -> Kernel {
            return [dims = a.dims("dim", in[0]->shape.size()), keepdim = a.flag("keepdim", false)](Operands x) {
              return F(*x[0], dims, keepdim);
            };
          }};
}

/// Reduction over exactly one dim by `F(x, dim, keepdim)`.
template <auto F, bool Index>
[[nodiscard]] Operation reduction_over_one(std::string_view name) {
  return {.name = name,
          .rules = {{"dim", ArgumentType::dims, true}, {"keepdim", ArgumentType::flag}},
          .infer = [](const Infos& in, const Arguments& a) -> TensorInfo {
            if (a.dims("dim", in[0]->shape.size()).size() != 1) complain("args.dim", "must name one dim");
            TensorInfo out = infer_reduction(in, a);
            if (Index) out.dtype = DType::int64;
            return out;
          },
          .bind = [](const Infos& in, const Arguments& a) -> Kernel {
            return [dim = a.dims("dim", in[0]->shape.size())[0], keepdim = a.flag("keepdim", false)](Operands x) {
              return F(*x[0], dim, keepdim);
            };
          }};
}

/// An operation along one dim that keeps the shape.
template <auto F>
[[nodiscard]] Operation along_dim(std::string_view name) {
  return {.name = name,
          .rules = {{"dim", ArgumentType::integer, true}},
          .infer = [](const Infos& in, const Arguments& a) -> TensorInfo {
            (void)a.dim("dim", in[0]->shape.size());
            return infer_same(in, a);
          },
          .bind = [](const Infos&, const Arguments& a) -> Kernel {
            return [dim = a.integer("dim")](Operands x) { return F(*x[0], dim); };
          }};
}

[[nodiscard]] inline Operation vector_norm() {
  return {.name = "vector_norm",
          .rules = {{"p", ArgumentType::number}, {"dim", ArgumentType::dims, true}, {"keepdim", ArgumentType::flag}},
          .infer = [](const Infos& in, const Arguments& a) -> TensorInfo {
            if (!(a.number("p", 2) > 0)) complain("args.p", "is not positive");
            if (a.dims("dim", in[0]->shape.size()).empty()) complain("args.dim", "names no dim to reduce");
            return infer_reduction(in, a);
          },
          .bind = [](const Infos& in, const Arguments& a) -> Kernel {
            return [p = a.number("p", 2), dims = a.dims("dim", in[0]->shape.size()),
                    keepdim = a.flag("keepdim", false)](Operands x) {
              return torch::linalg_vector_norm(*x[0], p, at::IntArrayRef(dims), keepdim);
            };
          }};
}

namespace call {
using Dims = std::vector<std::int64_t>;
inline constexpr auto sum = [](const torch::Tensor& x, const Dims& d, bool keep) {
  return torch::sum(x, at::IntArrayRef(d), keep);
};
inline constexpr auto mean = [](const torch::Tensor& x, const Dims& d, bool keep) {
  return torch::mean(x, at::IntArrayRef(d), keep);
};
inline constexpr auto logsumexp = [](const torch::Tensor& x, const Dims& d, bool keep) {
  return torch::logsumexp(x, at::IntArrayRef(d), keep);
};
// KernelBench takes the values of torch.max(x, dim), which finds the indices too
inline constexpr auto max = [](const torch::Tensor& x, std::int64_t d, bool keep) {
  return std::get<0>(torch::max(x, d, keep));
};
inline constexpr auto min = [](const torch::Tensor& x, std::int64_t d, bool keep) {
  return std::get<0>(torch::min(x, d, keep));
};
inline constexpr auto argmax = [](const torch::Tensor& x, std::int64_t d, bool keep) {
  return torch::argmax(x, d, keep);
};
inline constexpr auto argmin = [](const torch::Tensor& x, std::int64_t d, bool keep) {
  return torch::argmin(x, d, keep);
};
inline constexpr auto cumsum = [](const torch::Tensor& x, std::int64_t d) { return torch::cumsum(x, d); };
inline constexpr auto cumprod = [](const torch::Tensor& x, std::int64_t d) { return torch::cumprod(x, d); };
inline constexpr auto softmax = [](const torch::Tensor& x, std::int64_t d) { return torch::softmax(x, d); };
inline constexpr auto log_softmax = [](const torch::Tensor& x, std::int64_t d) { return torch::log_softmax(x, d); };
}  // namespace call

}  // namespace detail

[[nodiscard]] inline std::vector<Operation> reduction_operations() {
  using namespace detail;
  return {reduction<call::sum>("sum"),
          reduction<call::mean>("mean"),
          reduction<call::logsumexp>("logsumexp"),
          vector_norm(),
          reduction_over_one<call::max, false>("max_reduce"),
          reduction_over_one<call::min, false>("min_reduce"),
          reduction_over_one<call::argmax, true>("argmax"),
          reduction_over_one<call::argmin, true>("argmin"),
          along_dim<call::cumsum>("cumsum"),
          along_dim<call::cumprod>("cumprod"),
          along_dim<call::softmax>("softmax"),
          along_dim<call::log_softmax>("log_softmax")};
}

}  // namespace kevin::tasks

#endif  // KEVIN_TASKS_OPERATIONS_REDUCTION_HPP
