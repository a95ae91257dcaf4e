#ifndef KEVIN_EVAL_CPU_JUDGE_HPP
#define KEVIN_EVAL_CPU_JUDGE_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <sys/resource.h>

#include "kevin/core/error.hpp"
#include "kevin/core/random.hpp"
#include "kevin/eval/cpu/runner_failure.hpp"
#include "kevin/eval/cpu/runner_pool.hpp"
#include "kevin/eval/cpu/task_buffers.hpp"
#include "kevin/eval/cpu/torch_threads.hpp"
#include "kevin/eval/memory_file.hpp"
#include "kevin/eval/timing.hpp"
#include "kevin/eval/timing_thread.hpp"
#include "kevin/refine/signature.hpp"
#include "kevin/refine/verdict.hpp"
#include "kevin/tasks/reference.hpp"

namespace kevin::cpu {

struct JudgeOptions {
  int threads = 1;                                ///< the candidate may use, and the baseline does use
  std::int64_t trials = 3;                        ///< launches that are checked before anything is timed; >= 1
  double launch_ms = 2000;                        ///< limit of one call, see CallLimit
  double evaluation_ms = 30'000;                  ///< after this no further launch is begun
  std::uint64_t memory = std::uint64_t{1} << 30;  ///< bytes a candidate may use beside its arguments
  bool measure_time = true;                       ///< false: only correctness
  eval::StoppingRule timing{};
};

/// A verdict without its compile part, and what it cost.
struct Judgement {
  Verdict verdict;
  double candidate_ms = 0;  ///< spent inside the candidate's calls, all of them
  double baseline_ms = 0;   ///< spent inside the reference
  double call_ms = 0;       ///< what a call costs by itself; taken off each of the candidate's samples
};

/// Judges one compiled candidate.
///
/// Every launch that counts, timed ones included, gets fresh inputs and parameters and poisoned outputs, and is checked
/// in full: surroundings of the outputs, then every element against the reference, which is computed in this process,
/// out of the candidate's reach.
///
/// With one thread the clock of both sides is the processor time that the kernel accounts (the runner's whole process;
/// the judge's timing thread): the same as the wall clock on an idle machine, and untouched by other work. With more
/// threads it is the wall clock. Both sides run pinned to the same processors, in random order within pairs of rounds.
/// The reference allocates its outputs by itself, as eager LibTorch does; the candidate is given its own.
class Judge {
 public:
  /// Keeps references to both, which must outlive it.
  Judge(RunnerPool& runners, eval::TimingThread& timing, JudgeOptions options)
      : runners_(runners), timing_(timing), options_(options) {}

  /// Throws Error for failures of the machinery only.
  [[nodiscard]] Judgement judge(const tasks::Reference& reference, std::span<const std::byte> object,
                                std::uint64_t seed) const {
    for (int attempt = 0;; ++attempt) {
      Session session(*this, reference, seed);
      if (session.run(object)) return std::move(session.result);
      if (attempt == 3) {
        throw Error(ErrorCode::worker_lost,
                    "runner processes are killed from outside, four in a row: is the machine out of memory?");
      }
    }
  }

 private:
  /// Resolution of a sample: the accounting of processor time and of a call's own cost scatter by about this much.
  static constexpr double resolution_ms = 1e-3;

  /// One runner, one candidate, one set of buffers.
  class Session {
   public:
    Session(const Judge& judge, const tasks::Reference& reference, std::uint64_t seed)
        : judge_(judge),
          options_(judge.options_),
          seed_(seed),
          limit_{options_.launch_ms},
          start_(eval::WallClock::now()),
          arguments_(kernel_arguments(reference.task())),
          buffers_(reference),
          runner_(judge.runners_.acquire()) {}
    ~Session() { judge_.runners_.retire(std::move(runner_)); }
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;

    /// Fills `result`. False: the runner was killed from outside, which says nothing about the candidate.
    [[nodiscard]] bool run(std::span<const std::byte> object) {
      const eval::Descriptor file = eval::sealed_memory_file("kevin-candidate", object, true);
      try {
        measure_call();
        runner_->prepare(file.get(), buffers_.in_order(), options_.memory);
      } catch (const Error& e) {
        if (e.code() != ErrorCode::worker_lost) throw;
        return false;  // a spare runner was killed while it waited
      }
      // loaded before any data is there, so that constructors have nothing to work ahead with
      if (!accept(runner_->load(limit_), true)) return !lost_;
      for (std::int64_t i = 0; i < options_.trials; ++i) {
        if (!in_time()) return true;
        buffers_.draw(derive_seed(seed_, "trial", static_cast<std::uint64_t>(i)));
        buffers_.poison();
        if (!launch()) return !lost_;
        const auto before = eval::WallClock::now();
        const auto expected = buffers_.expected();
        result.baseline_ms += eval::milliseconds(eval::WallClock::now() - before);
        if (!check(expected, true)) return true;
      }
      result.verdict.stage = Stage::correct;
      if (options_.measure_time) judge_.timing_.run([this] { measure(); });
      return !lost_;
    }

