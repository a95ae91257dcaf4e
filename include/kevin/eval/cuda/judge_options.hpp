#ifndef KEVIN_EVAL_CUDA_JUDGE_OPTIONS_HPP
#define KEVIN_EVAL_CUDA_JUDGE_OPTIONS_HPP

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kevin/eval/timing.hpp"
#include "kevin/refine/verdict.hpp"
#include "kevin/tasks/peaks.hpp"
#include "kevin/tasks/tf32.hpp"

namespace kevin::cuda {

/// How candidates are checked and timed (docs/timing.md).
enum class Protocol {
  kevin,        ///< fresh inputs and a full check for every run, also timed ones; rounds until the medians are known
  kernelbench,  ///< as KernelBench does it: `trials` checks on fresh inputs, then `max_rounds` timed runs of each side
                ///< on one set of inputs, checked after the last; for comparisons with it, and open to what it is open
                ///< to
};

/// The name that figures carry; its number changes when figures of two versions are not to be compared.
[[nodiscard]] constexpr std::string_view name_of(Protocol p) noexcept {
  return p == Protocol::kevin
             ? "kevin-gpu-3 (events, cold L2, plain launches, eager baseline, fresh inputs)"
             : "kernelbench (events, cold L2 by writing, plain launches, eager baseline, one input set)";
}

/// What a candidate's speedup is measured against.
enum class BaselineKind {
  eager,        ///< LibTorch's eager forward pass
  eager_graph,  ///< the same, captured in a CUDA graph and replayed: no launch costs on the processor
};

struct JudgeOptions {
  BaselineKind baseline = BaselineKind::eager;
  /// What of TF32 the timed reference may use. What is expected is always computed in strict float32.
  tasks::Tf32 baseline_tf32 = tasks::Tf32::none;
  bool variants = false;  ///< measure Judgement::variants too
  Protocol protocol = Protocol::kevin;
  std::int64_t trials = 3;  ///< runs that are checked before anything is timed; >= 1
  /// A runner process whose candidate came to rest in good order is emptied and given to the next one, so often; then a
  /// fresh process takes its place. 1 = every candidate gets a process of its own (some 0.3 s of the driver's time
  /// each).
  std::size_t candidates_per_runner = 64;
  double launch_ms = 5000;                         ///< limit of one run of the plan, on the wall clock
  double start_ms = 20'000;                        ///< limit of mapping, loading and readying
  double evaluation_ms = 60'000;                   ///< after this no further run is begun
  std::uint64_t scratch = std::uint64_t{8} << 30;  ///< bytes of scratch memory that a plan may ask for in all
  bool measure_time = true;                        ///< false: only correctness
  /// Of the GPU, for Verdict::speed_of_light_ms; by default what peaks_of(gpu) knows (eval/cuda/peaks.hpp).
  std::optional<tasks::MeasuredPeaks> peaks{};
  eval::StoppingRule timing{.min_rounds = 10, .max_rounds = 50, .width = 0.02, .budget_ms = 100, .overhead_ms = 25};
};

/// What a launched kernel needs, as the driver reports it.
struct LaunchFigures {
  std::string kernel;        ///< mangled name
  int registers = 0;         ///< of a thread
  int local_bytes = 0;       ///< of a thread: spilled registers and indexed arrays
  int shared_bytes = 0;      ///< of a block, static and dynamic
  int resident_threads = 0;  ///< on one multiprocessor
};

/// Times in other circumstances than those of the verdict, a few samples each, on inputs drawn once. Warm: right after
/// an untimed run of the same.
struct Variants {
  std::optional<Timing> warm;         ///< candidate, warm L2, plain launches
  std::optional<Timing> graph;        ///< candidate, cold L2, replayed as a CUDA graph
  std::optional<Timing> graph_warm;   ///< candidate, warm L2, replayed as a CUDA graph
  std::optional<Timing> eager_warm;   ///< LibTorch eager, warm L2
  std::optional<Timing> eager_graph;  ///< LibTorch eager, captured in a CUDA graph, cold L2
};

/// A verdict without its compile part, and where its time went (milliseconds).
struct Judgement {
  Verdict verdict;
  double setup_ms = 0;      ///< buffers, on the judge's side
  double load_ms = 0;       ///< mapping, loading and planning, on the runner's side
  double check_ms = 0;      ///< the checked runs
  double timing_ms = 0;     ///< the timed runs
  double candidate_ms = 0;  ///< inside the candidate's launches, all of them
  double baseline_ms = 0;   ///< inside the timed runs of the reference
  double floor_ms = 0;      ///< what the clock shows for an empty plan; taken off each sample in kevin's protocol
  std::vector<LaunchFigures> kernels;
  Variants variants;  ///< with JudgeOptions::variants
};

}  // namespace kevin::cuda

#endif  // KEVIN_EVAL_CUDA_JUDGE_OPTIONS_HPP
