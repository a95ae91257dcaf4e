#include "kevin/tasks/module_task.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "kevin/agent/kernel_space.hpp"
#include "kevin/refine/describe.hpp"
#include "kevin/tasks/reference.hpp"
#include "kevin/tasks/suite.hpp"
#include "module_archives.hpp"

using kevin::Error;
using kevin::ErrorCode;
using kevin::Task;
using kevin::tasks::find;
using kevin::tasks::Reference;
using kevin::tasks::Tensors;
using nlohmann::json;

namespace {

module_archives::Folder& folder() {
  static module_archives::Folder f;
  return f;
}

/// The task of a file whose module is `m` and which says `more`.
Task task_of(const torch::jit::Module& m, const json& more = json::object()) {
  m.save(folder().path("m.pt"));
  json j = module_archives::file("m.pt");
  j.update(more);
  return find(folder().write("m.json", j));
}

/// The task of a module without tensors.
Task plain_task(const std::string& forward, const json& more = json::object()) {
  return task_of(module_archives::plain(forward), more);
}

template <class Make>
std::string refusal(Make make, ErrorCode code = ErrorCode::bad_input) {
  try {
    (void)make();
  } catch (const Error& e) {
    CHECK(e.code() == code);
    return e.what();
  }
  return "accepted";
}

bool has(const std::string& text, const std::string& part) {
  INFO(text);
  const bool found = text.find(part) != std::string::npos;
  CHECK(found);
  return found;
}

torch::Tensor linear(const torch::Tensor& x, const Tensors& p) {
  return torch::relu(torch::matmul(x, p[0].t()) + p[1]) * p[2] * 2.5;
}

}  // namespace

TEST_CASE(
    "a TorchScript archive and a small file are a task: parameters and buffers from the archive, outputs from a run") {
  const Task task = task_of(module_archives::linear());
  REQUIRE(task.parameters.size() == 3);
  CHECK(task.parameters[0].name == "fc.weight");
  CHECK(task.parameters[0].shape == kevin::Shape{3, 4});
  CHECK(task.parameters[1].name == "fc.bias");
  CHECK(task.parameters[2].name == "scale");
  CHECK((task.outputs == std::vector<kevin::TensorSpec>{{.name = "y", .shape = {5, 3}}}));

  const Reference reference(task);
  const Tensors x = reference.draw_inputs(1);
  const Tensors p = reference.draw_parameters(1);
  CHECK(torch::equal(p[1], torch::tensor({0.5F, -0.25F, 0.125F})));
  CHECK(torch::equal(p[0], reference.draw_parameters(2)[0]));
  CHECK(torch::allclose(reference.forward(x, p)[0], linear(x[0], p)));
  // what the module computes with is what it is given, not what the archive holds
  const Tensors other = {torch::randn({3, 4}), torch::randn({3}), torch::randn({3})};
  CHECK(torch::allclose(reference.forward(x, other)[0], linear(x[0], other)));
  CHECK(torch::allclose(reference.forward(x, p)[0], linear(x[0], p)));
  const Tensors wide = {p[0].to(torch::kFloat64), p[1].to(torch::kFloat64), p[2].to(torch::kFloat64)};
  CHECK((reference.forward({x[0].to(torch::kFloat64)}, wide)[0].scalar_type() == torch::kFloat64));
}

