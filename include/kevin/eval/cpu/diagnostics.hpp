#ifndef KEVIN_EVAL_CPU_DIAGNOSTICS_HPP
#define KEVIN_EVAL_CPU_DIAGNOSTICS_HPP

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kevin/eval/cpu/text_safety.hpp"

namespace kevin::cpu {

/// The names that a candidate's file and the prelude have towards the compiler.
inline constexpr std::string_view kernel_file = "kernel.cpp";
inline constexpr std::string_view signature_file = "signature.hpp";

namespace detail {

struct Location {
  std::string_view file;
  std::size_t line = 0;    ///< from 1; 0 = none
  std::size_t column = 0;  ///< bytes, from 1; 0 = none
};

/// "file:12:3" or "file:12" or "file".
[[nodiscard]] inline Location parse_location(std::string_view text) {
  Location l{text, 0, 0};
  std::array<std::size_t, 2> numbers{};
  std::size_t found = 0;
  while (found < 2) {
    const auto colon = l.file.rfind(':');
    if (colon == std::string_view::npos) break;
    const std::string_view digits = l.file.substr(colon + 1);
    if (digits.empty() || digits.size() > 9 || digits.find_first_not_of("0123456789") != std::string_view::npos) break;
    std::size_t n = 0;
    for (const char c : digits) n = 10 * n + static_cast<std::size_t>(c - '0');
    numbers[found++] = n;
    l.file = l.file.substr(0, colon);
  }
  if (found == 2) l.line = numbers[1], l.column = numbers[0];
  if (found == 1) l.line = numbers[0];
  return l;
}

struct Message {
  enum class Kind { error, note, other } kind = Kind::other;
  Location where;
  std::string_view text;
};

/// One line of g++'s, clang's or the assembler's output; nullopt = not a message.
[[nodiscard]] inline std::optional<Message> parse_message(std::string_view line) {
  struct Mark {
    std::string_view text;
    Message::Kind kind;
  };
  using Kind = Message::Kind;
  static constexpr std::array<Mark, 9> marks{{{": error: ", Kind::error},
                                              {": fatal error: ", Kind::error},
                                              {": Error: ", Kind::error},
                                              {": Fatal error: ", Kind::error},
                                              {": sorry, unimplemented: ", Kind::error},
                                              {": internal compiler error: ", Kind::error},
                                              {": note: ", Kind::note},
                                              {": warning: ", Kind::other},
                                              {":   required from here", Kind::note}}};
  std::size_t at = std::string_view::npos;
  const Mark* mark = nullptr;
  for (const Mark& m : marks) {  // the first one in the line: a message's own text may contain others
    const auto found = line.find(m.text);
    if (found < at) at = found, mark = &m;
  }
  if (!mark) return std::nullopt;
  Message message{mark->kind, parse_location(line.substr(0, at)), line.substr(at + mark->text.size())};
  if (mark == &marks.back()) message.text = "required from here";
  return message;
}

[[nodiscard]] inline bool is_kernel(const Location& l) noexcept {
  return l.file == kernel_file || l.file == "./kernel.cpp";
}

[[nodiscard]] inline bool is_signature(const Location& l) noexcept {
  return l.file == signature_file || l.file == "./signature.hpp";
}

[[nodiscard]] inline std::string display(const Location& l) {
  std::string text;
  if (is_kernel(l)) {
    text = kernel_file;
  } else if (is_signature(l)) {
    return "<signature>";
  } else if (l.file == "{standard input}" || l.file == "<inline asm>" || l.file.ends_with(".s")) {
    return "assembler";  // its line numbers are not the source's
  } else {
    // A name can be chosen freely by #line: only what a header's name may look like is repeated.
    const std::string_view name = short_name(l.file);
    const bool plain = !name.empty() && name.size() <= 64 && name.find("..") == std::string_view::npos &&
                       name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.+/") ==
                           std::string_view::npos;
    text = plain ? '<' + std::string(name) + '>' : "<another file>";
  }
  if (l.line != 0) text += ':' + std::to_string(l.line);
  if (l.line != 0 && l.column != 0) text += ':' + std::to_string(l.column);
  return text;
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

}  // namespace detail

/// What an agent is told of a compiler's output: the first few errors, each with up to two notes that point into its
/// own source, each place shown with the source line and a caret; at most `limit` bytes of valid UTF-8, no control
/// characters but newline and tab, no path of the host.
///
/// `raw` is the output of g++ or clang++ (without carets) and the assembler. It is text that a hostile source can
/// shape, by #line, #error, #pragma message, static_assert, names of symbols. What is done about it:
///   - only lines that are messages are used; source lines shown are never the compiler's quotes, which can come from
///     any file that the compiler could read, but are taken from `source` itself;
///   - file names that #line invented are shown only when they look like a header's name, in angle brackets;
///   - notes and warnings that belong to no error (#pragma message, #warning) are dropped;
///   - the text of an #error or static_assert is repeated as what it is, the candidate's own words, in a line that
///     begins with its place. Verdicts are never derived from this text.
[[nodiscard]] inline std::string compiler_diagnostics(std::string_view raw, std::string_view source,
                                                      std::size_t limit = 2000) {
  constexpr std::size_t max_errors = 5, max_notes = 2, max_read = 100;
  struct Block {
    std::string text;
    std::string head;  // without its place: templates repeat themselves
    std::size_t line;  // quoted last
    std::size_t notes;
    bool own;
  };
  std::vector<Block> blocks;
  std::vector<detail::Location> pending;  // "required from here" comes before the error it explains
  bool open = false;                      // notes belong to the last block
  std::size_t errors = 0;
  const auto add = [&](Block& block, const detail::Location& where, std::string_view kind, std::string_view text) {
    block.text += detail::display(where) + ": " + std::string(kind) + std::string(text) + '\n';
    if (detail::is_kernel(where) && where.line != block.line) {
      block.text += detail::quote(source, where);
      block.line = where.line;
    }
  };
  detail::for_each_line(raw, [&](std::string_view line) {
    const auto message = detail::parse_message(line);
    if (!message || blocks.size() >= max_read) return;
    const bool own = detail::is_kernel(message->where);
    const bool near = own || detail::is_signature(message->where);
    const std::string text = detail::message_text(message->text);
    switch (message->kind) {
      case detail::Message::Kind::other:
        open = false;
        pending.clear();
        break;
      case detail::Message::Kind::error: {
        ++errors;
        open = std::none_of(blocks.begin(), blocks.end(), [&](const Block& b) { return b.head == text; });
        if (open) {
          blocks.push_back({"", text, 0, 0, near || !pending.empty()});
          add(blocks.back(), message->where, "error: ", text);
          for (const auto& place : pending) add(blocks.back(), place, "note: ", "required from here");
        }
        pending.clear();
        break;
      }
      case detail::Message::Kind::note:
        if (message->text == "required from here") {
          if (own && pending.empty()) pending.push_back(message->where);
        } else if (near && open && blocks.back().notes < max_notes) {
          ++blocks.back().notes;
          add(blocks.back(), message->where, "note: ", text);
        }
        break;
    }
  });
  std::stable_partition(blocks.begin(), blocks.end(), [](const Block& b) { return b.own; });
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < std::min(blocks.size(), max_errors); ++i) texts.push_back(std::move(blocks[i].text));
  if (errors > texts.size()) texts.push_back("(" + std::to_string(errors - texts.size()) + " more errors)\n");
  if (blocks.empty()) return std::string(detail::cut_utf8("the compiler failed and gave no reason", limit));
  return detail::join(texts, limit);
}

/// The same for the linker: what is undefined or defined twice.
[[nodiscard]] inline std::string linker_diagnostics(std::string_view raw, std::size_t limit = 2000) {
  constexpr std::size_t max_lines = 8;
  std::vector<std::string> lines, others;
  detail::for_each_line(raw, [&](std::string_view line) {
    for (const std::string_view what :
         {"undefined reference to ", "undefined symbol: ", "multiple definition of ", "duplicate symbol: "}) {
      const auto at = line.find(what);
      if (at == std::string_view::npos) continue;
      std::string text(line.substr(at, line.find("; ", at) - at));
      if (const auto tick = text.find('`'); tick != std::string::npos) text[tick] = '\'';
      text = "link error: " + detail::message_text(text) + '\n';
      if (lines.size() < max_lines && std::find(lines.begin(), lines.end(), text) == lines.end()) lines.push_back(text);
      return;
    }
    const auto colon = line.find(": ");
    if (colon != std::string_view::npos && line.find("in function `") == line.npos && others.size() < max_lines) {
      others.push_back("link error: " + detail::message_text(line.substr(colon + 2)) + '\n');
    }
  });
  if (lines.empty()) lines = std::move(others);
  if (lines.empty()) lines.push_back("link error: the linker failed and gave no reason");
  return detail::join(lines, limit);
}

}  // namespace kevin::cpu

#endif  // KEVIN_EVAL_CPU_DIAGNOSTICS_HPP
