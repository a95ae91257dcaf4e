#include "kevin/eval/cuda/evaluator.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "gpu.hpp"
#include "kevin/eval/batch.hpp"
#include "kevin/tasks/function_task.hpp"
#include "kevin/tasks/suite.hpp"
#include "tasks/module_archives.hpp"

using namespace kevin;

namespace {

Verdict judge(const Task& task, const std::string& source, std::uint64_t seed = 5) {
  const Verdict v = gpu_test::evaluator()->evaluate(task, {source}, seed);
  INFO(v.reason << ": " << v.diagnostics);
  return v;
}

void correct(const Task& task, const std::string& source) {
  const Verdict v = judge(task, source);
  CAPTURE(v.reason);
  CAPTURE(v.diagnostics);
  CHECK(v.correct());
  REQUIRE(v.candidate);
  CHECK(v.candidate->median_ms > 0);
  CHECK(v.candidate->samples >= 1);
  REQUIRE(v.speedup);
  CHECK(std::isfinite(*v.speedup));
}

}  // namespace

TEST_CASE("cuda Evaluator: a right kernel is correct and timed, a wrong one is told how it is wrong") {
  if (gpu_test::evaluator() == nullptr) return;
  const std::int64_t n = 1000003;
  const Task task = gpu_test::relu_task(n);
  correct(task, gpu_test::relu_source(n));
  Verdict v = judge(task, gpu_test::relu_source(n, "out[i] = x[i];"));
  CHECK(v.stage == Stage::correctness);
  CHECK(v.reason == "wrong_values");
  CHECK_FALSE(v.speedup);
  v = judge(task, gpu_test::relu_source(n, "if (i != 77) out[i] = x[i] > 0 ? x[i] : 0;"));
  CHECK(v.reason == "unwritten_output");
  REQUIRE(v.error);
  CHECK(v.error->unwritten == 1);
  v = judge(task, gpu_test::relu_source(n, "out[i] = sqrtf(x[i]);"));
  CHECK(v.reason == "not_finite");
}

TEST_CASE("cuda Evaluator: compile errors speak of the candidate's own lines") {
  if (gpu_test::evaluator() == nullptr) return;
  const Verdict v = judge(gpu_test::relu_task(1024), "__global__ void k(float* o) {\n  o[0] = y;\n}\n");
  CHECK(v.stage == Stage::compile);
  CHECK(v.diagnostics.find("kernel.cu:2") != std::string::npos);
}

TEST_CASE("cuda Evaluator: several kernels, scratch memory, templates, shared memory, scalars, structures") {
  if (gpu_test::evaluator() == nullptr) return;
  const std::int64_t n = 70001;
  const Task task = gpu_test::relu_task(n);
  correct(task, R"(
struct Range { const float* from; int n; double factor; };
template <int unroll, class T> __global__ void copy(Range r, T* to) {
  for (int i = (blockIdx.x * blockDim.x + threadIdx.x) * unroll; i < r.n; i += gridDim.x * blockDim.x * unroll)
    for (int k = 0; k < unroll && i + k < r.n; ++k) to[i + k] = r.from[i + k] * r.factor;
}
static __global__ void positive(const float* x, float* out, int n) {
  extern __shared__ float tile[];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  tile[threadIdx.x] = i < n ? x[i] : 0;
  __syncthreads();
  if (i < n) out[i] = fmaxf(tile[threadIdx.x], 0) / 2;
}
void kevin_plan(const float* x, float* out) {
  const int n = 70001;
  float* tmp = kevin::scratch<float>(n);
  kevin::launch<copy<4, float>>(64, 128)({x, n, 2.0}, tmp);
  kevin::launch<positive>((n + 255) / 256, 256, {.shared = 100000})(tmp, out, n);
}
)");
}

