#ifndef KEVIN_REFINE_LAST_TURN_HPP
#define KEVIN_REFINE_LAST_TURN_HPP

#include <memory>
#include <span>

#include "kevin/refine/context.hpp"

namespace kevin {

/// Keeps the newest turn alone, without its thought: the shortest context that still tells what went wrong.
struct LastTurn {
  [[nodiscard]] Context compact(const std::shared_ptr<const Task>& task, std::span<const PastTurn> past) const {
    if (past.empty()) return {task, 0, {}, 0};
    Context context{task, past.size(), {}, past.size() - 1};
    context.history.push_back(past.back());
    context.history.front().thought.clear();
    return context;
  }
};

}  // namespace kevin

#endif  // KEVIN_REFINE_LAST_TURN_HPP
