#include "kevin/tasks/reference.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "kevin/core/error.hpp"

using kevin::DType;
using kevin::Error;
using kevin::ErrorCode;
using kevin::OpArgument;
using kevin::Shape;
using kevin::Task;
using kevin::tasks::Reference;

namespace {

using Args = std::map<std::string, OpArgument>;
using List = std::vector<std::int64_t>;
using Values = std::vector<double>;

/// One operation as a task, with inputs and parameters named by position.
Task one_op(const std::string& op, const std::vector<Shape>& in, Args args, const Shape& out,
            const std::vector<std::pair<std::string, Shape>>& parameters = {}) {
  const kevin::Distribution normal{.kind = kevin::Distribution::Kind::normal, .a = 0, .b = 1};
  Task task{.id = "test/" + op,
            .name = op,
            .inputs = {},
            .parameters = {},
            .ops = {},
            .outputs = {},
            .tolerance = {},
            .flags = {},
            .notes = {}};
  kevin::Op step{.op = op, .args = std::move(args), .in = {}, .out = "y", .out_shape = out};
  for (std::size_t i = 0; i < in.size(); ++i) {
    step.in.push_back("x" + std::to_string(i));
    task.inputs.push_back({.name = step.in.back(), .shape = in[i], .dtype = DType::float32, .distribution = normal});
  }
  for (const auto& [name, shape] : parameters)
    task.parameters.push_back({.name = name, .shape = shape, .dtype = DType::float32, .distribution = normal});
  task.ops.push_back(std::move(step));
  task.outputs.push_back({.name = "y", .shape = out, .dtype = DType::float32, .distribution = {}});
  return task;
}

Values values_of(const torch::Tensor& t) {
  const torch::Tensor wide = t.to(torch::kFloat64).contiguous();
  const double* data = wide.data_ptr<double>();
  return {data, data + wide.numel()};
}

/// The reference of `task` against a formula over its inputs, then parameters.
void check_formula(const Task& task, const std::function<Values(const std::vector<Values>&)>& formula) {
  CAPTURE(task.name);
  const Reference reference(task);
  const auto inputs = reference.draw_inputs(11);
  const auto parameters = reference.draw_parameters(11);
  std::vector<Values> operands;
  for (const auto& t : inputs) operands.push_back(values_of(t));
  for (const auto& t : parameters) operands.push_back(values_of(t));
  const Values got = values_of(reference.forward(inputs, parameters)[0]);
  const Values expected = formula(operands);
  REQUIRE(got.size() == expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) REQUIRE(got[i] == doctest::Approx(expected[i]).epsilon(1e-4).scale(0.1));
}

/// An element-wise operation against a function of one number.
void check_elementwise(const std::string& op, const Args& args, const std::function<double(double)>& f) {
  check_formula(one_op(op, {{37, 5}}, args, {37, 5}), [&](const std::vector<Values>& in) {
    Values out;
    for (double x : in[0]) out.push_back(f(x));
    return out;
  });
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

}  // namespace

TEST_CASE("activations are the documented functions") {
  check_elementwise("relu", {}, [](double x) { return x > 0 ? x : 0; });
  check_elementwise("leaky_relu", {{"negative_slope", 0.2}}, [](double x) { return x > 0 ? x : 0.2 * x; });
  check_elementwise("sigmoid", {}, sigmoid);
  check_elementwise("tanh", {}, [](double x) { return std::tanh(x); });
  check_elementwise("gelu", {}, [](double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); });
  for (bool composed : {false, true}) {
    check_elementwise("gelu", {{"approximate", "tanh"}, {"composed", composed}}, [](double x) {
      return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x)));
    });
    check_elementwise("silu", {{"composed", composed}}, [](double x) { return x * sigmoid(x); });
    check_elementwise("mish", {{"composed", composed}},
                      [](double x) { return x * std::tanh(std::log1p(std::exp(x))); });
    check_elementwise("hardswish", {{"composed", composed}},
                      [](double x) { return x * std::min(std::max(x + 3, 0.0), 6.0) / 6; });
  }
  check_elementwise("softsign", {}, [](double x) { return x / (1 + std::fabs(x)); });
  check_elementwise("softplus", {{"beta", std::int64_t{2}}}, [](double x) { return std::log1p(std::exp(2 * x)) / 2; });
  check_elementwise("elu", {{"alpha", 0.5}}, [](double x) { return x > 0 ? x : 0.5 * std::expm1(x); });
  check_elementwise("selu", {},
                    [](double x) { return 1.0507009873554805 * (x > 0 ? x : 1.6732632423543772 * std::expm1(x)); });
  check_elementwise("hardsigmoid", {}, [](double x) { return std::min(std::max(x + 3, 0.0), 6.0) / 6; });
  check_elementwise("hardtanh", {{"min_val", -0.5}, {"max_val", std::int64_t{1}}},
                    [](double x) { return std::min(std::max(x, -0.5), 1.0); });
  check_elementwise("clamp", {{"min", 0.25}}, [](double x) { return std::max(x, 0.25); });
}

