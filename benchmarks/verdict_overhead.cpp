// What a verdict of the cpu evaluator costs beyond compiling and the kernels' own run time, the scatter of an honest
// copy of the reference judged against it, and what one call costs.
//
//   verdict_overhead [N]     N verdicts of each task (default 40)
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "kevin/eval/cpu/evaluator.hpp"

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

}  // namespace

int main(int argc, char** argv) {
  const int verdicts = argc > 1 ? std::max(1, std::atoi(argv[1])) : 40;
  kevin::cpu::Evaluator evaluator;
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
      if (!e.verdict.correct())
        return std::fprintf(stderr, "an honest kernel was judged: %s\n", e.verdict.diagnostics.c_str()), 1;
      overhead.push_back(e.verdict.evaluate_ms - e.candidate_ms - e.baseline_ms);
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
}
