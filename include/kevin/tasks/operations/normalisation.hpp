#ifndef KEVIN_TASKS_OPERATIONS_NORMALISATION_HPP
#define KEVIN_TASKS_OPERATIONS_NORMALISATION_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "kevin/tasks/operation.hpp"

/// Normalisations. Batch and instance norm use the statistics of the batch at hand, as KernelBench leaves modules in
/// training mode; a task carries no running statistics.
namespace kevin::tasks {

namespace detail {

/// The rules that all of them share, weight and bias first, and `more`.
[[nodiscard]] inline std::vector<ArgumentRule> norm_rules_and(std::initializer_list<ArgumentRule> more) {
  std::vector<ArgumentRule> rules = {{"weight", ArgumentType::parameter},
                                     {"bias", ArgumentType::parameter},
                                     {"eps", ArgumentType::number},
                                     {"affine", ArgumentType::flag}};
  rules.insert(rules.end(), more);
  return rules;
}

/// Checks weight and bias (operands 1 and 2) against the shape of one of them, eps, and the declared `affine`.
inline void check_affine(const Infos& in, const Arguments& a, const Shape& shape) {
  require_real(*in[0]);
  for (std::size_t i : {std::size_t{1}, std::size_t{2}}) {
    if (in[i] == nullptr) continue;
    const std::string place = i == 1 ? "args.weight" : "args.bias";
    require_shape(*in[i], shape, place);
    if (in[i]->dtype != in[0]->dtype) complain(place, "has another type than in[0]");
  }
  if (a.has("affine") && a.flag("affine", false) != (in[1] != nullptr))
    complain("args.affine", "does not agree with weight");
  if (!(a.number("eps", 1e-5) > 0)) complain("args.eps", "is not positive");
}

[[nodiscard]] inline Operation layer_norm() {
  return {.name = "layer_norm",
          .rules = norm_rules_and({{"normalized_shape", ArgumentType::integers, true}}),
          .infer = [](const Infos& in, const Arguments& a) -> TensorInfo {
            const Shape tail = a.integers("normalized_shape");
            const Shape& shape = in[0]->shape;
            if (tail.empty() || tail.size() > shape.size() || !std::equal(tail.rbegin(), tail.rend(), shape.rbegin())) {
              complain("args.normalized_shape", shape_text(tail) + " is not the end of " + shape_text(shape));
            }
            check_affine(in, a, tail);
            return *in[0];
          },
          .bind = [](const Infos&, const Arguments& a) -> Kernel {
            return [tail = a.integers("normalized_shape"), eps = a.number("eps", 1e-5)](Operands x) {
              return torch::layer_norm(*x[0], at::IntArrayRef(tail), *x[1], *x[2], eps);
            };
          }};
}

[[nodiscard]] inline Operation group_norm() {
  return {
      .name = "group_norm",
      .rules = norm_rules_and({{"num_groups", ArgumentType::integer, true}, {"num_channels", ArgumentType::integer}}),
      .infer = [](const Infos& in, const Arguments& a) -> TensorInfo {
        require_rank(*in[0], 2, 8);
        const std::int64_t channels = in[0]->shape[1];
        const std::int64_t groups = a.integer("num_groups");
        if (groups < 1 || channels % groups != 0)
          complain("args.num_groups", "does not divide " + std::to_string(channels) + " channels");
        require_declared(a, "num_channels", channels);
        if (element_count(in[0]->shape) / in[0]->shape[0] / groups < 2)
          complain({}, "has one value for each group: the result is zero");
        check_affine(in, a, {channels});
        return *in[0];
      },
      .bind = [](const Infos&, const Arguments& a) -> Kernel {
        return [groups = a.integer("num_groups"), eps = a.number("eps", 1e-5)](Operands x) {
          return torch::group_norm(*x[0], groups, *x[1], *x[2], eps);
        };
      }};
}

[[nodiscard]] inline Operation batch_norm() {
  return {.name = "batch_norm",
          .rules = norm_rules_and({{"training", ArgumentType::flag},
                                   {"momentum", ArgumentType::number},
                                   {"num_features", ArgumentType::integer},
                                   {"spatial_dims", ArgumentType::integer},
                                   {"track_running_stats", ArgumentType::flag}}),
          .infer = [](const Infos& in, const Arguments& a) -> TensorInfo {
            require_rank(*in[0], 2, 5);
            const std::int64_t channels = in[0]->shape[1];
            if (!a.flag("training", true))
              complain("args.training", "must be true: a task carries no running statistics");
            require_declared(a, "num_features", channels);
            require_declared(a, "spatial_dims", static_cast<std::int64_t>(in[0]->shape.size()) - 2);
            if (element_count(in[0]->shape) / channels < 2)
              complain({}, "has one value for each channel: the result is zero");
            check_affine(in, a, {channels});
            return *in[0];
          },
          .bind = [](const Infos&, const Arguments& a) -> Kernel {
            return [eps = a.number("eps", 1e-5), momentum = a.number("momentum", 0.1)](Operands x) {
              return torch::batch_norm(*x[0], *x[1], *x[2], {}, {}, true, momentum, eps, false);
            };
          }};
}

[[nodiscard]] inline Operation instance_norm() {
  return {.name = "instance_norm",
          .rules = norm_rules_and({{"use_input_stats", ArgumentType::flag},
                                   {"momentum", ArgumentType::number},
                                   {"num_features", ArgumentType::integer},
                                   {"spatial_dims", ArgumentType::integer},
                                   {"track_running_stats", ArgumentType::flag}}),
          .infer = [](const Infos& in, const Arguments& a) -> TensorInfo {
            require_rank(*in[0], 3, 5);
            const std::int64_t channels = in[0]->shape[1];
            if (!a.flag("use_input_stats", true))
              complain("args.use_input_stats", "must be true: a task carries no running statistics");
            require_declared(a, "num_features", channels);
            require_declared(a, "spatial_dims", static_cast<std::int64_t>(in[0]->shape.size()) - 2);
            if (element_count(in[0]->shape) / channels / in[0]->shape[0] < 2)
              complain({}, "has one value for each instance: the result is zero");
            check_affine(in, a, {channels});
            return *in[0];
          },
          .bind = [](const Infos&, const Arguments& a) -> Kernel {
            return [eps = a.number("eps", 1e-5), momentum = a.number("momentum", 0.1)](Operands x) {
              return torch::instance_norm(*x[0], *x[1], *x[2], {}, {}, true, momentum, eps, false);
            };
          }};
}

/// x / sqrt(mean(x^2) + eps), times an optional weight (Zhang and Sennrich 2019, eq. 4). LibTorch has it in one call
/// from release 2.4 only and KernelBench writes it out, so it is always the written-out form.
[[nodiscard]] inline Operation rms_norm() {
  return {
      .name = "rms_norm",
      .rules = {{"weight", ArgumentType::parameter}, {"dim", ArgumentType::dims, true}, {"eps", ArgumentType::number}},
      .infer = [](const Infos& in, const Arguments& a) -> TensorInfo {
        require_real(*in[0]);
        if (a.dims("dim", in[0]->shape.size()).empty()) complain("args.dim", "names no dim");
        if (!(a.number("eps", 1e-5) > 0)) complain("args.eps", "is not positive");
        if (in[1] != nullptr) {
          (void)arithmetic_type(*in[0], *in[1]);
          if (broadcast(in[0]->shape, in[1]->shape) != in[0]->shape)
            complain("args.weight", "does not broadcast to the input's shape");
        }
        return *in[0];
      },
      .bind = [](const Infos& in, const Arguments& a) -> Kernel {
        return [dims = a.dims("dim", in[0]->shape.size()), eps = a.number("eps", 1e-5)](Operands x) {
          torch::Tensor y = *x[0] / torch::sqrt(torch::mean(torch::pow(*x[0], 2), at::IntArrayRef(dims), true) + eps);
          return x[1]->defined() ? y * *x[1] : y;
        };
      }};
}

}  // namespace detail

[[nodiscard]] inline std::vector<Operation> normalisation_operations() {
  using namespace detail;
  return {layer_norm(), group_norm(), batch_norm(), instance_norm(), rms_norm()};
}

}  // namespace kevin::tasks

#endif  // KEVIN_TASKS_OPERATIONS_NORMALISATION_HPP
