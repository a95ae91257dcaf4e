#include "kevin/tasks/task_json.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "kevin/tasks/suite.hpp"

using kevin::Error;
using kevin::ErrorCode;
using kevin::Task;
using kevin::tasks::parse_tasks;
using kevin::tasks::read_task;
using kevin::tasks::write_task;
using nlohmann::json;

namespace {

json valid() {
  return json::parse(R"({
    "schema": "kevin.task/1", "id": "mine/one", "name": "One",
    "inputs": [{"name": "x", "shape": [4, 6], "dtype": "float32", "distribution": {"kind": "normal", "mean": 0, "std": 2}},
               {"name": "mask", "shape": [6], "dtype": "bool", "distribution": {"kind": "integer", "low": 0, "high": 2}}],
    "parameters": [{"name": "fc.weight", "shape": [3, 6], "init": {"kind": "uniform", "low": -0.5, "high": 0.5}},
                   {"name": "fc.bias", "shape": [3], "init": {"kind": "constant", "value": 0.25}}],
    "ops": [{"op": "mul_input", "args": {}, "in": ["x", "mask"], "out": "t1", "out_shape": [4, 6]},
            {"op": "linear", "args": {"weight": "fc.weight", "bias": "fc.bias"}, "in": ["t1"], "out": "t2", "out_shape": [4, 3]},
            {"op": "mul_scalar", "args": {"value": 2.0}, "in": ["t2"], "out": "t3", "out_shape": [4, 3]},
            {"op": "matmul", "args": {"transpose_b": true}, "in": ["t1", "param:fc.weight"], "out": "t4", "out_shape": [4, 3]},
            {"op": "add_tensor", "in": ["t3", "t4"], "out": "t5"}],
    "outputs": [{"name": "t5", "shape": [4, 3], "dtype": "float32"}],
    "tolerance": {"absolute": 1e-5, "relative": 1e-4},
    "flags": ["odd"], "notes": "For tests."
  })");
}

/// What reading `j` is refused with.
std::string refusal(const json& j) {
  try {
    (void)read_task(j);
  } catch (const Error& e) {
    CHECK(e.code() == ErrorCode::bad_input);
    return e.what();
  }
  return "accepted";
}

/// The valid task with the value at `pointer` replaced.
json with(const std::string& pointer, const json& value) {
  json j = valid();
  j[json::json_pointer(pointer)] = value;
  return j;
}

json without(const std::string& pointer) {
  json j = valid();
  const json::json_pointer p(pointer);
  j[p.parent_pointer()].erase(p.back());
  return j;
}

}  // namespace

TEST_CASE("a task is read as it is written") {
  const Task task = read_task(valid());
  CHECK(task.id == "mine/one");
  CHECK(task.inputs[1].dtype == kevin::DType::boolean);
  CHECK(task.inputs[0].distribution.b == 2);
  CHECK(task.parameters[1].distribution.kind == kevin::Distribution::Kind::constant);
  CHECK(std::get<double>(task.ops[2].args.at("value")) == 2.0);
  CHECK(std::get<bool>(task.ops[3].args.at("transpose_b")));
  CHECK(task.ops[4].out_shape == kevin::Shape{4, 3});
  CHECK(task.tolerance.absolute == 1e-5);
  CHECK(read_task(json::parse(write_task(task).dump())) == task);
}

TEST_CASE("every embedded task survives writing and reading") {
  for (const Task& task : kevin::tasks::all()) {
    CAPTURE(task.id);
    CHECK(read_task(json::parse(write_task(task).dump())) == task);
  }
}

TEST_CASE("what may be left out has the documented defaults") {
  const Task task = read_task(
      json::parse(R"({"schema": "kevin.task/1", "id": "a", "name": "A", "inputs": [{"name": "x", "shape": [2]}],
    "ops": [{"op": "clamp", "args": {"min": 0, "max": null}, "in": ["x"], "out": "y"}]})"));
  CHECK(task.inputs[0].dtype == kevin::DType::float32);
  CHECK(task.inputs[0].distribution == kevin::Distribution{});
  CHECK(task.outputs.size() == 1);
  CHECK(task.outputs[0].name == "y");
  CHECK(task.outputs[0].shape == kevin::Shape{2});
  CHECK(task.tolerance == kevin::Tolerance{});
  CHECK_FALSE(task.ops[0].args.contains("max"));
}