TEST_CASE("cuda Evaluator: clusters, cooperative launches and tensor maps") {
  if (gpu_test::evaluator() == nullptr) return;
  const Task task = gpu_test::relu_task(1 << 16);
  correct(task, R"(
__global__ void relu(const float* x, float* out, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) out[i] = fmaxf(x[i], 0);
}
void kevin_plan(const float* x, float* out) {
  kevin::launch<relu>(64, 256, {.cluster = dim3(4), .cooperative = false})(x, out, 1 << 15);
  kevin::launch<relu>(64, 256, {.cooperative = true})(x + (1 << 15), out + (1 << 15), 1 << 15);
}
)");
  correct(task, R"(
// each block copies a 32 x 64 tile through the copy engine
__global__ void relu(const __grid_constant__ kevin::tensor_map map, float* out) {
  __shared__ alignas(128) float tile[32][64];
  __shared__ alignas(8) unsigned long long barrier;
  unsigned bar = (unsigned)__cvta_generic_to_shared(&barrier), to = (unsigned)__cvta_generic_to_shared(&tile);
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(bar));
    asm volatile("fence.mbarrier_init.release.cluster;");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(8192));
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
                 ::"r"(to), "l"(&map), "r"(blockIdx.x * 64), "r"(blockIdx.y * 32), "r"(bar) : "memory");
  }
  __syncthreads();
  unsigned done = 0;
  while (!done)
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }"
                 : "=r"(done) : "r"(bar) : "memory");
  for (int k = threadIdx.x; k < 32 * 64; k += blockDim.x)
    out[(blockIdx.y * 32 + k / 64) * 256 + blockIdx.x * 64 + k % 64] = fmaxf(tile[k / 64][k % 64], 0);
}
void kevin_plan(const float* x, float* out) {
  auto map = kevin::make_tensor_map<2>(x, kevin::type::f32, {256, 256}, {0, 1024}, {64, 32});
  kevin::launch<relu>(dim3(4, 8), 128)(map, out);
}
)");
}

TEST_CASE("cuda Evaluator: plans that cannot be launched are verdicts with a clear text") {
  if (gpu_test::evaluator() == nullptr) return;
  const std::int64_t n = 4096;
  const Task task = gpu_test::relu_task(n);
  const auto plan = [&](const std::string& body) {
    return "__global__ void k(const float* x, float* out, int n) { out[0] = n; }\n"
           "void kevin_plan(const float* x, float* out) { " +
           body + " }\n";
  };
  const auto fails = [&](const std::string& body, const std::string& reason, const std::string& words) {
    const Verdict v = judge(task, plan(body));
    CAPTURE(body);
    CAPTURE(v.diagnostics);
    CHECK(v.stage == Stage::run);
    CHECK(v.reason == reason);
    CHECK(v.diagnostics.find(words) != std::string::npos);
  };
  fails("", "bad_plan", "launches nothing");
  fails("kevin::launch<k>(1, 2048)(x, out, 1);", "bad_plan", "the block (2048, 1, 1)");
  fails("kevin::launch<k>(1, dim3(64, 32))(x, out, 1);", "bad_plan", "a block of 2048 threads");
  fails("kevin::launch<k>(dim3(1, 70000), 32)(x, out, 1);", "bad_plan", "the grid (1, 70000, 1)");
  fails("kevin::launch<k>(1, 32, 300 << 10)(x, out, 1);", "bad_plan", "dynamic shared memory");
  fails("kevin::launch<k>(1, 32)(x, out - 1, 1);", "bad_plan", "before the start of `out`");
  fails("kevin::launch<k>(1, 32)(x, out + 5000, 1);", "bad_plan", "past the end of `out`");
  fails("float* s = kevin::scratch<float>(1ull << 40); kevin::launch<k>(1, 32)(s, out, 1);", "bad_plan", "scratch");
  fails("for (int i = 0; i < 65; ++i) kevin::launch<k>(1, 32)(x, out, 1);", "bad_plan", "more than 64 launches");
  fails("out[0] = x[0]; kevin::launch<k>(1, 32)(x, out, 1);", "bad_plan", "reads or writes memory");
  fails("for (volatile int i = 0; i >= 0; i = 1) ; ", "timeout", "1 s");
  const Verdict wrong = judge(task, plan("kevin::launch<k>(1, 32)(out, x, 1);"));
  CHECK(wrong.stage == Stage::compile);
  const Verdict few = judge(task, plan("kevin::launch<k>(1, 32)(x, out);"));
  CHECK(few.stage == Stage::compile);
  const Verdict none = judge(task, "__global__ void k() {}\n");
  CHECK(none.stage == Stage::compile);
  CHECK(none.reason == "missing_plan");
}

