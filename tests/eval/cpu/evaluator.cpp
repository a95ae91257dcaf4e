#include "kevin/eval/cpu/evaluator.hpp"

#include <doctest/doctest.h>

#include <signal.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "hostile_candidates.hpp"
#include "kevin/eval/deterministic_times.hpp"
#include "kevin/refine/refinement_env.hpp"
#include "kevin/tasks/function_task.hpp"
#include "kevin/tasks/suite.hpp"
#include "tasks/module_archives.hpp"

using namespace kevin;

namespace {

cpu::EvaluatorOptions quick(int threads = 1) {
  cpu::EvaluatorOptions o;
  o.judge.threads = threads;
  o.judge.launch_ms = 1000;
  o.judge.timing.max_rounds = 8;
  return o;
}

/// y = x w + b, then the sums of its rows: two inputs' worth of parameters, two outputs.
Task linear() {
  Task t;
  t.id = "test/linear";
  t.name = "Linear";
  t.inputs = {{"x", {8, 16}, DType::float32, {Distribution::Kind::normal, 0, 1}}};
  t.parameters = {{"weight", {4, 16}, DType::float32, {Distribution::Kind::uniform, -1, 1}},
                  {"bias", {4}, DType::float32, {Distribution::Kind::uniform, -1, 1}}};
  t.ops = {{"linear", {{"weight", std::string("weight")}, {"bias", std::string("bias")}}, {"x"}, "y", {8, 4}},
           {"relu", {}, {"y"}, "z", {8, 4}}};
  t.outputs = {{"y", {8, 4}}, {"z", {8, 4}}};
  return t;
}

const std::string linear_kernel = R"(
extern "C" void kernel(const float* x, const float* weight, const float* bias, float* out0, float* out1) {
  for (int i = 0; i < 8; ++i) for (int j = 0; j < 4; ++j) {
    float s = bias[j];
    for (int k = 0; k < 16; ++k) s += x[i * 16 + k] * weight[j * 16 + k];
    out0[i * 4 + j] = s;
    out1[i * 4 + j] = s > 0 ? s : 0;
  }
})";

}  // namespace

TEST_CASE("Evaluator: an honest kernel is correct, with times, figures and a speedup") {
  cpu::Evaluator evaluator(quick());
  const auto e = evaluator.evaluate_in_detail(hostile::task(), hostile::honest(), 1);
  const Verdict& v = e.verdict;
  REQUIRE_MESSAGE(v.correct(), v.diagnostics);
  CHECK(v.reason.empty());
  CHECK(v.diagnostics.empty());
  REQUIRE(v.error);
  CHECK(v.error->elements == 50 * 37);
  CHECK(v.error->wrong == 0);
  REQUIRE(v.candidate);
  REQUIRE(v.baseline);
  REQUIRE(v.speedup);
  CHECK(*v.speedup == v.baseline->median_ms / v.candidate->median_ms);
  CHECK(v.candidate->samples >= 1);
  CHECK(v.candidate->samples == v.baseline->samples);
  CHECK(v.candidate->low_ms <= v.candidate->median_ms);
  CHECK(v.candidate->median_ms <= v.candidate->high_ms);
  CHECK(v.candidate->median_ms > 0);
  CHECK(v.evaluate_ms > 0);
  CHECK(e.candidate_ms > 0);
  CHECK(e.baseline_ms > 0);
}

TEST_CASE("Evaluator: parameters and several outputs are passed in the order of kernel_arguments") {
  cpu::Evaluator evaluator(quick());
  const Verdict v = evaluator.evaluate(linear(), {linear_kernel}, 3);
  REQUIRE_MESSAGE(v.correct(), v.diagnostics);
  CHECK(v.error->elements == 64);
}

