#ifndef KEVIN_REFINE_PROMPT_HPP
#define KEVIN_REFINE_PROMPT_HPP

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kevin/config.hpp"
#include "kevin/refine/context.hpp"
#include "kevin/refine/describe.hpp"
#include "kevin/refine/feedback.hpp"
#include "kevin/refine/format.hpp"
#include "kevin/refine/prompt_options.hpp"
#include "kevin/refine/signature.hpp"
#include "kevin/refine/text.hpp"

namespace kevin {

/// One message of a chat. Roles: "system", "user", "assistant".
struct Message {
  std::string role;
  std::string content;
  friend bool operator==(const Message&, const Message&) = default;
};

namespace detail {

[[nodiscard]] constexpr std::string_view code_language(const PromptOptions& options) noexcept {
  return options.backend == Backend::cuda ? "cuda" : "cpp";
}

/// Task, interface, rules and answer format: what every prompt begins with.
[[nodiscard]] inline std::string task_text(const Task& task, const PromptOptions& options) {
  std::string text = "# Task\n" + fenced(describe(task), "python");
  text += "\n# Interface\nDefine this function:\n" +
          fenced(kernel_signature(task, options.backend), code_language(options)) + options.interface_notes;
  text += "\n# Rules\n" + options.rules;
  if (options.backend != Backend::cpu) {
    // a GPU has its own words for threads, in the rules
  } else if (options.threads == 1) {
    text += "- It uses one thread; so does the baseline.\n";
  } else {
    text += "- It uses at most " + std::to_string(options.threads) +
            " threads, the calling one included, and joins them before it returns;\n" + "  the baseline has as many.\n";
  }
  return text + "\n# Answer format\n" + options.answer_format;
}

[[nodiscard]] inline std::string example_text(const Context& context, const PromptOptions& options) {
  if (context.turn > 0 || options.example.empty()) return {};
  return "\n# Example\n" + options.example;
}

/// Which turns follow, and how many are missing.
[[nodiscard]] inline std::string history_text(const Context& context) {
  if (context.turn == 0) return {};
  const std::size_t kept = context.history.size();
  std::string text = "\n# Earlier attempts\n";
  if (kept == 0) return text + "You have made " + std::to_string(context.turn) + " so far; none is shown.\n";
  text += kept == 1 ? "One attempt" : std::to_string(kept) + " attempts, oldest first";
  if (context.dropped > 0)
    text +=
        "; " + std::to_string(context.dropped) + (context.dropped == 1 ? " other is" : " others are") + " not shown";
  return text + ".\n";
}

[[nodiscard]] inline std::string attempt_name(const PastTurn& past) {
  return "Attempt " + std::to_string(past.turn + 1);
}

/// A part of an earlier answer, fenced, since what an agent wrote might look like the prompt's own structure.
[[nodiscard]] inline std::string quoted(std::string_view part, std::size_t limit, std::string_view language) {
  return fenced(clip(printable(part), limit), language);
}

[[nodiscard]] inline std::string attempt_text(const PastTurn& past, const PromptOptions& options) {
  std::string text = "\n## " + attempt_name(past) + '\n';
  if (!blank(past.thought)) text += "Thought:\n" + quoted(past.thought, options.max_thought_bytes, "text");
  if (!blank(past.source)) text += "Kernel:\n" + quoted(past.source, options.max_source_bytes, code_language(options));
  if (!blank(past.summary)) text += "Your summary:\n" + quoted(past.summary, options.max_summary_bytes, "text");
  return text + "Result: " + feedback(past.verdict, options.feedback);
}

}  // namespace detail

/// The prompt of a turn as one text, built as in Kevin-32B (arXiv 2507.11948, appendix D): task, interface, rules and
/// answer format; before the first turn a worked example; later, for every kept turn in time order, the kernel, the
/// agent's own summary and exactly one item of feedback; at the end the order to write, or to reason afresh and write
/// all of it again. Valid UTF-8; what agents and compilers wrote is fenced and cut to the sizes in `options`.
[[nodiscard]] inline std::string prompt_text(const Context& context, const PromptOptions& options = {}) {
  KEVIN_ASSERT(context.task != nullptr);
  std::string text = options.goal + '\n' + detail::task_text(*context.task, options) +
                     detail::example_text(context, options) + detail::history_text(context);
  for (const PastTurn& past : context.history) text += detail::attempt_text(past, options);
  text += "\n# Your turn\n";
  return text += context.turn == 0 ? options.first_order : options.next_order;
}

/// The same as a chat: the goal as the system's message, the task as the user's; then for every kept turn the agent's
/// answer in the documented format, and the feedback as the user's; the order ends the last message. Roles alternate.
[[nodiscard]] inline std::vector<Message> prompt_messages(const Context& context, const PromptOptions& options = {}) {
  KEVIN_ASSERT(context.task != nullptr);
  std::vector<Message> messages;
  messages.push_back({"system", options.goal});
  messages.push_back({"user", detail::task_text(*context.task, options) + detail::example_text(context, options) +
                                  detail::history_text(context)});
  for (const PastTurn& past : context.history) {
    const auto part = [](std::string_view text, std::size_t limit) {
      return detail::clip(detail::printable(text), limit);
    };
    std::string answer =
        format_response({part(past.thought, options.max_thought_bytes), part(past.summary, options.max_summary_bytes),
                         part(past.source, options.max_source_bytes)});
    if (answer.empty()) answer = "(no readable answer)\n";
    messages.push_back({"assistant", std::move(answer)});
    messages.push_back({"user", detail::attempt_name(past) + ": " + feedback(past.verdict, options.feedback)});
  }
  messages.back().content += '\n';
  messages.back().content += context.turn == 0 ? options.first_order : options.next_order;
  return messages;
}

}  // namespace kevin

#endif  // KEVIN_REFINE_PROMPT_HPP
