#ifndef KEVIN_EVAL_CUDA_JUDGE_HPP
#define KEVIN_EVAL_CUDA_JUDGE_HPP

#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>

#include "kevin/core/error.hpp"
#include "kevin/eval/cuda/judge_options.hpp"
#include "kevin/eval/cuda/peaks.hpp"
#include "kevin/eval/cuda/plan.hpp"
#include "kevin/eval/cuda/session.hpp"
#include "kevin/eval/cuda/station.hpp"
#include "kevin/refine/verdict.hpp"
#include "kevin/tasks/reference.hpp"

namespace kevin::cuda {

/// Judges compiled candidates on one GPU; one candidate at a time has the GPU.
///
/// Every run that counts, timed ones included, gets fresh inputs and parameters in one of several sets of buffers and
/// poisoned outputs and scratch memory, and is checked in full: surroundings of the outputs, then every element against
/// the reference, which this process computes with LibTorch after the candidate has run, out of its reach. Between
/// checking and timing the module is loaded afresh, so that nothing it kept in its own variables remains.
///
/// Times are the GPU's own events around the launches, both sides after the same eviction of the L2 cache, in random
/// order within pairs of rounds, at the same clock (docs/timing.md).
class Judge {
 public:
  /// Keeps a reference to `station`, which must outlive it.
  Judge(Station& station, JudgeOptions options) : station_(station), options_(std::move(options)) {
    if (!options_.peaks) options_.peaks = peaks_of(station.gpu);
  }
  ~Judge() { station_.runners.retire(std::move(kept_)); }
  Judge(const Judge&) = delete;
  Judge& operator=(const Judge&) = delete;

  /// `image`: the module, as cuModuleLoadData takes it. Waits for the GPU. Throws Error for failures of the machinery
  /// only.
  [[nodiscard]] Judgement judge(const tasks::Reference& reference, std::string_view image, const TaggedKernels& tagged,
                                std::uint64_t seed) {
    const std::lock_guard lock(station_.exclusive);
    station_.gpu.use();
    bool again = false;
    for (int lost = 0;;) {
      std::unique_ptr<Runner> runner = kept_ ? std::move(kept_) : station_.runners.acquire();
      const bool used = runner->candidates() > 0;
      Session session(station_, options_, reference, std::move(runner), seed);
      const bool judged = session.run(image, tagged);
      if (judged && !again && deserves_another_process(session.result.verdict, used)) {
        again = true;
        continue;
      }
      if (judged) {
        kept_ = session.release(tagged);
        return std::move(session.result);
      }
      if (++lost == 4)
        throw Error(ErrorCode::worker_lost,
                    "GPU runner processes are killed from outside, four in a row: is the machine out of memory?");
    }
  }

 private:
  /// Nobody fails for what an earlier candidate may have done to the process, nor for a launch that left no trace at
  /// all: the driver's work after a fault elsewhere on the GPU has been seen to swallow one.
  [[nodiscard]] static bool deserves_another_process(const Verdict& v, bool used) {
    if (v.stage == Stage::run) return used && v.reason != "timeout" && v.reason != "bad_plan";
    return v.stage == Stage::correctness && v.error && v.error->unwritten == v.error->elements;
  }

  Station& station_;
  JudgeOptions options_;
  std::unique_ptr<Runner> kept_;  ///< emptied, for the next candidate
};

}  // namespace kevin::cuda

#endif  // KEVIN_EVAL_CUDA_JUDGE_HPP
