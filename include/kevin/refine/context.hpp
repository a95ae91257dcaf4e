#ifndef KEVIN_REFINE_CONTEXT_HPP
#define KEVIN_REFINE_CONTEXT_HPP

#include <concepts>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kevin/core/reward.hpp"
#include "kevin/refine/task.hpp"
#include "kevin/refine/verdict.hpp"

namespace kevin {

/// What is carried of an earlier turn.
struct PastTurn {
  std::string summary;  ///< the agent's own, in place of its thought
  std::string source;   ///< empty when no kernel could be read from the answer
  Verdict verdict;
  Score score;            ///< for policies that choose turns by it; prompts do not show it
  std::string thought{};  ///< empty unless the ContextPolicy keeps thoughts
  std::size_t turn = 0;   ///< 0-based number of the turn within the episode
};

/// What an agent sees before a turn: the task, and what is kept of the turns so far.
struct Context {
  std::shared_ptr<const Task> task;  ///< never null in a Context that an environment gave
  std::size_t turn = 0;              ///< 0-based number of the turn to be taken
  std::vector<PastTurn> history{};   ///< oldest first
  std::size_t dropped = 0;           ///< earlier turns that are not in `history`
};

/// A ContextPolicy decides what of the past the next prompt carries.
///
/// Semantics that the compiler cannot check: the result's task is `task` and its turn is `past.size()`; its history is
/// made of turns of `past` in time order, and `dropped` counts the others; the same arguments give the same result; it
/// may be called from several threads at once. Models: SummarizedThoughts (the default), FullHistory, LastTurn.
///
/// Smallest model:
///     struct Nothing {
///       Context compact(const std::shared_ptr<const Task>& task, std::span<const PastTurn> past) const {
///         return {.task = task, .turn = past.size(), .history = {}, .dropped = past.size()};
///       }
///     };
template <class C>
concept ContextPolicy = std::copy_constructible<C> &&
    requires(const C& policy, const std::shared_ptr<const Task>& task, std::span<const PastTurn> past) {
  { policy.compact(task, past) } -> std::same_as<Context>;
};

}  // namespace kevin

#endif  // KEVIN_REFINE_CONTEXT_HPP
