#include "kevin/tasks/operations.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "kevin/core/error.hpp"
#include "kevin/tasks/reference.hpp"

using kevin::DType;
using kevin::Error;
using kevin::OpArgument;
using kevin::Shape;
using kevin::Task;
using kevin::TensorSpec;

namespace {

using Args = std::map<std::string, OpArgument>;
using List = std::vector<std::int64_t>;

/// One use of an operation: shapes of its values, named parameters, arguments, and the shape that PyTorch documents for
/// it.
struct Use {
  std::string op;
  std::vector<Shape> in;
  Args args;
  Shape expected;
  std::map<std::string, Shape> parameters = {};
  DType second_type = DType::float32;
};

Task task_of(const Use& use) {
  Task task{.id = "test/" + use.op,
            .name = use.op,
            .inputs = {},
            .parameters = {},
            .ops = {},
            .outputs = {},
            .flags = {},
            .notes = {}};
  kevin::Op op{.op = use.op, .args = use.args, .in = {}, .out = "y", .out_shape = use.expected};
  for (std::size_t i = 0; i < use.in.size(); ++i) {
    TensorSpec t{.name = "x" + std::to_string(i),
                 .shape = use.in[i],
                 .dtype = DType::float32,
                 .distribution = {.a = 0.25, .b = 1}};
    if (i == 1 && use.second_type != DType::float32) {
      t.dtype = use.second_type;
      t.distribution = {.kind = kevin::Distribution::Kind::integer, .a = 0, .b = 2};
    }
    op.in.push_back(t.name);
    task.inputs.push_back(std::move(t));
  }
  if (task.inputs.empty()) task.inputs.push_back({.name = "unused", .shape = {1}});
  for (const auto& [name, shape] : use.parameters) task.parameters.push_back({.name = name, .shape = shape});
  const bool index = use.op == "argmax" || use.op == "argmin";
  task.outputs.push_back({.name = "y", .shape = use.expected, .dtype = index ? DType::int64 : DType::float32});
  task.ops.push_back(std::move(op));
  return task;
}

const std::vector<Use>& uses() {
  static const std::vector<Use> list = [] {
    const Shape s = {2, 3, 4};
    std::vector<Use> u;
    for (const char* name : {"abs",       "exp",     "log",      "neg",         "sqrt",       "square",  "relu",
                             "selu",      "sigmoid", "tanh",     "hardsigmoid", "softsign",   "silu",    "mish",
                             "hardswish", "gelu",    "hardtanh", "elu",         "leaky_relu", "softplus"}) {
      u.push_back({name, {s}, {}, s});
    }
    for (const char* name : {"silu", "mish", "hardswish"}) u.push_back({name, {s}, {{"composed", true}}, s});
    u.push_back({"gelu", {s}, {{"approximate", "tanh"}}, s});
    u.push_back({"gelu", {s}, {{"approximate", "tanh"}, {"composed", true}}, s});
    u.push_back({"clamp", {s}, {{"min", 0.3}, {"max", 0.6}}, s});
    u.push_back({"clamp", {s}, {{"min", 0.3}}, s});
    u.push_back({"clamp", {s}, {{"max", std::int64_t{1}}}, s});
    u.push_back({"hardtanh", {s}, {{"min_val", std::int64_t{-2}}, {"max_val", 2.0}}, s});
    u.push_back({"dropout", {s}, {{"p", 0.2}, {"training", false}}, s});
    for (const char* name :
         {"add_scalar", "sub_scalar", "mul_scalar", "div_scalar", "rsub_scalar", "min_scalar", "max_scalar"}) {
      u.push_back({name, {s}, {{"value", 1.5}}, s});
      u.push_back({name, {{}}, {{"value", std::int64_t{2}}}, {}});
    }
    for (const char* name :
         {"add_parameter", "sub_parameter", "mul_parameter", "div_parameter", "min_parameter", "max_parameter"}) {
      u.push_back({name, {s}, {{"parameter", "p"}, {"parameter_shape", List{3, 1}}}, s, {{"p", {3, 1}}}});
      u.push_back({name, {s}, {{"parameter", "p"}}, {5, 2, 3, 4}, {{"p", {5, 1, 1, 1}}}});
      u.push_back({name, {s}, {{"parameter", "p"}, {"parameter_viewed_as", List{1, 3, 1}}}, s, {{"p", {3}}}});
    }
    for (const char* name : {"add_input", "sub_input", "mul_input", "div_input", "add_tensor", "sub_tensor",
                             "mul_tensor", "div_tensor", "min_tensor", "max_tensor", "residual_add"}) {
      u.push_back({name, {s, s}, {}, s});
      u.push_back({name, {{2, 1, 4}, {3, 1}}, {}, s});
    }
    u.push_back({"mul_input", {s, s}, {}, s, {}, DType::boolean});
    u.push_back({"add_input", {s, {}}, {}, s, {}, DType::int64});

    u.push_back({"reshape", {s}, {{"shape", List{6, 4}}}, {6, 4}});
    u.push_back({"squeeze", {{2, 1, 3}}, {{"dim", std::int64_t{-2}}}, {2, 3}});
    u.push_back({"unsqueeze", {s}, {{"dim", std::int64_t{-1}}}, {2, 3, 4, 1}});
    u.push_back({"unsqueeze", {{}}, {{"dim", std::int64_t{0}}}, {1}});
    u.push_back({"permute", {s}, {{"dims", List{2, 0, -2}}}, {4, 2, 3}});
    u.push_back({"flip", {s}, {{"dims", List{0, -1}}}, s});
    u.push_back({"narrow",
                 {s},
                 {{"dim", std::int64_t{1}}, {"start", std::int64_t{1}}, {"length", std::int64_t{2}}},
                 {2, 2, 4}});
    u.push_back({"concat", {s, {2, 5, 4}}, {{"dim", std::int64_t{1}}}, {2, 8, 4}});
    u.push_back({"zeros", {}, {{"shape", List{3, 2}}}, {3, 2}});
    u.push_back({"triu", {{4, 5}}, {{"diagonal", std::int64_t{1}}}, {4, 5}});
    u.push_back({"tril", {{3, 4, 4}}, {}, {3, 4, 4}});

    for (const char* name : {"sum", "mean", "logsumexp", "vector_norm"}) {
      u.push_back({name, {s}, {{"dim", "all"}}, {}});
      u.push_back({name, {s}, {{"dim", "all"}, {"keepdim", true}}, {1, 1, 1}});
      u.push_back({name, {s}, {{"dim", List{0, -1}}, {"keepdim", true}}, {1, 3, 1}});
      u.push_back({name, {s}, {{"dim", std::int64_t{1}}}, {2, 4}});
    }
    u.push_back({"vector_norm", {s}, {{"dim", List{1}}, {"p", std::int64_t{1}}}, {2, 4}});
    for (const char* name : {"max_reduce", "min_reduce", "argmax", "argmin"}) {
      u.push_back({name, {s}, {{"dim", List{1}}}, {2, 4}});
      u.push_back({name, {s}, {{"dim", List{-1}}, {"keepdim", true}}, {2, 3, 1}});
    }
    for (const char* name : {"cumsum", "cumprod", "softmax", "log_softmax"})
      u.push_back({name, {s}, {{"dim", std::int64_t{-2}}}, s});

    u.push_back(
        {"matmul", {{2, 3}, {3, 4}}, {{"m", std::int64_t{2}}, {"k", std::int64_t{3}}, {"n", std::int64_t{4}}}, {2, 4}});
    u.push_back({"matmul", {{3, 2}, {4, 3}}, {{"transpose_a", true}, {"transpose_b", true}}, {2, 4}});
    u.push_back({"matmul", {{5, 1, 2, 3}, {6, 3, 4}}, {}, {5, 6, 2, 4}});
    u.push_back({"bmm", {{5, 2, 3}, {5, 3, 4}}, {{"batch", std::int64_t{5}}}, {5, 2, 4}});
    u.push_back({"einsum", {{2, 3, 4, 5}, {5, 6}}, {{"equation", "bijl,lk->bijk"}}, {2, 3, 4, 6}});
    u.push_back({"einsum", {{2, 3}}, {{"equation", "ij->ji"}}, {3, 2}});
    u.push_back({"linear",
                 {{2, 5, 3}},
                 {{"weight", "w"}, {"bias", "b"}, {"in_features", std::int64_t{3}}},
                 {2, 5, 4},
                 {{"w", {4, 3}}, {"b", {4}}}});
    u.push_back({"linear", {{2, 3}}, {{"weight", "w"}}, {2, 4}, {{"w", {4, 3}}}});
    u.push_back({"scaled_dot_product_attention", {{2, 3, 4, 8}, {2, 3, 5, 8}, {2, 3, 5, 6}}, {}, {2, 3, 4, 6}});
    u.push_back({"scaled_dot_product_attention",
                 {{2, 4, 8}, {2, 4, 8}, {2, 4, 8}},
                 {{"is_causal", true}, {"scale", 0.5}},
                 {2, 4, 8}});

    u.push_back({"conv1d",
                 {{2, 3, 10}},
                 {{"weight", "w"}, {"stride", List{2}}, {"dilation", List{2}}},
                 {2, 4, 3},
                 {{"w", {4, 3, 3}}}});
    u.push_back({"conv2d",
                 {{2, 4, 9, 8}},
                 {{"weight", "w"},
                  {"bias", "b"},
                  {"padding", List{1, 0}},
                  {"groups", std::int64_t{2}},
                  {"kernel_size", List{3, 5}}},
                 {2, 6, 9, 4},
                 {{"w", {6, 2, 3, 5}}, {"b", {6}}}});
    u.push_back({"conv3d", {{1, 2, 5, 6, 7}}, {{"weight", "w"}}, {1, 3, 3, 5, 4}, {{"w", {3, 2, 3, 2, 4}}}});
    u.push_back({"conv_transpose1d",
                 {{2, 3, 5}},
                 {{"weight", "w"}, {"stride", List{2}}, {"padding", List{1}}, {"dilation", List{2}}},
                 {2, 4, 11},
                 {{"w", {3, 4, 3}}}});
    u.push_back({"conv_transpose2d",
                 {{2, 4, 5, 6}},
                 {{"weight", "w"},
                  {"bias", "b"},
                  {"stride", List{2, 1}},
                  {"output_padding", List{1, 0}},
                  {"groups", std::int64_t{2}}},
                 {2, 6, 12, 8},
                 {{"w", {4, 3, 3, 3}}, {"b", {6}}}});
    u.push_back({"conv_transpose3d", {{1, 2, 3, 4, 5}}, {{"weight", "w"}}, {1, 3, 5, 5, 8}, {{"w", {2, 3, 3, 2, 4}}}});

    u.push_back({"max_pool1d",
                 {{2, 3, 10}},
                 {{"kernel_size", List{3}}, {"stride", List{2}}, {"padding", List{1}}, {"dilation", List{2}}},
                 {2, 3, 4}});
    u.push_back({"max_pool2d", {{2, 3, 10, 7}}, {{"kernel_size", List{3, 2}}}, {2, 3, 3, 3}});
    u.push_back({"max_pool2d", {{2, 3, 10, 7}}, {{"kernel_size", List{3, 2}}, {"ceil_mode", true}}, {2, 3, 4, 4}});
    u.push_back({"max_pool2d",
                 {{1, 1, 4, 4}},
                 {{"kernel_size", List{2, 2}}, {"stride", List{3, 3}}, {"padding", List{1, 1}}, {"ceil_mode", true}},
                 {1, 1, 2, 2}});
    u.push_back({"max_pool3d",
                 {{1, 2, 6, 6, 6}},
                 {{"kernel_size", List{2, 2, 2}}, {"return_indices", false}},
                 {1, 2, 3, 3, 3}});
    u.push_back({"avg_pool1d",
                 {{2, 3, 10}},
                 {{"kernel_size", List{4}}, {"stride", List{1}}, {"padding", List{2}}},
                 {2, 3, 11}});
    u.push_back({"avg_pool2d",
                 {{2, 3, 10, 7}},
                 {{"kernel_size", List{3, 2}}, {"count_include_pad", false}, {"padding", List{1, 1}}},
                 {2, 3, 4, 4}});
    u.push_back({"avg_pool2d",
                 {{2, 3, 10, 7}},
                 {{"kernel_size", List{3, 2}}, {"divisor_override", std::int64_t{5}}},
                 {2, 3, 3, 3}});
    u.push_back(
        {"avg_pool3d", {{1, 2, 5, 5, 5}}, {{"kernel_size", List{2, 2, 2}}, {"ceil_mode", true}}, {1, 2, 3, 3, 3}});
    u.push_back({"adaptive_avg_pool1d", {{2, 3, 10}}, {{"output_size", List{4}}}, {2, 3, 4}});
    u.push_back({"adaptive_avg_pool2d", {{2, 3, 10, 7}}, {{"output_size", List{1, 3}}}, {2, 3, 1, 3}});
    u.push_back({"adaptive_avg_pool3d", {{1, 2, 5, 5, 5}}, {{"output_size", List{1, 1, 1}}}, {1, 2, 1, 1, 1}});

    u.push_back({"layer_norm",
                 {s},
                 {{"normalized_shape", List{3, 4}}, {"weight", "w"}, {"bias", "b"}},
                 s,
                 {{"w", {3, 4}}, {"b", {3, 4}}}});
    u.push_back({"layer_norm", {s}, {{"normalized_shape", List{4}}, {"affine", false}}, s});
    u.push_back({"group_norm",
                 {{2, 6, 5}},
                 {{"num_groups", std::int64_t{3}}, {"weight", "w"}, {"bias", "b"}},
                 {2, 6, 5},
                 {{"w", {6}}, {"b", {6}}}});
    for (const Shape& x : {Shape{4, 3}, Shape{4, 3, 5}, Shape{4, 3, 5, 2}, Shape{2, 3, 2, 2, 2}}) {
      u.push_back(
          {"batch_norm", {x}, {{"weight", "w"}, {"bias", "b"}, {"training", true}}, x, {{"w", {3}}, {"b", {3}}}});
    }
    u.push_back({"instance_norm", {{2, 3, 4, 5}}, {{"num_features", std::int64_t{3}}}, {2, 3, 4, 5}});
    u.push_back({"rms_norm", {{2, 3, 4}}, {{"dim", List{1}}, {"eps", 1e-5}}, s});
    u.push_back({"rms_norm", {{2, 3, 4}}, {{"dim", List{-1}}, {"weight", "w"}}, s, {{"w", {4}}}});

    u.push_back({"mse_loss", {s, s}, {}, {}});
    u.push_back({"mse_loss", {s, s}, {{"composed", true}}, {}});
    u.push_back({"smooth_l1_loss", {s, s}, {{"beta", 0.5}, {"reduction", "sum"}}, {}});
    u.push_back({"kl_div", {s, s}, {{"reduction", "batchmean"}}, {}});
    u.push_back({"kl_div", {s, s}, {{"reduction", "mean"}, {"log_target", true}}, {}});
    u.push_back({"cross_entropy", {{6, 5}, {6}}, {}, {}, {}, DType::int64});
    u.push_back({"cross_entropy", {{6, 5, 2}, {6, 2}}, {{"label_smoothing", 0.1}}, {}, {}, DType::int64});
    u.push_back({"triplet_margin_loss", {{6, 5}, {6, 5}, {6, 5}}, {{"margin", 1.0}, {"swap", true}}, {}});
    return u;
  }();
  return list;
}

/// What a use is refused with.
std::string refusal(const Use& use) {
  try {
    kevin::tasks::check_task(task_of(use));
  } catch (const Error& e) {
    CHECK(e.code() == kevin::ErrorCode::bad_input);
    return e.what();
  }
  return "";
}

}  // namespace

