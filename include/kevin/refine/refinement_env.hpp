#ifndef KEVIN_REFINE_REFINEMENT_ENV_HPP
#define KEVIN_REFINE_REFINEMENT_ENV_HPP

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "kevin/config.hpp"
#include "kevin/core/env.hpp"
#include "kevin/core/random.hpp"
#include "kevin/core/reward.hpp"
#include "kevin/core/step.hpp"
#include "kevin/refine/context.hpp"
#include "kevin/refine/evaluator.hpp"
#include "kevin/refine/format.hpp"
#include "kevin/refine/kevin_reward.hpp"
#include "kevin/refine/response.hpp"
#include "kevin/refine/summarized_thoughts.hpp"
#include "kevin/refine/task.hpp"
#include "kevin/refine/verdict.hpp"

namespace kevin {

struct RefinementOptions {
  /// The episode is terminated by a correct kernel that is at least so many times as fast as the baseline. Without it
  /// an episode never ends by itself: a kernel can always be refined further, and limiting turns is rollout's or
  /// TimeLimit's.
  std::optional<double> stop_when_speedup{};
};

/// Kernel refinement as an environment. Models Env.
///
/// Observation: Context (the task and what the ContextPolicy keeps of earlier turns). Action: Response. Reward: what
/// `R` gives, by default a Score with its parts. Info: the Verdict. The evaluator is held by pointer and shared by any
/// number of environments; it must outlive them. The task is shared; a copy of an environment that has not been reset
/// costs next to nothing.
///
/// The seed of an evaluation is derive_seed(seed of reset, "evaluation", number of the turn). Whatever the evaluator
/// throws passes through, and the turn does not count: the environment is as it was before step.
///
///     kevin::RefinementEnv env{kevin::tasks::find("kevin/l1/23@small"), evaluator};
template <Evaluator E, Reward<Verdict> R = KevinReward, ContextPolicy C = SummarizedThoughts>
class RefinementEnv {
 public:
  using Observation = Context;
  using Action = Response;
  using RewardType = std::remove_cvref_t<std::invoke_result_t<const R&, const Verdict&>>;

  RefinementEnv(std::shared_ptr<const Task> task, E& evaluator, R reward = R{}, C context = C{},
                RefinementOptions options = {})
      : task_(std::move(task)),
        evaluator_(&evaluator),
        reward_(std::move(reward)),
        context_(std::move(context)),
        options_(options) {
    KEVIN_ASSERT(task_ != nullptr);
  }
  RefinementEnv(Task task, E& evaluator, R reward = R{}, C context = C{}, RefinementOptions options = {})
      : RefinementEnv(std::make_shared<const Task>(std::move(task)), evaluator, std::move(reward), std::move(context),
                      options) {}

  /// Starts a fresh episode; may be called at any time.
  Context reset(std::uint64_t seed) {
    seed_ = seed;
    past_.clear();
    state_ = State::running;
    return context_.compact(task_, past_);
  }

  /// Judges an answer. A response without a source is not given to the evaluator: its verdict is Stage::format.
  Step<Context, RewardType, Verdict> step(Response response) {
    KEVIN_ASSERT(state_ == State::running);  // reset comes first; none after terminated
    Verdict verdict;
    if (detail::blank(response.source)) {
      verdict.stage = Stage::format;
      verdict.reason = "empty_source";
      verdict.diagnostics = "the answer holds no source";
    } else {
      Candidate candidate{std::move(response.source)};
      verdict = evaluator_->evaluate(*task_, candidate, derive_seed(seed_, "evaluation", past_.size()));
      response.source = std::move(candidate.source);
    }
    return finish(std::move(response), std::move(verdict));
  }

  /// Judges a model's raw text. A text that cannot be read has a verdict of Stage::format that says why.
  Step<Context, RewardType, Verdict> step_text(std::string_view text, FormatMode mode = FormatMode::lenient) {
    KEVIN_ASSERT(state_ == State::running);
    ParsedResponse parsed = parse_response(text, mode);
    if (parsed.ok()) return step(std::move(parsed.response));
    return finish(std::move(parsed.response), to_verdict(*parsed.error));
  }

  [[nodiscard]] const Task& task() const noexcept { return *task_; }
  [[nodiscard]] E& evaluator() const noexcept { return *evaluator_; }
  /// All turns of this episode so far, with their thoughts, whatever the ContextPolicy keeps.
  [[nodiscard]] const std::vector<PastTurn>& past() const noexcept { return past_; }

 private:
  enum class State { fresh, running, ended };

  Step<Context, RewardType, Verdict> finish(Response response, Verdict verdict) {
    RewardType reward = reward_(verdict);
    Score score = [&]() -> Score {
      if constexpr (std::same_as<RewardType, Score>)
        return reward;
      else
        return Score(static_cast<double>(reward));
    }();
    past_.push_back({std::move(response.summary), std::move(response.source), verdict, std::move(score),
                     std::move(response.thought), past_.size()});
    const bool enough = options_.stop_when_speedup && verdict.correct() && verdict.speedup &&
                        *verdict.speedup >= *options_.stop_when_speedup;
    if (enough) state_ = State::ended;
    return {.observation = context_.compact(task_, past_),
            .reward = std::move(reward),
            .terminated = enough,
            .truncated = false,
            .info = std::move(verdict)};
  }

  std::shared_ptr<const Task> task_;
  E* evaluator_;
  [[no_unique_address]] R reward_;
  C context_;
  RefinementOptions options_;
  std::uint64_t seed_ = 0;
  State state_ = State::fresh;
  std::vector<PastTurn> past_;
};

}  // namespace kevin

#endif  // KEVIN_REFINE_REFINEMENT_ENV_HPP