TEST_CASE("a tolerance's spread is read and written, and 0 when left out") {
  CHECK(read_task(valid()).tolerance.spread == 0);
  CHECK_FALSE(write_task(read_task(valid()))["tolerance"].contains("spread"));
  const Task task = read_task(with("/tolerance/spread", 1e-4));
  CHECK(task.tolerance == kevin::Tolerance{1e-5, 1e-4, 1e-4});
  CHECK(read_task(json::parse(write_task(task).dump())) == task);
  json j = valid();
  j["presets"]["wide"] = {{"tolerance", {{"absolute", 0}, {"relative", 1e-4}, {"spread", 0.5}}}};
  CHECK(read_task(j, "wide").tolerance == kevin::Tolerance{0, 1e-4, 0.5});
}

TEST_CASE("structures and scales of distributions are read and written") {
  json j = valid();
  j["inputs"][0] = json::parse(
      R"({"name": "x", "shape": [6, 6], "distribution": {"kind": "uniform", "low": 0, "high": 1, "random_scale": true, "structure": "upper"}})");
  j["ops"] = json::parse(R"([{"op": "matmul", "in": ["x", "x"], "out": "t5"}])");
  j.erase("outputs");
  const Task task = read_task(j);
  CHECK(task.inputs[0].distribution.structure == kevin::Distribution::Structure::upper);
  CHECK(task.inputs[0].distribution.random_scale);
  CHECK(read_task(json::parse(write_task(task).dump())) == task);
}

