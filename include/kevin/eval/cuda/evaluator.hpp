#ifndef KEVIN_EVAL_CUDA_EVALUATOR_HPP
#define KEVIN_EVAL_CUDA_EVALUATOR_HPP

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kevin/core/error.hpp"
#include "kevin/eval/comparison.hpp"
#include "kevin/eval/cuda/compiler.hpp"
#include "kevin/eval/cuda/driver.hpp"
#include "kevin/eval/cuda/judge.hpp"
#include "kevin/eval/cuda/judge_source.hpp"
#include "kevin/eval/cuda/plan.hpp"
#include "kevin/eval/cuda/plan_header.hpp"
#include "kevin/eval/cuda/runner_pool.hpp"
#include "kevin/eval/cuda/station.hpp"
#include "kevin/eval/file_cache.hpp"
#include "kevin/eval/sandbox.hpp"
#include "kevin/eval/toolchain.hpp"
#include "kevin/refine/evaluator.hpp"
#include "kevin/refine/task.hpp"
#include "kevin/refine/verdict.hpp"
#include "kevin/tasks/reference.hpp"
#include "kevin/tasks/reference_cache.hpp"

namespace kevin::cuda {

struct EvaluatorOptions {
  CompilerOptions compiler{};
  JudgeOptions judge{};
  std::vector<int> gpus{0};   ///< which GPUs to judge on, as CUDA counts; each has runners and a judge of its own
  std::size_t spares = 2;     ///< runner processes kept waiting for each GPU
  bool compile_only = false;  ///< no GPU and no driver are needed; verdicts end with stage `run`, reason "not_run"
};

/// A verdict, and what else was learnt on the way.
struct Evaluation {
  Verdict verdict;
  std::vector<KernelResources> compiled;  ///< what the compiler says of each kernel
  std::optional<Judgement> judgement;     ///< absent when it did not compile; its own verdict is moved from
  std::string remarks;                    ///< the assembler's advice; mostly empty
};

/// Judges CUDA C++ candidates (device code) on NVIDIA GPUs: compiles them with NVRTC in bounded processes, runs them in
/// processes of their own on memory that is shared page by page, and compares and times them against LibTorch from
/// outside. A candidate defines kernels and `kevin_plan`, which launches them (plan_header.hpp).
///
/// Models kevin::Evaluator; thread safe: compiling runs in parallel, each GPU judges one candidate at a time.
class Evaluator {
 public:
  /// Starts compilers and runners. Throws Error(unsupported) that names what this machine lacks: NVRTC, the driver, a
  /// GPU, a LibTorch with CUDA, or walls to confine candidates.
  explicit Evaluator(EvaluatorOptions options = {}) : options_(checked(std::move(options))) {
    if (options_.compile_only) {
      compiler_.emplace(options_.compiler);
      return;
    }
    if (!torch::cuda::is_available()) {
      static_cast<void>(DriverApi());  // says so when the driver or the GPU is what is missing
      throw Error(
          ErrorCode::unsupported,
          "this LibTorch has no CUDA, and the reference is computed with it: use one that has (pip install torch), "
          "or evaluate with --compile-only or --backend cpu");
    }
    for (const int index : options_.gpus) gpus_.push_back(std::make_unique<Gpu>(index));
    compiler_.emplace(compiler_options(*gpus_.front()));
    const Compiled own = compiler_->compile(judge_source, "");
    if (!own.reason.empty())
      throw Error(ErrorCode::unsupported,
                  "the judge's own kernels do not compile: " + own.reason + ' ' + own.diagnostics);
    const auto toolchain = eval::detail::locate_compiler("").program;
    cache_.emplace(eval::default_cache_directory() / "compiled", std::uint64_t{64} << 20);
    std::map<int, std::shared_ptr<std::mutex>> exclusive;  // a GPU may be named twice
    for (const auto& gpu : gpus_) {
      auto& mutex = exclusive[gpu->index()];
      if (!mutex) mutex = std::make_shared<std::mutex>();
      pools_.push_back(std::make_unique<RunnerPool>(toolchain, *cache_, gpu->index(), options_.spares));
      stations_.push_back(std::make_unique<Station>(*gpu, image_of(own), *pools_.back(), mutex));
      judges_.push_back(std::make_unique<Judge>(*stations_.back(), options_.judge));
      idle_.push_back(judges_.back().get());
    }
  }

