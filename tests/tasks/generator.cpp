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

TEST_CASE("the same seed gives the same tasks on every machine: the digest of forty in both sizes is this one") {
  const Generator generator(7);
  std::uint64_t digest = 0xcbf29ce484222325U;  // FNV-1a over their JSON
  for (std::uint64_t i = 0; i < 40; ++i) {
    for (const char* preset : {"", "small"}) {
      for (const char c : kevin::tasks::write_task(generator.task(i, preset)).dump())
        digest = (digest ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
    }
  }
  CHECK(digest == 0xb40961f4245c8192U);  // whoever changes a rule changes the tasks that people have results for
}

TEST_CASE("a generated task is one heavy operator and two to five others, and large enough to be timed") {
  const Generator generator(9);
  const std::set<std::string> heavy = {"linear",           "matmul",           "bmm",
                                       "conv1d",           "conv2d",           "conv3d",
                                       "conv_transpose1d", "conv_transpose2d", "conv_transpose3d"};
  std::set<std::string> first;
  for (std::uint64_t i = 0; i < 200; ++i) {
    const Task task = generator.task(i);
    CAPTURE(task.id);
    CHECK(task.ops.size() >= 3);
    CHECK(task.ops.size() <= 6);
    first.insert(task.ops[0].op);
    for (std::size_t k = 0; k < task.ops.size(); ++k) CHECK(heavy.contains(task.ops[k].op) == (k == 0));
    CHECK(kevin::tasks::least_eager_milliseconds(task) >= 0.15);
    for (const kevin::Op& op : task.ops) CHECK(kevin::element_count(op.out_shape) <= std::int64_t{1} << 28);
  }
  CHECK(first == heavy);
}

TEST_CASE("the least time of a step is that of its bytes or, for products, of its operations") {
  Task task = kevin::tasks::find("kernelbench/l1/19");  // ReLU of 4096 x 393216
  CHECK(kevin::tasks::least_eager_milliseconds(task) == doctest::Approx(4096.0 * 393216 * 8 / 4.8e12 * 1e3));
  task = kevin::tasks::find("kernelbench/l1/1");  // 4096 x 4096 times the same
  CHECK(kevin::tasks::least_eager_milliseconds(task) == doctest::Approx(2 * 4096.0 * 4096 * 4096 / 494.5e12 * 1e3));
  CHECK(kevin::tasks::least_eager_milliseconds(task, {.bytes_per_second = 1e9}) ==
        doctest::Approx(3 * 4096.0 * 4096 * 4 / 1e9 * 1e3));
}

TEST_CASE("generated tasks run, infer the shapes they compute, and refuse what is lazy but not what is rounded") {
  const Generator generator(11);
  for (std::uint64_t i = 0; i < 40; ++i) {
    const Task task = generator.task(i, "small");
    CAPTURE(task.id);
    CAPTURE(task.name);
    const kevin::tasks::Reference reference(task);
    const auto inputs = reference.draw_inputs(1);
    const auto parameters = reference.draw_parameters(1);
    const torch::Tensor e = reference.forward(inputs, parameters)[0];
    CHECK(e.sizes() == at::IntArrayRef(task.outputs[0].shape));
    CHECK(torch::isfinite(e).all().item<bool>());
    CHECK(share_outside(torch::zeros_like(e), e, task.tolerance) > 0.1);
    CHECK(share_outside(e.mean().expand_as(e), e, task.tolerance) > 0.1);
    for (std::int64_t d = 0; d < e.dim(); ++d) {
      if (e.size(d) > 1) CHECK(share_outside(e.mean(d, true).expand_as(e), e, task.tolerance) > 0.1);
    }
    const torch::Tensor other = reference.forward(reference.draw_inputs(2), parameters)[0];
    CHECK(share_outside(other, e, task.tolerance) > 0.1);
    CHECK(share_outside(e.to(torch::kFloat16), e, task.tolerance) > 0.01);
    const auto others = reference.draw_parameters(2);
    for (std::size_t k = 0; k < parameters.size(); ++k) {  // none cancels out
      CAPTURE(task.parameters[k].name);
      auto changed = parameters;
      changed[k] = others[k];
      CHECK(share_outside(reference.forward(inputs, changed)[0], e, task.tolerance) > 0.01);
    }

    auto wide_inputs = inputs;
    auto wide_parameters = parameters;
    for (auto* list : {&wide_inputs, &wide_parameters}) {
      for (torch::Tensor& t : *list) t = t.to(torch::kFloat64);
    }
    kevin::Tolerance tenth = task.tolerance;
    tenth.relative /= 10;
    tenth.spread /= 10;
    CHECK(share_outside(e, reference.forward(wide_inputs, wide_parameters)[0], tenth) == 0);
  }
}

TEST_CASE("an id has one way to be written") {
  using kevin::tasks::GeneratedId;
  using kevin::tasks::parse_generated_id;
  CHECK(parse_generated_id("generated/7/12@small") == GeneratedId{7, 12, true});
  CHECK(parse_generated_id("generated/18446744073709551615/0") == GeneratedId{18446744073709551615U, 0, false});
  for (const char* text : {"generated/07/1", "generated/7/01", "generated/+7/1", "generated/7/1 ", "generated/7/1/",
                           "generated/18446744073709551616/0", "generated//1", "Generated/7/1", ""}) {
    CAPTURE(text);
    CHECK_FALSE(parse_generated_id(text).has_value());
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