TEST_CASE("an agent reads the module as one flat function of the kernel's arguments") {
  const Task task = task_of(module_archives::linear());
  const std::string text = kevin::describe(task);
  has(text, "def reference(x, fc_weight, fc_bias, scale):\n");
  has(text, "    # fc_weight: float32 [3, 4], a learned parameter with fixed values\n");
  has(text, "torch.matmul(x, torch.t(fc_weight))");
  has(text, "2.5");
  CHECK(text.find("100") == std::string::npos);  // the branch of training mode
  CHECK(text.find("self") == std::string::npos);
  has(text, "# out receives what it returns: float32 [5, 3]\n");
  has(kevin::kernel_signature(task),
      "(const float* x, const float* fc_weight, const float* fc_bias, const float* scale, float* out)");

  const Task told = task_of(module_archives::linear(), {{"description", "A linear layer\nand more"}});
  has(kevin::describe(told), "    # A linear layer\n    # and more\n# out receives");
  const Task trained = task_of(module_archives::linear(), {{"training", true}});
  has(kevin::describe(trained), "100");
  const Reference reference(trained);
  const Tensors p = reference.draw_parameters(1);
  CHECK(torch::allclose(reference.forward({torch::zeros({5, 4})}, p)[0], linear(torch::full({5, 4}, 100.0F), p)));
}

TEST_CASE("an init in the file makes a parameter random, and the others keep the archive's values") {
  const Task task = task_of(module_archives::linear(),
                            {{"parameters",
                              {{{"name", "fc.weight"}, {"init", {{"kind", "uniform"}, {"fan_in", "fc.weight"}}}},
                               {{"name", "fc.bias"}, {"shape", {3}}, {"dtype", "float32"}}}}});
  CHECK(task.parameters[0].distribution.b == doctest::Approx(0.5));
  const Reference reference(task);
  CHECK_FALSE(torch::equal(reference.draw_parameters(1)[0], reference.draw_parameters(2)[0]));
  CHECK(torch::equal(reference.draw_parameters(1)[1], torch::tensor({0.5F, -0.25F, 0.125F})));

  // written and read again it is the same but for its pointers
  const std::string copy = folder().write("copy.json", json(kevin::tasks::write_task(task)));
  const Task again = find(copy);
  CHECK((again.parameters[0] == task.parameters[0]));
  CHECK((*again.parameters[2].values == *task.parameters[2].values));
  CHECK((again.outputs == task.outputs));
  CHECK(kevin::describe(again) == kevin::describe(task));

  const auto refused = [](const json& parameter) {
    return refusal([&] { return task_of(module_archives::linear(), {{"parameters", {parameter}}}); });
  };
  has(refused({{"name", "fc.weigth"}}),
      "m.json: task 'mine/module': parameters[0].name: the module has no parameter and no buffer 'fc.weigth'; near: "
      "'fc.weight'");
  has(refused({{"name", "fc.bias"}, {"shape", {4}}}), "parameters[0].shape: lists [4], the module has [3]");
  has(refused({{"name", "fc.bias"}, {"dtype", "int32"}}), "parameters[0].dtype: lists int32, the module has float32");
}

TEST_CASE("presets are other shapes of the inputs, each with the outputs that it gives") {
  module_archives::linear().save(folder().path("m.pt"));
  json j = module_archives::file("m.pt");
  j["presets"]["small"]["shapes"]["x"] = {2, 4};
  folder().write("m.json", j);
  const Task small = find(folder().path("m.json") + "#mine/module@small");
  CHECK(small.outputs[0].shape == kevin::Shape{2, 3});
  has(refusal([] {
        return task_of(module_archives::linear(), {{"presets", {{"small", {{"shapes", {{"fc.bias", {2}}}}}}}}});
      }),
      "presets.small.shapes.fc.bias: is of no input and no parameter");
}

TEST_CASE("tuples and lists of tensors are several outputs, and outputs may have names of the user's") {
  const Task two = plain_task("def forward(self, x):\n    return x + 1.0, x.argmax(1)\n",
                              {{"outputs", {{{"name", "next"}}, {{"name", "where"}}}}});
  CHECK((two.outputs == std::vector<kevin::TensorSpec>{{.name = "next", .shape = {5, 4}},
                                                       {.name = "where", .shape = {5}, .dtype = kevin::DType::int64}}));
  has(kevin::describe(two), "# out1 receives result 1: int64 [5]\n");
  const Task list = plain_task("def forward(self, x):\n    return [x, x * 2.0]\n");
  CHECK(list.outputs.size() == 2);
  has(refusal([] { return plain_task("def forward(self, x):\n    return {'a': x}\n"); }),
      "the module's forward gives a GenericDict where a tensor is needed");
  has(refusal([] { return plain_task("def forward(self, x):\n    return x, 3\n"); }), "gives a Int where a tensor");
  has(refusal([] {
        return plain_task("def forward(self, x):\n    return x\n", {{"outputs", {{{"name", "y"}, {"shape", {2}}}}}});
      }),
      "gives output 0 as float32 [5, 4], the task lists float32 [2]");
}