TEST_CASE("every deviation is refused with its place") {
  const std::int64_t huge = std::int64_t{1} << 62;
  const std::vector<std::pair<json, std::string>> refused = {
      {json(7), "task: must be an object"},
      {json::array(), "task: must be an object"},
      {without("/schema"), "task 'mine/one': lacks the key 'schema'"},
      {with("/schema", "kevin.task/2"), "schema: is 'kevin.task/2'; this release reads 'kevin.task/1'"},
      {with("/colour", "red"), "task 'mine/one': has an unknown key 'colour'"},
      {with("/input", "red"), "has an unknown key 'input'; near: 'inputs'"},
      {with("/id", 3), "task: id: must be a text"},
      {with("/id", ""), "id: must be 1 to 128 characters without spaces"},
      {with("/id", "a b"), "id: must be 1 to 128 characters without spaces"},
      {with("/name", "a\nb"), "name: must be 1 to 128 characters on one line"},
      {with("/inputs", json::object()), "inputs: must be an array"},
      {with("/inputs", json::array()), "inputs: must be 1 to 64"},
      {with("/inputs/0/name", "0x"), "inputs[0].name: '0x' is not a name"},
      {with("/inputs/0/name", "x;"), "inputs[0].name: 'x;' is not a name"},
      {with("/inputs/0/name", std::string(65, 'x')), "is not a name"},
      {with("/inputs/0/name", "float"), "inputs[0].name: 'float' is a C++ keyword"},
      {with("/inputs/1/name", "x"), "inputs[1].name: 'x' is taken"},
      {with("/inputs/0/shape", "4x6"), "inputs[0].shape: must be an array"},
      {with("/inputs/0/shape/0", 4.0), "inputs[0].shape[0]: must be an integer"},
      {with("/inputs/0/shape/0", -4), "inputs[0].shape: extent -4 is not positive"},
      {with("/inputs/0/shape/0", 0), "inputs[0].shape: extent 0 is not positive"},
      {with("/inputs/0/shape/0", huge), "inputs[0].shape: shape [4611686018427387904, 6] has more than 2^40 elements"},
      {with("/inputs/0/shape", json{1 << 30, 1 << 30, 1 << 30}), "has more than 2^40 elements"},
      {with("/inputs/0/shape/0", 18446744073709551615U), "inputs[0].shape[0]: is too large"},
      {with("/inputs/0/shape", json{1, 1, 1, 1, 1, 1, 1, 1, 1}), "inputs[0].shape: has more than 8 dims"},
      {with("/inputs/0/dtype", "float23"), "inputs[0].dtype: there is no element type 'float23'; near: 'float32'"},
      {with("/inputs/0/distribution", "normal"), "inputs[0].distribution: must be an object"},
      {with("/inputs/0/distribution/kind", "cauchy"), "inputs[0].distribution.kind: there is no kind 'cauchy'"},
      {with("/inputs/0/distribution/low", 1), "inputs[0].distribution: of kind 'normal' has no 'low'"},
      {without("/inputs/0/distribution/std"), "inputs[0].distribution: lacks the key 'std'"},
      {with("/inputs/0/distribution/std", 0), "inputs[0].distribution: needs std > 0"},
      {with("/inputs/0/distribution/std", 1e300), "has a number that is not finite or above 1e9"},
      {with("/inputs/0/distribution/structure", "diagonal"),
       "inputs[0].distribution.structure: there is no structure 'diagonal'"},
      {with("/inputs/0/distribution/structure", "symmetric"),
       "inputs[0].distribution: needs a square for its structure"},
      {with("/inputs/1/distribution/structure", "upper"), "which needs a real type"},
      {with("/inputs/1/distribution/high", 3), "inputs[1].distribution: does not give 0 and 1"},
      {with("/inputs/1/distribution", json{{"kind", "uniform"}, {"low", 0}, {"high", 1}}),
       "does not give values of type bool"},
      {with("/parameters/0/distribution", json::object()), "parameters[0]: has an unknown key 'distribution'"},
      {with("/parameters/1/name", "fc.weight"), "parameters[1].name: 'fc.weight' is taken"},
      {with("/parameters/0/init/high", -0.5), "parameters[0].init: needs low < high"},
      {with("/ops", json::array()), "ops: must be 1 to 1024"},
      {with("/ops/1/op", "lineer"), "ops[1].op: there is no operation 'lineer'; near: 'linear'"},
      {with("/ops/1/in/0", "t7"), "ops[1].in[0]: 't7' is not defined before ('linear')"},
      {with("/ops/1/in/0", "t2"), "ops[1].in[0]: 't2' is not defined before"},
      {with("/ops/1/in/0", 3), "ops[1].in[0]: must be a text"},
      {with("/ops/1/in", json::array()), "ops[1].in: has 0 operand(s), needs 1"},
      {with("/ops/3/in/1", "param:nothing"), "ops[3].in[1]: 'param:nothing' is not a parameter"},
      {with("/ops/3/in/1", "param:x"), "ops[3].in[1]: 'param:x' is not a parameter"},
      {with("/ops/1/args/weight", "nothing"), "ops[1].args.weight: 'nothing' is not a parameter"},
      {with("/ops/1/args/weight", 1), "ops[1].args.weight: must be the name of a parameter"},
      {with("/ops/1/args/wait", 1), "ops[1].args: does not know 'wait'; near: 'weight'"},
      {with("/ops/1/args", json::array()), "ops[1].args: must be an object"},
      {with("/ops/2/args/value", json::object()),
       "ops[2].args.value: must be a flag, a number, a text or a list of integers"},
      {with("/ops/2/args/value", json{1.5}), "ops[2].args.value[0]: must be an integer"},
      {with("/ops/2/args/value", true), "ops[2].args.value: must be a finite number"},
      {with("/ops/2/out", "t1"), "ops[2].out: 't1' is taken"},
      {with("/ops/2/out", "x"), "ops[2].out: 'x' is taken"},
      {with("/ops/2/out", ""), "ops[2].out: '' is not a name"},
      {with("/ops/1/out_shape/1", 4), "ops[1].out_shape: lists [4, 4], the result has [4, 3] ('linear')"},
      {with("/ops/1/colour", 4), "ops[1]: has an unknown key 'colour'"},
      {with("/ops/4/in/1", "t3"), "ops[3].out: 't4' is never used"},
      {with("/outputs/0/name", "x"), "outputs[0].name: 'x' is not the out of an op"},
      {with("/outputs/0/name", "t9"), "outputs[0].name: 't9' is not the out of an op"},
      {with("/outputs/1", json{{"name", "t5"}}), "outputs[1].name: 't5' is listed twice"},
      {with("/outputs/0/shape/0", 3), "outputs[0].shape: lists [3, 3], the result has [4, 3]"},
      {with("/outputs/0/dtype", "float64"), "outputs[0].dtype: lists float64, the result has float32"},
      {with("/outputs", json::array()), "outputs: must be 1 to 64"},
      {with("/tolerance/absolute", -1), "tolerance.absolute: must lie in [0, 1]"},
      {with("/tolerance/relative", "small"), "tolerance.relative: must be a number"},
      {with("/tolerance/spread", 1.5), "tolerance.spread: must lie in [0, 1]"},
      {with("/tolerance/spread", -1e-4), "tolerance.spread: must lie in [0, 1]"},
      {with("/tolerance/spread", "wide"), "tolerance.spread: must be a number"},
      {without("/tolerance/absolute"), "tolerance: lacks the key 'absolute'"},
      {with("/tolerance/relativ", 0.1), "tolerance: has an unknown key 'relativ'; near: 'relative'"},
      {with("/flags/0", 3), "flags[0]: must be a text"},
      {with("/flags/0", ""), "flags[0]: must be 1 to 64 characters"},
      {with("/notes", json::array()), "notes: must be a text"},
      {with("/notes", std::string(5000, 'x')), "notes: must be at most 4096 bytes"},
  };
  for (const auto& [j, text] : refused) {
    CAPTURE(text);
    const std::string what = refusal(j);
    CAPTURE(what);
    CHECK(what.find(text) != std::string::npos);
  }
}