TEST_CASE("arithmetic with a number keeps the order of the operands") {
  check_elementwise("sub_scalar", {{"value", 2.0}}, [](double x) { return x - 2; });
  check_elementwise("rsub_scalar", {{"value", 2.0}}, [](double x) { return 2 - x; });
  check_elementwise("div_scalar", {{"value", std::int64_t{4}}}, [](double x) { return x / 4; });
  check_elementwise("min_scalar", {{"value", 0.5}}, [](double x) { return std::min(x, 0.5); });
  check_elementwise("max_scalar", {{"value", 0.5}}, [](double x) { return std::max(x, 0.5); });
}

TEST_CASE("a parameter broadcasts along the dims before its own") {
  check_formula(one_op("sub_parameter", {{4, 3, 5}}, {{"parameter", "p"}}, {4, 3, 5}, {{"p", {3, 1}}}),
                [](const std::vector<Values>& in) {
                  Values out;
                  for (std::size_t i = 0; i < 60; ++i) out.push_back(in[0][i] - in[1][i / 5 % 3]);
                  return out;
                });
}

TEST_CASE("softmax sums to one along its dim and not along another") {
  check_formula(one_op("softmax", {{6, 7, 5}}, {{"dim", std::int64_t{1}}}, {6, 7, 5}),
                [](const std::vector<Values>& in) {
                  Values out(210);
                  for (std::size_t a = 0; a < 6; ++a) {
                    for (std::size_t c = 0; c < 5; ++c) {
                      double sum = 0;
                      for (std::size_t b = 0; b < 7; ++b) sum += std::exp(in[0][(a * 7 + b) * 5 + c]);
                      for (std::size_t b = 0; b < 7; ++b)
                        out[(a * 7 + b) * 5 + c] = std::exp(in[0][(a * 7 + b) * 5 + c]) / sum;
                    }
                  }
                  return out;
                });
}

TEST_CASE("reductions reduce the dims they name") {
  const auto reduce = [](const std::string& op, const Args& args, double start,
                         const std::function<double(double, double)>& join, double scale = 1) {
    check_formula(one_op(op, {{4, 9, 5}}, args, {4, 5}), [&](const std::vector<Values>& in) {
      Values out;
      for (std::size_t a = 0; a < 4; ++a) {
        for (std::size_t c = 0; c < 5; ++c) {
          double value = start;
          for (std::size_t b = 0; b < 9; ++b) value = join(value, in[0][(a * 9 + b) * 5 + c]);
          out.push_back(value * scale);
        }
      }
      return out;
    });
  };
  const Args dim = {{"dim", List{1}}};
  reduce("sum", dim, 0, [](double s, double x) { return s + x; });
  reduce(
      "mean", dim, 0, [](double s, double x) { return s + x; }, 1.0 / 9);
  reduce("max_reduce", dim, -1e9, [](double s, double x) { return std::max(s, x); });
  reduce("min_reduce", dim, 1e9, [](double s, double x) { return std::min(s, x); });
  check_formula(one_op("vector_norm", {{4, 9, 5}}, {{"dim", "all"}}, {}), [](const std::vector<Values>& in) {
    double sum = 0;
    for (double x : in[0]) sum += x * x;
    return Values{std::sqrt(sum)};
  });
  check_formula(one_op("logsumexp", {{4, 9}}, {{"dim", List{1}}, {"keepdim", true}}, {4, 1}),
                [](const std::vector<Values>& in) {
                  Values out;
                  for (std::size_t a = 0; a < 4; ++a) {
                    double sum = 0;
                    for (std::size_t b = 0; b < 9; ++b) sum += std::exp(in[0][a * 9 + b]);
                    out.push_back(std::log(sum));
                  }
                  return out;
                });
}