TEST_CASE("Evaluator: tells which output is wrong by the name that the kernel gives it") {
  cpu::Evaluator evaluator(quick());
  std::string source = linear_kernel;
  source.replace(source.find("s > 0 ? s : 0"), 13, "s");
  const Verdict v = evaluator.evaluate(linear(), {source}, 3);
  CHECK(v.stage == Stage::correctness);
  CHECK(v.reason == "wrong_values");
  CHECK(v.diagnostics.find("`out1`") != std::string::npos);
  CHECK(v.diagnostics.find("`out0`") == std::string::npos);
  REQUIRE(v.error);
  CHECK(v.error->elements == 64);
  CHECK(v.error->wrong > 0);
  CHECK_FALSE(v.candidate);
  CHECK_FALSE(v.speedup);
}

TEST_CASE("Evaluator: a kernel that keeps its parameters from an earlier launch is wrong") {
  cpu::Evaluator evaluator(quick());
  std::string source = "#include <cstring>\nstatic float kept[64]; static bool have;\n" + linear_kernel;
  source.insert(source.find("{\n  for") + 1,
                "\n  if (!have) { std::memcpy(kept, weight, sizeof kept); have = true; } weight = kept;");
  const Verdict v = evaluator.evaluate(linear(), {source}, 3);
  CHECK(v.stage == Stage::correctness);
}

TEST_CASE("Evaluator: correctness alone when no time is wanted") {
  cpu::EvaluatorOptions o = quick();
  o.judge.measure_time = false;
  cpu::Evaluator evaluator(o);
  const Verdict v = evaluator.evaluate(hostile::task(), hostile::honest(), 1);
  CHECK(v.correct());
  CHECK(v.error);
  CHECK_FALSE(v.candidate);
  CHECK_FALSE(v.baseline);
  CHECK_FALSE(v.speedup);
}

TEST_CASE("Evaluator: the same arguments give the same verdict in all but times") {
  cpu::Evaluator evaluator(quick());
  for (const std::string& source :
       {hostile::honest().source, hostile::kernel("for (int i = 0; i < n; ++i) out[i] = x[i] * 1.001f;"),
        hostile::kernel("abort();")}) {
    const Verdict a = evaluator.evaluate(hostile::task(), {source}, 5);
    const Verdict b = evaluator.evaluate(hostile::task(), {source}, 5);
    CHECK(a.stage == b.stage);
    CHECK(a.reason == b.reason);
    CHECK(a.diagnostics == b.diagnostics);
    CHECK(a.error == b.error);
  }
  const Verdict c =
      evaluator.evaluate(hostile::task(), {hostile::kernel("for (int i = 0; i < n; ++i) out[i] = x[i] * 1.001f;")}, 6);
  const Verdict d =
      evaluator.evaluate(hostile::task(), {hostile::kernel("for (int i = 0; i < n; ++i) out[i] = x[i] * 1.001f;")}, 5);
  CHECK(c.error != d.error);  // another seed, other inputs
}

TEST_CASE("Evaluator: from eight threads at once, each gets its own candidate's verdict") {
  cpu::Evaluator evaluator(quick());
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 3; ++i) {
        const bool good = (t + i) % 2 == 0;
        const Candidate c =
            good ? hostile::honest()
                 : Candidate{hostile::kernel("honest(x, out); out[" + std::to_string(t * 3 + i) + "] += 1;")};
        const Verdict v = evaluator.evaluate(hostile::task(), c, static_cast<std::uint64_t>(t));
        if (v.correct() != good) ++wrong;
        const std::string at = std::to_string(t * 3 + i);
        if (!good && v.diagnostics.find("1 of 1850 elements are wrong (between flat index " + at + " and " + at +
                                        ")") == std::string::npos)
          ++wrong;
      }
    });
  }
  for (auto& t : threads) t.join();
  CHECK(wrong == 0);
}

TEST_CASE("Evaluator: two evaluators side by side, with one and two threads") {
  cpu::Evaluator one(quick(1));
  cpu::Evaluator two(quick(2));
  std::thread other([&] {
    for (int i = 0; i < 3; ++i) CHECK(two.evaluate(hostile::task(), hostile::honest(), 1).correct());
  });
  for (int i = 0; i < 3; ++i) CHECK(one.evaluate(hostile::task(), hostile::honest(), 1).correct());
  other.join();
}

