#ifndef KEVIN_REFINE_FULL_HISTORY_HPP
#define KEVIN_REFINE_FULL_HISTORY_HPP

#include <memory>
#include <span>

#include "kevin/refine/context.hpp"
#include "kevin/refine/token_budget.hpp"

namespace kevin {

/// Keeps everything, thoughts too, as far as the budget reaches; the oldest turns are cut first, the newest never.
struct FullHistory {
  TokenBudget budget{};

  [[nodiscard]] Context compact(const std::shared_ptr<const Task>& task, std::span<const PastTurn> past) const {
    return detail::keep_newest(task, past, budget, true);
  }
};

}  // namespace kevin

#endif  // KEVIN_REFINE_FULL_HISTORY_HPP