TEST_CASE("every operation infers the shape and type that LibTorch computes") {
  for (const Use& use : uses()) {
    CAPTURE(use.op);
    const kevin::tasks::Reference reference(task_of(use));
    const auto inputs = reference.draw_inputs(1);
    const auto parameters = reference.draw_parameters(1);
    const auto out = reference.forward(inputs, parameters);
    REQUIRE(out.size() == 1);
    CHECK(out[0].sizes() == at::IntArrayRef(use.expected));
    CHECK((out[0].scalar_type() == kevin::tasks::scalar_type(reference.task().outputs[0].dtype)));
    CHECK(out[0].is_contiguous());

    // the same graph in float64 is an oracle: same shape, values within float32 rounding
    std::vector<torch::Tensor> wide_inputs;
    std::vector<torch::Tensor> wide_parameters;
    for (const auto& t : inputs) wide_inputs.push_back(t.is_floating_point() ? t.to(torch::kFloat64) : t);
    for (const auto& t : parameters) wide_parameters.push_back(t.to(torch::kFloat64));
    const auto wide = reference.forward(wide_inputs, wide_parameters);
    CHECK(wide[0].sizes() == out[0].sizes());
    CHECK(torch::allclose(wide[0].to(torch::kFloat64), out[0].to(torch::kFloat64), 1e-4, 1e-5));
  }
}

