#ifndef KEVIN_EVAL_CPU_DIAGNOSTICS_HPP
#define KEVIN_EVAL_CPU_DIAGNOSTICS_HPP

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kevin/eval/source_text.hpp"
#include "kevin/eval/text_safety.hpp"

namespace kevin::cpu {

/// The names that a candidate's file and the prelude have towards the compiler.
inline constexpr std::string_view kernel_file = "kernel.cpp";
inline constexpr std::string_view signature_file = "signature.hpp";

namespace detail {

using eval::detail::Location;

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
    const std::string_view name = eval::detail::short_name(l.file);
    const bool plain = !name.empty() && name.size() <= 64 && name.find("..") == std::string_view::npos &&
                       name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.+/") ==
                           std::string_view::npos;
    text = plain ? '<' + std::string(name) + '>' : "<another file>";
  }
  if (l.line != 0) text += ':' + std::to_string(l.line);
  if (l.line != 0 && l.column != 0) text += ':' + std::to_string(l.column);
  return text;
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
      block.text += eval::detail::quote(source, where);
      block.line = where.line;
    }
  };
  eval::detail::for_each_line(raw, [&](std::string_view line) {
    const auto message = detail::parse_message(line);
    if (!message || blocks.size() >= max_read) return;
    const bool own = detail::is_kernel(message->where);
    const bool near = own || detail::is_signature(message->where);
    const std::string text = eval::detail::message_text(message->text);
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
  if (blocks.empty()) return std::string(eval::detail::cut_utf8("the compiler failed and gave no reason", limit));
  return eval::detail::join(texts, limit);
}

/// The same for the linker: what is undefined or defined twice.
[[nodiscard]] inline std::string linker_diagnostics(std::string_view raw, std::size_t limit = 2000) {
  constexpr std::size_t max_lines = 8;
  std::vector<std::string> lines, others;
  eval::detail::for_each_line(raw, [&](std::string_view line) {
    for (const std::string_view what :
         {"undefined reference to ", "undefined symbol: ", "multiple definition of ", "duplicate symbol: "}) {
      const auto at = line.find(what);
      if (at == std::string_view::npos) continue;
      std::string text(line.substr(at, line.find("; ", at) - at));
      if (const auto tick = text.find('`'); tick != std::string::npos) text[tick] = '\'';
      text = "link error: " + eval::detail::message_text(text) + '\n';
      if (lines.size() < max_lines && std::find(lines.begin(), lines.end(), text) == lines.end()) lines.push_back(text);
      return;
    }
    const auto colon = line.find(": ");
    if (colon != std::string_view::npos && line.find("in function `") == line.npos && others.size() < max_lines) {
      others.push_back("link error: " + eval::detail::message_text(line.substr(colon + 2)) + '\n');
    }
  });
  if (lines.empty()) lines = std::move(others);
  if (lines.empty()) lines.push_back("link error: the linker failed and gave no reason");
  return eval::detail::join(lines, limit);
}

}  // namespace kevin::cpu

#endif  // KEVIN_EVAL_CPU_DIAGNOSTICS_HPP