TEST_CASE("Evaluator: an edited task of the same name is another task") {
  cpu::Evaluator evaluator(quick());
  Task t = hostile::task();
  CHECK(evaluator.evaluate(t, hostile::honest(), 1).correct());
  t.ops[0].op = "sigmoid";
  CHECK(evaluator.evaluate(t, hostile::honest(), 1).stage == Stage::correctness);
  CHECK(evaluator.evaluate(hostile::task(), hostile::honest(), 1).correct());
}

TEST_CASE("Evaluator: the task's tolerance decides, its spread too, and KernelBench's rule stands beside it") {
  cpu::Evaluator evaluator(quick());
  const auto judge = [&](Tolerance tolerance, const std::string& change) {
    Task t = hostile::task();
    t.tolerance = tolerance;
    return evaluator.evaluate(t, {hostile::kernel("honest(x, out); for (int i = 0; i < n; ++i) " + change)}, 1);
  };
  // an error of 3e-4 everywhere: ReLU of standard normal numbers has a standard deviation of 0.58
  const std::string far = "out[i] += 3e-4f;";
  Verdict v = judge({0, 0, 1e-3}, far);
  CHECK(v.correct());
  CHECK(v.speedup.has_value());  // timed runs are checked by the same law
  REQUIRE(v.error.has_value());
  CHECK(v.error->wrong == 0);
  CHECK(v.error->outside_kernelbench > v.error->elements / 2);  // 1e-4 + 1e-4 * |out|
  v = judge({0, 0, 2e-4}, far);
  CHECK(v.stage == Stage::correctness);
  CHECK(v.error->wrong == v.error->elements);

  const std::string near = "out[i] += 5e-5f;";
  CHECK(judge({1e-3, 0}, near).error->outside_kernelbench == 0);
  v = judge({1e-5, 0}, near);  // wrong by the task's tolerance, right by KernelBench's rule
  CHECK(v.stage == Stage::correctness);
  CHECK(v.error->outside_kernelbench == 0);
}

TEST_CASE("Evaluator: tasks that cannot be judged, and options that mean nothing, are errors") {
  cpu::Evaluator evaluator(quick());
  Task t = hostile::task();
  t.tolerance.absolute = -1;
  CHECK_THROWS_AS(evaluator.evaluate(t, hostile::honest(), 1), Error);
  t = hostile::task();
  t.tolerance.spread = -1;
  CHECK_THROWS_AS(evaluator.evaluate(t, hostile::honest(), 1), Error);
  t = hostile::task();
  t.ops[0].op = "no such operation";
  CHECK_THROWS_AS(evaluator.evaluate(t, hostile::honest(), 1), Error);
  t = hostile::task();
  t.inputs[0].shape = {0, 37};
  t.ops[0].out_shape = {0, 37};
  t.outputs[0].shape = {0, 37};
  CHECK_THROWS_AS(evaluator.evaluate(t, {hostile::kernel("")}, 1), Error);

  cpu::EvaluatorOptions o = quick();
  o.judge.trials = 0;
  CHECK_THROWS_AS(cpu::Evaluator{o}, Error);
  o = quick();
  o.judge.threads = 100'000;
  CHECK_THROWS_AS(cpu::Evaluator{o}, Error);
}

TEST_CASE("Evaluator: a spare runner that is killed while it waits costs nobody a verdict") {
  cpu::Evaluator evaluator(quick());
  CHECK(evaluator.evaluate(hostile::task(), hostile::honest(), 1).correct());
  // all children of this process are spare runners now, or just being started
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream file(entry.path() / "children");
    for (pid_t child = 0; file >> child;) ::kill(child, SIGKILL);
  }
  CHECK(evaluator.evaluate(hostile::task(), hostile::honest(), 2).correct());
}