TEST_CASE("a task with presets stands for itself and for each of them: other shapes, and all else inferred") {
  json j = valid();
  j["presets"]["small"] = {{"shapes", {{"x", {2, 5}}, {"mask", {5}}, {"fc.weight", {3, 5}}}}};
  j["presets"]["loose"] = {{"tolerance", {{"absolute", 0.5}, {"relative", 0}}}, {"args", {{"t3", {{"value", 4.0}}}}}};
  CHECK(read_task(j) == read_task(valid()));
  const Task small = read_task(j, "small");
  CHECK(small.id == "mine/one@small");
  CHECK(small.inputs[0].shape == kevin::Shape{2, 5});
  CHECK(small.ops[0].out_shape == kevin::Shape{2, 5});
  CHECK(small.outputs[0].shape == kevin::Shape{2, 3});
  CHECK(small.tolerance == read_task(valid()).tolerance);
  const Task loose = read_task(j, "loose");
  CHECK(loose.tolerance.absolute == 0.5);
  CHECK(std::get<double>(loose.ops[2].args.at("value")) == 4.0);
  CHECK(loose.outputs[0].shape == kevin::Shape{4, 3});
  const std::vector<Task> tasks = parse_tasks(j.dump());
  REQUIRE(tasks.size() == 3);
  CHECK(tasks[0] == read_task(valid()));
  CHECK((tasks[1] == loose || tasks[1] == small));
  CHECK(read_task(json::parse(write_task(small).dump())) == small);
}

TEST_CASE("a preset that does not fit is refused with its place") {
  const auto what = [](const json& preset, const std::string& name = "small") {
    json j = valid();
    j["presets"][name] = preset;
    try {
      (void)parse_tasks(j.dump());
    } catch (const Error& e) {
      CHECK(e.code() == ErrorCode::bad_input);
      return std::string(e.what());
    }
    return std::string("accepted");
  };
  CHECK(what(json::object()) == "accepted");
  CHECK(what({{"shapes", {{"y", {2}}}}}).find("presets.small.shapes.y: is of no input and no parameter") !=
        std::string::npos);
  CHECK(what({{"shapes", {{"x", {2, 5}}}}}).find("ops[0]") != std::string::npos);
  CHECK(what({{"shapes", {{"x", "big"}}}}).find("presets.small.shapes.x: must be an array") != std::string::npos);
  CHECK(what({{"args", {{"t9", json::object()}}}}).find("presets.small.args.t9: is of no op") != std::string::npos);
  CHECK(what({{"args", {{"t3", {{"value", "x"}}}}}}).find("ops[2]") != std::string::npos);
  CHECK(what({{"size", 3}}).find("presets.small: has an unknown key 'size'") != std::string::npos);
  CHECK(what(3).find("presets.small: must be an object") != std::string::npos);
  CHECK(what(json::object(), "Small!").find("needs a name of 1 to 32 small letters") != std::string::npos);
  json j = valid();
  j["id"] = "mine@home";
  j["presets"]["small"] = json::object();
  CHECK_THROWS_WITH_AS((void)parse_tasks(j.dump()), doctest::Contains("the id has an '@' already"), Error);
}

