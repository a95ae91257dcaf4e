// What a verdict of the cpu evaluator costs beyond compiling and the kernels' own run time: for ReLUs of several sizes,
// with the scatter of an honest copy of the reference judged against it and what one call costs; and over the embedded
// tasks, each with the plainest kernel of its kernel space.
//
//   verdict_overhead [N]     N verdicts of each ReLU (default 40), a quarter of that of each embedded task
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "kevin/agent/kernel_space.hpp"
#include "kevin/core/error.hpp"
#include "kevin/eval/cpu/evaluator.hpp"
#include "kevin/tasks/suite.hpp"

namespace {

kevin::Task relu(std::int64_t rows, std::int64_t columns) {
  kevin::Task t;
  t.id = "overhead/relu/" + std::to_string(rows * columns);
  t.name = "ReLU";
  t.inputs = {{"x", {rows, columns}, kevin::DType::float32, {kevin::Distribution::Kind::normal, 0, 1}}};
  t.ops = {{"relu", {}, {"x"}, "y", {rows, columns}}};
  t.outputs = {{"y", {rows, columns}}};
  return t;
}

double quantile(std::vector<double> v, double q) {
  std::sort(v.begin(), v.end());
  return v[static_cast<std::size_t>(q * static_cast<double>(v.size() - 1) + 0.5)];
}

double overhead_of(const kevin::cpu::Evaluation& e) { return e.verdict.evaluate_ms - e.candidate_ms - e.baseline_ms; }

bool relus(kevin::cpu::Evaluator& evaluator, int verdicts) {
  std::printf("%10s %9s | %-31s | %-25s | %-27s | %s\n", "elements", "compile", "overhead ms: median, 10 %, 90 %",
              "speedup of an honest copy", "candidate, baseline (ms)", "call (us), rounds");
  for (const std::int64_t n : {10'000, 100'000, 1'000'000}) {
    const kevin::Task task = relu(n / 100, 100);
    const kevin::Candidate honest{"extern \"C\" void kernel(const float* x, float* out) { for (int i = 0; i < " +
                                  std::to_string(n) + "; ++i) out[i] = x[i] > 0 ? x[i] : 0; }"};
    const double compile_ms = evaluator.evaluate(task, honest, 0).compile_ms;
    std::vector<double> overhead, speedup, candidate, baseline, call, rounds;
    for (int i = 1; i <= verdicts; ++i) {
      const kevin::cpu::Evaluation e = evaluator.evaluate_in_detail(task, honest, static_cast<std::uint64_t>(i));
      if (!e.verdict.correct()) {
        std::fprintf(stderr, "an honest kernel was judged: %s\n", e.verdict.diagnostics.c_str());
        return false;
      }
      overhead.push_back(overhead_of(e));
      speedup.push_back(*e.verdict.speedup);
      candidate.push_back(e.verdict.candidate->median_ms);
      baseline.push_back(e.verdict.baseline->median_ms);
      call.push_back(1e3 * e.call_ms);
      rounds.push_back(static_cast<double>(e.verdict.candidate->samples));
    }
    std::printf(
        "%10lld %6.0f ms | %8.2f  %8.2f  %8.2f      | %6.3f  (%.3f to %.3f)  | %9.4f  %9.4f        | %5.2f  %4.0f\n",
        static_cast<long long>(n), compile_ms, quantile(overhead, 0.5), quantile(overhead, 0.1),
        quantile(overhead, 0.9), quantile(speedup, 0.5), quantile(speedup, 0.1), quantile(speedup, 0.9),
        quantile(candidate, 0.5), quantile(baseline, 0.5), quantile(call, 0.5), quantile(rounds, 0.5));
  }
  return true;
}

bool embedded_tasks(kevin::cpu::Evaluator& evaluator, int verdicts) {
  std::vector<double> all;
  std::vector<double> medians;
  std::string slowest;
  for (const kevin::Task& task : kevin::tasks::all()) {
    if (!task.id.starts_with("kevin/")) continue;
    kevin::Candidate plain;
    try {
      const kevin::agent::KernelSpace space = kevin::agent::kernel_space(task);
      plain.source = space.render(space.choose({}));
    } catch (const kevin::Error&) {
      continue;  // no family of kernels fits
    }
    static_cast<void>(evaluator.evaluate(task, plain, 0));  // compiles
    std::vector<double> overhead;
    for (int i = 1; i <= verdicts; ++i) {
      const kevin::cpu::Evaluation e = evaluator.evaluate_in_detail(task, plain, static_cast<std::uint64_t>(i));
      if (!e.verdict.correct()) {
        std::fprintf(stderr, "%s: a plain kernel was judged: %s\n", task.id.c_str(), e.verdict.diagnostics.c_str());
        return false;
      }
      overhead.push_back(overhead_of(e));
    }
    all.insert(all.end(), overhead.begin(), overhead.end());
    const double median = quantile(overhead, 0.5);
    if (medians.empty() || median > *std::max_element(medians.begin(), medians.end())) slowest = task.id;
    medians.push_back(median);
  }
  std::printf(
      "\n%zu embedded tasks, %zu verdicts: overhead ms: median %.2f, 10 %% %.2f, 90 %% %.2f; the most: %s, %.2f\n",
      medians.size(), all.size(), quantile(all, 0.5), quantile(all, 0.1), quantile(all, 0.9), slowest.c_str(),
      *std::max_element(medians.begin(), medians.end()));
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  const int verdicts = argc > 1 ? std::max(1, std::atoi(argv[1])) : 40;
  kevin::cpu::Evaluator evaluator;
  return relus(evaluator, verdicts) && embedded_tasks(evaluator, std::max(1, verdicts / 4)) ? 0 : 1;
}
