#include "kevin/refine/describe.hpp"

#include <doctest/doctest.h>

#include <string>

using kevin::describe;
using kevin::Distribution;
using kevin::Task;
using List = std::vector<std::int64_t>;

namespace {

Task gemm() {
  Task task{.id = "mine/gemm",
            .name = "Gemm_Multiply",
            .inputs = {},
            .parameters = {},
            .ops = {},
            .outputs = {},
            .tolerance = {1e-5, 1e-4},
            .flags = {},
            .notes = {}};
  task.inputs = {
      {.name = "x", .shape = {64, 32}, .distribution = {.kind = Distribution::Kind::normal, .a = 0, .b = 0.5}}};
  task.parameters = {{.name = "gemm.weight", .shape = {16, 32}}, {.name = "gemm.bias", .shape = {16}}};
  task.ops = {{"linear",
               {{"weight", "gemm.weight"}, {"bias", "gemm.bias"}, {"in_features", std::int64_t{32}}},
               {"x"},
               "t1",
               {64, 16}},
              {"mul_scalar", {{"value", 2.0}}, {"t1"}, "t2", {64, 16}}};
  task.outputs = {{.name = "t2", .shape = {64, 16}}};
  return task;
}

/// The line of the description that assigns the result of `op`.
std::string line(kevin::Op op) {
  Task task = gemm();
  op.out = "y";
  task.ops = {op};
  const std::string text = describe(task);
  const std::size_t at = text.find("    y = ");
  return text.substr(at + 8, text.find("  #", at) - at - 8);
}

}  // namespace

TEST_CASE("a description reads like PyTorch and uses the names of the kernel's arguments") {
  CHECK(describe(gemm()) ==
        "# Gemm_Multiply\n"
        "def reference(x, gemm_weight, gemm_bias):\n"
        "    # x: float32 [64, 32], normal, mean 0, std 0.5\n"
        "    # gemm_weight: float32 [16, 32], a learned parameter\n"
        "    # gemm_bias: float32 [16], a learned parameter\n"
        "    t1 = linear(x, weight=gemm_weight, bias=gemm_bias)  # [64, 16]\n"
        "    t2 = t1 * 2  # [64, 16]\n"
        "    return t2\n"
        "# out receives t2: float32 [64, 16]\n"
        "# correct when every element has |out - expected| <= 1e-05 + 1e-04 * |expected|\n");
}

TEST_CASE("a spread is told in words, and which output's it is") {
  Task task = gemm();
  task.tolerance = {0, 1e-4, 1e-3};
  const std::string law = "# correct when every element has |out - expected| <= 0 + 1e-04 * |expected| + 0.001 * ";
  CHECK(describe(task).ends_with(law + "(standard deviation of the expected output over all its elements)\n"));
  task.outputs.push_back({.name = "t1", .shape = {64, 16}});
  CHECK(describe(task).ends_with(law + "(standard deviation of that expected output over all its elements)\n"));
}

TEST_CASE("arithmetic is written as such") {
  CHECK(line({"rsub_scalar", {{"value", std::int64_t{1}}}, {"x"}, "", {}}) == "1 - x");
  CHECK(line({"div_scalar", {{"value", 0.5}}, {"x"}, "", {}}) == "x / 0.5");
  CHECK(line({"min_scalar", {{"value", 0.5}}, {"x"}, "", {}}) == "minimum(x, 0.5)");
  CHECK(line({"add_parameter", {{"parameter", "gemm.bias"}, {"parameter_shape", List{16}}}, {"x"}, "", {}}) ==
        "x + gemm_bias");
  CHECK(line({"sub_parameter", {{"parameter", "gemm.bias"}, {"parameter_viewed_as", List{1, 16}}}, {"x"}, "", {}}) ==
        "x - gemm_bias.view([1, 16])");
  CHECK(line({"residual_add", {}, {"x", "x"}, "", {}}) == "x + x");
  CHECK(line({"max_tensor", {}, {"x", "x"}, "", {}}) == "maximum(x, x)");
}

TEST_CASE("arguments that matter are named, others are left out") {
  CHECK(line({"matmul", {{"transpose_b", true}, {"m", std::int64_t{64}}}, {"x", "param:gemm.weight"}, "", {}}) ==
        "matmul(x, gemm_weight.transpose(-2, -1))");
  CHECK(line({"softmax", {{"dim", std::int64_t{1}}}, {"x"}, "", {}}) == "softmax(x, dim=1)");
  CHECK(line({"sum", {{"dim", "all"}, {"keepdim", false}}, {"x"}, "", {}}) == "sum(x, dim=\"all\")");
  CHECK(line({"max_reduce", {{"dim", List{1}}, {"keepdim", true}}, {"x"}, "", {}}) == "amax(x, dim=[1], keepdim=True)");
  CHECK(line({"clamp", {{"max", 1.0}, {"min", -1.0}}, {"x"}, "", {}}) == "clamp(x, min=-1, max=1)");
  CHECK(line({"conv2d",
              {{"weight", "gemm.weight"},
               {"kernel_size", List{3, 3}},
               {"stride", List{1, 1}},
               {"padding", List{0, 0}},
               {"dilation", List{2, 2}},
               {"groups", std::int64_t{1}}},
              {"x"},
              "",
              {}}) == "conv2d(x, weight=gemm_weight, dilation=[2, 2])");
  CHECK(
      line(
          {"max_pool2d", {{"kernel_size", List{2, 2}}, {"stride", List{1, 1}}, {"ceil_mode", false}}, {"x"}, "", {}}) ==
      "max_pool2d(x, kernel_size=[2, 2], stride=[1, 1])");
  CHECK(line({"layer_norm", {{"eps", 1e-5}, {"normalized_shape", List{32}}}, {"x"}, "", {}}) ==
        "layer_norm(x, eps=1e-05, normalized_shape=[32])");
}

TEST_CASE("distributions are told in words") {
  const auto text = [](const Distribution& d) {
    Task task = gemm();
    task.inputs[0].distribution = d;
    const std::string all = describe(task);
    const std::size_t at = all.find("[64, 32], ") + 10;
    return all.substr(at, all.find('\n', at) - at);
  };
  CHECK(text({}) == "uniform in [0, 1)");
  CHECK(text({.kind = Distribution::Kind::constant, .a = 3.5}) == "all 3.5");
  CHECK(text({.kind = Distribution::Kind::integer, .a = 0, .b = 10}) == "integers in [0, 10)");
  CHECK(text({.kind = Distribution::Kind::sign}) == "-1 or +1");
  CHECK(text({.random_scale = true, .structure = Distribution::Structure::softmax}) ==
        "uniform in [0, 1), times one number uniform in [0, 1), softmax over the last dim");
}

TEST_CASE("a task that was never checked is described without harm") {
  CHECK_FALSE(describe(Task{}).empty());
  CHECK(line({"add_parameter", {{"parameter", std::int64_t{3}}}, {}, "", {}}) == "add_parameter()");
  CHECK(line({"mul_scalar", {}, {"x"}, "", {}}) == "mul_scalar(x)");
  CHECK(line({"linear", {{"weight", true}}, {"nowhere"}, "", {}}) == "linear(nowhere)");
}

TEST_CASE("several outputs are named apart") {
  Task task = gemm();
  task.outputs.push_back({.name = "t1", .shape = {64, 16}});
  const std::string text = describe(task);
  CHECK(text.find("    return t2, t1\n") != std::string::npos);
  CHECK(text.find("# out0 receives t2: ") != std::string::npos);
  CHECK(text.find("# out1 receives t1: ") != std::string::npos);
}