TEST_CASE("Evaluator: a slow kernel is timed by few rounds, and says so") {
  cpu::EvaluatorOptions o = quick();
  o.judge.timing.budget_ms = 10;
  cpu::Evaluator evaluator(o);
  const Verdict v = evaluator.evaluate(
      hostile::task(),
      {hostile::kernel(
          "timespec a, b; clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a); do clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b); "
          "while ((b.tv_sec - a.tv_sec) * 1000000000L + b.tv_nsec - a.tv_nsec < 60000000); honest(x, out);")},
      1);
  REQUIRE(v.correct());
  CHECK(v.candidate->samples < 6);
  CHECK(v.candidate->low_ms >= 59);
  CHECK(std::count(v.flags.begin(), v.flags.end(), "few_samples") == 1);
}

TEST_CASE("DeterministicTimes: verdicts of two runs are the same to the last bit, whoever measured") {
  cpu::Evaluator timed(quick());
  cpu::EvaluatorOptions o = quick();
  o.judge.measure_time = false;
  cpu::Evaluator untimed(o);
  eval::DeterministicTimes a(timed);
  eval::DeterministicTimes b(untimed);
  static_assert(kevin::Evaluator<decltype(a)>);
  const Verdict x = a.evaluate(hostile::task(), hostile::honest(), 1);
  const Verdict y = b.evaluate(hostile::task(), hostile::honest(), 1);
  REQUIRE(x.correct());
  REQUIRE(y.correct());
  CHECK(x.candidate == y.candidate);
  CHECK(x.baseline == y.baseline);
  CHECK(x.speedup == y.speedup);
  CHECK(x.error == y.error);
  CHECK(x.flags == y.flags);
  CHECK(x.compile_ms == 0);
  CHECK(x.evaluate_ms == 0);
  CHECK(*x.speedup >= 0.25);
  CHECK(*x.speedup <= 4);
  // another source, other times
  CHECK(b.evaluate(hostile::task(), {hostile::honest().source + "\n"}, 1).candidate != y.candidate);
  // a wrong candidate gets none
  const Verdict bad = a.evaluate(hostile::task(), {hostile::kernel("")}, 1);
  CHECK(bad.stage == Stage::correctness);
  CHECK_FALSE(bad.speedup);
}

TEST_CASE("Evaluator: a function and a TorchScript module are references as a graph is, in the environment too") {
  cpu::Evaluator evaluator(quick());
  Task shape = linear();
  shape.ops.clear();
  shape.outputs.clear();
  const Task function = tasks::task_from_function(
      shape,
      [](const tasks::Tensors& in, const tasks::Tensors& p) {
        const torch::Tensor y = torch::linear(in[0], p[0], p[1]);
        return tasks::Tensors{y, torch::relu(y)};
      },
      "out0 = x weight^T + bias; out1 = max(out0, 0)");
  Verdict v = evaluator.evaluate(function, {linear_kernel}, 3);
  CHECK(v.correct());
  REQUIRE(v.speedup);
  CHECK(*v.speedup > 0);
  CHECK(evaluator.evaluate(function, {hostile::kernel("")}, 3).stage != Stage::correct);

  const module_archives::Folder folder;
  module_archives::linear().save(folder.path("m.pt"));
  const Task module = tasks::find(folder.write("m.json", module_archives::file("m.pt")));
  const std::string kernel = R"(
extern "C" void kernel(const float* x, const float* fc_weight, const float* fc_bias, const float* scale, float* out) {
  for (int i = 0; i < 5; ++i) for (int j = 0; j < 3; ++j) {
    float s = fc_bias[j];
    for (int k = 0; k < 4; ++k) s += x[i * 4 + k] * fc_weight[j * 4 + k];
    out[i * 3 + j] = (s > 0 ? s : 0) * scale[j] * FACTOR;
  }
})";
  RefinementEnv env{module, evaluator};
  CHECK(prompt_text(env.reset(1)).find("torch.t(fc_weight)") != std::string::npos);
  CHECK_FALSE(env.step({"", "", "#define FACTOR 2.4f\n" + kernel}).info.correct());
  CHECK(env.step({"", "", "#define FACTOR 2.5f\n" + kernel}).info.correct());
}