TEST_CASE("argmax and argmin give the place along the dim, as int64") {
  for (bool largest : {true, false}) {
    Task task = one_op(largest ? "argmax" : "argmin", {{4, 9}}, {{"dim", List{1}}}, {4});
    task.outputs[0].dtype = DType::int64;
    check_formula(task, [largest](const std::vector<Values>& in) {
      Values out;
      for (std::size_t a = 0; a < 4; ++a) {
        std::size_t best = 0;
        for (std::size_t b = 1; b < 9; ++b) {
          const bool better = largest ? in[0][a * 9 + b] > in[0][a * 9 + best] : in[0][a * 9 + b] < in[0][a * 9 + best];
          if (better) best = b;
        }
        out.push_back(static_cast<double>(best));
      }
      return out;
    });
  }
}

TEST_CASE("cumulative sums run along the dim") {
  check_formula(one_op("cumsum", {{3, 8}}, {{"dim", std::int64_t{1}}}, {3, 8}), [](const std::vector<Values>& in) {
    Values out = in[0];
    for (std::size_t i = 0; i < out.size(); ++i) out[i] += i % 8 == 0 ? 0 : out[i - 1];
    return out;
  });
}

TEST_CASE("layer norm uses the population variance over the named tail") {
  check_formula(one_op("layer_norm", {{4, 3, 6}},
                       {{"normalized_shape", List{3, 6}}, {"weight", "w"}, {"bias", "b"}, {"eps", 1e-5}}, {4, 3, 6},
                       {{"w", {3, 6}}, {"b", {3, 6}}}),
                [](const std::vector<Values>& in) {
                  Values out;
                  for (std::size_t a = 0; a < 4; ++a) {
                    double mean = 0;
                    double variance = 0;
                    for (std::size_t i = 0; i < 18; ++i) mean += in[0][a * 18 + i] / 18;
                    for (std::size_t i = 0; i < 18; ++i) variance += std::pow(in[0][a * 18 + i] - mean, 2) / 18;
                    for (std::size_t i = 0; i < 18; ++i)
                      out.push_back((in[0][a * 18 + i] - mean) / std::sqrt(variance + 1e-5) * in[1][i] + in[2][i]);
                  }
                  return out;
                });
}

