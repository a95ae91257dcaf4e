#include "kevin/agent/kernel_space/elementwise.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "agent/kernel_space/try_kernel.hpp"

using namespace kevin_test;

namespace {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double gelu(double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }

/// One op on [9, 37]: a row fills no vector, nor does the whole.
kevin::Task unary(Op op) {
  op.in = {"x"};
  op.out = "t1";
  op.out_shape = {9, 37};
  return make_task({tensor("x", {9, 37})}, {}, {op}, {1e-5, 1e-4});
}

Reference each(double (*f)(double)) {
  return [f](const std::vector<Numbers>& in) {
    Numbers out = in[0];
    std::transform(out.begin(), out.end(), out.begin(), f);
    return out;
  };
}

}  // namespace

TEST_CASE("every option of an element-wise kernel is right, but for those that cannot be") {
  KernelTrials trial(unary({"silu", {}, {}, {}, {}}), each([](double x) { return x * sigmoid(x); }));
  REQUIRE(trial.space().family() == "elementwise");
  CHECK(trial("") == "right");
  trial.check_each_option({{"width=12", "compile error"},    // there are no vectors of 12 lanes
                           {"tail=ignore", "wrong"},         // the end of a row is never written
                           {"tail=past", "overrun"},         // harmless within the output, not at its end
                           {"access=aligned", "crash"},      // the second row begins between two vectors
                           {"access=stream", "crash"},       // and streaming stores want the same
                           {"precision=bfloat16", "wrong"},  // eight bits of mantissa
                           {"math=coarse", "wrong"}});
}

TEST_CASE("aligned access is right where blocks begin at multiples of a vector") {
  KernelTrials trial(unary({"neg", {}, {}, {}, {}}), each([](double x) { return -x; }));
  for (const std::string block : {"4096", "all"}) {
    for (const std::string access : {"aligned", "stream"}) {
      CAPTURE(block);
      CAPTURE(access);
      CHECK(trial("access=" + access + " block=" + block) == "right");
    }
    CHECK(trial("access=aligned tail=overlap block=" + block) == "crash");
  }
}

TEST_CASE("what is right by itself is right together") {
  KernelTrials trial(unary({"gelu", {{"approximate", std::string("none")}}, {}, {}, {}}), each(gelu));
  trial.check_mixtures(12, {"width=12", "tail=ignore", "tail=past", "access=aligned", "access=stream",
                            "precision=bfloat16", "math=coarse"});
}

TEST_CASE("each element-wise op is right at every level of accuracy but the coarse one") {
  struct Case {
    Op op;
    double (*f)(double);
  };
  const Case cases[] = {
      {{"tanh", {}, {}, {}, {}}, [](double x) { return std::tanh(x); }},
      {{"sigmoid", {}, {}, {}, {}}, sigmoid},
      {{"exp", {}, {}, {}, {}}, [](double x) { return std::exp(x); }},
      {{"softsign", {}, {}, {}, {}}, [](double x) { return x / (1 + std::abs(x)); }},
      {{"softplus", {}, {}, {}, {}}, [](double x) { return std::log1p(std::exp(x)); }},
      {{"mish", {}, {}, {}, {}}, [](double x) { return x * std::tanh(std::log1p(std::exp(x))); }},
      {{"elu", {{"alpha", 1.5}}, {}, {}, {}}, [](double x) { return x > 0 ? x : 1.5 * std::expm1(x); }},
      {{"selu", {}, {}, {}, {}},
       [](double x) { return 1.0507009873554805 * (x > 0 ? x : 1.6732632423543772 * std::expm1(x)); }},
      {{"gelu", {{"approximate", std::string("tanh")}}, {}, {}, {}},
       [](double x) { return 0.5 * x * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))); }}};
  for (const Case& c : cases) {
    CAPTURE(c.op.op);
    KernelTrials trial(unary(c.op), each(c.f));
    for (const std::string math : {"libm", "exact", "fast"}) {
      CAPTURE(math);
      CHECK(trial("width=8 math=" + math) == "right");
    }
    CHECK(trial("math=coarse") == "wrong");
  }
}

