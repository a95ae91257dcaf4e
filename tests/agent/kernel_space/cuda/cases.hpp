#ifndef KEVIN_TESTS_AGENT_KERNEL_SPACE_CUDA_CASES_HPP
#define KEVIN_TESTS_AGENT_KERNEL_SPACE_CUDA_CASES_HPP

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "kevin/refine/task.hpp"
#include "kevin/refine/verdict.hpp"

/// Tasks of awkward sizes for the CUDA kernel spaces, and which choices cannot be right for them. Without a GPU their
/// sources are compiled; with one they are judged.
namespace kevin_test {

struct WrongChoice {
  std::string words;  ///< "tail=past width=4"; all else as the default
  kevin::Stage stage;
};

struct SpaceCase {
  std::string name;
  kevin::Task task;
  std::vector<WrongChoice> wrong;
  std::vector<std::string> unmixed{};  ///< options that are right by themselves and may not be with others
};

inline kevin::TensorSpec normal(std::string name, kevin::Shape shape) {
  return {std::move(name), std::move(shape), kevin::DType::float32, {kevin::Distribution::Kind::normal, 0, 1}};
}

inline kevin::Task space_task(std::vector<kevin::TensorSpec> inputs, std::vector<kevin::TensorSpec> parameters,
                              std::vector<kevin::Op> ops, kevin::Tolerance tolerance = {1e-5, 1e-4}) {
  kevin::Task task;
  task.id = "test/cuda_space";
  task.name = "CUDA space";
  task.inputs = std::move(inputs);
  task.parameters = std::move(parameters);
  task.outputs = {normal(ops.back().out, ops.back().out_shape)};
  task.ops = std::move(ops);
  task.tolerance = tolerance;
  return task;
}

/// What holds for every task: a block of 2048 threads cannot be launched, CUDA has no vector of 8, eight bits of
/// mantissa do not suffice.
inline std::vector<WrongChoice> wrong_anywhere(std::vector<WrongChoice> more = {}) {
  more.push_back({"threads=2048", kevin::Stage::run});
  more.push_back({"precision=bfloat16", kevin::Stage::correctness});
  return more;
}
inline std::vector<WrongChoice> wrong_with_vectors(std::vector<WrongChoice> more = {}) {
  more.push_back({"width=8", kevin::Stage::compile});
  return wrong_anywhere(std::move(more));
}

inline std::vector<SpaceCase> elementwise_cases() {
  using kevin::Stage;
  const kevin::Shape shape{9, 37};  // 333 elements: no vector ends where they do
  const std::vector<WrongChoice> sizes = {{"tail=past", Stage::run},
                                          {"width=4 tail=past", Stage::run},
                                          {"width=4 tail=ignore", Stage::correctness},
                                          {"width=4 tail=overlap", Stage::run},  // a misaligned address
                                          {"width=2 unroll=2 tail=ignore walk=stride", Stage::correctness}};
  std::vector<WrongChoice> coarse = sizes;
  coarse.push_back({"math=coarse", Stage::correctness});
  const kevin::Shape grid{2, 3, 5, 8};
  return {{"one function", space_task({normal("x", shape)}, {}, {{"silu", {}, {"x"}, "t1", shape}}),
           wrong_with_vectors(coarse)},
          {"no function", space_task({normal("x", shape)}, {}, {{"neg", {}, {"x"}, "t1", shape}}),
           wrong_with_vectors(sizes)},
          {"operands along any dims, vectors within rows",
           space_task({normal("x", grid), normal("y", {2, 1, 5, 1}), normal("z", {8})}, {normal("scale", {3, 1, 1})},
                      {{"mul_input", {}, {"x", "y"}, "t1", grid},
                       {"mul_parameter", {{"parameter", std::string("scale")}}, {"t1"}, "t2", grid},
                       {"add_input", {}, {"t2", "z"}, "t3", grid},
                       {"gelu", {{"approximate", std::string("none")}}, {"t3"}, "t4", grid}}),
           wrong_with_vectors({{"tail=past", Stage::run}, {"math=coarse", Stage::correctness}})},
          {"vectors across rows",
           space_task({normal("x", {7, 37}), normal("y", {37}), normal("z", {7, 1})}, {},
                      {{"add_input", {}, {"x", "y"}, "t1", {7, 37}}, {"mul_input", {}, {"t1", "z"}, "t2", {7, 37}}}),
           wrong_with_vectors({{"tail=past", Stage::run},
                               {"width=2 tail=ignore", Stage::correctness},
                               {"width=2 tail=overlap", Stage::run}})}};
}

inline std::vector<SpaceCase> line_cases() {
  using kevin::Stage;
  const auto rows = [](const std::string& op, kevin::Shape out, std::int64_t dim = 1) {
    return space_task({normal("x", {256, 1003})}, {}, {{op, {{"dim", dim}}, {"x"}, "t1", std::move(out)}},
                      {1e-6, 1e-4});
  };
  // 1003 is odd: rows begin between vectors. Threads that do not wait read what others have not written yet.
  const std::vector<WrongChoice> odd = {{"sync=missing", Stage::correctness},
                                        {"width=4 tail=ignore", Stage::run},
                                        {"width=2 tail=past team=warp", Stage::run}};
  std::vector<WrongChoice> softmax = odd;
  softmax.push_back({"math=coarse", Stage::correctness});
  softmax.push_back({"tail=past", Stage::run});
  std::vector<WrongChoice> sum = odd;
  sum.push_back({"tail=past", Stage::run});  // reads behind the last row, where nothing is
  kevin::Task layer_norm = space_task({normal("x", {256, 7, 32})}, {normal("w", {7, 32}), normal("b", {7, 32})},
                                      {{"layer_norm",
                                        {{"normalized_shape", std::vector<std::int64_t>{7, 32}},
                                         {"weight", std::string("w")},
                                         {"bias", std::string("b")}},
                                        {"x"},
                                        "t1",
                                        {256, 7, 32}}});
  kevin::Task norm = space_task({normal("x", {256, 1003})}, {},
                                {{"vector_norm", {{"dim", std::int64_t{1}}, {"keepdim", true}}, {"x"}, "t1", {256, 1}},
                                 {"div_tensor", {}, {"x", "t1"}, "t2", {256, 1003}}},
                                {1e-6, 1e-4});
  kevin::Task dot = space_task({normal("A", {256, 1003}), normal("B", {1003, 1})}, {},
                               {{"matmul", {}, {"A", "B"}, "t1", {256, 1}}}, {1e-3, 1e-4});
  const std::vector<WrongChoice> columns = {
      {"sync=missing", Stage::correctness}, {"tail=ignore", Stage::correctness}, {"tail=past", Stage::run}};
  kevin::Task sum_rows = rows("sum", {256});
  sum_rows.tolerance = {1e-3, 1e-4};
  kevin::Task rms = space_task({normal("x", {4, 301, 67})}, {},
                               {{"rms_norm", {{"dim", std::int64_t{1}}}, {"x"}, "t1", {4, 301, 67}}});
  kevin::Task softmax_columns =
      space_task({normal("x", {4, 301, 67})}, {}, {{"softmax", {{"dim", std::int64_t{1}}}, {"x"}, "t1", {4, 301, 67}}},
                 {1e-6, 1e-4});
  kevin::Task max = space_task({normal("x", {4, 301, 67})}, {},
                               {{"max_reduce", {{"dim", std::int64_t{1}}}, {"x"}, "t1", {4, 67}}}, {1e-6, 1e-6});
  std::vector<WrongChoice> softmax_in_columns = columns;
  softmax_in_columns.push_back({"math=coarse", Stage::correctness});
  return {{"softmax", rows("softmax", {256, 1003}), wrong_with_vectors(softmax)},
          {"sum", sum_rows, wrong_with_vectors(sum)},
          {"layer norm with weight and bias", layer_norm,
           wrong_with_vectors({{"sync=missing", Stage::correctness}, {"tail=past", Stage::run}})},
          {"division by a norm", norm,
           wrong_with_vectors({{"sync=missing", Stage::correctness}, {"tail=past", Stage::run}})},
          {"matrix times vector", dot, wrong_with_vectors(sum)},
          {"rms norm along columns", rms, wrong_anywhere(columns)},
          {"softmax along columns", softmax_columns, wrong_anywhere(softmax_in_columns)},
          {"greatest of columns", max, wrong_anywhere(columns)}};
}

inline std::vector<SpaceCase> product_cases() {
  using kevin::Stage;
  const std::vector<WrongChoice> any = {{"micro=1x1", Stage::run},  // 4096 threads
                                        {"width=8", Stage::compile},
                                        {"engine=tf32", Stage::correctness},  // 11 bits of each factor
                                        {"engine=half", Stage::correctness},
                                        {"precision=bfloat16", Stage::correctness},
                                        {"sync=missing", Stage::correctness},
                                        {"tail=past", Stage::run}};
  const auto with = [&](std::vector<WrongChoice> more) {
    more.insert(more.end(), any.begin(), any.end());
    return more;
  };
  const std::vector<std::string> unmixed = {"micro=2x2"};
  const std::vector<WrongChoice> odd = with({{"width=2", Stage::run}, {"width=4", Stage::run}});  // misaligned
  const auto product = [](kevin::Shape a, kevin::Shape b, bool transpose_a, bool transpose_b) {
    const kevin::Shape out{a[transpose_a ? 1 : 0], b[transpose_b ? 0 : 1]};
    return space_task({normal("A", std::move(a)), normal("B", std::move(b))}, {},
                      {{"matmul", {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}}, {"A", "B"}, "t1", out}},
                      {1e-3, 1e-4});
  };
  const auto weight = [](kevin::Shape shape) {
    kevin::TensorSpec t = normal("w", std::move(shape));
    t.distribution.b = 0.125;
    return t;
  };
  const kevin::Shape fused{131, 72};
  kevin::Task chain =
      space_task({normal("x", {131, 96}), normal("y", {131, 1})}, {weight({72, 96}), normal("b", {72})},
                 {{"linear", {{"weight", std::string("w")}, {"bias", std::string("b")}}, {"x"}, "t1", fused},
                  {"mul_input", {}, {"t1", "y"}, "t2", fused},
                  {"sigmoid", {}, {"t2"}, "t3", fused},
                  {"add_tensor", {}, {"t3", "t1"}, "t4", fused}},
                 {1e-4, 1e-4});
  kevin::Task softmax = space_task({normal("x", {131, 64})}, {weight({77, 64})},
                                   {{"linear", {{"weight", std::string("w")}}, {"x"}, "t1", {131, 77}},
                                    {"gelu", {{"approximate", std::string("none")}}, {"t1"}, "t2", {131, 77}},
                                    {"softmax", {{"dim", std::int64_t{1}}}, {"t2"}, "t3", {131, 77}}},
                                   {1e-6, 1e-4});
  return {{"odd extents", product({127, 253}, {253, 191}, false, false), odd, unmixed},
          {"left transposed", product({253, 127}, {253, 191}, true, false), odd, unmixed},
          {"right transposed", product({127, 253}, {191, 253}, false, true), odd, unmixed},
          {"a fused chain", chain, with({{"math=coarse", Stage::correctness}}), unmixed},
          {"a softmax behind it", softmax, with({{"math=coarse", Stage::correctness}}), unmixed}};
}

}  // namespace kevin_test

#endif  // KEVIN_TESTS_AGENT_KERNEL_SPACE_CUDA_CASES_HPP