TEST_CASE("batch norm uses the statistics of the batch, group norm those of each group") {
  const auto normalised = [](const Values& x, const std::vector<std::size_t>& members, std::size_t i) {
    double mean = 0;
    double variance = 0;
    for (std::size_t m : members) mean += x[m] / static_cast<double>(members.size());
    for (std::size_t m : members) variance += std::pow(x[m] - mean, 2) / static_cast<double>(members.size());
    return (x[i] - mean) / std::sqrt(variance + 1e-5);
  };
  const auto by_key = [&](const Values& x, const std::function<std::size_t(std::size_t)>& key) {
    std::map<std::size_t, std::vector<std::size_t>> groups;
    for (std::size_t i = 0; i < x.size(); ++i) groups[key(i)].push_back(i);
    Values out;
    for (std::size_t i = 0; i < x.size(); ++i) out.push_back(normalised(x, groups[key(i)], i));
    return out;
  };
  check_formula(one_op("batch_norm", {{5, 4, 6}}, {}, {5, 4, 6}),
                [&](const std::vector<Values>& in) { return by_key(in[0], [](std::size_t i) { return i / 6 % 4; }); });
  check_formula(one_op("instance_norm", {{5, 4, 6}}, {}, {5, 4, 6}),
                [&](const std::vector<Values>& in) { return by_key(in[0], [](std::size_t i) { return i / 6; }); });
  check_formula(one_op("group_norm", {{5, 4, 6}}, {{"num_groups", std::int64_t{2}}}, {5, 4, 6}),
                [&](const std::vector<Values>& in) { return by_key(in[0], [](std::size_t i) { return i / 12; }); });
}

TEST_CASE("RMS norm divides by the root of the mean square") {
  check_formula(one_op("rms_norm", {{3, 4, 2}}, {{"dim", List{1}}, {"eps", 0.5}}, {3, 4, 2}),
                [](const std::vector<Values>& in) {
                  Values out(24);
                  for (std::size_t i = 0; i < 24; ++i) {
                    double sum = 0;
                    for (std::size_t c = 0; c < 4; ++c) sum += std::pow(in[0][i / 8 * 8 + c * 2 + i % 2], 2);
                    out[i] = in[0][i] / std::sqrt(sum / 4 + 0.5);
                  }
                  return out;
                });
}

TEST_CASE("matmul, linear and attention are sums of products") {
  check_formula(one_op("matmul", {{7, 5}, {3, 7}}, {{"transpose_a", true}, {"transpose_b", true}}, {5, 3}),
                [](const std::vector<Values>& in) {
                  Values out;
                  for (std::size_t i = 0; i < 5; ++i) {
                    for (std::size_t j = 0; j < 3; ++j) {
                      double sum = 0;
                      for (std::size_t k = 0; k < 7; ++k) sum += in[0][k * 5 + i] * in[1][j * 7 + k];
                      out.push_back(sum);
                    }
                  }
                  return out;
                });
  // the parameters are drawn in the order in which the task lists them: weight, then bias
  check_formula(one_op("linear", {{4, 6}}, {{"weight", "w"}, {"bias", "b"}}, {4, 3}, {{"w", {3, 6}}, {"b", {3}}}),
                [](const std::vector<Values>& in) {
                  Values out;
                  for (std::size_t i = 0; i < 4; ++i) {
                    for (std::size_t j = 0; j < 3; ++j) {
                      double sum = in[2][j];
                      for (std::size_t k = 0; k < 6; ++k) sum += in[0][i * 6 + k] * in[1][j * 6 + k];
                      out.push_back(sum);
                    }
                  }
                  return out;
                });
  for (bool causal : {false, true}) {
    check_formula(
        one_op("scaled_dot_product_attention", {{1, 4, 3}, {1, 4, 3}, {1, 4, 2}}, {{"is_causal", causal}}, {1, 4, 2}),
        [causal](const std::vector<Values>& in) {
          Values out(8, 0.0);
          for (std::size_t q = 0; q < 4; ++q) {
            Values weight;
            double sum = 0;
            for (std::size_t k = 0; k < (causal ? q + 1 : 4); ++k) {
              double score = 0;
              for (std::size_t e = 0; e < 3; ++e) score += in[0][q * 3 + e] * in[1][k * 3 + e];
              weight.push_back(std::exp(score / std::sqrt(3.0)));
              sum += weight.back();
            }
            for (std::size_t k = 0; k < weight.size(); ++k) {
              for (std::size_t v = 0; v < 2; ++v) out[q * 2 + v] += weight[k] / sum * in[2][k * 2 + v];
            }
          }
          return out;
        });
  }
}

