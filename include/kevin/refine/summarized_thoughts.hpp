#ifndef KEVIN_REFINE_SUMMARIZED_THOUGHTS_HPP
#define KEVIN_REFINE_SUMMARIZED_THOUGHTS_HPP

#include <memory>
#include <span>

#include "kevin/refine/context.hpp"
#include "kevin/refine/token_budget.hpp"

namespace kevin {

/// Kevin-32B's context (arXiv 2507.11948, section 4.1): thoughts are dropped; every kept turn carries the agent's own
/// summary, the kernel and the verdict; when the whole prompt would exceed the budget, the oldest turns are cut first.
/// The task is always kept, and so is the newest turn, even when the two alone exceed the budget: what failed last is
/// what the next answer is about, and PromptOptions bounds its length.
struct SummarizedThoughts {
  TokenBudget budget{};

  [[nodiscard]] Context compact(const std::shared_ptr<const Task>& task, std::span<const PastTurn> past) const {
    return detail::keep_newest(task, past, budget, false);
  }
};

}  // namespace kevin

#endif  // KEVIN_REFINE_SUMMARIZED_THOUGHTS_HPP
