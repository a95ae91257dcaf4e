#ifndef KEVIN_REFINE_PROMPT_OPTIONS_HPP
#define KEVIN_REFINE_PROMPT_OPTIONS_HPP

#include <cstddef>
#include <string>
#include <string_view>

#include "kevin/refine/feedback.hpp"
#include "kevin/refine/signature.hpp"

namespace kevin {

/// The default wording of prompts for cpu kernels.
namespace wording {

inline constexpr std::string_view goal =
    "You write fast CPU kernels in C++. You are given a reference operation; replace it by one kernel that computes "
    "the same\n"
    "result in less time. A wrong kernel earns nothing; a correct one earns more the faster it is.\n";

inline constexpr std::string_view interface_notes =
    "Every tensor is contiguous and row-major, and the shapes above are fixed: use them as constants. Inputs and "
    "parameters\n"
    "are read-only. Outputs hold garbage before the call: write every element. float16 and bfloat16 are passed as "
    "their raw\n"
    "16 bits. The call is repeated with fresh inputs, so compute everything anew each time.\n";

inline constexpr std::string_view rules =
    "- C++20. Only headers of the C++ standard library and the compiler's own (such as <immintrin.h>) can be "
    "included.\n"
    "- The kernel does all the work itself: no files, no network, no other processes, no other libraries.\n"
    "- It reads and writes only its arguments, its own variables and memory that it allocates and frees itself.\n"
    "- It returns normally: no exit, no abort, no exception that leaves it. Time and memory are limited.\n"
    "- It is judged in a sandbox; whatever breaks a rule counts as a failure of the kernel.\n";

inline constexpr std::string_view answer_format =
    "Think first, between <think> and </think>. Then give the complete source in exactly one code block marked cpp, "
    "and after\n"
    "it a summary of a few sentences between <summary> and </summary>: what you did, why, and what you would try next. "
    "In later\n"
    "turns you will see your kernels, your summaries and what came of them, but not your thoughts.\n";

/// The worked example of the first turn: a whole answer to another task.
inline constexpr std::string_view example =
    "For a task that adds two float32 vectors of 4096 elements, `extern \"C\" void kernel(const float* a, const float* "
    "b, float* out)`,\n"
    "this would be a complete answer:\n"
    "\n"
    "<think>\n"
    "The sum is bound by memory traffic. Without aliasing the compiler vectorises a plain loop.\n"
    "</think>\n"
    "\n"
    "```cpp\n"
    "extern \"C\" void kernel(const float* __restrict a, const float* __restrict b, float* __restrict out) {\n"
    "  for (int i = 0; i < 4096; ++i) out[i] = a[i] + b[i];\n"
    "}\n"
    "```\n"
    "\n"
    "<summary>\n"
    "One pass with restrict pointers, so that the compiler vectorises it. Non-temporal stores could be tried next.\n"
    "</summary>\n";

inline constexpr std::string_view first_order = "Write the kernel now, in the format above.\n";

inline constexpr std::string_view next_order =
    "Reason afresh: repair what failed, or find what limits the fastest correct kernel so far and remove it. Answer "
    "with the\n"
    "complete source again, not with a change to an earlier one, in the format above.\n";

}  // namespace wording

/// How a prompt is worded and how large its parts may be. Every text can be replaced; each ends with a line end.
struct PromptOptions {
  std::string goal{wording::goal};
  std::string interface_notes{wording::interface_notes};
  std::string rules{wording::rules};
  std::string answer_format{wording::answer_format};
  std::string example{wording::example};  ///< shown before the first turn only; empty: never
  std::string first_order{wording::first_order};
  std::string next_order{wording::next_order};
  Backend backend = Backend::cpu;          ///< what the function to define is declared for
  std::size_t threads = 1;                 ///< how many the evaluator lets a cpu kernel use
  std::size_t max_source_bytes = 32768;    ///< of each earlier kernel
  std::size_t max_summary_bytes = 4096;    ///< of each earlier summary
  std::size_t max_thought_bytes = 262144;  ///< of each earlier thought, where they are kept
  FeedbackOptions feedback{};
};

}  // namespace kevin

#endif  // KEVIN_REFINE_PROMPT_OPTIONS_HPP
