#ifndef KEVIN_REFINE_TEXT_HPP
#define KEVIN_REFINE_TEXT_HPP

#include <charconv>
#include <cstddef>
#include <string>
#include <string_view>
#include <system_error>

#include "kevin/core/math.hpp"

/// Small text tools of this floor. What an agent or a compiler wrote is untrusted: it is cleaned, cut and quoted here
/// before it becomes part of a prompt.
namespace kevin::detail {

inline constexpr std::string_view replacement = "\xEF\xBF\xBD";  // U+FFFD
inline constexpr std::string_view blanks = " \t\r\n\f\v";

/// Bytes of the UTF-8 sequence that begins at `i`; 0 when it is not valid (Unicode 15.0, table 3-7: no overlong forms,
/// no surrogates, nothing above U+10FFFF).
[[nodiscard]] constexpr std::size_t utf8_length(std::string_view text, std::size_t i) noexcept {
  const auto at = [&](std::size_t k) -> unsigned { return k < text.size() ? static_cast<unsigned char>(text[k]) : 0U; };
  const auto tail = [&](std::size_t k) { return (at(k) & 0xC0U) == 0x80U; };
  const unsigned lead = at(i);
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return tail(i + 1) ? 2 : 0;
  if (lead >= 0xE0 && lead <= 0xEF) {
    const unsigned second = at(i + 1);
    if ((lead == 0xE0 && second < 0xA0) || (lead == 0xED && second > 0x9F)) return 0;
    return tail(i + 1) && tail(i + 2) ? 3 : 0;
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    const unsigned second = at(i + 1);
    if ((lead == 0xF0 && second < 0x90) || (lead == 0xF4 && second > 0x8F)) return 0;
    return tail(i + 1) && tail(i + 2) && tail(i + 3) ? 4 : 0;
  }
  return 0;
}

/// Where the first byte stands that is NUL or not UTF-8; npos when there is none.
[[nodiscard]] constexpr std::size_t find_unclean(std::string_view text) noexcept {
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t n = utf8_length(text, i);
    if (n == 0 || text[i] == '\0') return i;
    i += n;
  }
  return std::string_view::npos;
}

/// `text` as valid UTF-8 without NUL (each bad byte becomes U+FFFD) and with '\n' as the only line end.
[[nodiscard]] inline std::string clean(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t n = utf8_length(text, i);
    if (n == 0 || text[i] == '\0') {
      out += replacement;
      ++i;
    } else if (text[i] == '\r') {
      if (i + 1 >= text.size() || text[i + 1] != '\n') out += '\n';
      ++i;
    } else {
      out.append(text, i, n);
      i += n;
    }
  }
  return out;
}

/// `clean`, and without what a terminal or a tokenizer would obey: other control characters become U+FFFD, and the
/// opening of a chat template's special token ("<|") is broken up.
[[nodiscard]] inline std::string printable(std::string_view text) {
  const std::string cleaned = clean(text);
  std::string out;
  out.reserve(cleaned.size());
  for (std::size_t i = 0; i < cleaned.size(); ++i) {
    const char c = cleaned[i];
    const bool control = (static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t') || c == '\x7f';
    if (control) {
      out += replacement;
    } else {
      out += c;
      if (c == '<' && i + 1 < cleaned.size() && cleaned[i + 1] == '|') out += ' ';
    }
  }
  return out;
}

[[nodiscard]] constexpr bool blank(std::string_view text) noexcept {
  return text.find_first_not_of(blanks) == std::string_view::npos;
}

[[nodiscard]] constexpr std::string_view trim(std::string_view text) noexcept {
  const std::size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

[[nodiscard]] constexpr char lower(char c) noexcept {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

/// Whether `text` has `word` (in lower case) at `i`, upper and lower case being the same.
[[nodiscard]] constexpr bool has_at(std::string_view text, std::size_t i, std::string_view word) noexcept {
  if (i > text.size() || text.size() - i < word.size()) return false;
  for (std::size_t k = 0; k < word.size(); ++k) {
    if (lower(text[i + k]) != word[k]) return false;
  }
  return true;
}

/// At most `limit` bytes of `text`: all of it, or its first two thirds and its last third, cut between characters and,
/// where one is near, between lines, with a line between them that says how much is missing.
[[nodiscard]] inline std::string clip(std::string_view text, std::size_t limit) {
  if (text.size() <= limit) return std::string(text);
  const auto continues = [&](std::size_t i) { return (static_cast<unsigned char>(text[i]) & 0xC0U) == 0x80U; };
  std::size_t head = limit - limit / 3;
  while (head > 0 && continues(head)) --head;
  if (const std::size_t line = text.substr(0, head).rfind('\n'); line != std::string_view::npos && line >= head / 2)
    head = line;
  std::size_t tail = text.size() - limit / 3;
  while (tail < text.size() && continues(tail)) ++tail;
  if (const std::size_t line = text.find('\n', tail); line != std::string_view::npos && line - tail <= limit / 6)
    tail = line + 1;
  std::string out(text.substr(0, head));
  if (!out.empty() && out.back() != '\n') out += '\n';
  out += "[... " + std::to_string(tail - head) + " bytes left out ...]\n";
  return out += text.substr(tail);
}

/// Length of the longest run of backticks.
[[nodiscard]] constexpr std::size_t longest_backticks(std::string_view text) noexcept {
  std::size_t longest = 0;
  std::size_t run = 0;
  for (const char c : text) {
    run = c == '`' ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  return longest;
}

/// `text` as a fenced block that nothing in it can end: the fence is longer than any run of backticks inside.
[[nodiscard]] inline std::string fenced(std::string_view text, std::string_view language) {
  const std::string fence(std::max<std::size_t>(3, longest_backticks(text) + 1), '`');
  std::string out = fence;
  out.append(language).append(1, '\n').append(text);
  if (!text.empty() && text.back() != '\n') out += '\n';
  return out.append(fence).append(1, '\n');
}

/// A number for a reader: three significant digits up to 100, no digits after the point beyond; the same in every
/// locale.
[[nodiscard]] inline std::string number(double value) {
  if (!is_finite(value)) return value != value ? "nan" : value < 0 ? "-inf" : "inf";
  char buffer[32];
  const double magnitude = value < 0 ? -value : value;
  const bool plain = magnitude >= 99.95 && magnitude < 1e15;
  const std::to_chars_result end =
      plain ? std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::fixed, 0)
            : std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::general, 3);
  return end.ec == std::errc() ? std::string(buffer, end.ptr) : std::to_string(value);
}

}  // namespace kevin::detail

#endif  // KEVIN_REFINE_TEXT_HPP