TEST_CASE("each op without functions is right") {
  struct Case {
    Op op;
    double (*f)(double);
  };
  const Case cases[] = {
      {{"relu", {}, {}, {}, {}}, [](double x) { return std::max(x, 0.0); }},
      {{"leaky_relu", {{"negative_slope", 0.1}}, {}, {}, {}}, [](double x) { return x > 0 ? x : 0.1 * x; }},
      {{"abs", {}, {}, {}, {}}, [](double x) { return std::abs(x); }},
      {{"square", {}, {}, {}, {}}, [](double x) { return x * x; }},
      {{"dropout", {}, {}, {}, {}}, [](double x) { return x; }},
      {{"hardsigmoid", {}, {}, {}, {}}, [](double x) { return std::clamp(x / 6 + 0.5, 0.0, 1.0); }},
      {{"hardswish", {}, {}, {}, {}}, [](double x) { return x * std::clamp(x / 6 + 0.5, 0.0, 1.0); }},
      {{"hardtanh", {{"min_val", -0.5}, {"max_val", 2.0}}, {}, {}, {}},
       [](double x) { return std::clamp(x, -0.5, 2.0); }},
      {{"clamp", {{"max", 1.0}}, {}, {}, {}}, [](double x) { return std::min(x, 1.0); }},
      {{"clamp", {{"min", -1.0}, {"max", HUGE_VAL}}, {}, {}, {}}, [](double x) { return std::max(x, -1.0); }},
      {{"add_scalar", {{"value", -3.0}}, {}, {}, {}}, [](double x) { return x - 3; }},
      {{"sub_scalar", {{"value", std::int64_t{2}}}, {}, {}, {}}, [](double x) { return x - 2; }},
      {{"mul_scalar", {{"value", -0.1}}, {}, {}, {}}, [](double x) { return x * -0.1; }},
      {{"div_scalar", {{"value", 3.0}}, {}, {}, {}}, [](double x) { return x / 3; }},
      {{"rsub_scalar", {{"value", 1.0}}, {}, {}, {}}, [](double x) { return 1 - x; }},
      {{"min_scalar", {{"value", 0.5}}, {}, {}, {}}, [](double x) { return std::min(x, 0.5); }},
      {{"max_scalar", {{"value", 0.5}}, {}, {}, {}}, [](double x) { return std::max(x, 0.5); }}};
  for (const Case& c : cases) {
    CAPTURE(c.op.op);
    KernelTrials trial(unary(c.op), each(c.f));
    CHECK(trial("") == "right");
    CHECK(trial("precision=float64 width=8 tail=pad") == "right");
  }
}

TEST_CASE("operands broadcast along any dims") {
  // [2, 3, 5, 7]: one number for each of the 3, one for each of the 2 x 5, a whole tensor, a row, and one number for
  // all
  const kevin::Shape shape{2, 3, 5, 7};
  const std::vector<std::pair<kevin::Shape, std::function<std::size_t(std::size_t)>>> operands = {
      {{3, 1, 1}, [](std::size_t i) { return i / 35 % 3; }},
      {{2, 1, 5, 1}, [](std::size_t i) { return i / 105 * 5 + i / 7 % 5; }},
      {{2, 3, 5, 7}, [](std::size_t i) { return i; }},
      {{7}, [](std::size_t i) { return i % 7; }},
      {{5, 7}, [](std::size_t i) { return i % 35; }},
      {{2, 3, 1, 1}, [](std::size_t i) { return i / 35; }},
      {{1}, [](std::size_t) { return std::size_t{0}; }}};
  for (const auto& [operand, index] : operands) {
    CAPTURE(operand.size());
    kevin::Task task = make_task({tensor("x", shape), tensor("p", operand)}, {},
                                 {{"mul_input", {}, {"x", "p"}, "t1", shape}, {"relu", {}, {"t1"}, "t2", shape}});
    KernelTrials trial(task, [&at = index](const std::vector<Numbers>& in) {
      Numbers out = in[0];
      for (std::size_t i = 0; i < out.size(); ++i) out[i] = std::max(out[i] * in[1][at(i)], 0.0);
      return out;
    });
    CHECK(trial("") == "right");
    CHECK(trial("tail=pad block=all threads=2") == "right");
  }
}

TEST_CASE("a chain may use a value more than once") {
  const kevin::Shape shape{4, 33};
  kevin::Task task = make_task({tensor("x", shape), tensor("y", shape)}, {},
                               {{"sub_input", {}, {"x", "y"}, "t1", shape},
                                {"abs", {}, {"t1"}, "t2", shape},
                                {"add_tensor", {}, {"t2", "t1"}, "t3", shape},
                                {"max_tensor", {}, {"t3", "x"}, "t4", shape}});
  KernelTrials trial(task, [](const std::vector<Numbers>& in) {
    Numbers out = in[0];
    for (std::size_t i = 0; i < out.size(); ++i) {
      const double d = in[0][i] - in[1][i];
      out[i] = std::max(std::abs(d) + d, in[0][i]);
    }
    return out;
  });
  CHECK(trial("") == "right");
  CHECK(trial("unroll=4 tail=overlap precision=float64") == "right");
}
