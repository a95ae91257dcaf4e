#include "kevin/tasks/generator.hpp"

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>

#include <doctest/doctest.h>

#include "kevin/core/error.hpp"
#include "kevin/refine/task.hpp"
#include "kevin/tasks/reference.hpp"
#include "kevin/tasks/suite.hpp"
#include "kevin/tasks/task_file.hpp"
#include "kevin/tasks/task_json.hpp"

using kevin::Task;
using kevin::tasks::Generator;

namespace {

/// Share of elements outside the tolerance.
double share_outside(const torch::Tensor& wrong, const torch::Tensor& expected, const kevin::Tolerance& t) {
  const torch::Tensor e = expected.to(torch::kFloat64);
  const torch::Tensor allowed = t.absolute + t.relative * e.abs() + t.spread * e.std(/*unbiased=*/false);
  return ((wrong.to(torch::kFloat64) - e).abs() > allowed).to(torch::kFloat64).mean().item<double>();
}

}  // namespace

TEST_CASE("a generated task is a function of seed and index") {
  const Generator one(7);
  const Generator again(7);
  const Generator other(8);
  std::size_t differ = 0;
  for (std::uint64_t i = 0; i < 50; ++i) {
    CHECK(one.task(i) == again.task(i));
    CHECK(one.task(i).id == "generated/7/" + std::to_string(i));
    differ += one.task(i).ops != other.task(i).ops;
  }
  CHECK(differ > 45);
  CHECK(kevin::tasks::find("generated/7/12") == one.task(12));
  CHECK(kevin::tasks::find("generated/7/12@small") == one.task(12, "small"));
}

TEST_CASE("no generated task repeats a sequence of KernelBench's") {
  const Generator generator(3);
  CHECK(generator.excluded().size() > 150);
  for (const char* id : {"kernelbench/l1/19", "kernelbench/l2/1", "kernelbench/l2/100"})
    CHECK(generator.excluded().contains(kevin::tasks::step_sequence(kevin::tasks::find(id))));
  std::set<std::string> seen;
  for (std::uint64_t i = 0; i < 200; ++i) {
    const std::string sequence = kevin::tasks::step_sequence(generator.task(i));
    CHECK_FALSE(generator.excluded().contains(sequence));
    seen.insert(sequence);
  }
  CHECK(seen.size() > 150);
}

TEST_CASE("a small generated task has the operations of the large one and survives a round trip through JSON") {
  const Generator generator(5);
  for (std::uint64_t i = 0; i < 30; ++i) {
    const Task full = generator.task(i);
    const Task small = generator.task(i, "small");
    CHECK(kevin::tasks::step_sequence(full) == kevin::tasks::step_sequence(small));
    CHECK(kevin::tasks::parse_tasks(kevin::tasks::write_task(full).dump()).at(0) == full);
    CHECK(kevin::tasks::parse_tasks(kevin::tasks::write_task(small).dump()).at(0) == small);
  }
}

TEST_CASE("generated tasks run, infer the shapes they compute, and refuse zeros, a mean and another input's output") {
  const Generator generator(11);
  for (std::uint64_t i = 0; i < 20; ++i) {
    const Task task = generator.task(i, "small");
    CAPTURE(task.id);
    CAPTURE(task.name);
    const kevin::tasks::Reference reference(task);
    const auto parameters = reference.draw_parameters(1);
    const torch::Tensor e = reference.forward(reference.draw_inputs(1), parameters)[0];
    const torch::Tensor other = reference.forward(reference.draw_inputs(2), parameters)[0];
    CHECK(e.sizes() == at::IntArrayRef(task.outputs[0].shape));
    CHECK(torch::isfinite(e).all().item<bool>());
    CHECK(share_outside(torch::zeros_like(e), e, task.tolerance) > 0.1);
    CHECK(share_outside(e.mean().expand_as(e), e, task.tolerance) > 0.1);
    CHECK(share_outside(other, e, task.tolerance) > 0.1);
  }
}

TEST_CASE("what is no id or preset of a generated task is refused with a hint") {
  for (const char* id : {"generated/", "generated/7", "generated/x/1", "generated/7/-1", "generated/7/1@large",
                         "generated/7/99999999999999999999999"}) {
    CAPTURE(id);
    CHECK_THROWS_WITH_AS(static_cast<void>(kevin::tasks::find(id)), doctest::Contains("generated/7/12@small"),
                         kevin::Error);
  }
  CHECK_THROWS_AS(static_cast<void>(Generator(1).task(0, "large")), kevin::Error);
}
