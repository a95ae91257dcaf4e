#include "kevin/tasks/graph.hpp"

#include <doctest/doctest.h>

#include <limits>
#include <string>

#include "kevin/core/error.hpp"

using kevin::Distribution;
using kevin::Error;
using kevin::Shape;
using kevin::Task;
using kevin::tasks::check_task;
using kevin::tasks::Gaps;
using kevin::tasks::Graph;

namespace {

Task chain() {
  Task task{.id = "test/chain",
            .name = "Chain",
            .inputs = {{.name = "x", .shape = {2, 3}}},
            .parameters = {{.name = "p", .shape = {3}}},
            .ops = {},
            .outputs = {},
            .tolerance = {},
            .flags = {},
            .notes = {}};
  task.ops = {{"mul_parameter", {{"parameter", "p"}}, {"x"}, "a", {2, 3}}, {"relu", {}, {"a"}, "b", {2, 3}}};
  task.outputs = {{.name = "b", .shape = {2, 3}}};
  return task;
}

}  // namespace

TEST_CASE("a graph numbers inputs, parameters and results, and knows their shapes") {
  Task task = chain();
  const Graph graph(task);
  REQUIRE(graph.values().size() == 4);
  CHECK(graph.values()[1].shape == Shape{3});
  CHECK(graph.values()[3].shape == Shape{2, 3});
  REQUIRE(graph.steps().size() == 2);
  CHECK(graph.steps()[0].operands == std::vector<std::size_t>{0, 1});
  CHECK(graph.steps()[1].operands == std::vector<std::size_t>{2});
  CHECK(graph.steps()[1].last_use == std::vector<std::size_t>{2});
  CHECK(graph.outputs() == std::vector<std::size_t>{3});
}

TEST_CASE("gaps are filled from inference and nothing else is changed") {
  Task task = chain();
  task.ops[1].out_shape = {};
  task.outputs[0].shape = {};
  Gaps gaps;
  gaps.op_shapes.insert(1);
  gaps.output_shapes.insert(0);
  const Graph graph(task, gaps);
  CHECK(task == chain());
  CHECK(graph.outputs().size() == 1);
}

TEST_CASE("a task made by hand is checked like one that was read") {
  CHECK_NOTHROW(check_task(chain()));
  Task task = chain();
  task.ops[1].out_shape = {};
  CHECK_THROWS_WITH_AS(check_task(task),
                       "bad_input: task 'test/chain': ops[1].out_shape: lists [], the result has [2, 3] ('relu')",
                       Error);
  CHECK_THROWS_WITH_AS(check_task(Task{}), "bad_input: task '': id: must be 1 to 128 characters without spaces", Error);
  task = chain();
  task.inputs[0].distribution.b = std::numeric_limits<double>::quiet_NaN();
  CHECK_THROWS_AS(check_task(task), Error);
  task = chain();
  task.inputs[0].distribution.a = -std::numeric_limits<double>::infinity();
  CHECK_THROWS_AS(check_task(task), Error);
  task = chain();
  task.tolerance.absolute = std::numeric_limits<double>::quiet_NaN();
  CHECK_THROWS_AS(check_task(task), Error);
  task = chain();
  task.ops[0] = {"mul_scalar", {{"value", std::numeric_limits<double>::infinity()}}, {"x"}, "a", {2, 3}};
  CHECK_THROWS_AS(check_task(task), Error);
}

TEST_CASE("a value of another type than real numbers can only be used where that makes sense") {
  Task task = chain();
  task.inputs[0].dtype = kevin::DType::int64;
  task.inputs[0].distribution = {.kind = Distribution::Kind::integer, .a = 0, .b = 5};
  CHECK_NOTHROW(check_task(task));  // integers times a float32 parameter are float32
  task.parameters[0].dtype = kevin::DType::int64;
  task.parameters[0].distribution = task.inputs[0].distribution;
  CHECK_THROWS_WITH_AS(check_task(task), doctest::Contains("ops[0]: has no operand of a real type"), Error);
  task = chain();
  task.parameters[0].dtype = kevin::DType::float64;
  CHECK_THROWS_WITH_AS(check_task(task), doctest::Contains("ops[0]: mixes float32 and float64"), Error);
}

TEST_CASE("numbers of dims, ops and names are bounded") {
  Task task = chain();
  while (task.ops.size() < 1024)
    task.ops.push_back({"relu", {}, {task.ops.back().out}, "t" + std::to_string(task.ops.size()), {2, 3}});
  task.outputs[0].name = task.ops.back().out;
  CHECK_NOTHROW(check_task(task));
  task.ops.push_back({"relu", {}, {task.ops.back().out}, "last", {2, 3}});
  CHECK_THROWS_WITH_AS(check_task(task), doctest::Contains("ops: must be 1 to 1024"), Error);
  task = chain();
  task.ops = {{"unsqueeze", {{"dim", std::int64_t{0}}}, {"x"}, "a", {1, 2, 3}}};
  task.inputs[0].shape = {1, 1, 1, 1, 1, 1, 2, 3};
  task.outputs[0].name = "a";
  CHECK_THROWS_WITH_AS(check_task(task), doctest::Contains("ops[0]: has more than 8 dims"), Error);
}