TEST_CASE("fan_in bounds a parameter by PyTorch's default rule, in every preset by its own shape") {
  json j = with("/parameters/0/init", {{"kind", "uniform"}, {"fan_in", "fc.weight"}});
  j["parameters"][1]["init"] = {{"kind", "uniform"}, {"fan_in", "fc.weight"}};
  j["presets"]["wide"] = {{"shapes", {{"x", {2, 25}}, {"mask", {25}}, {"fc.weight", {3, 25}}}}};
  const double bound = 1 / std::sqrt(6.0);
  CHECK(read_task(j).parameters[0].distribution.a == -bound);
  CHECK(read_task(j).parameters[1].distribution.b == bound);
  CHECK(read_task(j, "wide").parameters[1].distribution.b == 0.2);
  j["parameters"][0]["init"]["fan_in"] = "fc.bias";
  CHECK(refusal(j).find("parameters[0].init.fan_in: 'fc.bias' has fewer than two dims") != std::string::npos);
  j["parameters"][0]["init"]["fan_in"] = "nothing";
  CHECK(refusal(j).find("parameters[0].init.fan_in: 'nothing' is not a parameter") != std::string::npos);
  j["parameters"][0]["init"] = {{"kind", "uniform"}, {"fan_in", "fc.weight"}, {"low", 0}};
  CHECK(refusal(j).find("has no 'low'") != std::string::npos);
  j["parameters"][0]["init"] = {{"kind", "normal"}, {"fan_in", "fc.weight"}, {"mean", 0}, {"std", 1}};
  CHECK(refusal(j).find("has no 'fan_in'") != std::string::npos);
}

TEST_CASE("an error quotes hostile text briefly and without control characters") {
  const std::string what = refusal(with("/ops/1/op", "\x1b[31m" + std::string(100000, 'x')));
  CHECK(what.size() < 300);
  CHECK(what.find('\x1b') == std::string::npos);
}

TEST_CASE("products that overflow 64 bits are refused wherever they arise") {
  CHECK(
      refusal(
          json::parse(
              R"({"schema": "kevin.task/1", "id": "a", "name": "A", "inputs": [{"name": "x", "shape": [1099511627776, 1]}, {"name": "y", "shape": [1, 1099511627776]}],
    "ops": [{"op": "add_input", "in": ["x", "y"], "out": "z"}]})"))
          .find("has more than 2^40 elements") != std::string::npos);
  CHECK(
      refusal(
          json::parse(
              R"({"schema": "kevin.task/1", "id": "a", "name": "A", "inputs": [{"name": "x", "shape": [1, 1099511627776, 1]}],
    "parameters": [{"name": "w", "shape": [1, 1099511627776, 1]}],
    "ops": [{"op": "conv1d", "args": {"weight": "w", "groups": 1099511627776}, "in": ["x"], "out": "z"}]})"))
          .find("args.groups: makes too many channels") != std::string::npos);
  CHECK(
      refusal(
          json::parse(
              R"({"schema": "kevin.task/1", "id": "a", "name": "A", "inputs": [{"name": "x", "shape": [1, 1, 1099511627776]}],
    "parameters": [{"name": "w", "shape": [1, 1, 1]}],
    "ops": [{"op": "conv_transpose1d", "args": {"weight": "w", "stride": [1048576]}, "in": ["x"], "out": "z"}]})"))
          .find("result is too large") != std::string::npos);
}