TEST_CASE("cuda Evaluator: every type of element is drawn, passed, poisoned and compared") {
  if (gpu_test::evaluator() == nullptr) return;
  struct Case {
    DType type;
    const char* name;
  };
  for (const Case& c : {Case{DType::float32, "float"},
                        {DType::float64, "double"},
                        {DType::float16, "__half"},
                        {DType::bfloat16, "__nv_bfloat16"}}) {
    Task t = gpu_test::relu_task(5001);
    t.inputs[0].dtype = c.type;
    t.outputs[0].dtype = c.type;
    const std::string type = c.name;
    CAPTURE(type);
    correct(t, "__global__ void relu(const " + type + "* x, " + type +
                   "* out) {\n"
                   "  int i = blockIdx.x * 128 + threadIdx.x;\n  if (i < 5001) out[i] = x[i] > " +
                   type + "(0) ? x[i] : " + type + "(0);\n}\nvoid kevin_plan(const " + type + "* x, " + type +
                   "* out) { kevin::launch<relu>(40, 128)(x, out); }\n");
  }
}

TEST_CASE("cuda Evaluator: the task's tolerance decides, its spread too, and KernelBench's rule stands beside it") {
  if (gpu_test::evaluator() == nullptr) return;
  const std::int64_t n = 300007;
  Task task = gpu_test::relu_task(n);
  // ReLU of standard normal numbers has a standard deviation of 0.58
  const std::string source = gpu_test::relu_source(n, "out[i] = (x[i] > 0 ? x[i] : 0) + 3e-4f;");
  task.tolerance = {0, 0, 1e-3};
  Verdict v = judge(task, source);
  CHECK(v.correct());
  CHECK(v.speedup.has_value());  // timed runs are checked by the same law
  REQUIRE(v.error.has_value());
  CHECK(v.error->wrong == 0);
  CHECK(v.error->outside_kernelbench > n / 2);  // 1e-4 + 1e-4 * |out|
  task.tolerance = {0, 0, 2e-4};
  v = judge(task, source);
  CHECK(v.stage == Stage::correctness);
  REQUIRE(v.error.has_value());
  CHECK(v.error->wrong == n);
  CHECK(judge(task, gpu_test::relu_source(n)).error->outside_kernelbench == 0);
}

TEST_CASE("cuda Evaluator: what is expected of a convolution is strict float32, also where the baseline uses TF32") {
  if (gpu_test::evaluator() == nullptr) return;
  Task task;
  task.id = "test/conv";
  task.name = "Convolution";
  task.inputs = {{"x", {4, 64, 34, 34}, DType::float32, {Distribution::Kind::normal, 0, 1}}};
  task.parameters = {{"weight", {64, 64, 3, 3}, DType::float32, {Distribution::Kind::normal, 0, 1}}};
  task.ops = {{"conv2d", {{"weight", "weight"}}, {"x"}, "y", {4, 64, 32, 32}}};
  task.outputs = {{"y", {4, 64, 32, 32}}};
  task.tolerance = {0, 0, 1e-4};  // TF32 is off by a few 1e-4 standard deviations
  const std::string source = R"(
__global__ void conv(const float* x, const float* w, float* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;  // n, k, row, column
  const int column = i % 32, row = i / 32 % 32, k = i / 1024 % 64, n = i / 65536;
  float sum = 0;
  for (int c = 0; c < 64; ++c)
    for (int r = 0; r < 3; ++r)
      for (int s = 0; s < 3; ++s)
        sum += x[((n * 64 + c) * 34 + row + r) * 34 + column + s] * w[((k * 64 + c) * 3 + r) * 3 + s];
  out[i] = sum;
}
void kevin_plan(const float* x, const float* weight, float* out) { kevin::launch<conv>(1024, 256)(x, weight, out); }
)";
  correct(task, source);
  cuda::EvaluatorOptions o = gpu_test::quick();
  o.judge.baseline_tf32 = tasks::Tf32::all;
  o.judge.variants = true;
  cuda::Evaluator evaluator(o);
  const Verdict v = evaluator.evaluate(task, {source}, 5);
  CAPTURE(v.diagnostics);
  CHECK(v.correct());
  CHECK(v.speedup.has_value());
  CHECK(std::count(v.flags.begin(), v.flags.end(), "failed_while_timed") == 0);
}

