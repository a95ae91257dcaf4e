#include "kevin/agent/kernel_space.hpp"

#include <doctest/doctest.h>

#include <set>
#include <string>
#include <vector>

#include "agent/kernel_space/try_kernel.hpp"

using kevin::Op;
using kevin::Task;
using kevin::agent::kernel_space;
using kevin_test::make_task;
using kevin_test::tensor;

namespace {

const Op relu{"relu", {}, {"x"}, "t1", {4, 8}};
const Op softmax{"softmax", {{"dim", std::int64_t{1}}}, {"x"}, "t1", {4, 8}};
const Op linear{"linear", {{"weight", std::string("w")}}, {"x"}, "t1", {4, 6}};

Task of(Op op) { return make_task({tensor("x", {4, 8})}, {tensor("w", {6, 8})}, {std::move(op)}); }

/// Why there is no space.
std::string refusal(const Task& task) {
  try {
    (void)kernel_space(task);
  } catch (const kevin::Error& e) {
    CHECK(e.code() == kevin::ErrorCode::unsupported);
    return e.what();
  }
  return "none";
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::set<std::string> names(const kevin::agent::KernelSpace& space) {
  std::set<std::string> s;
  for (const auto& knob : space.knobs()) s.insert(knob.name);
  CHECK(s.size() == space.knobs().size());
  return s;
}

}  // namespace

TEST_CASE("the graph decides which family writes a task") {
  CHECK(kernel_space(of(relu)).family() == "elementwise");
  CHECK(kernel_space(of(softmax)).family() == "rows");
  CHECK(kernel_space(of({"softmax", {{"dim", std::int64_t{0}}}, {"x"}, "t1", {4, 8}})).family() == "columns");
  CHECK(kernel_space(of({"sum", {{"dim", std::string("all")}}, {"x"}, "t1", {}})).family() == "rows");
  CHECK(kernel_space(of(linear)).family() == "product");
}

TEST_CASE("a space has the knobs that matter to its task") {
  CHECK(names(kernel_space(of(relu))) ==
        std::set<std::string>{"width", "unroll", "block", "tail", "access", "precision", "threads"});
  CHECK(names(kernel_space(of({"tanh", {}, {"x"}, "t1", {4, 8}}))).contains("math"));
  CHECK(names(kernel_space(of(softmax))).contains("algorithm"));
  CHECK_FALSE(names(kernel_space(of(linear))).contains("chain"));
  Task chained = of(linear);
  chained.ops.push_back({"relu", {}, {"t1"}, "t2", {4, 6}});
  chained.outputs[0].name = "t2";
  CHECK(names(kernel_space(chained)).contains("chain"));
}

TEST_CASE("a space outlives its task and gives the same source for the same choice") {
  const auto space = kernel_space(of(softmax));
  const auto copy = space;
  const auto choices = space.choose({{"width", "8"}});
  CHECK(has(space.render(choices), "extern \"C\" void kernel(const float* __restrict__ x"));
  CHECK(space.render(choices) == copy.render(choices));
  CHECK(space.render(choices) != space.render(space.choose({})));
}

TEST_CASE("a task without a family is refused by name") {
  const std::string conv = refusal(of({"conv2d", {{"weight", std::string("w")}}, {"x"}, "t1", {4, 8}}));
  CHECK(has(conv, "test/kernel_space"));
  CHECK(has(conv, "conv2d"));
  CHECK(has(conv, "elementwise, rows, columns, product"));
  Task mixed = of(softmax);
  mixed.ops.push_back({"relu", {}, {"t1"}, "t2", {4, 8}});
  mixed.outputs[0].name = "t2";
  CHECK(has(refusal(mixed), "softmax, relu"));
}

TEST_CASE("what no template can write is refused with the reason") {
  Task task = of(relu);
  task.inputs[0].dtype = kevin::DType::float64;
  CHECK(has(refusal(task), "float64"));

  task = of(relu);
  task.outputs.push_back(tensor("t2", {4}));
  CHECK(has(refusal(task), "2 outputs"));

  task = of(relu);
  task.outputs.clear();
  CHECK(has(refusal(task), "0 outputs"));

  task = of(relu);
  task.ops.clear();
  CHECK(has(refusal(task), "graph is empty"));

  task = of(relu);
  task.outputs[0].name = "x";
  CHECK(has(refusal(task), "last step"));

  task = of(relu);
  task.inputs[0].shape = task.outputs[0].shape = task.ops[0].out_shape = {4, 0};
  CHECK(has(refusal(task), "no element"));

  task = of({"softplus", {{"beta", 2.0}}, {"x"}, "t1", {4, 8}});
  CHECK(has(refusal(task), "softplus"));
}

TEST_CASE("a task may name its tensors, and itself, as it likes") {
  // names that the templates use, that C++ uses, and of the output
  Task task = make_task({tensor("a", {5, 7}), tensor("out", {7, 9}), tensor("W", {5, 9})}, {tensor("begin", {9})},
                        {{"matmul", {}, {"a", "out"}, "t1", {5, 9}},
                         {"add_parameter", {{"parameter", std::string("begin")}}, {"t1"}, "t2", {5, 9}},
                         {"add_input", {}, {"t2", "W"}, "int", {5, 9}}});
  task.name = "ends here\n#error it does not \\";
  task.tolerance = {1e-4, 1e-4};
  kevin_test::KernelTrials trial(task, [](const std::vector<kevin_test::Numbers>& in) {
    kevin_test::Numbers out(45);
    for (std::size_t i = 0; i < 45; ++i) {
      out[i] = in[3][i % 9] + in[2][i];
      for (std::size_t k = 0; k < 7; ++k) out[i] += in[0][i / 9 * 7 + k] * in[1][k * 9 + i % 9];
    }
    return out;
  });
  CHECK(trial("threads=1") == "right");
  CHECK(trial("threads=2 pack=panels rows=4 chain=separate") == "right");
}