TEST_CASE("a module that is no function of its operands is refused") {
  has(refusal([] { return plain_task("def forward(self, x):\n    return x + torch.rand([4])\n"); }),
      "module: is random (aten::rand)");
  has(refusal([] { return plain_task("def forward(self, x):\n    return torch.dropout(x, 0.5, True)\n"); }),
      "module: is random (aten::dropout)");
  CHECK(plain_task("def forward(self, x):\n    return torch.dropout(x, 0.5, False)\n").outputs.size() == 1);
  has(refusal([] { return plain_task("def forward(self, x):\n    return x.relu_()\n"); }),
      "the reference changes 'x' in place");
  torch::jit::Module counting("Counting");
  counting.register_attribute("calls", c10::FloatType::get(), 0.0);
  counting.define("def forward(self, x):\n    self.calls = self.calls + 1.0\n    return x * self.calls\n");
  has(refusal([&] { return task_of(counting); }), "gives another output 0 when it is run again");
  torch::jit::Module table("Table");
  table.register_parameter("weight", torch::ones({4}), false);
  table.define("def forward(self, x):\n    self.weight.add_(1.0)\n    return x * self.weight\n");
  has(refusal([&] { return task_of(table); }), "changes 'weight' in place");
}

TEST_CASE("in training mode a module may write to its buffers, which are copied for each call") {
  torch::jit::Module norm("Norm");
  norm.register_buffer("mean", torch::zeros({4}));
  norm.register_buffer("num_batches_tracked", torch::zeros({}, torch::kInt64));
  norm.register_attribute("training", c10::BoolType::get(), true);
  norm.define(
      "def forward(self, x):\n    assert x.dim() == 2, 'rank'\n    if self.training:\n        "
      "self.num_batches_tracked.add_(1)\n        "
      "self.mean.add_(x.mean(0))\n    return x - self.mean\n");
  const Task task = task_of(norm, {{"training", true}});
  REQUIRE(task.parameters.size() == 1);  // the count is nobody's business
  const Reference reference(task);
  const Tensors x = reference.draw_inputs(1);
  const Tensors p = reference.draw_parameters(1);
  for (int i = 0; i < 3; ++i) CHECK(torch::allclose(reference.forward(x, p)[0], x[0] - x[0].mean(0)));
  CHECK(torch::equal(p[0], torch::zeros({4})));
  CHECK(task_of(norm).parameters.size() == 1);
  const std::string text = kevin::describe(task_of(norm, {{"training", true}}));
  CHECK(text.find("num_batches_tracked") == std::string::npos);
  CHECK(text.find("rank") == std::string::npos);  // a check that only throws
}

