#ifndef KEVIN_TASKS_GENERATOR_ELEMENTWISE_MOVES_HPP
#define KEVIN_TASKS_GENERATOR_ELEMENTWISE_MOVES_HPP

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "kevin/core/random.hpp"
#include "kevin/tasks/generator/draft.hpp"
#include "kevin/tasks/generator/heavy.hpp"

/// Steps that a generated task may take on each element. Each tries to add one step to the draft and says whether it
/// could: a step that would undo, repeat or drown what is there is refused.
namespace kevin::tasks::detail {

/// To a multiple of 1/20, so that constants read well and do not hang on the last bit of a machine's exp.
[[nodiscard]] inline double rounded(double value) { return std::floor(value * 20 + 0.5137) / 20; }

/// Least share that a straight line must leave unexplained (Marginal::bend) for an activation to count as one.
inline constexpr double least_bend = 0.004;

struct Activation {
  std::string_view op, title;
  double (*value)(double x, double argument);
  std::string_view argument = {};
  std::array<double, 3> choices = {};  ///< of the argument
  bool saturating = false, cuts_below = false;
};

[[nodiscard]] inline const auto& activations() {
  static constexpr auto soft = [](double x) { return x > 20 ? x : std::log1p(std::exp(x)); };
  static constexpr auto logistic = [](double x) { return 1 / (1 + std::exp(-x)); };
  static constexpr std::array list = {
      Activation{"relu", "ReLU", [](double x, double) { return std::max(x, 0.0); }, {}, {}, false, true},
      Activation{"leaky_relu",
                 "LeakyReLU",
                 [](double x, double a) { return x > 0 ? x : a * x; },
                 "negative_slope",
                 {0.01, 0.1, 0.2}},
      Activation{"gelu", "GELU", [](double x, double) { return x * logistic(1.702 * x); }},
      Activation{"silu", "Swish", [](double x, double) { return x * logistic(x); }},
      Activation{"mish", "Mish", [](double x, double) { return x * std::tanh(soft(x)); }},
      Activation{"hardswish", "HardSwish", [](double x, double) { return x * std::clamp(x / 6 + 0.5, 0.0, 1.0); }},
      Activation{
          "elu", "ELU", [](double x, double a) { return x > 0 ? x : a * std::expm1(x); }, "alpha", {0.5, 1.0, 1.5}},
      Activation{"selu", "SELU", [](double x, double) { return 1.0507 * (x > 0 ? x : 1.67326 * std::expm1(x)); }},
      Activation{"softplus", "Softplus", [](double x, double) { return soft(x); }},
      Activation{"sigmoid", "Sigmoid", [](double x, double) { return logistic(x); }, {}, {}, true},
      Activation{"tanh", "Tanh", [](double x, double) { return std::tanh(x); }, {}, {}, true},
      Activation{"softsign", "Softsign", [](double x, double) { return x / (1 + std::fabs(x)); }, {}, {}, true},
      Activation{"hardsigmoid",
                 "HardSigmoid",
                 [](double x, double) { return std::clamp(x / 6 + 0.5, 0.0, 1.0); },
                 {},
                 {},
                 true}};
  return list;
}

[[nodiscard]] inline bool try_activation(Draft& draft, Rng& rng) {
  const Activation& a = activations()[rng.below(activations().size())];
  const double argument = a.choices[rng.below(a.choices.size())];
  const bool tanh_form = a.op == "gelu" && chance(rng, 30);
  const bool homogeneous = a.op == "relu" || a.op == "leaky_relu";
  const bool alters_low = homogeneous || a.op == "elu" || a.op == "selu";
  if (draft.has(a.op) || (a.saturating && draft.saturated) || (alters_low && draft.altered_low)) return false;
  if (alters_low && draft.reduced && !draft.has("mean") && !draft.has("sum")) return false;  // of one sign, as a rule
  const auto f = [&](double x) { return a.value(x, argument); };
  DraftStep step{.op = std::string(a.op), .title = std::string(a.title)};
  for (std::size_t s : both_sizes) {
    const double mean = draft.marginal[s].mean();
    const double deviation = draft.marginal[s].deviation();
    if (draft.marginal[s].bend(f) < least_bend) return false;
    if (mean < -1) return false;  // the flat tail of most of them, where little but rounding is left
    if (alters_low && draft.reduced && mean > deviation) return false;
    if (a.saturating && (mean > 2 || deviation > 3)) return false;
    if (!a.argument.empty()) step.args[s][std::string(a.argument)] = argument;
    if (tanh_form) step.args[s]["approximate"] = std::string("tanh");
    step.after[s] = draft.marginal[s].map(f);
  }
  if (!draft.add(step)) return false;
  draft.nonlinear = true;
  draft.offsets.clear();
  if (!homogeneous) draft.factors.clear();
  draft.altered_low = draft.altered_low || alters_low;
  draft.saturated = a.saturating;
  draft.bounded_above = draft.bounded_above || a.saturating;
  draft.bounded_below = draft.bounded_below || a.saturating || a.cuts_below;
  return true;
}

/// Clamp, hardtanh, minimum or maximum with a number, at quantiles of the values: each side cuts some and leaves many.
[[nodiscard]] inline bool try_cut(Draft& draft, Rng& rng) {
  const std::uint64_t kind = rng.below(4);
  const double low_share = rng.uniform(0.08, 0.3);
  const double high_share = rng.uniform(0.7, 0.92);
  if (draft.reduced || draft.saturated || draft.has("clamp") || draft.has("hardtanh")) return false;
  if (kind >= 2 && (draft.has("min_scalar") || draft.has("max_scalar"))) return false;
  const bool below = kind != 2;
  const bool above = kind != 3;
  if ((below && draft.altered_low) || (above && draft.altered_high)) return false;
  double low = 0;
  double high = 0;
  for (std::size_t s : both_sizes) {
    if (draft.marginal[s].deviation() < 0.25 || draft.marginal[s].deviation() > 20) return false;
    low += draft.marginal[s].quantile(low_share) / 2;
    high += draft.marginal[s].quantile(high_share) / 2;
  }
  low = rounded(low);
  high = rounded(high);
  if (low + 0.2 > high) return false;
  const auto f = [&](double x) { return std::min(std::max(x, below ? low : x), above ? high : x); };
  const bool clamp = kind == 0;
  DraftStep step{.op = clamp       ? "clamp"
                       : kind == 1 ? "hardtanh"
                       : kind == 2 ? "min_scalar"
                                   : "max_scalar",
                 .title = clamp       ? "Clamp"
                          : kind == 1 ? "Hardtanh"
                          : kind == 2 ? "Minimum"
                                      : "Maximum"};
  for (std::size_t s : both_sizes) {
    if (draft.marginal[s].bend(f) < least_bend) return false;
    if (kind < 2) {
      step.args[s] = {{clamp ? "min" : "min_val", low}, {clamp ? "max" : "max_val", high}};
    } else {
      step.args[s] = {{"value", below ? low : high}};
    }
    step.after[s] = draft.marginal[s].map(f);
  }
  if (!draft.add(step)) return false;
  draft.nonlinear = draft.saturated = true;
  draft.forget_terms();
  draft.altered_low = draft.altered_low || below;
  draft.altered_high = draft.altered_high || above;
  draft.bounded_below = draft.bounded_below || below;
  draft.bounded_above = draft.bounded_above || above;
  return true;
}

[[nodiscard]] inline bool last_is_arithmetic(const Draft& draft) {
  return draft.last_is({"add_scalar", "sub_scalar", "rsub_scalar", "mul_scalar", "div_scalar", "add_parameter",
                        "sub_parameter", "mul_parameter", "div_parameter"});
}

/// Arithmetic with a number. Not after other arithmetic, of which it would be a part.
[[nodiscard]] inline bool try_scalar(Draft& draft, Rng& rng) {
  const std::uint64_t kind = rng.below(5);
  const double term = static_cast<double>(pick(rng, {25, 50, 75, 100, 150})) / 100;
  const double factor = static_cast<double>(pick(rng, {50, 75, 125, 150, 200, 300})) / 100;
  if (last_is_arithmetic(draft)) return false;
  const double value = kind < 3 ? term : factor;
  const auto f = [&](double x) {
    return kind == 0 ? x + value : kind == 1 ? x - value : kind == 2 ? value - x : kind == 3 ? x * value : x / value;
  };
  static constexpr std::array ops = {"add_scalar", "sub_scalar", "rsub_scalar", "mul_scalar", "div_scalar"};
  static constexpr std::array titles = {"Add", "Subtract", "SubtractFrom", "Multiply", "Divide"};
  if (draft.has(ops[kind])) return false;
  DraftStep step{.op = ops[kind], .title = titles[kind]};
  for (std::size_t s : both_sizes) {
    // a term that is small beside the values would be lost, and one that is large would drown them
    const double deviation = draft.marginal[s].deviation();
    if (kind < 3 && (deviation < 0.05 || deviation > 20)) return false;
    step.args[s] = {{"value", value}};
    step.after[s] = draft.marginal[s].map(f);
  }
  if (!draft.add(step)) return false;
  if (kind < 3)
    draft.add_offset(0);
  else
    draft.multiply_by(0);
  if (kind == 2) {
    std::swap(draft.bounded_above, draft.bounded_below);
    std::swap(draft.altered_high, draft.altered_low);
  }
  draft.saturated = false;
  return true;
}

/// Arithmetic with a learned number for each channel.
[[nodiscard]] inline bool try_parameter(Draft& draft, Rng& rng) {
  const std::uint64_t kind = rng.below(6);
  if (draft.channel < 0 || draft.least_extent(static_cast<std::size_t>(draft.channel)) < 4) return false;
  if (last_is_arithmetic(draft)) return false;
  if (kind < 2 && draft.steps() == 1 && draft.heavy_bias) return false;  // the bias of the bias
  static constexpr std::array ops = {"add_parameter", "sub_parameter", "mul_parameter",
                                     "div_parameter", "min_parameter", "max_parameter"};
  static constexpr std::array titles = {"BiasAdd", "BiasSubtract", "Scale", "ScaleDivide", "BoundMin", "BoundMax"};
  if (draft.has(ops[kind]) || (kind >= 4 && (draft.reduced || draft.saturated))) return false;
  if ((kind == 4 && draft.altered_high) || (kind == 5 && draft.altered_low)) return false;
  const bool factor = kind == 2 || kind == 3;
  // as large as the values are, in steps that read well
  const double spread = std::max(draft.marginal[0].deviation(), draft.marginal[1].deviation());
  const double unit = spread > 8 ? 4 : spread > 2 ? 1 : 0.5;
  const Distribution law = factor ? uniform_law(0.5, 1.5) : normal_law(0, unit);
  const Marginal values = factor ? Marginal::normal(1, 0.25) : Marginal::normal(0, unit);
  const auto f = [kind](double x, double p) {
    switch (kind) {
      case 0:
        return x + p;
      case 1:
        return x - p;
      case 2:
        return x * p;
      case 3:
        return x / p;
      case 4:
        return std::min(x, p);
      default:
        return std::max(x, p);
    }
  };
  DraftStep step{.op = ops[kind], .title = titles[kind], .owner = factor ? "scale" : kind < 2 ? "bias" : "bound"};
  step.parameters.push_back({"parameter", "", draft.channel_shape(), same(law)});
  for (std::size_t s : both_sizes) {
    const Marginal& m = draft.marginal[s];
    if (!factor && (m.deviation() < 0.1 * unit || m.deviation() > 20)) return false;
    if (kind >= 4 && (m.deviation() < 0.3 || std::fabs(m.mean()) > 0.8 * m.deviation())) return false;
    step.after[s] = m.with_independent(values, f);
  }
  if (!draft.add(step)) return false;
  if (kind < 2) draft.add_offset(draft.channel_dim());
  if (factor) draft.multiply_by(draft.channel_dim());
  if (kind >= 4) draft.forget_terms();
  draft.nonlinear = draft.nonlinear || kind >= 4;
  draft.saturated = kind >= 4;
  draft.bounded_by_parameter = draft.bounded_by_parameter || kind >= 4;
  draft.altered_high = draft.altered_high || kind == 4;
  draft.altered_low = draft.altered_low || kind == 5;
  draft.bounded_above = draft.bounded_above || kind == 4;
  draft.bounded_below = draft.bounded_below || kind == 5;
  return true;
}

/// After a tensor was added to the result, or multiplied with it.
inline void after_tensor(Draft& draft, bool product) {
  (product ? draft.offsets : draft.factors).clear();
  draft.saturated = draft.bounded_above = draft.bounded_below = false;
  draft.altered_low = draft.altered_high = draft.bounded_by_parameter = false;
}

/// The heavy operator's own result again: added, or multiplied as a gate.
[[nodiscard]] inline bool try_residual(Draft& draft, Rng& rng) {
  const bool product = chance(rng, 40);
  if (!draft.nonlinear || draft.steps() == 1 || !draft.shaped_like_heavy()) return false;
  if (draft.has("residual_add") || draft.has("mul_tensor")) return false;
  if (draft.has("rsub_scalar")) return false;  // x + (v - f(x)): for many f little of x is left
  DraftStep step{.op = product ? "mul_tensor" : "residual_add", .title = product ? "Gate" : "ResidualAdd"};
  step.with_heavy = true;
  for (std::size_t s : both_sizes) {
    const double deviation = draft.marginal[s].deviation();
    if (deviation < 0.1 || deviation > 10) return false;
    step.after[s] =
        draft.marginal[s].with_dependent(draft.heavy(s), [&](double x, double y) { return product ? x * y : x + y; });
  }
  const bool low = draft.altered_low;  // with what it was made of it is altered where it was
  const bool high = draft.altered_high;
  if (!draft.add(step)) return false;
  after_tensor(draft, product);
  draft.altered_low = low;
  draft.altered_high = high;
  return true;
}

/// A second input of the result's shape: added, subtracted or multiplied.
[[nodiscard]] inline bool try_input(Draft& draft, Rng& rng) {
  const std::uint64_t kind = rng.below(3);
  if (draft.reduced || draft.has_input("z")) return false;
  static constexpr std::array ops = {"add_input", "sub_input", "mul_input"};
  static constexpr std::array titles = {"AddInput", "SubtractInput", "MultiplyInput"};
  DraftStep step{.op = ops[kind], .title = titles[kind]};
  step.inputs.push_back({"z", {draft.shape(0), draft.shape(1)}, same(normal_law(0, 1)), true});
  for (std::size_t s : both_sizes) {
    const double deviation = draft.marginal[s].deviation();
    if (deviation < 0.1 || deviation > 10) return false;
    step.after[s] = draft.marginal[s].with_independent(Marginal::normal(0, 1), [&](double x, double z) {
      return kind == 0 ? x + z : kind == 1 ? x - z : x * z;
    });
  }
  if (!draft.add(step)) return false;
  after_tensor(draft, kind == 2);
  return true;
}

}  // namespace kevin::tasks::detail

#endif  // KEVIN_TASKS_GENERATOR_ELEMENTWISE_MOVES_HPP