TEST_CASE("every operation of the table is in the test above") {
  std::set<std::string> tested;
  for (const Use& use : uses()) tested.insert(use.op);
  for (const auto& operation : kevin::tasks::operations()) {
    CAPTURE(std::string(operation.name));
    CHECK(tested.contains(std::string(operation.name)));
  }
}

TEST_CASE("the table is ordered, without duplicates, and found by name") {
  const auto& table = kevin::tasks::operations();
  for (std::size_t i = 1; i < table.size(); ++i) CHECK(table[i - 1].name < table[i].name);
  for (const auto& operation : table) CHECK(kevin::tasks::find_operation(operation.name) == &operation);
  CHECK(kevin::tasks::find_operation("nothing") == nullptr);
  CHECK(kevin::tasks::find_operation("") == nullptr);
}

TEST_CASE("an operation refuses what LibTorch would refuse, and says why") {
  struct Refused {
    Use use;
    std::string text;
  };
  const std::int64_t one = 1;
  const std::vector<Refused> refused = {
      {{"relu", {{2}, {2}}, {}, {2}}, "ops[0].in: has 2 operand(s), needs 1"},
      {{"relu", {{2}}, {{"slope", 1.0}}, {2}}, "does not know 'slope'"},
      {{"relu", {{2}}, {}, {3}}, "ops[0].out_shape: lists [3], the result has [2]"},
      {{"add_input", {{2, 3}, {2, 4}}, {}, {2, 3}}, "shapes [2, 3] and [2, 4] do not broadcast"},
      {{"add_scalar", {{2}}, {}, {2}}, "lacks 'value'"},
      {{"add_scalar", {{2}}, {{"value", "two"}}, {2}}, "args.value: must be a finite number"},
      {{"add_parameter", {{2}}, {{"parameter", "p"}}, {2}}, "args.parameter: 'p' is not a parameter"},
      {{"add_parameter", {{2}}, {{"parameter", "p"}, {"parameter_viewed_as", List{3}}}, {2}, {{"p", {2}}}},
       "does not hold the elements of [2]"},
      {{"clamp", {{2}}, {}, {2}}, "needs min, max or both"},
      {{"clamp", {{2}}, {{"min", 2.0}, {"max", 1.0}}, {2}}, "args.min: is above max"},
      {{"gelu", {{2}}, {{"approximate", "fast"}}, {2}}, "'fast' is neither"},
      {{"dropout", {{2}}, {{"training", true}}, {2}}, "the output is random"},
      {{"squeeze", {{2, 3}}, {{"dim", one}}, {2}}, "names an extent that is not 1"},
      {{"squeeze", {{}}, {{"dim", std::int64_t{0}}}, {}}, "0 is not a dim of a tensor with 0 dims"},
      {{"permute", {{2, 3}}, {{"dims", List{0, 0}}}, {2, 2}}, "names dim 0 twice"},
      {{"permute", {{2, 3}}, {{"dims", List{0}}}, {2}}, "does not name every dim once"},
      {{"narrow", {{5}}, {{"dim", std::int64_t{0}}, {"start", std::int64_t{3}}, {"length", std::int64_t{3}}}, {3}},
       "reach outside an extent of 5"},
      {{"reshape", {{2, 3}}, {{"shape", List{4}}}, {4}}, "[4] does not hold the elements of [2, 3]"},
      {{"concat", {{2, 3}, {3, 3}}, {{"dim", one}}, {2, 6}}, "ops[0].in[1]: has shape [3, 3], needs [2, 3]"},
      {{"sum", {{2, 3}}, {{"dim", std::int64_t{2}}}, {2}}, "args.dim: 2 is not a dim of a tensor with 2 dims"},
      {{"sum", {{2, 3}}, {{"dim", List{}}}, {2, 3}}, "names no dim to reduce"},
      {{"sum", {{2, 3}}, {{"dim", "some"}}, {}}, "must be a dim, a list of dims"},
      {{"max_reduce", {{2, 3}}, {{"dim", List{0, 1}}}, {}}, "must name one dim"},
      {{"matmul", {{2, 3}, {4, 5}}, {}, {2, 5}}, "cannot multiply [2, 3] by [4, 5]"},
      {{"matmul", {{2, 3}, {3, 5}}, {{"k", std::int64_t{4}}}, {2, 5}}, "args.k: says 4, the operands have 3"},
      {{"matmul", {{3}, {3, 5}}, {}, {5}}, "ops[0].in[0]: has shape [3], needs 2 to 8 dims"},
      {{"bmm", {{2, 3, 4}, {1, 4, 5}}, {}, {2, 3, 5}}, "the two batches differ"},
      {{"einsum", {{2, 3}, {4, 5}}, {{"equation", "ij,jk->ik"}}, {2, 5}}, "gives j two extents, 3 and 4"},
      {{"einsum", {{2, 3}}, {{"equation", "ii->i"}}, {2}}, "names i twice"},
      {{"einsum", {{2, 3}}, {{"equation", "ij"}}, {2, 3}}, "lacks '->'"},
      {{"einsum", {{2, 3}}, {{"equation", "ij->ik"}}, {2, 3}}, "has k in the result only"},
      {{"einsum", {{2, 3}}, {{"equation", "ij,jk->ik"}}, {2, 3}}, "has more operands than in"},
      {{"einsum", {{2, 3}}, {{"equation", "...ij->ij"}}, {2, 3}}, "has a character other than letters"},
      {{"linear", {{2, 3}}, {{"weight", "w"}}, {2, 4}, {{"w", {4, 5}}}}, "args.weight: has shape [4, 5], needs [4, 3]"},
      {{"conv2d", {{1, 3, 4, 4}}, {{"weight", "w"}}, {1, 2, 1, 1}, {{"w", {2, 3, 5, 5}}}},
       "kernel [5, 5] does not fit"},
      {{"conv2d", {{1, 3, 4, 4}}, {{"weight", "w"}}, {1, 2, 2, 2}, {{"w", {2, 4, 3, 3}}}},
       "does not fit 3 channels in 1 group(s)"},
      {{"conv2d", {{1, 3, 4, 4}}, {{"weight", "w"}, {"groups", std::int64_t{2}}}, {1, 2, 2, 2}, {{"w", {2, 3, 3, 3}}}},
       "does not divide 3 channels"},
      {{"conv2d", {{1, 3, 4, 4}}, {{"weight", "w"}, {"groups", std::int64_t{-1}}}, {1, 2, 2, 2}, {{"w", {2, 3, 3, 3}}}},
       "args.groups: is not positive"},
      {{"conv2d", {{1, 3, 4, 4}}, {{"weight", "w"}, {"stride", List{0, 1}}}, {1, 2, 2, 2}, {{"w", {2, 3, 3, 3}}}},
       "args.stride: 0 is outside [1, 2^20]"},
      {{"conv2d", {{1, 3, 4, 4}}, {{"weight", "w"}, {"stride", List{1}}}, {1, 2, 2, 2}, {{"w", {2, 3, 3, 3}}}},
       "args.stride: needs 2 numbers"},
      {{"conv_transpose1d", {{1, 3, 4}}, {{"weight", "w"}, {"output_padding", List{1}}}, {1, 2, 7}, {{"w", {3, 2, 3}}}},
       "must be below stride or dilation"},
      {{"max_pool1d", {{1, 3, 4}}, {{"kernel_size", List{2}}, {"padding", List{2}}}, {1, 3, 2}},
       "more than half the kernel"},
      {{"max_pool1d", {{1, 3, 4}}, {{"kernel_size", List{2}}, {"return_indices", true}}, {1, 3, 2}}, "must be false"},
      {{"avg_pool2d",
        {{1, 3, 4, 4}},
        {{"kernel_size", List{2, 2}}, {"divisor_override", std::int64_t{0}}},
        {1, 3, 2, 2}},
       "is not positive"},
      {{"layer_norm", {{2, 3}}, {{"normalized_shape", List{2}}}, {2, 3}}, "[2] is not the end of [2, 3]"},
      {{"layer_norm", {{2, 3}}, {{"normalized_shape", List{3}}, {"affine", true}}, {2, 3}},
       "does not agree with weight"},
      {{"group_norm", {{2, 6, 2}}, {{"num_groups", std::int64_t{4}}}, {2, 6, 2}}, "does not divide 6 channels"},
      {{"batch_norm", {{1, 3}}, {}, {1, 3}}, "one value for each channel"},
      {{"batch_norm", {{4, 3}}, {{"training", false}}, {4, 3}}, "no running statistics"},
      {{"mse_loss", {{2, 3}, {2, 1}}, {}, {}}, "ops[0].in[1]: has shape [2, 1], needs [2, 3]"},
      {{"mse_loss", {{2, 3}, {2, 3}}, {{"reduction", "none"}}, {}}, "'none' is not one of 'mean', 'sum'"},
      {{"cross_entropy", {{6, 5}, {6}}, {}, {}}, "has type float32, needs int64"},
      {{"softmaxx", {{2}}, {}, {2}}, "there is no operation 'softmaxx'; near: 'softmax'"},
  };
  for (const Refused& r : refused) {
    CAPTURE(r.use.op);
    CAPTURE(r.text);
    const std::string what = refusal(r.use);
    CAPTURE(what);
    CHECK(what.find(r.text) != std::string::npos);
    CHECK(what.find("task 'test/" + r.use.op + "': ops[0]") != std::string::npos);
  }
}