TEST_CASE("convolution is cross-correlation with padding, stride, dilation and groups") {
  const Args args = {{"weight", "w"},          {"bias", "b"},
                     {"stride", List{2, 1}},   {"padding", List{1, 2}},
                     {"dilation", List{1, 2}}, {"groups", std::int64_t{2}}};
  check_formula(one_op("conv2d", {{2, 4, 6, 7}}, args, {2, 6, 3, 7}, {{"w", {6, 2, 3, 3}}, {"b", {6}}}),
                [](const std::vector<Values>& in) {
                  Values out;
                  for (int n = 0; n < 2; ++n) {
                    for (int o = 0; o < 6; ++o) {
                      for (int y = 0; y < 3; ++y) {
                        for (int x = 0; x < 7; ++x) {
                          double sum = in[2][static_cast<std::size_t>(o)];
                          for (int c = 0; c < 2; ++c) {
                            for (int i = 0; i < 3; ++i) {
                              for (int j = 0; j < 3; ++j) {
                                const int row = y * 2 - 1 + i;
                                const int column = x - 2 + 2 * j;
                                if (row < 0 || row >= 6 || column < 0 || column >= 7) continue;
                                const int channel = o / 3 * 2 + c;
                                sum += in[0][static_cast<std::size_t>(((n * 4 + channel) * 6 + row) * 7 + column)] *
                                       in[1][static_cast<std::size_t>(((o * 2 + c) * 3 + i) * 3 + j)];
                              }
                            }
                          }
                          out.push_back(sum);
                        }
                      }
                    }
                  }
                  return out;
                });
}

TEST_CASE("transposed convolution spreads each input over its window") {
  check_formula(one_op("conv_transpose1d", {{1, 2, 4}},
                       {{"weight", "w"}, {"stride", List{2}}, {"padding", List{1}}, {"output_padding", List{1}}},
                       {1, 3, 8}, {{"w", {2, 3, 3}}}),
                [](const std::vector<Values>& in) {
                  Values out(24, 0.0);
                  for (int c = 0; c < 2; ++c) {
                    for (int x = 0; x < 4; ++x) {
                      for (int o = 0; o < 3; ++o) {
                        for (int k = 0; k < 3; ++k) {
                          const int at = x * 2 - 1 + k;
                          if (at < 0 || at >= 8) continue;
                          out[static_cast<std::size_t>(o * 8 + at)] +=
                              in[0][static_cast<std::size_t>(c * 4 + x)] *
                              in[1][static_cast<std::size_t>((c * 3 + o) * 3 + k)];
                        }
                      }
                    }
                  }
                  return out;
                });
}

TEST_CASE("pools take the maximum or the mean of each window") {
  check_formula(one_op("max_pool1d", {{2, 3, 9}}, {{"kernel_size", List{3}}, {"stride", List{2}}, {"padding", List{1}}},
                       {2, 3, 5}),
                [](const std::vector<Values>& in) {
                  Values out;
                  for (int r = 0; r < 6; ++r) {
                    for (int x = 0; x < 5; ++x) {
                      double best = -1e9;
                      for (int i = std::max(0, 2 * x - 1); i < std::min(9, 2 * x + 2); ++i)
                        best = std::max(best, in[0][static_cast<std::size_t>(r * 9 + i)]);
                      out.push_back(best);
                    }
                  }
                  return out;
                });
  for (bool pad : {true, false}) {
    check_formula(
        one_op("avg_pool1d", {{2, 3, 9}},
               {{"kernel_size", List{3}}, {"stride", List{2}}, {"padding", List{1}}, {"count_include_pad", pad}},
               {2, 3, 5}),
        [pad](const std::vector<Values>& in) {
          Values out;
          for (int r = 0; r < 6; ++r) {
            for (int x = 0; x < 5; ++x) {
              double sum = 0;
              int count = 0;
              for (int i = std::max(0, 2 * x - 1); i < std::min(9, 2 * x + 2); ++i, ++count)
                sum += in[0][static_cast<std::size_t>(r * 9 + i)];
              out.push_back(sum / (pad ? 3 : count));
            }
          }
          return out;
        });
  }
}

