#ifndef KEVIN_REFINE_FORMAT_ERROR_HPP
#define KEVIN_REFINE_FORMAT_ERROR_HPP

#include <cstddef>
#include <string>
#include <string_view>

#include "kevin/refine/verdict.hpp"

namespace kevin {

/// Why no kernel could be taken from a text.
enum class FormatFault {
  empty_text,            ///< nothing but blanks
  no_code_block,         ///< no fenced block outside of the thought
  code_only_in_thought,  ///< there is one, but only inside the thought
  unclosed_thought,      ///< <think> without </think>: the text was cut, or the answer is part of the thought
  unclosed_code_block,   ///< the fence is never closed: the text was cut
  empty_code_block,      ///< the block holds nothing but blanks
  wrong_language,        ///< the block is marked as another language and does not look like a kernel
  several_code_blocks,   ///< (strict) more than one
  missing_summary,       ///< (strict) no <summary>, or an empty one
  unexpected_text,       ///< (strict) text outside of the three parts
  invalid_text,          ///< (strict) a NUL byte, or bytes that are not UTF-8
};

/// The stable word that Verdict::reason carries.
[[nodiscard]] constexpr std::string_view to_string(FormatFault f) noexcept {
  switch (f) {
    case FormatFault::empty_text:
      return "empty_text";
    case FormatFault::no_code_block:
      return "no_code_block";
    case FormatFault::code_only_in_thought:
      return "code_only_in_thought";
    case FormatFault::unclosed_thought:
      return "unclosed_thought";
    case FormatFault::unclosed_code_block:
      return "unclosed_code_block";
    case FormatFault::empty_code_block:
      return "empty_code_block";
    case FormatFault::wrong_language:
      return "wrong_language";
    case FormatFault::several_code_blocks:
      return "several_code_blocks";
    case FormatFault::missing_summary:
      return "missing_summary";
    case FormatFault::unexpected_text:
      return "unexpected_text";
    case FormatFault::invalid_text:
      return "invalid_text";
  }
  return "invalid_text";
}

/// What is wrong with a text, and where.
struct FormatError {
  FormatFault fault = FormatFault::empty_text;
  std::size_t position = 0;  ///< bytes from the text's beginning
  std::string text;          ///< for the agent, with the number of the line
};

/// The verdict on a text that could not be read.
[[nodiscard]] inline Verdict to_verdict(const FormatError& error) {
  Verdict verdict;
  verdict.stage = Stage::format;
  verdict.reason = std::string(to_string(error.fault));
  verdict.diagnostics = error.text;
  return verdict;
}

namespace detail {

[[nodiscard]] constexpr std::string_view explain(FormatFault f) noexcept {
  switch (f) {
    case FormatFault::empty_text:
      return "the answer is empty";
    case FormatFault::no_code_block:
      return "the answer holds no fenced code block";
    case FormatFault::code_only_in_thought:
      return "the only code block is inside the thought; the kernel belongs after </think>";
    case FormatFault::unclosed_thought:
      return "the thought that begins here is never closed with </think>";
    case FormatFault::unclosed_code_block:
      return "the code block that begins here is never closed; was the answer too long?";
    case FormatFault::empty_code_block:
      return "the code block is empty";
    case FormatFault::wrong_language:
      return "the code block is not marked as C++ (```cpp)";
    case FormatFault::several_code_blocks:
      return "a second code block, or a fence inside the first; the answer must hold exactly one";
    case FormatFault::missing_summary:
      return "no <summary> with text and a closing </summary> follows the code block";
    case FormatFault::unexpected_text:
      return "text outside of the thought, the code block and the summary";
    case FormatFault::invalid_text:
      return "a NUL byte, or a byte that is not UTF-8";
  }
  return "";
}

}  // namespace detail
}  // namespace kevin

#endif  // KEVIN_REFINE_FORMAT_ERROR_HPP