TEST_CASE("cuda Evaluator: the same seed gives the same verdict in all but times") {
  if (gpu_test::evaluator() == nullptr) return;
  const Task task = gpu_test::relu_task(10007);
  const std::string source = gpu_test::relu_source(10007, "out[i] = x[i] > 0 ? x[i] * 1.00003f : 0;");
  const Verdict a = judge(task, source, 9);
  const Verdict b = judge(task, source, 9);
  CHECK(a.stage == b.stage);
  CHECK(a.error == b.error);
}

TEST_CASE("cuda Evaluator: a process that serves several candidates carries nothing from one to the next") {
  if (gpu_test::evaluator() == nullptr) return;
  const Task task = gpu_test::relu_task(1 << 16);
  // Both run the same code: every block looks for the mark in all its shared memory and in scratch memory, leaves it
  // there, and spoils its output where it was found.
  const std::string source = R"(
__device__ unsigned kept;
__global__ void relu(const float* x, float* out, unsigned* scratch, int words) {
  extern __shared__ unsigned room[];
  const unsigned mark = 0x5ec0de77u;
  bool found = kept == mark;
  for (int i = threadIdx.x; i < 57344; i += blockDim.x) found |= room[i] == mark;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < words; i += gridDim.x * blockDim.x) found |= scratch[i] == mark;
  found = __syncthreads_or(found);
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < 1 << 16; i += gridDim.x * blockDim.x)
    out[i] = found ? -1.0f : fmaxf(x[i], 0);
}
__global__ void leave(unsigned* scratch, int words) {
  extern __shared__ unsigned room[];
  const unsigned mark = 0x5ec0de77u;
  for (int i = threadIdx.x; i < 57344; i += blockDim.x) room[i] = mark;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < words; i += gridDim.x * blockDim.x) scratch[i] = mark;
  __syncthreads();
  if (room[(threadIdx.x * 7) % 57344] != mark) scratch[0] = 0;
  if (MARK) kept = mark;
}
void kevin_plan(const float* x, float* out) {
  unsigned* s = kevin::scratch<unsigned>(1 << 20);
  kevin::launch<relu>(264, 256, 57344 * 4)(x, out, s, 1 << 20);
  LEAVE
}
)";
  const auto with = [&](const std::string& mark, const std::string& leave) {
    std::string text = source;
    text.replace(text.find("MARK)"), 4, mark);
    text.replace(text.find("LEAVE"), 5, leave);
    return text;
  };
  const std::string leave = "kevin::launch<::leave>(264, 256, 57344 * 4)(s, 1 << 20);";
  cuda::EvaluatorOptions options = gpu_test::quick();
  options.judge.trials = 1;
  options.judge.measure_time = false;
  cuda::Evaluator evaluator(options);
  for (int i = 0; i < 3; ++i) {
    // one run, so that the candidate does not meet its own mark
    const Verdict first = evaluator.evaluate(task, {with("true", leave)}, 1);
    CAPTURE(first.diagnostics);
    CHECK(first.correct());
    const Verdict second = evaluator.evaluate(task, {with("false", "")}, 2);
    CAPTURE(second.diagnostics);
    CHECK(second.correct());
  }
  // the mark can be found: within one candidate's runs it is
  options.judge.trials = 2;
  const Verdict own = cuda::Evaluator(options).evaluate(task, {with("true", leave)}, 1);
  CHECK(own.stage == Stage::correctness);
}