TEST_CASE("losses are the documented means") {
  check_formula(one_op("mse_loss", {{4, 5}, {4, 5}}, {}, {}), [](const std::vector<Values>& in) {
    double sum = 0;
    for (std::size_t i = 0; i < 20; ++i) sum += std::pow(in[0][i] - in[1][i], 2);
    return Values{sum / 20};
  });
  check_formula(one_op("smooth_l1_loss", {{4, 5}, {4, 5}}, {}, {}), [](const std::vector<Values>& in) {
    double sum = 0;
    for (std::size_t i = 0; i < 20; ++i) {
      const double d = std::fabs(in[0][i] - in[1][i]);
      sum += d < 1 ? 0.5 * d * d : d - 0.5;
    }
    return Values{sum / 20};
  });
  Task entropy = one_op("cross_entropy", {{4, 3}, {4}}, {}, {});
  entropy.inputs[1].dtype = DType::int64;
  entropy.inputs[1].distribution = {.kind = kevin::Distribution::Kind::integer, .a = 0, .b = 3};
  check_formula(entropy, [](const std::vector<Values>& in) {
    double sum = 0;
    for (std::size_t i = 0; i < 4; ++i) {
      double total = 0;
      for (std::size_t c = 0; c < 3; ++c) total += std::exp(in[0][i * 3 + c]);
      sum += std::log(total) - in[0][i * 3 + static_cast<std::size_t>(in[1][i])];
    }
    return Values{sum / 4};
  });
  check_formula(one_op("triplet_margin_loss", {{4, 6}, {4, 6}, {4, 6}}, {{"margin", 2.0}}, {}),
                [](const std::vector<Values>& in) {
                  double sum = 0;
                  for (std::size_t i = 0; i < 4; ++i) {
                    double near = 0;
                    double far = 0;
                    for (std::size_t c = 0; c < 6; ++c) {
                      near += std::pow(in[0][i * 6 + c] - in[1][i * 6 + c] + 1e-6, 2);
                      far += std::pow(in[0][i * 6 + c] - in[2][i * 6 + c] + 1e-6, 2);
                    }
                    sum += std::max(0.0, 2.0 + std::sqrt(near) - std::sqrt(far));
                  }
                  return Values{sum / 4};
                });
}

TEST_CASE(
    "draws are a function of the seed, differ by input and between inputs and parameters, and fill given memory") {
  const Reference reference(one_op("linear", {{64, 64}}, {{"weight", "w"}}, {64, 64}, {{"w", {64, 64}}}));
  const auto x = reference.draw_inputs(5);
  CHECK(torch::equal(x[0], reference.draw_inputs(5)[0]));
  CHECK_FALSE(torch::equal(x[0], reference.draw_inputs(6)[0]));
  CHECK_FALSE(torch::equal(x[0], reference.draw_parameters(5)[0]));
  const Reference pair(one_op("add_input", {{64}, {64}}, {}, {64}));
  CHECK_FALSE(torch::equal(pair.draw_inputs(5)[0], pair.draw_inputs(5)[1]));

  std::vector<float> memory(64 * 64);
  std::vector<torch::Tensor> into = {torch::from_blob(memory.data(), {64, 64})};
  reference.draw_inputs(5, into);
  CHECK(torch::equal(into[0], x[0]));
  CHECK(memory[0] == x[0][0][0].item<float>());

  for (const torch::Tensor& wrong :
       {torch::empty({64, 63}), torch::empty({64, 64}, torch::kFloat64), torch::empty({64, 64}).t(), torch::Tensor()}) {
    std::vector<torch::Tensor> list = {wrong};
    CHECK_THROWS_WITH_AS(reference.draw_inputs(5, list),
                         doctest::Contains("needs a contiguous cpu tensor of float32 [64, 64]"), Error);
  }
  std::vector<torch::Tensor> none;
  CHECK_THROWS_WITH_AS(reference.draw_inputs(5, none), doctest::Contains("the task has 1 input(s), 0 given"), Error);
}

