#include "kevin/tasks/suite.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "kevin/core/error.hpp"
#include "kevin/refine/signature.hpp"
#include "kevin/tasks/reference.hpp"

using kevin::Error;
using kevin::ErrorCode;
using kevin::Task;
using kevin::tasks::Reference;

namespace {

/// |candidate - expected| over what the tolerance allows, element by element, in float64.
torch::Tensor badness(const torch::Tensor& candidate, const torch::Tensor& expected, const kevin::Tolerance& t) {
  const torch::Tensor c = candidate.to(torch::kFloat64);
  const torch::Tensor e = expected.to(torch::kFloat64);
  return (c - e).abs() / (t.absolute + t.relative * e.abs() + t.spread * e.std(false));
}

/// Share of the elements that are wrong under the task's tolerance.
double wrong_share(const torch::Tensor& candidate, const torch::Tensor& expected, const kevin::Tolerance& t) {
  return (badness(candidate, expected, t) > 1).to(torch::kFloat64).mean().item<double>();
}

std::vector<torch::Tensor> in_float64(const std::vector<torch::Tensor>& tensors) {
  std::vector<torch::Tensor> wide;
  for (const auto& t : tensors) wide.push_back(t.is_floating_point() ? t.to(torch::kFloat64) : t);
  return wide;
}

}  // namespace

TEST_CASE("KernelBench's levels 1 and 2 are there, 100 tasks each, at full shape and in the small preset") {
  const std::vector<std::string> ids = kevin::tasks::ids();
  const std::set<std::string> known(ids.begin(), ids.end());
  CHECK(known.size() == ids.size());
  for (const char* level : {"kernelbench/l1/", "kernelbench/l2/"}) {
    for (int number = 1; number <= 100; ++number) {
      CHECK(known.contains(level + std::to_string(number)));
      CHECK(known.contains(level + std::to_string(number) + "@small"));
    }
  }
  CHECK(kevin::tasks::all().size() == ids.size());  // each record has the presets that the list names
  for (std::size_t i = 0; i < ids.size(); ++i) CHECK(kevin::tasks::all()[i].id == ids[i]);
}

TEST_CASE("a KernelBench task has KernelBench's shapes, distributions and tolerance") {
  const Task relu = kevin::tasks::find("kernelbench/l1/19");
  CHECK(relu.inputs[0].shape == kevin::Shape{4096, 393216});
  CHECK(relu.inputs[0].distribution == kevin::Distribution{});  // uniform in [0, 1)
  CHECK(relu.tolerance == kevin::Tolerance{1e-4, 1e-4});
  const Task fused = kevin::tasks::find("kernelbench/l2/2");
  CHECK(fused.outputs[0].shape == kevin::Shape{128, 64, 256, 256});
  CHECK(fused.parameters[0].distribution.b == doctest::Approx(0.0416667));  // fan-in 576
  CHECK(fused.parameters[1].distribution.b == doctest::Approx(0.0416667));
  CHECK(kevin::tasks::find("kernelbench/l2/2@small").inputs[0].shape.size() == 4);
}

TEST_CASE("every KernelBench task runs in the small preset and gives the shapes and types that were inferred") {
  for (const Task& task : kevin::tasks::all()) {
    if (!task.id.starts_with("kernelbench/") || !task.id.ends_with("@small")) continue;
    CAPTURE(task.id);
    const Reference reference(task);
    const auto outputs = reference.forward(reference.draw_inputs(1), reference.draw_parameters(1));
    REQUIRE(outputs.size() == task.outputs.size());
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      CHECK(outputs[i].sizes() == at::IntArrayRef(task.outputs[i].shape));
      CHECK((outputs[i].scalar_type() == kevin::tasks::scalar_type(task.outputs[i].dtype)));
      CHECK(torch::isfinite(outputs[i]).all().item<bool>());
    }
    std::int64_t elements = 0;
    for (const auto& t : task.inputs) elements += kevin::element_count(t.shape);
    for (const auto& t : task.parameters) elements += kevin::element_count(t.shape);
    CHECK(elements < 1'100'000);  // suits a small machine
  }
}

