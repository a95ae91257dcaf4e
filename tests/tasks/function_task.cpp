#include "kevin/tasks/function_task.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "kevin/refine/describe.hpp"
#include "kevin/tasks/reference.hpp"
#include "kevin/tasks/task_json.hpp"

using kevin::DType;
using kevin::Error;
using kevin::ErrorCode;
using kevin::Task;
using kevin::tasks::Reference;
using kevin::tasks::task_from_function;
using kevin::tasks::Tensors;

namespace {

Task frame() {
  return {.id = "mine/scale",
          .name = "Scale",
          .inputs = {{.name = "x", .shape = {4, 6}, .distribution = {kevin::Distribution::Kind::normal, 0, 1}}},
          .parameters = {{.name = "weight", .shape = {6}}}};
}

torch::Tensor scaled(const Tensors& in, const Tensors& p) { return torch::relu(in[0]) * p[0]; }

/// What making a task of `function` is refused with.
template <class F>
std::string refusal(F function, ErrorCode code, Task task = frame()) {
  try {
    (void)task_from_function(std::move(task), std::move(function), "");
  } catch (const Error& e) {
    CHECK(e.code() == code);
    return e.what();
  }
  return "accepted";
}

/// Keeps its promise to nobody.
struct Strange final : kevin::ExternalReference {
  Strange() : ExternalReference("nothing\n") {}
};

}  // namespace

TEST_CASE("a function is a reference, and its outputs are found by running it") {
  const Task task = task_from_function(frame(), scaled, "out = max(x, 0) * weight");
  REQUIRE(task.outputs.size() == 1);
  CHECK((task.outputs[0] == kevin::TensorSpec{.name = "y", .shape = {4, 6}}));
  const Reference reference(task);
  const Tensors x = reference.draw_inputs(3);
  const Tensors w = reference.draw_parameters(3);
  CHECK(torch::equal(reference.forward(x, w)[0], torch::relu(x[0]) * w[0]));
  CHECK(reference.graph().steps().empty());
  // the same in float64, as an oracle of rounding
  CHECK(
      (reference.forward({x[0].to(torch::kFloat64)}, {w[0].to(torch::kFloat64)})[0].scalar_type() == torch::kFloat64));
  CHECK(Task(task) == task);
}

TEST_CASE("a function may take the inputs alone, and give several outputs of other types") {
  Task task = frame();
  task.parameters.clear();
  const Task two = task_from_function(
      task,
      [](const Tensors& in) {
        return Tensors{in[0].sum(1), in[0].argmax(1)};
      },
      "row sums, and where the maxima are");
  REQUIRE(two.outputs.size() == 2);
  CHECK((two.outputs[0] == kevin::TensorSpec{.name = "y0", .shape = {4}}));
  CHECK((two.outputs[1] == kevin::TensorSpec{.name = "y1", .shape = {4}, .dtype = DType::int64}));
  CHECK(kevin::kernel_signature(two).find("float* out0, long long* out1") != std::string::npos);

  task.outputs = {{.name = "total", .shape = {}}};  // listed: not run before it is used
  const Task one = task_from_function(
      task, [](const Tensors& in) { return in[0].sum(); }, "the sum");
  CHECK((one.outputs == task.outputs));
}

TEST_CASE("an agent reads the description in place of a graph") {
  const Task task = task_from_function(frame(), scaled, "out = max(x, 0) * weight\n\nweight along the last dim");
  CHECK(kevin::describe(task) ==
        "# Scale\n"
        "def reference(x, weight):\n"
        "    # x: float32 [4, 6], normal, mean 0, std 1\n"
        "    # weight: float32 [6], a learned parameter\n"
        "    # out = max(x, 0) * weight\n"
        "    #\n"
        "    # weight along the last dim\n"
        "# out receives what it returns: float32 [4, 6]\n"
        "# correct when every element has |out - expected| <= 1e-04 + 1e-04 * |expected|\n");
}

TEST_CASE("what is expected shares no memory with the operands and is contiguous, whatever the function gives") {
  Task task = frame();
  task.parameters.clear();
  const Reference same(task_from_function(
      task, [](const Tensors& in) { return in[0]; }, "a copy"));
  const Tensors x = same.draw_inputs(1);
  CHECK_FALSE(same.forward(x, {})[0].is_alias_of(x[0]));
  CHECK(torch::equal(same.forward(x, {})[0], x[0]));
  const Reference turned(task_from_function(
      task, [](const Tensors& in) { return in[0].t(); }, "transposed"));
  CHECK(turned.forward(x, {})[0].is_contiguous());
  CHECK_FALSE(turned.forward(x, {})[0].is_alias_of(x[0]));
}