    Judgement result;

   private:
    void fail(Stage stage, std::string reason, std::string text) {
      Verdict& v = result.verdict;
      v.stage = stage;
      v.reason = std::move(reason);
      v.diagnostics = std::move(text);
      v.candidate.reset();
      v.baseline.reset();
      v.speedup.reset();
    }

    [[nodiscard]] bool in_time() {
      if (eval::milliseconds(eval::WallClock::now() - start_) < options_.evaluation_ms) return true;
      fail(Stage::run, "timeout",
           "the kernel is so slow that it could not be checked within " +
               std::to_string(static_cast<int>(options_.evaluation_ms / 1000)) + " s");
      return false;
    }

    /// Whether the call ended as it should; if not, the verdict says how.
    [[nodiscard]] bool accept(const CallResult& call, bool loading) {
      last_ = call;
      if (call.end == CallResult::End::returned) return true;
      lost_ = killed_from_outside(call);
      RunFailure failure = explain(call, arguments_, limit_, loading);
      fail(Stage::run, std::move(failure.reason), std::move(failure.text));
      return false;
    }

    [[nodiscard]] bool launch() {
      if (!accept(runner_->launch(limit_), false)) return false;
      result.candidate_ms += options_.threads == 1 ? last_.cpu_ms : last_.wall_ms;
      return true;
    }

    /// Checks what the last launch left. `record`: its error figures go into the verdict also when all is well.
    [[nodiscard]] bool check(const std::vector<torch::Tensor>& expected, bool record) {
      if (const std::ptrdiff_t i = buffers_.overrun(); i >= 0) {
        fail(Stage::run, "out_of_bounds",
             "the kernel wrote outside of `" + arguments_[static_cast<std::size_t>(i)].name + '`');
        return false;
      }
      std::string text;
      const ErrorFigures figures = buffers_.compare(expected, arguments_, record, text);
      std::optional<ErrorFigures>& error = result.verdict.error;
      if (figures.wrong > 0) {
        error = figures;
        fail(Stage::correctness, eval::reason_of(figures), std::move(text));
        return false;
      }
      if (!record) return true;  // the number of timed rounds depends on times, and nothing but times may
      if (!error) error = figures;
      eval::keep_worst(*error, figures);
      return true;
    }

    /// What a call costs by itself: the least of several, so that no candidate is given more than its due. Pinned as
    /// the timed rounds are: waking somebody up on another processor costs ten times as much (in a virtual machine).
    void measure_call() {
      const cpu_set_t cpus = eval::nearby_processors(options_.threads);
      const eval::PinnedThread pinned(cpus);
      runner_->pin(cpus);
      double least = 1e9;
      for (int i = 0; i < 8; ++i) {
        const CallResult call = runner_->idle(CallLimit{5000});
        if (call.end != CallResult::End::returned)
          throw Error(ErrorCode::worker_lost, "a runner process was lost before it had a candidate");
        least = std::min(least, options_.threads == 1 ? call.cpu_ms : call.wall_ms);
      }
      result.call_ms = least;
      runner_->pin(pinned.before());
    }

    /// One timed call of the reference. While calls are short, another one goes before it untimed: after everything
    /// else that the judge did, LibTorch's own code and tables have left the caches, which would be counted against it.
    [[nodiscard]] double time_baseline(std::vector<torch::Tensor>& expected) {
      if (last_baseline_ms_ < 0.5) static_cast<void>(buffers_.expected());
      buffers_.touch();
      const long faults = page_faults();
      const eval::CpuClock cpu = eval::CpuClock::this_thread();
      const std::int64_t cpu_start = cpu.nanoseconds();
      const auto start = eval::WallClock::now();
      expected = buffers_.expected();
      const auto end = eval::WallClock::now();
      page_faults_ = page_faults() - faults;
      const double ms = options_.threads == 1 ? static_cast<double>(cpu.nanoseconds() - cpu_start) * 1e-6
                                              : eval::milliseconds(end - start);
      result.baseline_ms += last_baseline_ms_ < 0.5 ? 2 * ms : ms;
      last_baseline_ms_ = ms;
      return ms;
    }

