#ifndef KEVIN_TASKS_GENERATOR_HEAVY_HPP
#define KEVIN_TASKS_GENERATOR_HEAVY_HPP

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kevin/core/random.hpp"
#include "kevin/tasks/generator/draft.hpp"

/// The heavy operator that a generated task begins with. Inputs are standard normal; weights, and a product's second
/// factor, are scaled by the number of terms that one element sums, so results have a deviation of about 1.
namespace kevin::tasks::detail {

[[nodiscard]] inline std::int64_t pick(Rng& rng, std::initializer_list<std::int64_t> values) {
  return *(values.begin() + static_cast<std::ptrdiff_t>(rng.below(values.size())));
}
[[nodiscard]] inline bool chance(Rng& rng, std::uint64_t percent) { return rng.below(100) < percent; }

[[nodiscard]] inline Distribution normal_law(double mean, double deviation) {
  return {.kind = Distribution::Kind::normal, .a = mean, .b = deviation};
}
[[nodiscard]] inline Distribution uniform_law(double low, double high) {
  return {.kind = Distribution::Kind::uniform, .a = low, .b = high};
}
template <class T>
[[nodiscard]] Both<T> same(const T& value) {
  return {value, value};
}

inline constexpr double heavy_bias_deviation = 0.3;

/// Adds weight and perhaps a bias to the step, and the step to the draft.
[[nodiscard]] inline std::optional<Draft> begin_with_weight(Draft draft, DraftStep step, const Both<Shape>& weight,
                                                            const Both<std::int64_t>& out_channels,
                                                            const Both<double>& terms, bool bias) {
  Both<Distribution> law;
  for (std::size_t s : both_sizes) law[s] = normal_law(0, 1 / std::sqrt(terms[s]));
  step.parameters.push_back({"weight", "weight", weight, law});
  if (bias) {
    step.parameters.push_back(
        {"bias", "bias", {Shape{out_channels[0]}, Shape{out_channels[1]}}, same(normal_law(0, heavy_bias_deviation))});
  }
  const double deviation = bias ? std::sqrt(1 + heavy_bias_deviation * heavy_bias_deviation) : 1;
  step.after = same(Marginal::normal(0, deviation));
  draft.heavy_bias = bias;
  if (!draft.add(step)) return std::nullopt;
  if (bias) draft.add_offset(draft.channel_dim());
  return draft;
}

/// [rows, in] or [batch, rows, in] times a weight.
[[nodiscard]] inline std::optional<Draft> draw_linear(Rng& rng) {
  const bool tokens = chance(rng, 25);
  const Both<std::int64_t> in = {pick(rng, {512, 1000, 1024, 2048, 3072, 4096, 8192}), pick(rng, {48, 64, 72, 100})};
  const Both<std::int64_t> out = {pick(rng, {512, 1024, 1536, 2000, 2048, 4096, 8192}), pick(rng, {48, 64, 80, 96})};
  const Both<std::int64_t> batch = {tokens ? pick(rng, {2, 3, 4, 5}) : pick(rng, {64, 80, 96, 100, 128}),
                                    tokens ? 3 : pick(rng, {40, 48, 61, 64})};
  const Both<std::int64_t> rows = {pick(rng, {128, 197, 256, 512, 1024}), pick(rng, {16, 21, 24})};
  Both<Shape> x;
  for (std::size_t s : both_sizes) x[s] = tokens ? Shape{batch[s], rows[s], in[s]} : Shape{batch[s], in[s]};
  Draft draft({"x", x, same(normal_law(0, 1)), true});
  draft.channel = tokens ? 2 : 1;
  return begin_with_weight(std::move(draft), {.op = "linear", .title = "Gemm", .owner = "gemm"},
                           {Shape{out[0], in[0]}, Shape{out[1], in[1]}}, out,
                           {static_cast<double>(in[0]), static_cast<double>(in[1])}, chance(rng, 75));
}

/// A product of two inputs: [m, k] [k, n], or a batch of them, whose rows then count as channels.
[[nodiscard]] inline std::optional<Draft> draw_product(Rng& rng, bool batched) {
  Both<Shape> x, y;
  Both<Distribution> law;
  for (std::size_t s : both_sizes) {
    const bool full = s == 0;
    const std::int64_t batch = full ? pick(rng, {4, 5, 6, 7, 8}) : 3;
    const std::int64_t m = full ? pick(rng, {128, 192, 256, 384, 512, 1024}) : pick(rng, {16, 24, 32});
    const std::int64_t rows = full ? pick(rng, {64, 80, 96, 128}) : pick(rng, {40, 48, 61, 64});
    const std::int64_t k =
        full ? (batched ? pick(rng, {64, 96, 128, 256, 512, 1024}) : pick(rng, {512, 1000, 1024, 2048, 4096, 8192}))
             : pick(rng, {24, 40, 64, 100});
    const std::int64_t n =
        full ? (batched ? pick(rng, {128, 200, 256, 512, 1000, 1024}) : pick(rng, {512, 1024, 1536, 2048, 4096, 8192}))
             : pick(rng, {40, 48, 64, 80});
    x[s] = batched ? Shape{batch, m, k} : Shape{rows, k};
    y[s] = batched ? Shape{batch, k, n} : Shape{k, n};
    law[s] = normal_law(0, 1 / std::sqrt(static_cast<double>(k)));
  }
  Draft draft({"x", x, same(normal_law(0, 1)), true});
  draft.spatial = batched ? 1 : 0;
  DraftStep step{.op = batched ? "bmm" : "matmul", .title = batched ? "BMM" : "Matmul"};
  step.inputs.push_back({"y", y, law, batched});
  step.after = same(Marginal::normal(0, 1));
  if (!draft.add(step)) return std::nullopt;
  return draft;
}

/// A convolution, or a transposed one, over `dims` spatial dims.
[[nodiscard]] inline std::optional<Draft> draw_convolution(Rng& rng, std::size_t dims, bool transposed) {
  const auto repeat = [dims](std::int64_t v) { return std::vector<std::int64_t>(dims, v); };
  const std::int64_t kernel = dims == 1   ? pick(rng, {3, 4, 5, 7, 9})
                              : dims == 2 ? (transposed ? pick(rng, {2, 3, 4}) : pick(rng, {3, 3, 5, 7}))
                                          : (transposed ? pick(rng, {2, 3, 4}) : 3);
  const std::int64_t stride = transposed ? pick(rng, {1, 2, 2}) : pick(rng, {1, 1, 1, 2});
  const std::int64_t padding = chance(rng, 60) ? (transposed ? 1 : kernel / 2) : 0;
  const std::int64_t dilation = !transposed && chance(rng, 15) ? 2 : 1;
  const std::int64_t output_padding = transposed && stride == 2 && kernel % 2 == 1 && chance(rng, 70) ? 1 : 0;
  const std::uint64_t grouping = rng.below(100);  // < 10: in four groups; < 18: one group a channel; else one in all
  const bool depthwise = !transposed && grouping >= 10 && grouping < 18;
  const std::int64_t groups = !transposed && grouping < 10 ? 4 : 1;

  Both<Shape> x, weight;
  Both<std::int64_t> out;
  Both<double> terms;
  Both<std::map<std::string, OpArgument>> args;
  for (std::size_t s : both_sizes) {
    const bool full = s == 0;
    const std::int64_t in =
        full ? (dims == 3 ? pick(rng, {16, 24, 32, 64}) : pick(rng, {32, 48, 64, 96, 128, 256})) : pick(rng, {8, 16});
    out[s] = depthwise ? in
             : full    ? (dims == 3 ? pick(rng, {16, 32, 48, 64}) : pick(rng, {32, 64, 96, 128, 256}))
                       : pick(rng, {16, 24});
    const std::int64_t of_groups = depthwise ? in : groups;
    x[s] = {full ? pick(rng, {4, 5, 6, 7, 8}) : 2, in};
    for (std::size_t i = 0; i < dims; ++i) {
      // a convolution shrinks, a transposed one grows: both end at a size that pools and norms have room in
      if (dims == 1)
        x[s].push_back(full ? pick(rng, {1000, 1024, 2048, 4096, 8191}) : transposed ? 48 : 96);
      else if (dims == 2)
        x[s].push_back(full ? pick(rng, {28, 32, 56, 64, 100, 128, 224}) : transposed ? 14 : 26);
      else
        x[s].push_back(full         ? (i == 0 ? pick(rng, {8, 12, 16, 24}) : pick(rng, {16, 24, 32, 48, 64}))
                       : transposed ? 6
                                    : 12);
    }
    weight[s] = transposed ? Shape{in, out[s]} : Shape{out[s], in / of_groups};
    double window = 1;
    for (std::size_t i = 0; i < dims; ++i) {
      weight[s].push_back(kernel);
      window *= static_cast<double>(kernel);
      if (transposed) window /= static_cast<double>(stride);
    }
    terms[s] = window * static_cast<double>(in / of_groups);
    args[s] = {{"stride", repeat(stride)}, {"padding", repeat(padding)}};
    if (dilation > 1) args[s]["dilation"] = repeat(dilation);
    if (of_groups > 1) args[s]["groups"] = of_groups;
    if (output_padding > 0) args[s]["output_padding"] = repeat(output_padding);
  }
  Draft draft({"x", x, same(normal_law(0, 1)), true});
  draft.spatial = dims;
  const std::string suffix = std::to_string(dims) + "d";
  DraftStep step{.op = (transposed ? "conv_transpose" : "conv") + suffix,
                 .title = (transposed ? "ConvTranspose" : "Conv") + suffix,
                 .args = args,
                 .owner = transposed ? "conv_transpose" : "conv"};
  return begin_with_weight(std::move(draft), std::move(step), weight, out, terms, chance(rng, 60));
}

/// A draft that holds one heavy operator, or nothing when the sizes drawn do not fit each other.
[[nodiscard]] inline std::optional<Draft> draw_heavy(Rng& rng) {
  const std::uint64_t kind = rng.below(20);
  if (kind < 4) return draw_linear(rng);
  if (kind < 6) return draw_product(rng, false);
  if (kind < 8) return draw_product(rng, true);
  if (kind < 9) return draw_convolution(rng, 1, false);
  if (kind < 10) return draw_convolution(rng, 1, true);
  if (kind < 13) return draw_convolution(rng, 2, false);
  if (kind < 16) return draw_convolution(rng, 2, true);
  if (kind < 18) return draw_convolution(rng, 3, false);
  return draw_convolution(rng, 3, true);
}

}  // namespace kevin::tasks::detail

#endif  // KEVIN_TASKS_GENERATOR_HEAVY_HPP
