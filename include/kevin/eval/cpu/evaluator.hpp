#ifndef KEVIN_EVAL_CPU_EVALUATOR_HPP
#define KEVIN_EVAL_CPU_EVALUATOR_HPP

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "kevin/core/error.hpp"
#include "kevin/eval/cpu/compiler.hpp"
#include "kevin/eval/cpu/judge.hpp"
#include "kevin/eval/cpu/runner_pool.hpp"
#include "kevin/eval/cpu/runner_program.hpp"
#include "kevin/eval/sandbox.hpp"
#include "kevin/eval/timing_thread.hpp"
#include "kevin/refine/evaluator.hpp"
#include "kevin/refine/signature.hpp"
#include "kevin/refine/task.hpp"
#include "kevin/refine/verdict.hpp"
#include "kevin/tasks/reference_cache.hpp"

namespace kevin::cpu {

struct EvaluatorOptions {
  CompilerOptions compiler{};
  JudgeOptions judge{};
  std::size_t spares = 2;  ///< runner processes kept waiting
};

/// A verdict, and where its time went (milliseconds). Overhead of the machinery = verdict.evaluate_ms - candidate -
/// baseline.
struct Evaluation {
  Verdict verdict;
  double candidate_ms = 0;  ///< inside the candidate's calls
  double baseline_ms = 0;   ///< inside the reference
  double call_ms = 0;       ///< what one call costs by itself
};

/// Judges C++ candidates on this machine's processor: compiles them in a bounded process, runs them in a sandboxed one,
/// and compares and times them against LibTorch from outside (judge.hpp says how, docs/architecture.md why).
///
/// A candidate defines the function that kernel_signature(task) declares. Models kevin::Evaluator; thread safe:
/// compiling and checking run in parallel, timed sections one after another.
class Evaluator {
 public:
  /// Starts the spare runners. Throws Error(unsupported) that names what this machine lacks to confine candidates, or
  /// says why the compiler does not work.
  explicit Evaluator(EvaluatorOptions options = {})
      : options_(checked(std::move(options))),
        compiler_(options_.compiler),
        program_(compiler_.program(), compiler_.cache()),
        runners_(program_.path(), options_.judge.threads, options_.spares),
        judge_(runners_, timing_, options_.judge) {}

  [[nodiscard]] const EvaluatorOptions& options() const noexcept { return options_; }

  [[nodiscard]] Verdict evaluate(const Task& task, const Candidate& candidate, std::uint64_t seed) {
    return evaluate_in_detail(task, candidate, seed).verdict;
  }

  /// The same with what the verdict cost. Throws Error(bad_input) for a task that cannot be judged.
  [[nodiscard]] Evaluation evaluate_in_detail(const Task& task, const Candidate& candidate, std::uint64_t seed) {
    if (kernel_arguments(task).size() > protocol::max_buffers) {
      throw Error(ErrorCode::bad_input, "task " + task.id + " has more than " + std::to_string(protocol::max_buffers) +
                                            " inputs, parameters and outputs: the cpu evaluator cannot pass so many");
    }
    const auto reference = references_.find(task);
    Evaluation result;
    Verdict& v = result.verdict;
    Compiled compiled = compiler_.compile(candidate.source, kernel_signature(task));
    const auto start = eval::WallClock::now();
    if (compiled.object.empty()) {
      v.stage = Stage::compile;
      v.reason = std::move(compiled.reason);
      v.diagnostics = std::move(compiled.diagnostics);
    } else {
      Judgement j = judge_.judge(*reference, std::as_bytes(std::span(compiled.object)), seed);
      v = std::move(j.verdict);
      result.candidate_ms = j.candidate_ms;
      result.baseline_ms = j.baseline_ms;
      result.call_ms = j.call_ms;
    }
    v.compile_ms = compiled.milliseconds;
    v.compile_cached = compiled.cached;
    v.evaluate_ms = eval::milliseconds(eval::WallClock::now() - start);
    return result;
  }

 private:
  [[nodiscard]] static EvaluatorOptions checked(EvaluatorOptions o) {
    eval::require_sandbox();
    const JudgeOptions& j = o.judge;
    if (j.threads < 1 || j.trials < 1 || o.spares < 1 || !(j.launch_ms > 0) || !(j.evaluation_ms > 0) ||
        j.timing.min_rounds < 1 || j.timing.max_rounds < j.timing.min_rounds || !(j.timing.width >= 0) ||
        !(j.timing.budget_ms >= 0)) {
      throw Error(
          ErrorCode::bad_input,
          "cpu evaluator: threads, trials, spares and limits must be positive, and max_rounds at least min_rounds");
    }
    static_cast<void>(eval::nearby_processors(j.threads));
    return o;
  }

  EvaluatorOptions options_;
  Compiler compiler_;
  RunnerProgram program_;
  RunnerPool runners_;
  eval::TimingThread timing_;
  Judge judge_;
  tasks::ReferenceCache references_;
};

static_assert(kevin::Evaluator<Evaluator>);

}  // namespace kevin::cpu

#endif  // KEVIN_EVAL_CPU_EVALUATOR_HPP
