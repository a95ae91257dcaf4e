#ifndef KEVIN_TASKS_OPERATIONS_ELEMENTWISE_HPP
#define KEVIN_TASKS_OPERATIONS_ELEMENTWISE_HPP

#include <string>
#include <utility>
#include <vector>

#include "kevin/tasks/operation.hpp"

/// Operations that act on each element: activations, arithmetic with a number, with a learned parameter, with another
/// value.
///
/// `composed`: true asks for the form that KernelBench writes out (several LibTorch calls) instead of LibTorch's own
/// fused call. The values agree to rounding; the time of the reference, and so the speedup of a candidate, does not.
namespace kevin::tasks {

namespace detail {

namespace call {
using torch::Tensor;
inline constexpr auto add = [](const Tensor& x, const auto& y) { return torch::add(x, y); };
inline constexpr auto sub = [](const Tensor& x, const auto& y) { return torch::sub(x, y); };
inline constexpr auto mul = [](const Tensor& x, const auto& y) { return torch::mul(x, y); };
inline constexpr auto div = [](const Tensor& x, const auto& y) { return torch::div(x, y); };
inline constexpr auto rsub = [](const Tensor& x, double y) { return torch::rsub(x, y); };
inline constexpr auto lesser = [](const Tensor& x, const Tensor& y) { return torch::minimum(x, y); };
inline constexpr auto greater = [](const Tensor& x, const Tensor& y) { return torch::maximum(x, y); };
inline constexpr auto at_most = [](const Tensor& x, double y) { return torch::clamp_max(x, y); };
inline constexpr auto at_least = [](const Tensor& x, double y) { return torch::clamp_min(x, y); };
inline constexpr auto abs = [](const Tensor& x) { return torch::abs(x); };
inline constexpr auto exp = [](const Tensor& x) { return torch::exp(x); };
inline constexpr auto log = [](const Tensor& x) { return torch::log(x); };
inline constexpr auto neg = [](const Tensor& x) { return torch::neg(x); };
inline constexpr auto sqrt = [](const Tensor& x) { return torch::sqrt(x); };
inline constexpr auto square = [](const Tensor& x) { return torch::square(x); };
inline constexpr auto relu = [](const Tensor& x) { return torch::relu(x); };
inline constexpr auto selu = [](const Tensor& x) { return torch::selu(x); };
inline constexpr auto sigmoid = [](const Tensor& x) { return torch::sigmoid(x); };
inline constexpr auto tanh = [](const Tensor& x) { return torch::tanh(x); };
inline constexpr auto hardsigmoid = [](const Tensor& x) { return torch::hardsigmoid(x); };
// torch.nn.functional.softsign is these calls too
inline constexpr auto softsign = [](const Tensor& x) { return x / (1 + x.abs()); };
inline constexpr auto silu = [](const Tensor& x) { return torch::silu(x); };
inline constexpr auto silu_composed = [](const Tensor& x) { return x * torch::sigmoid(x); };
inline constexpr auto mish = [](const Tensor& x) { return torch::mish(x); };
inline constexpr auto mish_composed = [](const Tensor& x) { return x * torch::tanh(torch::softplus(x)); };
inline constexpr auto hardswish = [](const Tensor& x) { return torch::hardswish(x); };
inline constexpr auto hardswish_composed = [](const Tensor& x) { return x * torch::clamp((x + 3) / 6, 0, 1); };
}  // namespace call

/// An activation without arguments.
template <auto F>
[[nodiscard]] Operation activation(std::string_view name) {
  return {.name = name, .rules = {}, .infer = infer_same, .bind = [](const Infos&, const Arguments&) -> Kernel {
            return [](Operands x) { return F(*x[0]); };
          }};
}

/// Arithmetic with the number `value`.
template <auto F>
[[nodiscard]] Operation with_scalar(std::string_view name) {
  return {.name = name,
          .rules = {{"value", ArgumentType::number, true}},
          .infer = infer_same,
          .bind = [](const Infos&, const Arguments& a) -> Kernel {
            return [value = a.number("value")](Operands x) { return F(*x[0], value); };
          }};
}

[[nodiscard]] inline TensorInfo infer_pair(const Infos& in, const Arguments& /*args*/) {
  return {broadcast(in[0]->shape, in[1]->shape), arithmetic_type(*in[0], *in[1])};
}

/// Arithmetic on two values, broadcast.
template <auto F>
[[nodiscard]] Operation with_value(std::string_view name) {
  return {.name = name,
          .least = 2,
          .most = 2,
          .rules = {},
          .infer = infer_pair,
          .bind = [](const Infos&, const Arguments&) -> Kernel { return [](Operands x) { return F(*x[0], *x[1]); }; }};
}

/// Arithmetic with a learned parameter, broadcast; `parameter_viewed_as` reshapes it first.
template <auto F>
[[nodiscard]] Operation with_parameter(std::string_view name) {
  return {.name = name,
          .rules = {{"parameter", ArgumentType::parameter, true},
                    {"parameter_shape", ArgumentType::integers},
                    {"parameter_viewed_as", ArgumentType::integers}},
          .infer = [](const Infos& in, const Arguments& a) -> TensorInfo {
            TensorInfo p = *in[1];
            if (a.has("parameter_shape")) require_shape(p, a.integers("parameter_shape"), "args.parameter_shape");
            if (a.has("parameter_viewed_as")) {
              const Shape view = a.integers("parameter_viewed_as");
              if (checked_count(view, "args.parameter_viewed_as") != element_count(p.shape)) {
                complain("args.parameter_viewed_as",
                         shape_text(view) + " does not hold the elements of " + shape_text(p.shape));
              }
              p.shape = view;
            }
            return {broadcast(in[0]->shape, p.shape), arithmetic_type(*in[0], p)};
          },
          .bind = [](const Infos&, const Arguments& a) -> Kernel {
            if (a.has("parameter_viewed_as")) {
              return [view = a.integers("parameter_viewed_as")](Operands x) { return F(*x[0], x[1]->reshape(view)); };
            }
            return [](Operands x) { return F(*x[0], *x[1]); };
          }};
}

/// An activation that LibTorch has in one call (`Fused`) and KernelBench writes out (`Composed`).
template <auto Fused, auto Composed>
[[nodiscard]] Operation activation_in_two_forms(std::string_view name) {
  return {.name = name,
          .rules = {{"composed", ArgumentType::flag}},
          .infer = infer_same,
          .bind = [](const Infos&, const Arguments& a) -> Kernel {
            if (a.flag("composed", false)) return [](Operands x) { return Composed(*x[0]); };
            return [](Operands x) { return Fused(*x[0]); };
          }};
}

[[nodiscard]] inline Operation gelu() {
  return {.name = "gelu",
          .rules = {{"approximate", ArgumentType::text}, {"composed", ArgumentType::flag}},
          .infer = [](const Infos& in, const Arguments& a) -> TensorInfo {
            const std::string mode = a.text("approximate", "none");
            if (mode != "none" && mode != "tanh")
              complain("args.approximate", quote(mode) + " is neither 'none' nor 'tanh'");
            if (mode == "none" && a.flag("composed", false))
              complain("args.composed", "exists for approximate 'tanh' only");
            return infer_same(in, a);
          },
          .bind = [](const Infos&, const Arguments& a) -> Kernel {
            if (a.flag("composed", false)) {
              return [](Operands in) {  // as MinGPT writes it
                const torch::Tensor& x = *in[0];
                return 0.5 * x * (1.0 + torch::tanh(0.7978845608028654 * (x + 0.044715 * torch::pow(x, 3.0))));
              };
            }
            return [mode = a.text("approximate", "none")](Operands x) { return torch::gelu(*x[0], mode); };
          }};
}

[[nodiscard]] inline Operation clamp() {
  return {.name = "clamp",
          .rules = {{"min", ArgumentType::number}, {"max", ArgumentType::number}},
          .infer = [](const Infos& in, const Arguments& a) -> TensorInfo {
            if (!a.has("min") && !a.has("max")) complain("args", "needs min, max or both");
            if (a.has("min") && a.has("max") && a.number("min") > a.number("max")) complain("args.min", "is above max");
            return infer_same(in, a);
          },
          .bind = [](const Infos&, const Arguments& a) -> Kernel {
            const double low = a.number("min");
            const double high = a.number("max");
            if (!a.has("max")) return [low](Operands x) { return torch::clamp_min(*x[0], low); };
            if (!a.has("min")) return [high](Operands x) { return torch::clamp_max(*x[0], high); };
            return [low, high](Operands x) { return torch::clamp(*x[0], low, high); };
          }};
}

[[nodiscard]] inline Operation hardtanh() {
  return {.name = "hardtanh",
          .rules = {{"min_val", ArgumentType::number}, {"max_val", ArgumentType::number}},
          .infer = [](const Infos& in, const Arguments& a) -> TensorInfo {
            if (!(a.number("min_val", -1) < a.number("max_val", 1))) complain("args.min_val", "is not below max_val");
            return infer_same(in, a);
          },
          .bind = [](const Infos&, const Arguments& a) -> Kernel {
            return [low = a.number("min_val", -1), high = a.number("max_val", 1)](Operands x) {
              return torch::hardtanh(*x[0], low, high);
            };
          }};
}

[[nodiscard]] inline Operation elu() {
  return {.name = "elu",
          .rules = {{"alpha", ArgumentType::number}},
          .infer = infer_same,
          .bind = [](const Infos&, const Arguments& a) -> Kernel {
            return [alpha = a.number("alpha", 1)](Operands x) { return torch::elu(*x[0], alpha); };
          }};
}

[[nodiscard]] inline Operation leaky_relu() {
  return {.name = "leaky_relu",
          .rules = {{"negative_slope", ArgumentType::number}},
          .infer = infer_same,
          .bind = [](const Infos&, const Arguments& a) -> Kernel {
            return [slope = a.number("negative_slope", 0.01)](Operands x) { return torch::leaky_relu(*x[0], slope); };
          }};
}

[[nodiscard]] inline Operation softplus() {
  return {.name = "softplus",
          .rules = {{"beta", ArgumentType::number}, {"threshold", ArgumentType::number}},
          .infer = [](const Infos& in, const Arguments& a) -> TensorInfo {
            if (a.number("beta", 1) == 0) complain("args.beta", "is zero");
            return infer_same(in, a);
          },
          .bind = [](const Infos&, const Arguments& a) -> Kernel {
            return [beta = a.number("beta", 1), threshold = a.number("threshold", 20)](Operands x) {
              return torch::softplus(*x[0], beta, threshold);
            };
          }};
}

/// Dropout only as what it is outside training, the identity: with training on its output is random, so no candidate
/// can be held against it.
[[nodiscard]] inline Operation dropout() {
  return {.name = "dropout",
          .rules = {{"p", ArgumentType::number}, {"training", ArgumentType::flag, true}},
          .infer = [](const Infos& in, const Arguments& a) -> TensorInfo {
            if (a.flag("training", true))
              complain("args.training", "must be false: with training on, the output is random");
            if (!(a.number("p", 0.5) >= 0 && a.number("p", 0.5) <= 1)) complain("args.p", "is not a probability");
            return infer_same(in, a);
          },
          .bind = [](const Infos&, const Arguments& a) -> Kernel {
            return [p = a.number("p", 0.5)](Operands x) { return torch::dropout(*x[0], p, false); };
          }};
}

}  // namespace detail

[[nodiscard]] inline std::vector<Operation> elementwise_operations() {
  using namespace detail;
  return {
      activation<call::abs>("abs"),
      activation<call::exp>("exp"),
      activation<call::log>("log"),
      activation<call::neg>("neg"),
      activation<call::sqrt>("sqrt"),
      activation<call::square>("square"),
      activation<call::relu>("relu"),
      activation<call::selu>("selu"),
      activation<call::sigmoid>("sigmoid"),
      activation<call::tanh>("tanh"),
      activation<call::hardsigmoid>("hardsigmoid"),
      activation<call::softsign>("softsign"),
      activation_in_two_forms<call::silu, call::silu_composed>("silu"),
      activation_in_two_forms<call::mish, call::mish_composed>("mish"),
      activation_in_two_forms<call::hardswish, call::hardswish_composed>("hardswish"),
      gelu(),
      clamp(),
      hardtanh(),
      elu(),
      leaky_relu(),
      softplus(),
      dropout(),
      with_scalar<call::add>("add_scalar"),
      with_scalar<call::sub>("sub_scalar"),
      with_scalar<call::mul>("mul_scalar"),
      with_scalar<call::div>("div_scalar"),
      with_scalar<call::rsub>("rsub_scalar"),
      with_scalar<call::at_most>("min_scalar"),
      with_scalar<call::at_least>("max_scalar"),
      with_parameter<call::add>("add_parameter"),
      with_parameter<call::sub>("sub_parameter"),
      with_parameter<call::mul>("mul_parameter"),
      with_parameter<call::div>("div_parameter"),
      with_parameter<call::lesser>("min_parameter"),
      with_parameter<call::greater>("max_parameter"),
      with_value<call::add>("add_input"),
      with_value<call::sub>("sub_input"),
      with_value<call::mul>("mul_input"),
      with_value<call::div>("div_input"),
      with_value<call::add>("add_tensor"),
      with_value<call::sub>("sub_tensor"),
      with_value<call::mul>("mul_tensor"),
      with_value<call::div>("div_tensor"),
      with_value<call::lesser>("min_tensor"),
      with_value<call::greater>("max_tensor"),
      with_value<call::add>("residual_add"),
  };
}

}  // namespace kevin::tasks

#endif  // KEVIN_TASKS_OPERATIONS_ELEMENTWISE_HPP
