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
  return (c - e).abs() / (t.absolute + t.relative * e.abs());
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

TEST_CASE("the suite has at least twelve tasks of both levels, each with its own id and a flag for its inputs") {
  std::set<std::string> ids;
  bool fused = false;
  for (const Task& task : kevin::tasks::all()) {
    CAPTURE(task.id);
    CHECK(ids.insert(task.id).second);
    const bool first = task.id.starts_with("kernelbench/l1/");
    const bool second = task.id.starts_with("kernelbench/l2/");
    CHECK((first || second));
    CHECK(task.id.ends_with("@small"));
    fused = fused || second;
    CHECK(std::find(task.flags.begin(), task.flags.end(), "normal_inputs") != task.flags.end());
    CHECK(task.notes.find("small preset") != std::string::npos);
  }
  CHECK(ids.size() >= 12);
  CHECK(fused);
}

TEST_CASE("a task is found by its id") {
  const Task task = kevin::tasks::find("kernelbench/l1/23@small");
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
  CHECK(what("kernelbench/l1/19").find("near: 'kernelbench/l1/19@small'; `evaluate --list` prints") !=
        std::string::npos);
  CHECK(what("softmax").find("'kernelbench/l1/23@small'") != std::string::npos);
  CHECK(what("kernelbench/l1/19@smal").find("'kernelbench/l1/19@small'") != std::string::npos);
  CHECK(what("").find("evaluate --list") != std::string::npos);
  CHECK(what(std::string(100000, 'x')).size() < 400);
}

TEST_CASE("every task's kernel can be declared") {
  for (const Task& task : kevin::tasks::all())
    CHECK(kevin::kernel_signature(task).starts_with("extern \"C\" void kernel(const float* "));
}

TEST_CASE("under every task's tolerance lazy answers are wrong and rounding is far from it") {
  for (const Task& task : kevin::tasks::all()) {
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
  for (const char* id :
       {"kernelbench/l1/1@small", "kernelbench/l1/9@small", "kernelbench/l2/12@small", "kernelbench/l1/63@small"}) {
    CAPTURE(id);
    const Reference reference(kevin::tasks::find(id));
    auto inputs = reference.draw_inputs(7);
    const auto parameters = reference.draw_parameters(7);
    const torch::Tensor expected = reference.forward(inputs, parameters)[0];
    for (auto& t : inputs) t = t.to(torch::kBFloat16).to(torch::kFloat32);
    CHECK(wrong_share(reference.forward(inputs, parameters)[0], expected, reference.task().tolerance) > 0.5);
  }
}

TEST_CASE("inputs of a task stay small enough for a verdict to be quick") {
  for (const Task& task : kevin::tasks::all()) {
    CAPTURE(task.id);
    std::int64_t bytes = 0;
    for (const auto& t : task.inputs) bytes += kevin::element_count(t.shape) * kevin::size_of(t.dtype);
    for (const auto& t : task.parameters) bytes += kevin::element_count(t.shape) * kevin::size_of(t.dtype);
    CHECK(bytes < 5 * 1000 * 1000);
  }
}
