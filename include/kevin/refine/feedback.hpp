#ifndef KEVIN_REFINE_FEEDBACK_HPP
#define KEVIN_REFINE_FEEDBACK_HPP

#include <cstddef>
#include <string>
#include <string_view>

#include "kevin/core/math.hpp"
#include "kevin/refine/text.hpp"
#include "kevin/refine/verdict.hpp"

namespace kevin {

/// How much an agent is told.
struct FeedbackOptions {
  std::size_t max_diagnostics_bytes = 2000;  ///< of a verdict's diagnostics; head and tail are kept
};

namespace detail {

/// A verdict's reason as words: "unwritten_output" -> " (unwritten output)". Anything but letters, digits and spaces is
/// dropped, since a word is all that it may be.
[[nodiscard]] inline std::string reason_words(std::string_view reason) {
  std::string words;
  for (const char c : reason.substr(0, 60)) {
    const bool plain = (lower(c) >= 'a' && lower(c) <= 'z') || (c >= '0' && c <= '9');
    if (plain) words += c;
    if (c == '_' || c == ' ') words += ' ';
  }
  return words.empty() ? words : " (" + words + ')';
}

[[nodiscard]] inline std::string error_words(const ErrorFigures& e) {
  std::string text = std::to_string(e.wrong) + " of " + std::to_string(e.elements) + " elements are wrong";
  if (e.unwritten > 0) text += ", " + std::to_string(e.unwritten) + " were never written";
  if (e.not_finite > 0) text += ", " + std::to_string(e.not_finite) + " are NaN or infinite";
  text += "; largest absolute error " + number(e.max_absolute);
  if (e.max_relative > 0) text += ", largest relative error " + number(e.max_relative);  // where 0 is not expected
  return text + ".\n";
}

}  // namespace detail

/// What the agent is told about its last kernel: exactly one of five things, namely that the answer could not be read,
/// that it does not compile, that it failed while running, that its output is wrong, or that it is correct and how fast
/// (Kevin-32B, arXiv 2507.11948, appendix D). The diagnostics stand in a fenced block that nothing in them can end, cut
/// to `max_diagnostics_bytes`, without control characters: `#error` and symbol names let a candidate write into them.
/// Nothing else of the verdict is told: no score, no table of times, no flags.
[[nodiscard]] inline std::string feedback(const Verdict& v, const FeedbackOptions& options = {}) {
  std::string text;
  switch (v.stage) {
    case Stage::format:
      text = "No kernel could be read from this answer";
      break;
    case Stage::compile:
      text = "The kernel does not compile";
      break;
    case Stage::run:
      text = "The kernel compiles but failed when it was run";
      break;
    case Stage::correctness:
      text = "The kernel runs but its output is wrong";
      break;
    case Stage::correct:
      if (v.speedup && detail::is_finite(*v.speedup) && *v.speedup >= 0) {
        return "The kernel is correct. Speedup over the baseline: " + detail::number(*v.speedup) + "x.\n";
      }
      return "The kernel is correct. Its speed was not measured.\n";
  }
  text += detail::reason_words(v.reason) + ".\n";
  const std::string diagnostics = detail::printable(v.diagnostics);
  if (detail::blank(diagnostics)) {
    if (v.stage == Stage::correctness && v.error) text += detail::error_words(*v.error);
    return text;
  }
  return text += detail::fenced(detail::clip(detail::trim(diagnostics), options.max_diagnostics_bytes), "text");
}

}  // namespace kevin

#endif  // KEVIN_REFINE_FEEDBACK_HPP