    /// Pages that had to be fetched so far: by this thread, or by the whole process where the reference has several,
    /// since LibTorch's helpers cannot be told from other threads. So what others do at the same time (checks of other
    /// candidates) may have a round repeated that was good; it never lets one pass that was not, and the limits on
    /// repeating bound what it costs.
    [[nodiscard]] long page_faults() const {
      rusage usage{};
      ::getrusage(options_.threads == 1 ? RUSAGE_THREAD : RUSAGE_SELF, &usage);
      return usage.ru_minflt;
    }

    /// The timed rounds. On the timing thread.
    void measure() {
      const TorchThreads torch_threads(options_.threads);
      const cpu_set_t cpus = eval::nearby_processors(options_.threads);
      const eval::PinnedThread pinned(cpus);
      runner_->pin(cpus);
      Rng order(eval::secret_bits());
      std::vector<double> candidate;
      std::vector<double> baseline;
      double spent = 0;
      double overhead = 0;
      const eval::CpuClock clock = eval::CpuClock::this_thread();
      bool candidate_first = false;
      int repeated = 0;
      double growing = 0;
      for (std::int64_t round = -1;; ++round) {  // round -1 warms up both sides and is not counted
        if (!candidate.empty() && eval::milliseconds(eval::WallClock::now() - start_) >= options_.evaluation_ms) break;
        if (candidate.empty() && !in_time()) return;
        candidate_first = round % 2 == 0 ? order.below(2) == 0 : !candidate_first;
        // Not from the seed: draws can be computed backwards and onwards, and a candidate that knows what comes next
        // could compute all answers in one call, of which only one sample is spoilt.
        const std::int64_t begin = clock.nanoseconds();
        buffers_.draw(eval::secret_bits());
        buffers_.poison();
        overhead += static_cast<double>(clock.nanoseconds() - begin) * 1e-6;
        std::vector<torch::Tensor> expected;
        double theirs = 0;
        if (!candidate_first) theirs = time_baseline(expected);
        buffers_.touch();
        if (!launch()) return;
        const double raw = options_.threads == 1 ? last_.cpu_ms : last_.wall_ms;
        if (candidate_first) theirs = time_baseline(expected);
        const std::int64_t check_begin = clock.nanoseconds();
        if (!check(expected, false)) {
          result.verdict.flags.emplace_back("failed_while_timed");
          return;
        }
        spent += raw + theirs;
        overhead += static_cast<double>(clock.nanoseconds() - check_begin) * 1e-6;
        // A round in which the reference's heap grew says nothing of the operation: fresh pages make it up to three
        // times as slow, mostly in the first verdicts of a process. At most 16 are repeated.
        if (page_faults_ > 0 && repeated < 16 && growing < options_.timing.budget_ms) {
          growing += theirs;  // the reference's time alone: the candidate must have no say in this
          ++repeated;
          --round;
          continue;
        }
        if (round < 0) continue;
        candidate.push_back(std::max(raw - result.call_ms, resolution_ms));
        baseline.push_back(std::max(theirs, resolution_ms));
        Verdict& v = result.verdict;
        v.candidate = eval::summarize(candidate);
        v.baseline = eval::summarize(baseline);
        if (eval::enough(options_.timing, *v.candidate, *v.baseline, spent, overhead)) break;
      }
      Verdict& v = result.verdict;
      v.speedup = v.baseline->median_ms / v.candidate->median_ms;
      if (v.candidate->median_ms <= resolution_ms) v.flags.emplace_back("below_clock_resolution");
      if (v.candidate->samples < 6) v.flags.emplace_back("few_samples");
      const auto wide = [](const Timing& t) { return t.high_ms - t.low_ms > 0.2 * t.median_ms; };
      if (wide(*v.candidate) || wide(*v.baseline)) v.flags.emplace_back("unsteady_times");
    }

    const Judge& judge_;
    const JudgeOptions& options_;
    std::uint64_t seed_;
    CallLimit limit_;
    eval::WallClock::time_point start_;
    std::vector<KernelArgument> arguments_;
    TaskBuffers buffers_;
    std::unique_ptr<Runner> runner_;
    CallResult last_;
    double last_baseline_ms_ = 0;
    long page_faults_ = 0;  // of the last timed call of the reference
    bool lost_ = false;
  };

  RunnerPool& runners_;
  eval::TimingThread& timing_;
  JudgeOptions options_;
};

}  // namespace kevin::cpu

#endif  // KEVIN_EVAL_CPU_JUDGE_HPP