  [[nodiscard]] const EvaluatorOptions& options() const noexcept { return options_; }
  [[nodiscard]] const Compiler& compiler() const noexcept { return *compiler_; }

  [[nodiscard]] Verdict evaluate(const Task& task, const Candidate& candidate, std::uint64_t seed) {
    return evaluate_in_detail(task, candidate, seed).verdict;
  }

  /// The same with what was learnt on the way. Throws Error(bad_input) for a task that cannot be judged.
  [[nodiscard]] Evaluation evaluate_in_detail(const Task& task, const Candidate& candidate, std::uint64_t seed) {
    const auto reference = references_.find(task);
    Evaluation result;
    Verdict& v = result.verdict;
    Compiled compiled = compiler_->compile(candidate.source, plan_prelude(task));
    const auto start = eval::WallClock::now();
    if (!compiled.reason.empty()) {
      v.stage = Stage::compile;
      v.reason = std::move(compiled.reason);
      v.diagnostics = std::move(compiled.diagnostics);
    } else if (options_.compile_only) {
      v.stage = Stage::run;
      v.reason = "not_run";
      v.diagnostics = "it compiles; it was not run (compile only)";
    } else {
      const Lease lease(*this);
      result.judgement = lease.judge().judge(*reference, image_of(compiled), tagged_kernels(compiled.ptx), seed);
      v = std::move(result.judgement->verdict);
    }
    v.compile_ms = compiled.milliseconds;
    v.compile_cached = compiled.cached;
    v.evaluate_ms = eval::milliseconds(eval::WallClock::now() - start);
    result.compiled = std::move(compiled.kernels);
    result.remarks = std::move(compiled.remarks);
    return result;
  }

 private:
  /// A judge that nobody else uses meanwhile.
  class Lease {
   public:
    explicit Lease(Evaluator& owner) : owner_(owner) {
      std::unique_lock lock(owner_.mutex_);
      owner_.freed_.wait(lock, [&] { return !owner_.idle_.empty(); });
      judge_ = owner_.idle_.back();
      owner_.idle_.pop_back();
    }
    ~Lease() {
      const std::lock_guard lock(owner_.mutex_);
      owner_.idle_.push_back(judge_);
      owner_.freed_.notify_one();
    }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    [[nodiscard]] Judge& judge() const noexcept { return *judge_; }

   private:
    Evaluator& owner_;
    Judge* judge_ = nullptr;
  };

  [[nodiscard]] static EvaluatorOptions checked(EvaluatorOptions o) {
    eval::require_sandbox();
    const JudgeOptions& j = o.judge;
    if (j.trials < 1 || o.spares < 1 || o.gpus.empty() || !(j.launch_ms > 0) || !(j.evaluation_ms > 0) ||
        j.timing.min_rounds < 1 || j.timing.max_rounds < j.timing.min_rounds || !(j.timing.width >= 0) ||
        !(j.timing.budget_ms >= 0)) {
      throw Error(
          ErrorCode::bad_input,
          "cuda evaluator: gpus, trials, spares and limits must be positive, and max_rounds at least min_rounds");
    }
    return o;
  }

  [[nodiscard]] CompilerOptions compiler_options(const Gpu& gpu) const {
    CompilerOptions o = options_.compiler;
    if (o.capability == 0)
      o.capability = 10 * gpu.attribute(driver::compute_major) + gpu.attribute(driver::compute_minor);
    return o;
  }

  /// What the driver loads: machine code, or PTX where NVRTC does not know the GPU, a text that ends with a zero.
  [[nodiscard]] static std::string_view image_of(const Compiled& compiled) {
    const std::string& code = compiled.cubin.empty() ? compiled.ptx : compiled.cubin;
    return {code.c_str(), code.size() + 1};
  }

  EvaluatorOptions options_;
  std::vector<std::unique_ptr<Gpu>> gpus_;
  std::optional<Compiler> compiler_;
  std::optional<eval::FileCache> cache_;
  std::vector<std::unique_ptr<RunnerPool>> pools_;
  std::vector<std::unique_ptr<Station>> stations_;
  std::vector<std::unique_ptr<Judge>> judges_;
  std::mutex mutex_;
  std::condition_variable freed_;
  std::vector<Judge*> idle_;
  tasks::ReferenceCache references_;
};

static_assert(kevin::Evaluator<Evaluator>);

}  // namespace kevin::cuda

#endif  // KEVIN_EVAL_CUDA_EVALUATOR_HPP
