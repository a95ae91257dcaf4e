// What verdicts of the CUDA evaluator take, on one GPU.
//
//   cuda_verdicts task19       KernelBench level 1 task 19 at full shape (4096 x 393216), from source to verdict: by
//                              KernelBench's own protocol (5 checks, 100 timed runs of each side) and by kevin's
//   cuda_verdicts throughput   256 distinct candidates on tasks of 1M elements, over numbers of compile processes
//   cuda_verdicts errors       a compile error; faults, and the honest verdict after each
//   cuda_verdicts spread       the same kernel judged 30 times: ReLU, add, tiled matrix product
//   cuda_verdicts outliers     ReLU, and NewGelu, whose baseline has eight operations, of a few microseconds, judged
//                              1,000 times each (or as often as told) on a quiet and on a busy machine: every verdict
//                              far from the others
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <unistd.h>

#include "cuda_kernels.hpp"
#include "kevin/core/error.hpp"
#include "kevin/eval/batch.hpp"
#include "kevin/eval/cuda/evaluator.hpp"
#include "kevin/tasks/suite.hpp"

namespace {

using cuda_kernels::elementwise;
using cuda_kernels::gelu;
using cuda_kernels::quantile;
using cuda_kernels::relu;
using cuda_kernels::Row;
using cuda_kernels::timed_kernels;
using kevin::Task;
using kevin::Verdict;
using Clock = std::chrono::steady_clock;

double since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

/// An empty cache, so that compiling is part of what is measured.
std::filesystem::path fresh_cache() {
  std::string name = (std::filesystem::temp_directory_path() / "kevin-benchmark-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) throw kevin::Error(kevin::ErrorCode::resource, "no temporary folder");
  return name;
}

int task19() {
  const Task task = elementwise("relu", {"x"}, {4096, 393216});
  const std::int64_t n = std::int64_t{4096} * 393216;
  for (const auto protocol : {kevin::cuda::Protocol::kernelbench, kevin::cuda::Protocol::kevin}) {
    kevin::cuda::EvaluatorOptions options;
    options.compiler.cache_directory = fresh_cache();
    options.judge.protocol = protocol;
    if (protocol == kevin::cuda::Protocol::kernelbench) {
      options.judge.trials = 5;
      options.judge.timing.max_rounds = 100;
    }
    const auto program = Clock::now();
    kevin::cuda::Evaluator evaluator(options);
    std::printf("%s\n  evaluator ready after %.0f ms\n", std::string(name_of(protocol)).c_str(), since(program));
    for (int i = 0; i < 4; ++i) {
      const auto start = Clock::now();
      const auto e = evaluator.evaluate_in_detail(task, relu(n, i), static_cast<std::uint64_t>(i));
      const double total = since(start);
      if (!e.verdict.correct())
        return std::printf("  %s: %s\n", e.verdict.reason.c_str(), e.verdict.diagnostics.c_str()), 1;
      const auto& j = *e.judgement;
      std::printf(
          "  %s %6.0f ms = compiling %.0f, waiting for a runner %.0f, buffers %.0f, loading %.0f, checking %.0f, "
          "timing %.0f | kernel %.3f ms, eager %.3f ms, %lld samples\n",
          i == 0 ? "first verdict" : "verdict      ", total, e.verdict.compile_ms,
          e.verdict.evaluate_ms - j.setup_ms - j.load_ms - j.check_ms - j.timing_ms, j.setup_ms, j.load_ms, j.check_ms,
          j.timing_ms, e.verdict.candidate->median_ms, e.verdict.baseline->median_ms,
          static_cast<long long>(e.verdict.candidate->samples));
    }
  }
  return 0;
}

int throughput() {
  const Task task = elementwise("relu", {"x"}, {1024, 1024});
  std::printf("compile processes | verdicts/s | judging one, ms (median)\n");
  for (const std::size_t workers : {1U, 2U, 4U, 8U, 16U}) {
    kevin::cuda::EvaluatorOptions options;
    options.compiler.cache_directory = fresh_cache();
    options.compiler.workers = workers;
    options.spares = 8;
    kevin::cuda::Evaluator evaluator(options);
    static_cast<void>(evaluator.evaluate(task, relu(1 << 20, -1), 0));
    std::vector<kevin::eval::Job> jobs;
    for (int i = 0; i < 256; ++i) jobs.push_back({&task, relu(1 << 20, i), static_cast<std::uint64_t>(i)});
    const auto start = Clock::now();
    const auto outcomes = kevin::eval::evaluate_batch(evaluator, jobs, workers + 8);
    const double seconds = since(start) / 1000;
    std::vector<double> times;
    for (const auto& o : outcomes) {
      if (!o.verdict || !o.verdict->correct()) return std::printf("a candidate was not judged correct\n"), 1;
      times.push_back(o.verdict->evaluate_ms);
    }
    std::printf("%17zu | %10.1f | %.1f\n", workers, 256 / seconds, quantile(times, 0.5));
  }
  return 0;
}

int errors() {
  const std::int64_t n = 1 << 20;
  const Task task = elementwise("relu", {"x"}, {n});
  kevin::cuda::EvaluatorOptions options;
  options.compiler.cache_directory = fresh_cache();
  options.judge.launch_ms = 1000;
  options.spares = 2;
  kevin::cuda::Evaluator evaluator(options);
  static_cast<void>(evaluator.evaluate(task, relu(n), 0));
  std::vector<double> times;
  for (int i = 0; i < 30; ++i) {
    const auto start = Clock::now();
    const Verdict v =
        evaluator.evaluate(task, {"__global__ void k(float* o) { o[0] = undeclared_" + std::to_string(i) + "; }\n"}, 1);
    times.push_back(since(start));
    if (v.stage != kevin::Stage::compile) return 1;
  }
  std::printf("a compile error: verdict after %.1f ms (median of 30; 90 %%: %.1f)\n", quantile(times, 0.5),
              quantile(times, 0.9));
  const std::vector<std::pair<std::string, std::string>> faults = {
      {"illegal address", "*(float*)16 = 1;"},
      {"endless kernel", "while (true) { if (*(volatile const float*)x == 12345.f) break; }"},
      {"trap", "__trap();"},
      {"misaligned", "*(float4*)(out + 1) = float4{1, 1, 1, 1};"}};
  std::printf(
      "%-16s | reason              | verdict ms | honest verdict after it, ms | of which waiting for a runner\n",
      "fault");
  for (const auto& [name, body] : faults) {
    const auto start = Clock::now();
    const Verdict v =
        evaluator.evaluate(task,
                           {"__global__ void k(const float* x, float* out) { " + body +
                            " }\nvoid kevin_plan(const float* x, float* out) { kevin::launch<k>(64, 256)(x, out); }\n"},
                           1);
    const double bad = since(start);
    const auto again = Clock::now();
    const auto honest = evaluator.evaluate_in_detail(task, relu(n), 2);
    const double good = since(again);
    const auto& j = *honest.judgement;
    std::printf("%-16s | %-19s | %10.1f | %s %10.1f | %.1f\n", name.c_str(), v.reason.c_str(), bad,
                honest.verdict.correct() ? "correct" : "WRONG  ", good,
                honest.verdict.evaluate_ms - j.setup_ms - j.load_ms - j.check_ms - j.timing_ms);
  }
  return 0;
}

int spread() {
  const std::vector<Row> rows = timed_kernels();
  kevin::cuda::Evaluator evaluator;
  std::printf("%-20s | kernel ms (median of 30 medians) | IQR / median | eager ms | speedup | IQR / median\n",
              "kernel");
  for (const Row& row : rows) {
    std::vector<double> times, eager, speedups;
    for (int i = 0; i < 30; ++i) {
      const Verdict v = evaluator.evaluate(row.task, row.candidate, static_cast<std::uint64_t>(i));
      if (!v.correct())
        return std::printf("%s: %s\n%s\n", row.name.c_str(), v.reason.c_str(), v.diagnostics.c_str()), 1;
      times.push_back(v.candidate->median_ms);
      eager.push_back(v.baseline->median_ms);
      speedups.push_back(*v.speedup);
    }
    const auto iqr = [](const std::vector<double>& v) {
      return 100 * (quantile(v, 0.75) - quantile(v, 0.25)) / quantile(v, 0.5);
    };
    std::printf("%-20s | %32.5f | %10.2f %% | %8.5f | %7.3f | %.2f %%\n", row.name.c_str(), quantile(times, 0.5),
                iqr(times), quantile(eager, 0.5), quantile(speedups, 0.5), iqr(speedups));
  }
  return 0;
}

/// Threads that do nothing but take processor time.
class Load {
 public:
  explicit Load(unsigned threads) {
    for (unsigned i = 0; i < threads; ++i) {
      threads_.emplace_back([](const std::stop_token& stop) {
        volatile std::uint64_t x = 0;
        while (!stop.stop_requested()) x = x + 1;
      });
    }
  }

 private:
  std::vector<std::jthread> threads_;
};

int outliers(std::size_t count) {
  const std::int64_t n = 1 << 20;
  const std::pair<Task, kevin::Candidate> kernels[] = {
      {elementwise("relu", {"x"}, {n}), relu(n)},
      {kevin::tasks::find("kevin/l1/88@small"), gelu(256 * 1000)},
  };
  const unsigned cores = std::thread::hardware_concurrency();
  kevin::cuda::Evaluator evaluator;
  for (const auto& [task, candidate] : kernels) {
    double quiet = 0;
    for (const unsigned busy : {0U, cores, 2 * cores}) {
      const Load load(busy);
      std::vector<kevin::cuda::Evaluation> all;
      std::vector<double> speedups;
      for (std::size_t i = 0; i < count; ++i) {
        all.push_back(evaluator.evaluate_in_detail(task, candidate, i));
        const Verdict& v = all.back().verdict;
        if (!v.correct()) return std::printf("%s\n%s\n", v.reason.c_str(), v.diagnostics.c_str()), 1;
        speedups.push_back(*v.speedup);
      }
      const double median = quantile(speedups, 0.5);
      if (busy == 0) quiet = median;
      std::vector<double> times;
      std::size_t far = 0;
      for (const auto& e : all) {
        const Verdict& v = e.verdict;
        times.push_back(v.evaluate_ms);
        const double ratio = *v.speedup / quiet;
        if (ratio < 1.2 && ratio > 1 / 1.2) continue;
        if (++far > 10) continue;
        std::printf("far: speedup %.3f, kernel %.5f ms [%.5f, %.5f], eager %.5f ms [%.5f, %.5f], empty plan %.5f ms",
                    *v.speedup, v.candidate->median_ms, v.candidate->low_ms, v.candidate->high_ms,
                    v.baseline->median_ms, v.baseline->low_ms, v.baseline->high_ms, e.judgement->floor_ms);
        for (const std::string& flag : v.flags) std::printf(" %s", flag.c_str());
        std::printf("\n");
      }
      std::printf(
          "%s, %3u busy threads: speedup %.3f to %.3f, median %.3f, 1 %% below %.3f, 1 %% above %.3f; %zu of %zu more "
          "than 20 %% from the quiet median; judging takes %.1f ms (median)\n",
          task.id.c_str(), busy, quantile(speedups, 0), quantile(speedups, 1), median, quantile(speedups, 0.01),
          quantile(speedups, 0.99), far, count, quantile(times, 0.5));
    }
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view what = argc > 1 ? argv[1] : "";
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  try {
    if (what == "task19") return task19();
    if (what == "throughput") return throughput();
    if (what == "errors") return errors();
    if (what == "spread") return spread();
    if (what == "outliers") return outliers(argc > 2 ? std::stoul(argv[2]) : 1000);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "cuda_verdicts: %s\n", e.what());
    return 2;
  }
  std::fprintf(stderr, "usage: cuda_verdicts task19 | throughput | errors | spread | outliers [COUNT]\n");
  return 2;
}
