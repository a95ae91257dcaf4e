#ifndef KEVIN_EVAL_SOURCE_TEXT_HPP
#define KEVIN_EVAL_SOURCE_TEXT_HPP

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "kevin/eval/text_safety.hpp"

/// What reading sources and compilers' messages has in common, whichever the compiler.
namespace kevin::eval::detail {

/// A place in a source.
struct Location {
  std::string_view file;
  std::size_t line = 0;    ///< from 1; 0 = none
  std::size_t column = 0;  ///< bytes, from 1; 0 = none
};

/// Calls `line` with each line of `text`, without its end.
template <class Line>
void for_each_line(std::string_view text, Line line) {
  while (!text.empty()) {
    const auto end = text.find('\n');
    std::string_view one = text.substr(0, end);
    while (one.ends_with('\r')) one.remove_suffix(1);
    line(one);
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
}

/// Removes what means nothing from the front of a source; false = nothing else is there.
[[nodiscard]] constexpr bool skip_blank_and_comments(std::string_view& text) noexcept {
  for (;;) {
    const auto begin = text.find_first_not_of(" \t\r\n\f\v");
    if (begin == std::string_view::npos) return false;
    text.remove_prefix(begin);
    std::size_t end = std::string_view::npos;
    if (text.starts_with("//")) {
      end = text.find('\n');
    } else if (text.starts_with("/*")) {
      end = text.find("*/", 2);
      if (end != std::string_view::npos) end += 2;
    } else {
      return true;
    }
    if (end == std::string_view::npos) return false;
    text.remove_prefix(end);
  }
}

/// "    7 |   y = x;" and a caret below, taken from the candidate's own text; nothing for a line it does not have.
[[nodiscard]] inline std::string quote(std::string_view source, const Location& l) {
  constexpr std::size_t width = 120;
  std::size_t begin = 0;
  for (std::size_t n = 1; n < l.line; ++n) {
    begin = source.find('\n', begin);
    if (begin == std::string_view::npos) return {};
    ++begin;
  }
  if (l.line == 0 || begin >= source.size()) return {};
  std::string_view text = source.substr(begin, source.find('\n', begin) - begin);
  while (text.ends_with('\r')) text.remove_suffix(1);
  if (text.find_first_not_of(" \t") == std::string_view::npos) return {};
  std::size_t column = std::min(l.column, text.size() + 1);
  std::string before, after;
  if (column > width) {  // a window that shows the place
    const std::size_t skipped = column - width / 2;
    text.remove_prefix(skipped);
    column -= skipped;
    before = "...";
  }
  if (text.size() > width) {
    text = text.substr(0, width);
    after = "...";
  }
  std::string number = std::to_string(l.line);
  number.insert(0, number.size() < 5 ? 5 - number.size() : 0, ' ');
  std::string out = number + " | " + before;
  const std::string_view left = text.substr(0, column == 0 ? 0 : column - 1);
  std::string spaces_tabs = std::string(before.size(), ' ');
  for (std::size_t i = 0; i < left.size();) {  // the caret's line repeats tabs, so that it stays below its place
    const std::size_t length = first_utf8(left.substr(i)).length;
    const std::size_t shown = append_visible(out, left.substr(i, length));
    spaces_tabs += left[i] == '\t' ? std::string("\t") : std::string(shown, ' ');
    i += length;
  }
  append_visible(out, text.substr(left.size()));
  out += after + '\n';
  if (column != 0) out += std::string(number.size(), ' ') + " | " + spaces_tabs + "^\n";
  return out;
}

/// Why a file could not be opened is nobody's business: the same words for "does not exist" and "not allowed".
[[nodiscard]] inline std::string message_text(std::string_view raw) {
  static constexpr std::array<std::string_view, 8> endings{"No such file or directory",
                                                           "Permission denied",
                                                           "Is a directory",
                                                           "Not a directory",
                                                           "file not found",
                                                           "Operation not permitted",
                                                           "Too many levels of symbolic links",
                                                           "File name too long"};
  const bool file = std::any_of(endings.begin(), endings.end(), [&](std::string_view e) { return raw.ends_with(e); }) ||
                    raw.starts_with("file not found") || raw.starts_with("can't open") ||
                    raw.starts_with("cannot open") || raw.find("argument to '#include' is a directory") != raw.npos;
  if (file) {
    std::string_view name = raw.substr(0, raw.find(": "));
    name = short_name(name.substr(0, name.find('\'', 1)));
    while (name.starts_with('\'')) name.remove_prefix(1);
    // The compiler puts the name first; assembler and linker put it elsewhere.
    const bool first = !raw.starts_with("file ") && !raw.starts_with("can't ") && !raw.starts_with("cannot ");
    const bool plain =
        first && !name.empty() && name.size() <= 64 && std::all_of(name.begin(), name.end(), path_character);
    std::string out;
    append_visible(out, plain ? '<' + std::string(name) + "> cannot be included: only the compiler's own headers can"
                              : "file cannot be read");
    return out;
  }
  constexpr std::size_t longest = 320;
  std::string visible, out;
  append_visible(visible, raw.substr(0, 4 * longest));
  out = without_paths(visible);
  if (out.size() > longest) out = std::string(cut_utf8(out, longest)) + "...";
  return out;
}

/// Joins blocks of lines up to `limit` bytes: whole blocks, then whole lines, and of the very first line a part.
[[nodiscard]] inline std::string join(const std::vector<std::string>& blocks, std::size_t limit) {
  std::string out;
  for (const std::string& block : blocks) {
    if (out.size() + block.size() <= limit) {
      out += block;
      continue;
    }
    std::string_view rest = block;
    while (!rest.empty()) {
      const std::size_t end = rest.find('\n');  // the last line may lack one
      const std::string_view line = end == std::string_view::npos ? rest : rest.substr(0, end + 1);
      if (out.size() + line.size() > limit) break;
      out += line;
      rest.remove_prefix(line.size());
    }
    if (out.empty()) out = cut_utf8(block, limit);
    break;
  }
  while (out.ends_with('\n')) out.pop_back();
  return out;
}

}  // namespace kevin::eval::detail

#endif  // KEVIN_EVAL_SOURCE_TEXT_HPP