TEST_CASE("what the code holds beside parameters is shown where it is small, and refused where it is not") {
  torch::jit::Module m("Plain");
  m.define("def forward(self, x):\n    return x * torch.tensor([1.0, 2.0, 4.0, 8.0])\n");
  has(kevin::describe(task_of(m)), "    # CONSTANTS.c0: Float [4], values 1 2 4 8\n");
  // a large one that the code computes is shown as the code
  has(kevin::describe(plain_task("def forward(self, x):\n    return x.sum() + torch.arange(0, 1000)\n")),
      "torch.arange(0, 1000)");
  const auto traced = [](const torch::Tensor& constant) {  // as torch.jit.trace keeps tensors that are no buffers
    torch::jit::Module t = module_archives::plain("def forward(self, x):\n    return x * 2.0\n");
    const std::shared_ptr<torch::jit::Graph> graph = t.get_method("forward").graph();
    for (torch::jit::Node* n : graph->nodes()) {
      if (n->kind() != c10::aten::mul) continue;
      const torch::jit::WithInsertPoint here(n);
      n->replaceInput(1, graph->insertConstant(constant));
    }
    return t;
  };
  const Task shown = task_of(traced(torch::tensor({1.0F, -2.5F, 3.0F, 0.0F})));
  has(kevin::describe(shown), "    # CONSTANTS.c0: Float [4], values 1 -2.5 3 0\n");
  CHECK(torch::equal(Reference(shown).forward({torch::ones({5, 4})}, {})[0][0],
                     torch::tensor({1.0F, -2.5F, 3.0F, 0.0F})));
  has(refusal([&] {
        return task_of(traced(torch::ones({5, 4})));
      }),
      "module: has a constant of 20 elements in its code, which no candidate can see");
  CHECK(task_of(traced(torch::ones({5, 4})), {{"description", "x times 1"}}).outputs.size() == 1);
  const Task named = [] {  // names that cannot be arguments of a kernel, and tied weights
    torch::jit::Module odd("Odd");
    const torch::Tensor weight = torch::ones({4});
    odd.register_parameter("_scale", weight, false);
    odd.register_parameter("tied", weight, false);
    odd.register_parameter("default", torch::zeros({4}), false);
    odd.define("def forward(self, x):\n    return x * self._scale + self.tied\n");
    return task_of(odd);
  }();
  REQUIRE(named.parameters.size() == 2);
  CHECK(named.parameters[0].name == "p__scale");
  CHECK(named.parameters[1].name == "p_default");
  CHECK(torch::equal(Reference(named).forward({torch::ones({5, 4})}, {torch::full({4}, 3.0F), torch::zeros({4})})[0],
                     torch::full({5, 4}, 6.0F)));
}

TEST_CASE("forward's own arguments are held against the inputs") {
  CHECK(plain_task("def forward(self, x, add: float=1.5):\n    return x + add\n").outputs.size() == 1);
  has(kevin::describe(find(folder().path("m.json"))), "1.5");
  has(refusal([] { return plain_task("def forward(self, x, y):\n    return x + y\n"); }),
      "inputs: are 1, the module's forward takes 2");
  has(refusal([] { return plain_task("def forward(self, s: float):\n    return torch.ones([2]) * s\n"); }),
      "inputs[0]: is a tensor, the module's forward takes 's' as float");
  has(refusal([] { return plain_task("def forward(self, x):\n    return torch.matmul(x, x)\n"); },
              ErrorCode::unsupported),
      "task 'mine/module': the reference failed: ");
}