TEST_CASE("a task is taken from a file by the file's name, and by its id where the file has several") {
  const std::string one = std::string(KEVIN_TEST_DATA_DIR) + "/examples/own_task.json";
  CHECK(kevin::tasks::find(one) == kevin::tasks::load_tasks(one)[0]);
  CHECK(kevin::tasks::find(one + "#" + kevin::tasks::find(one).id).id == kevin::tasks::find(one).id);
  CHECK_THROWS_WITH_AS((void)kevin::tasks::find(one + "#other"), doctest::Contains("has no task 'other'"), Error);
  CHECK_THROWS_WITH_AS((void)kevin::tasks::find("nothing.json"), doctest::Contains("cannot read the task file"), Error);
}

TEST_CASE("a task is found by its id") {
  const Task task = kevin::tasks::find("kevin/l1/23@small");
  CHECK(task.name == "Softmax");
  CHECK(task.outputs[0].shape == task.inputs[0].shape);
}

TEST_CASE("an id that is not there is not_found with what is near") {
  const auto what = [](const std::string& id) -> std::string {
    try {
      (void)kevin::tasks::find(id);
    } catch (const Error& e) {
      CHECK(e.code() == ErrorCode::not_found);
      return e.what();
    }
    return "found";
  };
  CHECK(what("kevin/l1/9").find("near: 'kevin/l1/9@small'; `evaluate --list` prints") != std::string::npos);
  CHECK(what("logsoftmax").find("'kevin/l1/24@small'") != std::string::npos);
  CHECK(what("softmax").find(" more; ") != std::string::npos);
  CHECK(what("kernelbench/l1/19@smal").find("'kernelbench/l1/19@small'") != std::string::npos);
  CHECK(what("").find("evaluate --list") != std::string::npos);
  CHECK(what(std::string(100000, 'x')).size() < 400);
}

TEST_CASE("every task's kernel can be declared") {
  for (const Task& task : kevin::tasks::all())
    CHECK(kevin::kernel_signature(task).starts_with("extern \"C\" void kernel(const "));
}

TEST_CASE("under every hardened task's tolerance lazy answers are wrong and rounding is far from it") {
  for (const Task& task : kevin::tasks::all()) {
    if (!task.id.starts_with("kevin/")) continue;
    CAPTURE(task.id);
    const Reference reference(task);
    for (const std::uint64_t seed : {101U, 202U, 303U}) {
      const auto inputs = reference.draw_inputs(seed);
      const auto parameters = reference.draw_parameters(seed);
      const torch::Tensor expected = reference.forward(inputs, parameters)[0];
      CHECK(torch::isfinite(expected).all().item<bool>());

      CHECK(wrong_share(torch::zeros_like(expected), expected, task.tolerance) > 0.25);
      CHECK(wrong_share(torch::full_like(expected, expected.mean().item<double>()), expected, task.tolerance) > 0.25);
      const torch::Tensor other = reference.forward(reference.draw_inputs(seed + 1), parameters)[0];
      CHECK(wrong_share(other, expected, task.tolerance) > 0.25);
      if (!task.parameters.empty()) {  // a kernel that ignores its parameters, or was written for others
        const torch::Tensor others = reference.forward(inputs, reference.draw_parameters(seed + 1))[0];
        CHECK(wrong_share(others, expected, task.tolerance) > 0.25);
      }
      for (const torch::Tensor& input : inputs) {  // a copy of an input, repeated where it is too short
        const std::int64_t times = expected.numel() / input.numel() + 1;
        const torch::Tensor copy =
            input.flatten().repeat({times}).slice(0, 0, expected.numel()).reshape(expected.sizes());
        CHECK(wrong_share(copy, expected, task.tolerance) > 0.25);
      }

      // the float32 reference against the same graph in float64 uses at most a tenth of what is allowed
      const torch::Tensor oracle = reference.forward(in_float64(inputs), in_float64(parameters))[0];
      CHECK(badness(expected, oracle, task.tolerance).max().item<double>() < 0.1);
    }
  }
}

TEST_CASE("half the precision is not enough for a task that multiplies matrices") {
  for (const char* id : {"kevin/l1/1@small", "kevin/l1/9@small", "kevin/l2/12@small", "kevin/l1/63@small"}) {
    CAPTURE(id);
    const Reference reference(kevin::tasks::find(id));
    auto inputs = reference.draw_inputs(7);
    const auto parameters = reference.draw_parameters(7);
    const torch::Tensor expected = reference.forward(inputs, parameters)[0];
    for (auto& t : inputs) t = t.to(torch::kBFloat16).to(torch::kFloat32);
    CHECK(wrong_share(reference.forward(inputs, parameters)[0], expected, reference.task().tolerance) > 0.5);
  }
}