TEST_CASE("cuda Evaluator: two judges on one GPU share it, many candidates at once") {
  if (gpu_test::evaluator() == nullptr) return;
  cuda::EvaluatorOptions options = gpu_test::quick();
  options.gpus = {0, 0};
  cuda::Evaluator evaluator(options);
  const Task task = gpu_test::relu_task(100003);
  std::vector<eval::Job> jobs;
  for (int i = 0; i < 12; ++i) {
    const bool good = i % 3 != 0;
    jobs.push_back({&task,
                    {gpu_test::relu_source(100003, good ? "out[i] = x[i] > 0 ? x[i] : 0; // " + std::to_string(i) + "\n"
                                                        : "out[i] = " + std::to_string(i) + ";")},
                    static_cast<std::uint64_t>(i)});
  }
  const auto outcomes = eval::evaluate_batch(evaluator, jobs, 6);
  for (int i = 0; i < 12; ++i) {
    REQUIRE(outcomes[static_cast<std::size_t>(i)].verdict);
    CHECK(outcomes[static_cast<std::size_t>(i)].verdict->correct() == (i % 3 != 0));
  }
}

TEST_CASE("cuda Evaluator: KernelBench's protocol takes as many samples as it is told, and the variants are measured") {
  if (gpu_test::evaluator() == nullptr) return;
  cuda::EvaluatorOptions options = gpu_test::quick();
  options.judge.protocol = cuda::Protocol::kernelbench;
  options.judge.trials = 5;
  options.judge.timing.max_rounds = 20;
  options.judge.variants = true;
  cuda::Evaluator evaluator(options);
  const auto e = evaluator.evaluate_in_detail(gpu_test::relu_task(1 << 20), {gpu_test::relu_source(1 << 20)}, 3);
  REQUIRE(e.verdict.correct());
  CHECK(e.verdict.candidate->samples == 20);
  CHECK(e.verdict.baseline->samples == 20);
  const cuda::Variants& v = e.judgement->variants;
  REQUIRE(v.warm);
  REQUIRE(v.graph);
  REQUIRE(v.graph_warm);
  REQUIRE(v.eager_warm);
  CHECK(v.graph->median_ms > 0);
  CHECK(v.eager_graph.has_value() == cuda::Baseline::can_capture());
}

TEST_CASE("cuda Evaluator: without a GPU, compile-only evaluation works where NVRTC is") {
  cuda::EvaluatorOptions options;
  options.compile_only = true;
  std::optional<cuda::Evaluator> evaluator;
  try {
    evaluator.emplace(options);
  } catch (const Error& e) {
    REQUIRE(e.code() == ErrorCode::unsupported);
    MESSAGE("skipped: " << e.what());
    return;
  }
  const Task task = gpu_test::relu_task(1024);
  const Verdict good = evaluator->evaluate(task, {gpu_test::relu_source(1024)}, 1);
  CHECK(good.stage == Stage::run);
  CHECK(good.reason == "not_run");
  const Verdict bad = evaluator->evaluate(task, {gpu_test::relu_source(1024, "out[i] = y;")}, 1);
  CHECK(bad.stage == Stage::compile);
  CHECK(bad.reason == "syntax");
}

TEST_CASE(
    "cuda Evaluator: a TorchScript module follows its operands to the GPU, its values with it; so does a function") {
  if (gpu_test::evaluator() == nullptr) return;
  const module_archives::Folder folder;
  module_archives::linear().save(folder.path("m.pt"));
  const Task module = tasks::find(folder.write("m.json", module_archives::file("m.pt")));
  const std::string kernel = R"(
__global__ void k(const float* x, const float* w, const float* b, const float* scale, float* out) {
  const int i = threadIdx.x / 3, j = threadIdx.x % 3;
  float s = b[j];
  for (int n = 0; n < 4; ++n) s += x[i * 4 + n] * w[j * 4 + n];
  out[threadIdx.x] = fmaxf(s, 0) * scale[j] * FACTOR;
}
__device__ void kevin_plan(const float* x, const float* fc_weight, const float* fc_bias, const float* scale, float* out) {
  kevin::launch<k>(1, 15)(x, fc_weight, fc_bias, scale, out);
})";
  correct(module, "#define FACTOR 2.5f\n" + kernel);
  CHECK(judge(module, "#define FACTOR 2.4f\n" + kernel).stage == Stage::correctness);

  const std::int64_t n = 70001;
  Task shape = gpu_test::relu_task(n);
  shape.ops.clear();
  shape.outputs.clear();
  correct(tasks::task_from_function(
              shape, [](const tasks::Tensors& in) { return torch::relu(in[0]); }, "max(x, 0)"),
          gpu_test::relu_source(n));
}