TEST_CASE("a broken archive is bad_input, a missing one not_found, and a module in a text alone is refused") {
  const auto load = [](const json& more) {
    json j = module_archives::file("broken.pt");
    j.update(more);
    return find(folder().write("broken.json", j));
  };
  for (const std::string content : {"not a zip", "PK\x03\x04 cut", "\x80\x02}q."}) {
    CAPTURE(content);
    folder().write("broken.pt", content);
    has(refusal([&] { return load(json::object()); }), "broken.pt' is no zip archive, or its end is missing");
  }
  module_archives::linear().save(folder().path("whole.pt"));
  std::ifstream stream(folder().path("whole.pt"), std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(stream), {}};
  for (std::size_t cut = 1; cut < whole.size(); cut += 97) {
    folder().write("broken.pt", whole.substr(0, cut));
    has(refusal([&] { return load(json::object()); }), "broken.pt' is no zip archive");
  }
  // damage that LibTorch 1.13 dies of: a letter of a type's name
  std::string damaged = whole;
  damaged[damaged.find("__torch__")] = '(';
  folder().write("broken.pt", damaged);
  has(refusal([&] { return load(json::object()); }), "whose content is not what its checksum says");
  torch::jit::Module nothing("Nothing");
  nothing.save(folder().path("broken.pt"));
  has(refusal([&] { return load(json::object()); }), "its module has no method forward");
  has(refusal(
          [&] {
            return load({{"module", "none.pt"}});
          },
          ErrorCode::not_found),
      "none.pt'; its path is taken from the folder");
  has(refusal([&] { return load({{"module", "."}}); }, ErrorCode::not_found), "cannot read the module");
  has(refusal([&] { return load({{"module", ""}}); }), "module: must be a path");
  has(refusal([&] { return load({{"module", 3}}); }), "module: must be a text");
  has(refusal([&] { return load({{"training", 1}}); }), "training: must be true or false");
  has(refusal([&] {
        return load({{"description", std::string(20000, 'x')}});
      }),
      "description: must be at most 16384 bytes");
  has(refusal([&] { return load({{"ops", json::array()}}); }), "ops: and 'module' exclude each other");
  has(refusal([] { return kevin::tasks::parse_tasks(module_archives::file("m.pt").dump()); }),
      "module: needs a task file");
  json graph = {{"schema", "kevin.task/1"},
                {"id", "a"},
                {"name", "A"},
                {"training", true},
                {"inputs", {{{"name", "x"}, {"shape", {2}}}}},
                {"ops", json::array()}};
  has(refusal([&] { return kevin::tasks::parse_tasks(graph.dump()); }), "training: belongs to a task with a 'module'");
}

TEST_CASE("a module's path may be absolute, and a file in the current folder has its module there") {
  module_archives::linear().save(folder().path("there.pt"));
  std::filesystem::create_directory(folder().path("sub"));
  CHECK(find(folder().write("sub/m.json", module_archives::file(folder().path("there.pt")))).outputs.size() == 1);
  CHECK(find(folder().write("sub/n.json", module_archives::file("../there.pt"))).outputs.size() == 1);
}

TEST_CASE("one module serves several threads, each with operands of its own") {
  const Reference reference(task_of(module_archives::linear()));
  std::vector<int> same(4, 0);
  {
    std::vector<std::jthread> threads;
    for (std::size_t t = 0; t < same.size(); ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < 50; ++i) {
          const auto k = static_cast<float>(t + 1);
          const Tensors x = {torch::full({5, 4}, k)};
          const Tensors p = {torch::full({3, 4}, k), torch::full({3}, k), torch::ones({3})};
          same[t] += torch::allclose(reference.forward(x, p)[0], linear(x[0], p)) ? 1 : 0;
        }
      });
    }
  }
  for (const int s : same) CHECK(s == 50);
}

TEST_CASE("children of one type have tensors of their own") {
  torch::jit::Module m("Deep");
  std::string code = "def forward(self, x):\n";
  for (int i = 0; i < 16; ++i) {
    torch::jit::Module child("Child");
    child.register_parameter("weight", torch::full({4}, static_cast<float>(i)), false);
    child.define("def forward(self, x):\n    return x + self.weight\n");
    m.register_module("c" + std::to_string(i), child);
    code += "    x = self.c" + std::to_string(i) + ".forward(x)\n";
  }
  m.define(code + "    return x\n");
  const Reference reference(task_of(m));
  const Tensors p = reference.draw_parameters(1);
  REQUIRE(p.size() == 16);
  CHECK(torch::equal(reference.forward({torch::zeros({5, 4})}, p)[0], torch::full({5, 4}, 120.0F)));
}

TEST_CASE("no kernel space is made of a module, and the error says why") {
  has(refusal([] { return kevin::agent::kernel_space(task_of(module_archives::linear())).knobs().size(); },
              ErrorCode::unsupported),
      "task 'mine/module' has no kernel space: its reference is a module or a function");
}
