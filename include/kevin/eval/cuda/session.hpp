#ifndef KEVIN_EVAL_CUDA_SESSION_HPP
#define KEVIN_EVAL_CUDA_SESSION_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "kevin/core/error.hpp"
#include "kevin/core/random.hpp"
#include "kevin/eval/cuda/baseline.hpp"
#include "kevin/eval/cuda/head_start.hpp"
#include "kevin/eval/cuda/hidden_time.hpp"
#include "kevin/eval/cuda/judge_options.hpp"
#include "kevin/eval/cuda/plan.hpp"
#include "kevin/eval/cuda/runner_failure.hpp"
#include "kevin/eval/cuda/station.hpp"
#include "kevin/eval/cuda/task_buffers.hpp"
#include "kevin/eval/memory_file.hpp"
#include "kevin/eval/timing.hpp"
#include "kevin/refine/signature.hpp"
#include "kevin/refine/verdict.hpp"
#include "kevin/tasks/cost.hpp"
#include "kevin/tasks/reference.hpp"

namespace kevin::cuda {

/// One runner, one candidate, its buffers.
class Session {
 public:
  /// Keeps references to the first three.
  Session(Station& station, const JudgeOptions& options, const tasks::Reference& reference,
          std::unique_ptr<Runner> runner, std::uint64_t seed)
      : station_(station),
        options_(options),
        limits_(station.gpu.limits(options.scratch)),
        reference_(reference),
        seed_(seed),
        start_(eval::WallClock::now()),
        arguments_(kernel_arguments(reference.task(), Backend::cuda)),
        runner_(std::move(runner)) {}
  ~Session() {
    if (!runner_) return;
    // Until the process is gone its kernels may go on writing, and the driver's work after a fault has been seen to
    // swallow launches of others: only then may the next candidate come.
    if (last_.end != CallResult::End::done) {
      runner_->kill();
      runner_.reset();
    }
    station_.runners.retire(std::move(runner_));
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Fills `result`. False: the runner was killed from outside.
  [[nodiscard]] bool run(std::string_view image, const TaggedKernels& tagged) {
    const std::size_t sets =
        options_.protocol == Protocol::kevin ? TaskBuffers::choose_sets(reference_.task(), station_.gpu.memory()) : 1;
    buffers_.emplace(reference_, station_.gpu, station_.kernels, station_.memory, sets);
    image_.emplace(eval::sealed_memory_file("kevin-cubin", std::as_bytes(std::span(image)), false));
    image_bytes_ = image.size();
    tags_ = &tagged.tags;
    const std::vector<int> files = buffers_->descriptors();
    const std::vector<protocol::Buffer> layout = buffers_->layout();
    lap(result.setup_ms);
    if (!runner_->equipped()) {
      const auto multiprocessors = static_cast<std::uint32_t>(station_.gpu.attribute(driver::multiprocessors));
      if (!accept(runner_->equip(station_.own_code.get(), station_.own_code_bytes, station_.l2_bytes, multiprocessors,
                                 limits_.shared, options_.start_ms))) {
        return !lost_;
      }
    }
    if (!accept(runner_->map(files, layout, buffers_->sets(), options_.start_ms))) return !lost_;
    if (!accept(runner_->load(image_->get(), image_bytes_, tagged.tags, options_.start_ms))) return !lost_;
    if (!make_plan(tagged.kernels)) return !lost_;
    lap(result.load_ms);
    for (std::int64_t i = 0; i < options_.trials; ++i) {
      if (!in_time()) return true;
      const std::size_t set = static_cast<std::size_t>(i) % buffers_->sets();
      prepare(set, derive_seed(seed_, "trial", static_cast<std::uint64_t>(i)));
      settle();
      if (!launch(set, 0)) return !lost_;
      if (!check(set, buffers_->expected(set), true)) return true;
    }
    lap(result.check_ms);
    result.verdict.stage = Stage::correct;
    if (options_.measure_time) {
      measure();
      lap(result.timing_ms);
    }
    return !lost_;
  }

  /// Empties the runner for the next candidate; null when it is better ended: it did not come to rest, it has served
  /// long enough, or its candidate could leave things where we do not write over them.
  [[nodiscard]] std::unique_ptr<Runner> release(const TaggedKernels& tagged) {
    const bool local =
        std::any_of(figures_.begin(), figures_.end(), [](const auto& f) { return f.local_bytes > 1024; });
    if (last_.end != CallResult::End::done || tagged.runtime || local ||
        runner_->candidates() + 1 >= options_.candidates_per_runner) {
      return nullptr;
    }
    last_ = runner_->reset(options_.start_ms);
    return last_.end == CallResult::End::done ? std::move(runner_) : nullptr;
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
    v.speed_of_light_ms.reset();
  }

  void lap(double& into) {
    const auto now = eval::WallClock::now();
    into = eval::milliseconds(now - lap_);
    lap_ = now;
  }

  [[nodiscard]] bool in_time() {
    if (eval::milliseconds(eval::WallClock::now() - start_) < options_.evaluation_ms) return true;
    fail(Stage::run, "timeout",
         "the kernels are so slow that they could not be checked within " +
             std::to_string(static_cast<int>(options_.evaluation_ms / 1000)) + " s");
    return false;
  }

  /// Whether a request succeeded; if not, the verdict says why.
  [[nodiscard]] bool accept(const CallResult& call) {
    last_ = call;
    if (call.end == CallResult::End::done) return true;
    lost_ = killed_from_outside(call);
    if (lost_) return false;
    RunFailure failure = explain(call, plan_, station_.gpu.api(), options_.launch_ms);
    fail(Stage::run, std::move(failure.reason), std::move(failure.text));
    return false;
  }

  [[nodiscard]] bool make_plan(const std::vector<std::string>& kernels) {
    // Upper 16 bits that no float, integer or address has by chance: those of NaNs.
    const std::uint64_t tag = (0x7ff1ULL + eval::secret_bits() % 13) << 48U;
    auto book = std::make_unique<Book>();
    if (!accept(runner_->plan(tag, buffers_->arguments(), *book, options_.launch_ms))) return false;
    std::vector<std::string> names;
    for (const KernelArgument& a : arguments_) names.push_back(a.name);
    auto read = read_book(*book, tag, kernels, buffers_->sizes(), names, limits_);
    if (PlanFault* fault = std::get_if<PlanFault>(&read)) {
      fail(Stage::run, "bad_plan", std::move(fault->text));
      return false;
    }
    plan_ = std::move(std::get<LaunchPlan>(read));
    if (!accept(runner_->program(plan_, figures_, options_.start_ms))) return false;
    for (std::size_t i = 0; i < plan_.launches.size(); ++i) {
      const PlannedLaunch& l = plan_.launches[i];
      const protocol::KernelFigures& f = figures_[i];
      result.kernels.push_back({l.kernel, f.registers, f.local_bytes, f.static_shared + static_cast<int>(l.shared),
                                f.blocks_per_multiprocessor * static_cast<int>(l.block[0] * l.block[1] * l.block[2])});
    }
    return true;
  }

  /// Fresh inputs and poisoned outputs, in place after settle().
  void prepare(std::size_t set, std::uint64_t seed) {
    buffers_->draw(set, seed);
    buffers_->poison(set);
  }
  void settle() const { station_.gpu.api().check(station_.gpu.api().synchronize(), "drawing inputs"); }

  [[nodiscard]] bool launch(std::size_t set, std::uint64_t flags) {
    const auto poison = static_cast<std::uint32_t>(eval::secret_bits());
    if (!accept(runner_->run(set, flags, poison, head_start_.microseconds(), options_.launch_ms))) return false;
    result.candidate_ms += last_.event_ms;
    return true;
  }

  /// Checks what the last run left. `record`: its error figures go into the verdict also when all is well.
  [[nodiscard]] bool check(std::size_t set, const std::vector<torch::Tensor>& expected, bool record) {
    const TaskBuffers::Findings found = buffers_->check(set, expected, arguments_);
    if (found.overrun >= 0) {
      fail(Stage::run, "out_of_bounds",
           "a kernel wrote outside of `" + arguments_[static_cast<std::size_t>(found.overrun)].name + '`');
      return false;
    }
    std::optional<ErrorFigures>& error = result.verdict.error;
    if (found.figures.wrong > 0) {
      error = found.figures;
      fail(Stage::correctness, eval::reason_of(found.figures), found.text);
      return false;
    }
    if (!record) return true;  // the number of timed rounds depends on times, and nothing but times may
    if (!error) error = found.figures;
    eval::keep_worst(*error, found.figures);
    return true;
  }

  /// How the L2 cache is emptied before a timed run: KernelBench writes other memory, which leaves it full of what has
  /// yet to go to memory.
  [[nodiscard]] std::uint64_t eviction() const {
    return options_.protocol == Protocol::kevin ? protocol::Run::cold : protocol::Run::dirty;
  }

  /// One timed run of the reference.
  [[nodiscard]] double time_baseline(std::size_t set, std::vector<torch::Tensor>& expected) {
    const Baseline::Run run = baseline_->run(set, eviction(), head_start_.microseconds(), expected);
    result.baseline_ms += run.milliseconds;
    head_start_.saw(run.late);
    return run.milliseconds;
  }

  /// One timed run of the candidate. Its module's own variables have been reset before the first.
  [[nodiscard]] bool time_candidate(std::size_t set, double& ms) {
    if (!launch(set, eviction())) return false;
    ms = last_.event_ms;
    head_start_.saw(last_.late);
    hidden_.saw_run(last_.wall_ms, last_.event_ms);
    return true;
  }

  /// The timed runs. Both sides run on all sets in turn, in random order within pairs of rounds: every change of sides
  /// costs a switch between two processes on the GPU, which the sets of a round share.
  void measure() {
    // Afresh: what the module kept from the checked runs is gone.
    if (!accept(runner_->load(image_->get(), image_bytes_, *tags_, options_.start_ms))) return;
    if (!accept(runner_->program(plan_, figures_, options_.start_ms))) return;
    baseline_.emplace(station_, *buffers_, options_.baseline, options_.baseline_tf32);
    const bool fresh = options_.protocol == Protocol::kevin;
    Rng order(eval::secret_bits());
    std::vector<double> candidate;
    std::vector<double> baseline;
    double spent = 0;
    double overhead = 0;
    bool candidate_first = false;
    const std::size_t sets = fresh ? buffers_->sets() : 1;
    for (std::int64_t round = -1;; ++round) {  // round -1 warms up both sides and is not counted
      if (!candidate.empty() && eval::milliseconds(eval::WallClock::now() - start_) >= options_.evaluation_ms) break;
      if (candidate.empty() && !in_time()) return;
      candidate_first = round % 2 == 0 ? order.below(2) == 0 : !candidate_first;
      const auto begin = eval::WallClock::now();
      std::vector<std::vector<torch::Tensor>> expected(sets);
      std::vector<double> ours(sets), theirs(sets);
      for (std::size_t s = 0; s < sets && (fresh || round < 0); ++s)
        prepare(s, eval::secret_bits());  // not from the seed
      settle();
      const auto both = [&](bool candidates_turn) {
        for (std::size_t s = 0; s < sets; ++s) {
          if (!candidates_turn)
            theirs[s] = time_baseline(s, expected[s]);
          else if (!time_candidate(s, ours[s]))
            return false;
        }
        return true;
      };
      if (!both(candidate_first) || !both(!candidate_first)) return;
      const bool last = !fresh && static_cast<std::int64_t>(candidate.size()) + 1 >= options_.timing.max_rounds;
      for (std::size_t s = 0; s < sets && (fresh || last); ++s) {
        // what is expected is strict float32, whatever was timed
        if (options_.baseline_tf32 != tasks::Tf32::none) expected[s] = buffers_->expected(s);
        if (check(s, expected[s], false)) continue;
        result.verdict.flags.emplace_back("failed_while_timed");
        return;
      }
      double inside = 0;
      for (std::size_t s = 0; s < sets; ++s) inside += ours[s] + theirs[s];
      spent += inside;
      overhead += eval::milliseconds(eval::WallClock::now() - begin) - inside;
      if (round < 0 && fresh) head_start_ = HeadStart();
      const bool counts = round >= 0 && head_start_.end_round();
      if (!counts) {
        if (!measure_floor()) return;  // with the head start that the next round has
        continue;
      }
      const double floor = fresh ? result.floor_ms : 0;
      for (std::size_t s = 0; s < sets; ++s) {
        candidate.push_back(std::max(ours[s] - floor, resolution_ms));
        baseline.push_back(std::max(theirs[s] - floor, resolution_ms));
      }
      Verdict& v = result.verdict;
      v.candidate = eval::summarize(candidate);
      v.baseline = eval::summarize(baseline);
      if (fresh ? eval::enough(options_.timing, *v.candidate, *v.baseline, spent, overhead) : last) break;
    }
    Verdict& v = result.verdict;
    if (const double hidden = hidden_.beyond(v.candidate->median_ms); hidden > 0) {
      for (double& ms : candidate) ms += hidden;
      v.candidate = eval::summarize(candidate);
      v.flags.emplace_back("clocks_disagree");
    }
    v.speedup = v.baseline->median_ms / v.candidate->median_ms;
    if (head_start_.gave_up()) v.flags.emplace_back("late_launches");
    if (v.candidate->samples < 6) v.flags.emplace_back("few_samples");
    const auto wide = [](const Timing& t) { return t.high_ms - t.low_ms > 0.2 * t.median_ms; };
    if (wide(*v.candidate) || wide(*v.baseline)) v.flags.emplace_back("unsteady_times");
    if (options_.peaks) {
      const tasks::Cost cost = tasks::cost_of(reference_.task(), reference_.graph());
      v.speed_of_light_ms = tasks::speed_of_light(cost, *options_.peaks).ms();
      if (v.candidate->median_ms < 0.9 * *v.speed_of_light_ms) v.flags.emplace_back("faster_than_light");
    }
    if (station_.throttle.throttled()) v.flags.emplace_back("throttled");
    if (options_.variants) measure_variants();
  }

  /// What the events show when there is nothing between them: the least of several of both sides', so that nobody is
  /// given more than their due, and a candidate that stretches its own side's gains nothing.
  [[nodiscard]] bool measure_floor() {
    result.floor_ms = std::numeric_limits<double>::infinity();
    hidden_.start_over();
    std::vector<torch::Tensor> none;
    for (int i = -1; i < 7; ++i) {
      const std::uint32_t head_start = head_start_.microseconds();
      const double theirs = baseline_->run(0, protocol::Run::nothing | eviction(), head_start, none).milliseconds;
      if (!accept(runner_->run(0, protocol::Run::nothing | eviction(), 0, head_start, options_.launch_ms)))
        return false;
      if (i < 0) continue;
      result.floor_ms = std::min({result.floor_ms, theirs, last_.event_ms});
      hidden_.saw_nothing(last_.wall_ms, last_.event_ms);
    }
    return true;
  }

  /// The same launches in other circumstances, on inputs drawn once: for people, never for the score.
  void measure_variants() {
    using protocol::Run;
    constexpr int samples = 9;
    const double floor = options_.protocol == Protocol::kevin ? result.floor_ms : 0;
    const auto candidate = [&](std::uint64_t flags, std::optional<Timing>& into) {
      std::vector<double> times;
      for (int i = -1; i < samples; ++i) {
        if (!launch(0, flags)) return false;
        if (i >= 0) times.push_back(std::max(last_.event_ms - floor, resolution_ms));
      }
      into = eval::summarize(times);
      return true;
    };
    const auto reference = [&](Baseline& baseline, std::uint64_t flags, std::optional<Timing>& into) {
      std::vector<double> times;
      std::vector<torch::Tensor> expected;
      for (int i = -1; i < samples; ++i) {
        const double ms = baseline.run(0, flags, head_start_.microseconds(), expected).milliseconds;
        if (i >= 0) times.push_back(std::max(ms - floor, resolution_ms));
      }
      into = eval::summarize(times);
    };
    Variants& v = result.variants;
    prepare(0, eval::secret_bits());
    settle();
    if (!candidate(Run::warm, v.warm) || !candidate(Run::cold | Run::graph, v.graph) ||
        !candidate(Run::warm | Run::graph, v.graph_warm)) {
      return;
    }
    if (!check(0, buffers_->expected(0), false)) return;
    Baseline eager(station_, *buffers_, BaselineKind::eager, options_.baseline_tf32);
    reference(eager, Run::warm, v.eager_warm);
    if (!Baseline::can_capture()) return;
    Baseline captured(station_, *buffers_, BaselineKind::eager_graph, options_.baseline_tf32);
    reference(captured, Run::cold, v.eager_graph);
  }

  static constexpr double resolution_ms = 5e-4;  ///< of the GPU's events

  Station& station_;
  const JudgeOptions& options_;
  DeviceLimits limits_;
  const tasks::Reference& reference_;
  std::uint64_t seed_;
  eval::WallClock::time_point start_;
  eval::WallClock::time_point lap_ = start_;
  std::vector<KernelArgument> arguments_;
  std::optional<TaskBuffers> buffers_;
  std::unique_ptr<Runner> runner_;  // after the buffers: ended before they are given back
  std::optional<eval::Descriptor> image_;
  std::size_t image_bytes_ = 0;
  const std::vector<std::string>* tags_ = nullptr;
  std::optional<Baseline> baseline_;
  HeadStart head_start_ = HeadStart::none();
  LaunchPlan plan_;
  std::vector<protocol::KernelFigures> figures_;
  HiddenTime hidden_;
  CallResult last_;
  bool lost_ = false;
};

}  // namespace kevin::cuda

#endif  // KEVIN_EVAL_CUDA_SESSION_HPP