TEST_CASE("a function that breaks its promises is refused with what it did") {
  CHECK(refusal([](const Tensors& in) { return in[0].relu_(); }, ErrorCode::bad_input) ==
        "bad_input: task 'mine/scale': the reference changes 'x' in place; a reference may not");
  CHECK(refusal([](const Tensors& in) { return torch::rand_like(in[0]); }, ErrorCode::bad_input)
            .find("gives another output 0 when it is run again") != std::string::npos);
  const auto count = std::make_shared<std::atomic<int>>(0);
  CHECK(refusal([count](const Tensors& in) { return in[0] * ++*count; }, ErrorCode::bad_input)
            .find("gives another output 0") != std::string::npos);
  CHECK(refusal([](const Tensors&) { return Tensors{}; }, ErrorCode::bad_input).find("gives no output") !=
        std::string::npos);
  CHECK(refusal([](const Tensors&) { return torch::Tensor(); }, ErrorCode::bad_input).find("gives no tensor") !=
        std::string::npos);
  CHECK(refusal([](const Tensors& in) { return torch::complex(in[0], in[0]); }, ErrorCode::bad_input)
            .find("gives output 0 as ComplexFloat, which no task has") != std::string::npos);
  CHECK(refusal([](const Tensors& in) { return torch::matmul(in[0], in[0]); }, ErrorCode::unsupported)
            .find("task 'mine/scale': the reference failed: mat1 and mat2 shapes cannot be multiplied") !=
        std::string::npos);
  CHECK(refusal([](const Tensors&) -> torch::Tensor { throw std::runtime_error("no\nway"); }, ErrorCode::unsupported) ==
        "unsupported: task 'mine/scale': the reference failed: no");
  CHECK(refusal([](const Tensors&) -> torch::Tensor { throw Error(ErrorCode::resource, "own words"); },
                ErrorCode::resource) == "resource: own words");
}

TEST_CASE("outputs that the task lists are held against what the function gives, at each run") {
  Task task = frame();
  task.parameters.clear();
  task.outputs = {{.name = "total", .shape = {3}}};
  const Reference reference(task_from_function(
      task, [](const Tensors& in) { return in[0].sum(); }, ""));
  CHECK_THROWS_WITH_AS(
      (void)reference.forward(reference.draw_inputs(1), {}),
      "bad_input: task 'mine/scale': the reference gives output 'total' of shape [], the task lists [3]", Error);
  task.outputs = {{.name = "a", .shape = {}}, {.name = "b", .shape = {}}};
  const Reference two(task_from_function(
      task, [](const Tensors& in) { return in[0].sum(); }, ""));
  CHECK_THROWS_WITH_AS((void)two.forward(two.draw_inputs(1), {}),
                       doctest::Contains("gives 1 output(s), the task lists 2"), Error);
}

TEST_CASE("a task that is wrong apart from its function is refused before the function runs") {
  const auto never = [](const Tensors&) -> torch::Tensor { throw std::runtime_error("was called"); };
  Task task = frame();
  task.inputs[0].shape = {4, 0};
  CHECK(refusal(never, ErrorCode::bad_input, task).find("inputs[0].shape: extent 0 is not positive") !=
        std::string::npos);
  task = frame();
  task.ops = {{"relu", {}, {"x"}, "y", {4, 6}}};
  CHECK(refusal(never, ErrorCode::bad_input, task).find("ops: and a reference that is no graph exclude each other") !=
        std::string::npos);
  task = frame();
  task.outputs = {{.name = "y", .shape = {2}}, {.name = "y", .shape = {2}}};
  CHECK(refusal(never, ErrorCode::bad_input, task).find("outputs[1].name: 'y' is listed twice") != std::string::npos);
}

TEST_CASE("no file can hold a function, and a reference that is no Program cannot be run") {
  CHECK_THROWS_WITH_AS((void)kevin::tasks::write_task(task_from_function(frame(), scaled, "")),
                       doctest::Contains("its reference is a function of a program"), Error);
  Task task = frame();
  task.outputs = {{.name = "y", .shape = {4, 6}}};
  task.external = std::make_shared<const Strange>();
  CHECK_THROWS_WITH_AS((void)Reference(task), doctest::Contains("is no kevin::tasks::Program"), Error);
}

TEST_CASE("given values are what a tensor is always drawn as, and have its size") {
  Task task = frame();
  const std::vector<float> values = {1, 2, 3, 4, 5, 6};
  const auto* bytes = reinterpret_cast<const std::byte*>(values.data());
  task.parameters[0].distribution.kind = kevin::Distribution::Kind::given;
  task.parameters[0].values =
      std::make_shared<const std::vector<std::byte>>(bytes, bytes + sizeof(float) * values.size());
  const Task whole = task_from_function(task, scaled, "");
  const Reference reference(whole);
  for (const std::uint64_t seed : {1U, 2U})
    CHECK(torch::equal(reference.draw_parameters(seed)[0], torch::tensor(values)));
  CHECK(kevin::describe(whole).find("weight: float32 [6], a learned parameter with fixed values") != std::string::npos);

  task.parameters[0].shape = {5};
  CHECK(refusal(scaled, ErrorCode::bad_input, task).find("parameters[0].init: has given values of another size") !=
        std::string::npos);
  task.parameters[0].shape = {6};
  task.parameters[0].distribution.random_scale = true;
  CHECK(refusal(scaled, ErrorCode::bad_input, task).find("which given values cannot have") != std::string::npos);
  task.parameters[0].distribution = {};
  CHECK(refusal(scaled, ErrorCode::bad_input, task).find("given values do not belong together") != std::string::npos);
  task.parameters[0].distribution.kind = kevin::Distribution::Kind::given;
  task.parameters[0].values.reset();
  CHECK(refusal(scaled, ErrorCode::bad_input, task).find("given values do not belong together") != std::string::npos);
}