TEST_CASE("forward checks number and shapes of its operands") {
  const Reference reference(one_op("add_input", {{4}, {4}}, {}, {4}));
  CHECK_THROWS_WITH_AS((void)reference.forward({torch::ones({4})}, {}),
                       doctest::Contains("the task has 2 input(s), 1 given"), Error);
  CHECK_THROWS_WITH_AS((void)reference.forward({torch::ones({4}), torch::ones({5})}, {}),
                       doctest::Contains("'x1' needs shape [4]"), Error);
  CHECK_THROWS_AS((void)reference.forward({torch::ones({4}), torch::Tensor()}, {}), Error);
}

TEST_CASE("what LibTorch refuses at run time is an Error that names the step") {
  Task task = one_op("cross_entropy", {{4, 3}, {4}}, {}, {});
  task.inputs[1].dtype = DType::int64;
  task.inputs[1].distribution = {.kind = kevin::Distribution::Kind::constant, .a = 7};  // there is no class 7
  const Reference reference(task);
  try {
    (void)reference.forward(reference.draw_inputs(1), {});
    FAIL("no error");
  } catch (const Error& e) {
    CHECK(e.code() == ErrorCode::unsupported);
    CHECK(std::string(e.what()).find("task 'test/cross_entropy': ops[0] ('cross_entropy'): LibTorch says:") !=
          std::string::npos);
  }
}

TEST_CASE("a chain keeps only what later steps and the outputs need, and may have several outputs") {
  Task task{.id = "test/chain",
            .name = "chain",
            .inputs = {{.name = "x", .shape = {3}}},
            .parameters = {},
            .ops = {},
            .outputs = {},
            .tolerance = {},
            .flags = {},
            .notes = {}};
  task.inputs[0].distribution = {.kind = kevin::Distribution::Kind::constant, .a = 2};
  task.ops = {{"square", {}, {"x"}, "a", {3}},
              {"neg", {}, {"a"}, "b", {3}},
              {"add_tensor", {}, {"b", "x"}, "c", {3}},
              {"mul_tensor", {}, {"c", "a"}, "d", {3}}};
  task.outputs = {{.name = "d", .shape = {3}}, {.name = "b", .shape = {3}}};
  const Reference reference(task);
  const auto out = reference.forward(reference.draw_inputs(1), {});
  REQUIRE(out.size() == 2);
  CHECK(torch::equal(out[0], torch::full({3}, -8.0F)));  // (-4 + 2) * 4
  CHECK(torch::equal(out[1], torch::full({3}, -4.0F)));
  const auto& steps = reference.graph().steps();  // values: x 0, a 1, b 2 (an output), c 3, d 4 (an output)
  CHECK(steps[0].last_use.empty());
  CHECK(steps[2].last_use.empty());
  CHECK(steps[3].last_use == std::vector<std::size_t>{1, 3});
  CHECK_FALSE(out[0].requires_grad());
}

TEST_CASE("one reference serves several threads") {
  const Reference reference(one_op("softmax", {{50, 40}}, {{"dim", std::int64_t{1}}}, {50, 40}));
  std::vector<torch::Tensor> expected;
  for (std::uint64_t seed = 0; seed < 16; ++seed)
    expected.push_back(reference.forward(reference.draw_inputs(seed), {})[0]);
  std::vector<int> same(4, 0);
  {
    std::vector<std::jthread> threads;
    for (std::size_t t = 0; t < same.size(); ++t) {
      threads.emplace_back([&, t] {
        for (std::uint64_t seed = 0; seed < 16; ++seed)
          same[t] += torch::equal(reference.forward(reference.draw_inputs(seed), {})[0], expected[seed]) ? 1 : 0;
      });
    }
  }
  for (int s : same) CHECK(s == 16);
}
