#ifndef KEVIN_REFINE_TOKEN_BUDGET_HPP
#define KEVIN_REFINE_TOKEN_BUDGET_HPP

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "kevin/refine/context.hpp"
#include "kevin/refine/prompt.hpp"

namespace kevin {

/// Counts the tokens of a text. Must be callable from several threads at once, and must not count less for more text.
using TokenCounter = std::function<std::size_t(std::string_view)>;

/// An estimate for those who have no tokenizer: a token for every four bytes, rounded up.
[[nodiscard]] inline std::size_t estimate_tokens(std::string_view text) {
  return text.size() / 4 + (text.size() % 4 == 0 ? 0 : 1);
}

/// Makes a prompt of a context; prompt_text where there is nothing else.
using PromptRenderer = std::function<std::string(const Context&)>;

/// How long a whole prompt may become, and how that is found out.
struct TokenBudget {
  std::size_t tokens = 8192;  ///< the longest prompt of Kevin-32B's authors (their article of May 2025)
  TokenCounter count = estimate_tokens;
  PromptRenderer render = [](const Context& context) { return prompt_text(context); };
};

namespace detail {

/// The newest turns of `past` that fit into the budget, thoughts kept or not. The newest is kept whatever its length.
[[nodiscard]] inline Context keep_newest(const std::shared_ptr<const Task>& task, std::span<const PastTurn> past,
                                         const TokenBudget& budget, bool thoughts) {
  const auto newest = [&](std::size_t n) {
    Context context{task, past.size(), {}, past.size() - n};
    for (std::size_t i = past.size() - n; i < past.size(); ++i) {
      context.history.push_back(past[i]);
      if (!thoughts) context.history.back().thought.clear();
    }
    return context;
  };
  const auto fits = [&](const Context& context) { return budget.count(budget.render(context)) <= budget.tokens; };
  Context best = newest(past.size());
  if (past.size() <= 1 || fits(best)) return best;
  std::size_t most = 1;  // kept whether it fits or not
  for (std::size_t too_many = past.size(); too_many - most > 1;) {
    const std::size_t middle = most + (too_many - most) / 2;
    (fits(newest(middle)) ? most : too_many) = middle;
  }
  return newest(most);
}

}  // namespace detail

}  // namespace kevin

#endif  // KEVIN_REFINE_TOKEN_BUDGET_HPP
