#include "kevin/agent/kernel_space/product.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "agent/kernel_space/line_references.hpp"
#include "agent/kernel_space/try_kernel.hpp"

using namespace kevin_test;

namespace {

constexpr std::size_t m = 13, n = 37, k = 19;
const kevin::Shape shape{13, 37};

/// x [13, 19] times the transpose of w [37, 19], plus `bias` [37] unless it is null.
Numbers linear(const Numbers& x, const Numbers& w, const Numbers* bias) {
  Numbers out(m * n);
  for (std::size_t i = 0; i < m; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      double s = bias == nullptr ? 0 : (*bias)[j];
      for (std::size_t q = 0; q < k; ++q) s += x[i * k + q] * w[j * k + q];
      out[i * n + j] = s;
    }
  }
  return out;
}

kevin::Task product_task(std::vector<Op> ops, bool bias = true) {
  std::vector<kevin::TensorSpec> parameters = {tensor("w", {37, 19})};
  if (bias) parameters.push_back(tensor("b", {37}));
  Op first{"linear", {{"weight", std::string("w")}}, {"x"}, "t1", shape};
  if (bias) first.args["bias"] = std::string("b");
  ops.insert(ops.begin(), first);
  return make_task({tensor("x", {13, 19})}, parameters, std::move(ops), {1e-4, 1e-4});
}

kevin::Task scaled_and_leaky() {
  return product_task({{"mul_scalar", {{"value", 2.0}}, {"t1"}, "t2", shape},
                       {"leaky_relu", {{"negative_slope", 0.1}}, {"t2"}, "t3", shape}});
}

Numbers scaled_and_leaky_reference(const std::vector<Numbers>& in) {
  Numbers out = linear(in[0], in[1], &in[2]);
  for (double& v : out) v = v > 0 ? 2 * v : 0.2 * v;
  return out;
}

}  // namespace

TEST_CASE("every option of a product is right, but for those that cannot be") {
  KernelTrials trial(scaled_and_leaky(), scaled_and_leaky_reference);
  REQUIRE(trial.space().family() == "product");
  CHECK(trial("") == "right");
  trial.check_each_option({{"width=12", "compile error"},
                           {"tail=ignore", "wrong"},
                           {"tail=past", "overrun"},  // and into the next row
                           {"precision=bfloat16", "wrong"}});
}

TEST_CASE("an overlapping tile is right only where no element is computed from itself, and where one fits") {
  KernelTrials trial(scaled_and_leaky(), scaled_and_leaky_reference);
  CHECK(trial("tail=overlap chain=fused") == "right");
  CHECK(trial("tail=overlap chain=separate") == "wrong");      // the chain is applied twice
  CHECK(trial("tail=overlap vectors=4 width=16") == "crash");  // 64 columns into 37
  CHECK(trial("tail=pad vectors=4 width=16 rows=12") == "right");
}

TEST_CASE("what is right by itself is right together") {
  KernelTrials trial(scaled_and_leaky(), scaled_and_leaky_reference);
  trial.check_mixtures(20, {"width=12", "tail=overlap", "tail=ignore", "tail=past", "precision=bfloat16"});
}

TEST_CASE("a short matrix is right with tall tiles and two threads") {
  const kevin::Task task =
      make_task({tensor("A", {13, 5}), tensor("B", {5, 8})}, {},
                {{"matmul", {}, {"A", "B"}, "t1", {13, 8}}, {"square", {}, {"t1"}, "t2", {13, 8}}}, {1e-4, 1e-4});
  KernelTrials trial(task, [](const std::vector<Numbers>& in) {
    Numbers out(104);
    for (std::size_t i = 0; i < 104; ++i) {
      for (std::size_t q = 0; q < 5; ++q) out[i] += in[0][i / 8 * 5 + q] * in[1][q * 8 + i % 8];
      out[i] *= out[i];
    }
    return out;
  });
  // 13 rows in tiles of 12: the second tile redoes 11 of the first one's rows, which must not be squared by then
  for (int i = 0; i < 20; ++i) CHECK(trial("rows=12 chain=separate threads=2") == "right");
}

TEST_CASE("either factor may be transposed") {
  for (const bool left : {false, true}) {
    for (const bool right : {false, true}) {
      CAPTURE(left);
      CAPTURE(right);
      const kevin::Task task = make_task(
          {tensor("A", left ? kevin::Shape{19, 13} : kevin::Shape{13, 19}),
           tensor("B", right ? kevin::Shape{37, 19} : kevin::Shape{19, 37})},
          {}, {{"matmul", {{"transpose_a", left}, {"transpose_b", right}}, {"A", "B"}, "t1", shape}}, {1e-4, 1e-4});
      KernelTrials trial(task, [&](const std::vector<Numbers>& in) {
        Numbers out(m * n);
        for (std::size_t i = 0; i < m * n; ++i) {
          for (std::size_t q = 0; q < k; ++q) {
            out[i] += in[0][left ? q * m + i / n : i / n * k + q] * in[1][right ? i % n * k + q : q * n + i % n];
          }
        }
        return out;
      });
      CHECK(trial("") == "right");
      for (const std::string pack : {"no", "panels"}) {
        for (const std::string tail : {"scalar", "pad", "overlap"}) {
          CAPTURE(pack);
          CAPTURE(tail);
          CHECK(trial("rows=6 vectors=2 unroll=4 width=8 threads=2 pack=" + pack + " tail=" + tail) == "right");
        }
      }
    }
  }
}

TEST_CASE("later ops may use the product itself, with its bias or without one") {
  for (const bool bias : {false, true}) {
    CAPTURE(bias);
    const kevin::Task task = product_task({{"relu", {}, {"t1"}, "t2", shape},
                                           {"mul_scalar", {{"value", 3.0}}, {"t2"}, "t3", shape},
                                           {"residual_add", {}, {"t3", "t1"}, "t4", shape}},
                                          bias);
    KernelTrials trial(task, [&](const std::vector<Numbers>& in) {
      Numbers out = linear(in[0], in[1], bias ? &in[2] : nullptr);
      for (double& v : out) v += 3 * std::max(v, 0.0);
      return out;
    });
    CHECK(trial("") == "right");
    CHECK(trial("rows=4 vectors=2 tail=pad chain=separate") == "right");
  }
}

TEST_CASE("an op on rows may follow") {
  kevin::Task task = product_task({{"gelu", {{"approximate", std::string("none")}}, {"t1"}, "t2", shape},
                                   {"softmax", {{"dim", std::int64_t{1}}}, {"t2"}, "t3", shape}});
  task.tolerance = {1e-6, 1e-3};
  KernelTrials trial(task, [](const std::vector<Numbers>& in) {
    Numbers v = linear(in[0], in[1], &in[2]);
    for (double& x : v) x = 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
    return line_reference("softmax", m, n, 1)({v});
  });
  trial.check_mixtures(10,
                       {"width=12", "tail=overlap", "tail=ignore", "tail=past", "precision=bfloat16", "math=coarse"});
  for (const std::string algorithm : {"three_pass", "keep", "online"}) {
    CAPTURE(algorithm);
    CHECK(trial("rows=4 tail=pad algorithm=" + algorithm) == "right");
  }
}

TEST_CASE("what follows a product otherwise is refused") {
  const std::string sum = [] {
    try {
      (void)kevin::agent::kernel_space(product_task({{"sum", {{"dim", std::int64_t{1}}}, {"t1"}, "t2", {13}}}));
    } catch (const kevin::Error& e) {
      return std::string(e.what());
    }
    return std::string();
  }();
  CHECK(sum.find("linear, sum") != std::string::npos);
}
