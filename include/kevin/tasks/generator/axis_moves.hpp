#ifndef KEVIN_TASKS_GENERATOR_AXIS_MOVES_HPP
#define KEVIN_TASKS_GENERATOR_AXIS_MOVES_HPP

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "kevin/core/random.hpp"
#include "kevin/tasks/generator/draft.hpp"
#include "kevin/tasks/generator/elementwise_moves.hpp"
#include "kevin/tasks/generator/heavy.hpp"

/// Steps that a generated task may take along dims: norms, pools, reductions, softmax.
namespace kevin::tasks::detail {

inline constexpr double norm_bias_deviation = 0.5;

/// A norm with random weight and bias. Not where it would cancel the step before it, nor twice without something
/// nonlinear between.
[[nodiscard]] inline bool try_norm(Draft& draft, Rng& rng) {
  const std::uint64_t kind = rng.below(5);
  const bool whole = chance(rng, 50);
  const std::int64_t groups = pick(rng, {2, 4, 8});
  const bool channels_first = draft.channel == 1;
  if (draft.reduced || draft.norms >= 2 || (draft.norms > 0 && !draft.nonlinear)) return false;
  static constexpr std::array ops = {"batch_norm", "instance_norm", "group_norm", "layer_norm", "rms_norm"};
  static constexpr std::array titles = {"BatchNorm", "InstanceNorm", "GroupNorm", "LayerNorm", "RMSNorm"};
  if (draft.has(ops[kind])) return false;
  if (kind < 3 && !channels_first) return false;
  if (kind == 1 && draft.spatial == 0) return false;
  if (kind != 4 && draft.bounded_by_parameter) return false;        // a channel may be nearly constant
  const bool few = kind == 1 || (kind == 0 && draft.spatial == 0);  // a cut may leave a channel few values
  if (few && (draft.altered_low || draft.altered_high)) return false;
  if (draft.has("softmax")) return false;  // rows of small numbers: their rounding would be magnified
  const unsigned all = (1U << draft.rank()) - 1;
  const unsigned last = 1U << (draft.rank() - 1);
  const bool layer_whole = draft.spatial > 0 && whole;
  const std::array<unsigned, 5> along = {all & ~2U, all & ~3U, all & ~1U, layer_whole ? all & ~1U : last,
                                         draft.channel_dim()};
  if (draft.cancels_factor(along[kind]) || (kind != 4 && draft.cancels_offset(along[kind]))) return false;
  DraftStep step{.op = ops[kind], .title = titles[kind], .owner = "norm"};
  Both<Shape> affine;
  for (std::size_t s : both_sizes) {
    const Shape& shape = draft.shape(s);
    std::int64_t positions = 1;
    for (std::size_t i = 2; i < shape.size(); ++i) positions *= shape[i];
    std::int64_t among = 0;  // elements that share their statistics
    const auto axis = static_cast<std::size_t>(draft.channel);
    switch (kind) {
      case 0:
        among = shape[0] * positions;
        affine[s] = {shape[1]};
        break;
      case 1:
        among = positions;
        affine[s] = {shape[1]};
        break;
      case 2:
        among = shape[1] / groups * positions;
        affine[s] = {shape[1]};
        step.args[s]["num_groups"] = groups;
        break;
      case 3:
        affine[s] = layer_whole ? Shape(shape.begin() + 1, shape.end()) : Shape{shape.back()};
        among = element_count(affine[s]);
        if (among > (std::int64_t{1} << 20)) return false;
        step.args[s]["normalized_shape"] = affine[s];
        break;
      default:
        among = shape[axis];
        affine[s] = draft.channel_shape()[s];
        step.args[s]["dim"] = static_cast<std::int64_t>(draft.channel);
    }
    if (among < 8) return false;
    step.args[s]["eps"] = 1e-5;
    const Marginal& m = draft.marginal[s];
    const double deviation = m.deviation();
    if (deviation < 0.05) return false;  // beside it eps would matter
    const double centre = kind == 4 ? 0 : m.mean();
    const double size = kind == 4 ? std::hypot(m.mean(), deviation) : deviation;
    const Marginal normalised = m.map([&](double x) { return (x - centre) / size; });
    step.after[s] = kind == 4 ? normalised
                              : normalised.with_independent(Marginal::normal(0, norm_bias_deviation),
                                                            [](double x, double b) { return x + b; });
  }
  step.parameters.push_back({"weight", "weight", affine, same(uniform_law(0.5, 1.5))});
  if (kind != 4) step.parameters.push_back({"bias", "bias", affine, same(normal_law(0, norm_bias_deviation))});
  if (!draft.add(step)) return false;
  ++draft.norms;
  draft.forget_terms();
  const unsigned affine_dims = kind == 3 ? along[kind] : draft.channel_dim();
  draft.multiply_by(affine_dims);
  if (kind != 4) draft.add_offset(affine_dims);
  draft.altered_low = draft.altered_high = draft.bounded_by_parameter = false;
  draft.nonlinear = draft.saturated = false;
  return true;
}

/// A pool over the positions. An average needs something nonlinear before it, or it would commute with the heavy
/// operator; a maximum needs values without a common upper bound, or most windows would hold it.
[[nodiscard]] inline bool try_pool(Draft& draft, Rng& rng) {
  const bool largest = chance(rng, 55);
  const std::int64_t kernel = pick(rng, {2, 2, 3});
  const std::int64_t stride = kernel == 3 ? pick(rng, {2, 3}) : 2;
  if (draft.spatial == 0 || draft.pooled || draft.reduced || draft.softmaxed) return false;
  if (largest ? draft.bounded_above || draft.has("mul_tensor") : !draft.nonlinear) return false;
  for (std::size_t i = draft.rank() - draft.spatial; i < draft.rank(); ++i) {
    if (draft.least_extent(i) < 3 * kernel) return false;
  }
  // in large windows the largest is hardly ever one of the low values
  if (largest && draft.altered_low && (kernel > 2 || draft.spatial > 2)) return false;
  const std::string dims = std::to_string(draft.spatial) + "d";
  DraftStep step{.op = (largest ? "max_pool" : "avg_pool") + dims, .title = largest ? "MaxPool" : "AvgPool"};
  const double window = std::pow(static_cast<double>(kernel), static_cast<double>(draft.spatial));
  for (std::size_t s : both_sizes) {
    step.args[s] = {{"kernel_size", std::vector<std::int64_t>(draft.spatial, kernel)},
                    {"stride", std::vector<std::int64_t>(draft.spatial, stride)}};
    const Marginal& m = draft.marginal[s];
    const double centre = m.mean();
    step.after[s] =
        largest ? m.largest_of(window) : m.map([&](double x) { return centre + (x - centre) / std::sqrt(window); });
  }
  if (!draft.add(step)) return false;
  draft.pooled = true;
  draft.saturated = false;
  draft.nonlinear = draft.nonlinear || largest;
  return true;
}

/// Softmax or log-softmax over the channels or the last dim.
[[nodiscard]] inline bool try_softmax(Draft& draft, Rng& rng) {
  const bool logarithm = chance(rng, 35);
  const bool over_last = chance(rng, 40);
  const auto last = static_cast<std::int64_t>(draft.rank()) - 1;
  const std::int64_t dim = over_last ? last : draft.channel;
  if (draft.reduced || draft.softmaxed || dim < 1) return false;
  if (draft.cancels_offset(1U << static_cast<unsigned>(dim))) return false;
  if (draft.least_extent(static_cast<std::size_t>(dim)) < 8) return false;
  DraftStep step{.op = logarithm ? "log_softmax" : "softmax", .title = logarithm ? "LogSoftmax" : "Softmax"};
  for (std::size_t s : both_sizes) {
    const Marginal& m = draft.marginal[s];
    if (m.deviation() < 0.3 || m.deviation() > 4) return false;
    const auto n = static_cast<double>(draft.shape(s)[static_cast<std::size_t>(dim)]);
    const double mean = m.map([](double x) { return std::exp(x); }).mean();
    step.args[s] = {{"dim", dim}};
    step.after[s] = m.map([&](double x) { return logarithm ? x - std::log(n * mean) : std::exp(x) / (n * mean); });
  }
  if (!draft.add(step)) return false;
  draft.forget_terms();  // log-softmax subtracts what is the same along dim
  if (logarithm) draft.add_offset(((1U << draft.rank()) - 1) & ~(1U << static_cast<unsigned>(dim)));
  draft.softmaxed = draft.nonlinear = draft.saturated = true;
  draft.bounded_above = draft.bounded_below = draft.altered_low = draft.altered_high = false;
  return true;
}

/// The dims of a reduction: the channels, the last dim, or all positions. Empty: none fits.
[[nodiscard]] inline std::vector<std::int64_t> draw_reduced_dims(const Draft& draft, Rng& rng, bool only_one) {
  const std::uint64_t kind = rng.below(3);
  const auto rank = static_cast<std::int64_t>(draft.rank());
  if (kind == 0 || rank == 2) return {draft.channel};
  if (kind == 1 || draft.spatial == 0) return {rank - 1};
  if (only_one && draft.spatial > 1) return {};
  std::vector<std::int64_t> dims;
  for (std::int64_t d = rank - static_cast<std::int64_t>(draft.spatial); d < rank; ++d) dims.push_back(d);
  return dims;
}

/// A reduction; at most one in a task, and after it only steps on single elements.
[[nodiscard]] inline bool try_reduction(Draft& draft, Rng& rng) {
  enum : std::uint64_t { mean, sum, max, min, logsumexp, norm, kinds };
  const std::uint64_t kind = rng.below(kinds);
  const bool keep = chance(rng, 60);
  const bool one = kind == max || kind == min;
  const std::vector<std::int64_t> dims = draw_reduced_dims(draft, rng, one);
  if (draft.reduced || draft.softmaxed || dims.empty()) return false;
  // the largest of many is a bound, or never one of the values that were changed
  if (one && draft.has("mul_tensor")) return false;
  if (kind == max && (draft.bounded_above || draft.altered_low)) return false;
  if (kind == min && (draft.bounded_below || draft.altered_high)) return false;
  if ((kind == mean || kind == sum || kind == norm) && !draft.nonlinear) return false;
  static constexpr std::array ops = {"mean", "sum", "max_reduce", "min_reduce", "logsumexp", "vector_norm"};
  static constexpr std::array titles = {"Mean", "Sum", "Max", "Min", "LogSumExp", "L2Norm"};
  DraftStep step{.op = ops[kind], .title = titles[kind]};
  for (std::size_t s : both_sizes) {
    double n = 1;
    std::int64_t left = element_count(draft.shape(s));
    for (std::int64_t d : dims) {
      n *= static_cast<double>(draft.shape(s)[static_cast<std::size_t>(d)]);
      left /= draft.shape(s)[static_cast<std::size_t>(d)];
    }
    if (n < 4 || left < 32) return false;
    if (one)
      step.args[s]["dim"] = dims[0];
    else
      step.args[s]["dim"] = dims;
    step.args[s]["keepdim"] = keep;
    const Marginal& m = draft.marginal[s];
    const double deviation = m.deviation();
    if (kind == mean) step.after[s] = Marginal::normal(m.mean(), deviation / std::sqrt(n));
    if (kind == sum) step.after[s] = Marginal::normal(m.mean() * n, deviation * std::sqrt(n));
    if (kind == max) step.after[s] = m.largest_of(n);
    if (kind == min) step.after[s] = m.negative().largest_of(n).negative();
    if (kind == logsumexp) {
      if (deviation < 0.3 || deviation > 4) return false;  // an average, or a maximum
      const Marginal e = m.map([](double x) { return std::exp(x); });
      step.after[s] = Marginal::normal(std::log(n * e.mean()), e.deviation() / e.mean() / std::sqrt(n));
    }
    if (kind == norm) {
      const Marginal square = m.map([](double x) { return x * x; });
      const double size = std::sqrt(square.mean());
      step.after[s] = Marginal::normal(size * std::sqrt(n), square.deviation() / (2 * size));
    }
  }
  const std::size_t rank = draft.rank();
  if (!draft.add(step)) return false;
  draft.reduced = draft.nonlinear = true;
  draft.saturated = draft.bounded_above = draft.bounded_below = draft.altered_low = draft.altered_high = false;
  draft.forget_terms();
  const bool channels_gone = std::find(dims.begin(), dims.end(), draft.channel) != dims.end();
  const bool channels_moved = !keep && dims[0] < draft.channel;
  if (channels_gone || channels_moved || rank == 1) draft.channel = -1;
  return true;
}

}  // namespace kevin::tasks::detail

#endif  // KEVIN_TASKS_GENERATOR_AXIS_MOVES_HPP
