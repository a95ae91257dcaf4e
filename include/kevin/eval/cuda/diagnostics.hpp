#ifndef KEVIN_EVAL_CUDA_DIAGNOSTICS_HPP
#define KEVIN_EVAL_CUDA_DIAGNOSTICS_HPP

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kevin/eval/source_text.hpp"
#include "kevin/eval/text_safety.hpp"

namespace kevin::cuda {

/// The names that a candidate's file and the prelude have towards NVRTC.
inline constexpr std::string_view kernel_file = "kernel.cu";
inline constexpr std::string_view prelude_file = "kevin.cuh";

namespace detail {

using eval::detail::Location;

/// What a line of NVRTC's log says.
struct LogMessage {
  enum class Kind { error, note, other } kind = Kind::other;
  Location where;  ///< file "" for the assembler's messages
  std::string_view text;
};

/// Removes `front` from `text`; false = it does not begin so.
[[nodiscard]] inline bool take(std::string_view& text, std::string_view front) {
  if (!text.starts_with(front)) return false;
  text.remove_prefix(front.size());
  return true;
}

[[nodiscard]] inline std::optional<std::size_t> take_number(std::string_view& text) {
  std::size_t n = 0, digits = 0;
  while (digits < text.size() && digits < 9 && text[digits] >= '0' && text[digits] <= '9')
    n = 10 * n + static_cast<std::size_t>(text[digits++] - '0');
  if (digits == 0) return std::nullopt;
  text.remove_prefix(digits);
  return n;
}

/// "kernel.cu(3): error: text", "kernel.cu(3): warning #177-D: text", "At end of source: error: text",
/// "ptxas error   : text", "ptxas application ptx input, line 39; error   : text"; nullopt = none of them.
[[nodiscard]] inline std::optional<LogMessage> parse_log_line(std::string_view line) {
  using Kind = LogMessage::Kind;
  struct Mark {
    std::string_view text;
    Kind kind;
  };
  static constexpr std::array<Mark, 6> marks{{{"error", Kind::error},
                                              {"catastrophic error", Kind::error},
                                              {"internal error", Kind::error},
                                              {"note", Kind::note},
                                              {"warning", Kind::other},
                                              {"remark", Kind::other}}};
  if (line.starts_with("ptxas ")) {
    for (const std::string_view word : {"error", "fatal"}) {
      const auto at = line.find(word);
      std::string_view rest = at == std::string_view::npos ? std::string_view() : line.substr(at + word.size());
      const std::string_view before = line.substr(0, at == std::string_view::npos ? 0 : at);
      if (before != "ptxas " && !before.starts_with("ptxas application ptx input, line ")) continue;
      while (rest.starts_with(' ')) rest.remove_prefix(1);
      if (take(rest, ": ")) return LogMessage{Kind::error, {}, rest};
    }
    return std::nullopt;
  }
  const auto parse_kind = [](std::string_view rest, const Location& where) -> std::optional<LogMessage> {
    for (const Mark& mark : marks) {
      std::string_view after = rest;
      if (!take(after, mark.text)) continue;
      if (take(after, " #")) {  // the number by which it can be suppressed
        if (!take_number(after)) continue;
        static_cast<void>(take(after, "-D"));
      }
      if (take(after, ": ")) return LogMessage{mark.kind, where, after};
    }
    return std::nullopt;
  };
  std::string_view rest = line;
  if (take(rest, "At end of source: ")) return parse_kind(rest, {kernel_file, 0, 0});
  for (auto open = line.find('('); open != std::string_view::npos; open = line.find('(', open + 1)) {
    rest = line.substr(open + 1);
    const auto number = take_number(rest);
    if (!number || !take(rest, "): ")) continue;
    if (auto message = parse_kind(rest, {line.substr(0, open), *number, 0})) return message;
  }
  return std::nullopt;
}

/// The number in "2 errors detected in the compilation of "kevin.cu"."
[[nodiscard]] inline std::optional<std::size_t> error_count(std::string_view line) {
  constexpr std::string_view end = " detected in the compilation of \"kevin.cu\".";
  if (!line.ends_with(end)) return std::nullopt;
  line.remove_suffix(end.size());
  if (line.starts_with(" and ")) return 100;  // NVRTC leaves out how many others there are; it stops at 100
  std::size_t sum = 0;
  for (bool first = true; first || take(line, " and "); first = false) {  // "1 error and 1 catastrophic error"
    const auto number = take_number(line);
    if (!number || !take(line, " ")) return std::nullopt;
    static_cast<void>(take(line, "catastrophic "));
    const bool error = take(line, "error");
    if (!error && !take(line, "warning")) return std::nullopt;
    static_cast<void>(take(line, "s"));
    if (error) sum += *number;
  }
  return line.empty() ? std::optional(sum) : std::nullopt;
}

/// Whether a name that a source may have invented looks like a header's.
[[nodiscard]] inline bool like_header(std::string_view name) {
  return !name.empty() && name.size() <= 64 && name.find("..") == std::string_view::npos &&
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.+/") ==
             std::string_view::npos;
}

/// A place as it is shown; see cpu::detail::display.
[[nodiscard]] inline std::string show(const Location& l) {
  if (l.file.empty()) return "ptxas";
  std::string text(kernel_file);
  if (l.file == prelude_file) {
    text = "<kevin.cuh>";
  } else if (l.file != kernel_file) {
    const std::string_view name = eval::detail::short_name(l.file);
    const bool plain = like_header(name);
    text = plain ? '<' + std::string(name) + '>' : "<another file>";
  }
  if (l.line != 0) text += ':' + std::to_string(l.line);
  if (l.line != 0 && l.column != 0) text += ':' + std::to_string(l.column);
  return text;
}

/// The function in a mangled name, without its parameters: "kevin_plan" for "_Z10kevin_planPKfPf". Not a demangler:
/// those take exponential time on names made for it.
[[nodiscard]] inline std::string plain_name(std::string_view mangled) {
  std::string_view rest = mangled;
  std::string name;
  if (!take(rest, "_Z")) return std::string(mangled);
  const bool nested = take(rest, "N");
  do {
    const auto length = take_number(rest);
    if (!length || *length > rest.size() || *length == 0) break;
    if (!name.empty()) name += "::";
    name += rest.substr(0, *length);
    rest.remove_prefix(*length);
  } while (nested);
  return name.empty() ? std::string(mangled) : name;
}

/// What stands between the first two ' of a text.
[[nodiscard]] inline std::string_view quoted(std::string_view text) {
  const auto open = text.find('\'');
  if (open == std::string_view::npos) return {};
  const auto close = text.find('\'', open + 1);
  return close == std::string_view::npos ? std::string_view() : text.substr(open + 1, close - open - 1);
}

/// The words of a message, fit to be shown.
[[nodiscard]] inline std::string words_of(const LogMessage& message) {
  std::string_view text = message.text;
  std::string out;
  if (take(text, "cannot open source file \"") ||
      take(text, "could not open source file \"")) {  // whether it is hidden or missing is nobody's business
    const std::string_view name = eval::detail::short_name(text.substr(0, text.find('"')));
    const bool plain = like_header(name);
    eval::detail::append_visible(
        out, plain ? '<' + std::string(name) + "> cannot be included" : "a file cannot be included");
    out += ": only CUDA's own headers can";
    if (plain && name == text.substr(0, text.find('"')) && name.find_first_of("./") == std::string_view::npos)
      out += " (perhaps <cuda/std/" + std::string(name) + "> is what you need)";
    return out;
  }
  if (message.where.file.empty() && take(text, "Unresolved extern function ")) {
    return eval::detail::message_text("'" + plain_name(quoted(text).substr(0, 256)) + "' is used and not defined");
  }
  out = eval::detail::message_text(text);
  if (text.starts_with("device-side kernel launch could not be processed"))
    out += " (kernels are launched by kevin_plan alone: kevin::launch<kernel>(grid, block)(arguments...))";
  return out;
}

/// The declaration of kevin_plan in the prelude, for those who do not define it as it is.
[[nodiscard]] inline std::string plan_declaration(std::string_view prelude) {
  const auto name = prelude.rfind("kevin_plan(");
  std::size_t begin = std::string_view::npos;
  for (auto at = prelude.find("void kevin_plan("); at != std::string_view::npos;
       at = prelude.find("void kevin_plan(", at + 1)) {
    const auto end = prelude.find_first_of(";{", at);
    if (end != std::string_view::npos && prelude[end] == ';') begin = at;
  }
  if (name == std::string_view::npos || begin == std::string_view::npos) return "__device__ void kevin_plan(...)";
  std::string out = "__device__ ";
  bool space = false;
  for (const char c : prelude.substr(begin, prelude.find(';', begin) - begin)) {
    const bool blank = c == ' ' || c == '\n' || c == '\t' || c == '\r';
    if (!blank && space) out += ' ';
    space = blank;
    if (!blank) out += c;
  }
  return out;
}

}  // namespace detail

/// What a log says of a compilation that failed.
struct Findings {
  std::string text;           ///< for the agent
  std::size_t errors = 0;     ///< messages found that are errors
  bool elsewhere = false;     ///< one of them is in a header, and no line of the candidate's led there
  bool missing_plan = false;  ///< everything compiled, but nothing defines kevin_plan as declared
};

/// What an agent is told of NVRTC's log: the first few errors, each with up to two notes that point into its own
/// source, each place shown with the source line and a caret; at most `limit` bytes of valid UTF-8, no control
/// characters but newline and tab, no path of the host.
///
/// `raw` is text that a hostile source can shape: static_assert even puts whole lines into it. What is done about it is
/// what cpu::compiler_diagnostics() does: source lines shown are taken from `source` itself, never from the log; file
/// names that #line invented are shown only when they look like a header's; warnings and remarks are dropped; what a
/// source says about itself stays its own words. Verdicts are never derived from this text, but for one distinction
/// between two kinds of failure (missing_plan).
[[nodiscard]] inline Findings compiler_findings(std::string_view raw, std::string_view source, std::string_view prelude,
                                                std::size_t limit = 2000) {
  using detail::LogMessage;
  constexpr std::size_t max_errors = 5, max_notes = 2, max_more = 3, max_read = 100;
  struct Note {
    detail::Location where;
    std::string text;
  };
  struct Block {
    detail::Location where;
    std::string text;
    std::vector<std::string> more;  // lines that go on with the text
    std::vector<Note> notes;
    std::vector<detail::Location> from;  // own places that led there
    bool own = false;
  };
  Findings findings;
  std::vector<Block> blocks;
  enum class Last { nothing, error, note, dropped } last = Last::nothing;
  bool during = false;
  std::size_t front_end = 0, declared = 0;  // errors of the compiler proper: found, and as it counts them itself
  std::string_view missing;
  eval::detail::for_each_line(raw, [&](std::string_view line) {
    if (const auto message = detail::parse_log_line(line)) {
      during = false;
      const bool own = message->where.file == kernel_file;
      const bool near = own || message->where.file == prelude_file || message->where.file.empty();
      last = Last::dropped;
      if (message->kind == LogMessage::Kind::error) {
        if (message->text == "Ptx assembly aborted due to errors") return;
        ++findings.errors;
        if (message->where.file.empty()) {
          if (message->text.starts_with("Unresolved extern function ")) missing = detail::quoted(message->text);
        } else {
          ++front_end;
        }
        std::string text = detail::words_of(*message);
        const bool known = std::any_of(blocks.begin(), blocks.end(), [&](const Block& b) {
          return b.text == text && (b.where.file != message->where.file || b.where.line == message->where.line);
        });
        if (known || blocks.size() >= max_read) return;
        last = Last::error;
        blocks.push_back({message->where, std::move(text), {}, {}, {}, near});
      } else if (message->kind == LogMessage::Kind::note && own && !blocks.empty() &&
                 blocks.back().notes.size() < max_notes) {
        last = Last::note;
        blocks.back().notes.push_back({message->where, detail::words_of(*message)});
      }
      return;
    }
    if (const auto count = detail::error_count(line)) declared = *count;  // the last one is its own
    if (line.empty()) {
      last = Last::nothing;
      return;
    }
    if (last == Last::nothing || last == Last::dropped || blocks.empty()) return;
    Block& block = blocks.back();
    const auto text_begin = line.find_first_not_of(" \t");
    if (text_begin == std::string_view::npos) return;
    const std::string_view text = line.substr(text_begin);
    detail::Location& where = last == Last::error ? block.where : block.notes.back().where;
    if (text == "detected during:" && text_begin == 10) {
      during = true;
    } else if (during) {
      // "instantiation of "..." at line 3", followed by " of FILE" where that is not the message's own
      const auto at = text.rfind(" at line ");
      if (at == std::string_view::npos) return;
      std::string_view rest = text.substr(at + 9);
      const auto number = detail::take_number(rest);
      const bool here =
          rest.empty() ? block.where.file == kernel_file : rest == " of kernel.cu" || rest == " of \"kernel.cu\"";
      if (number && here) {
        if (block.from.size() >= 2) block.from.pop_back();  // the innermost and the outermost are what helps
        block.from.push_back({kernel_file, *number, 0});
        block.own = true;
      }
    } else if (text == "^") {  // two blanks stand before every quoted line; tabs are repeated as they are
      if (where.column == 0 && text_begin >= 2) where.column = text_begin - 1;
    } else if (text_begin == 12 && last == Last::error && block.more.size() < max_more) {
      block.more.push_back(eval::detail::message_text(text));
    }
  });
  findings.elsewhere = std::any_of(blocks.begin(), blocks.end(), [](const Block& b) { return !b.own; });
  if (front_end > declared) {
    // Some were printed by the source: by line breaks in the text of static_assert or #pragma message.
    findings.errors -= front_end;
    findings.elsewhere = false;
    std::erase_if(blocks, [](const Block& b) { return !b.where.file.empty(); });
    if (declared > 0) {
      findings.errors = declared;
      blocks.clear();
      blocks.push_back(
          {{kernel_file, 0, 0},
           "there are errors (" + std::to_string(declared) +
               "), but static_assert or #pragma message of this source print lines that look like messages "
               "of the compiler: take the line breaks out of these texts to see what is wrong",
           {},
           {},
           {},
           true});
    }
  } else if (front_end > 0) {
    std::erase_if(blocks, [](const Block& b) { return b.where.file.empty(); });  // the assembler was never called
  }
  findings.missing_plan = declared == 0 && detail::plain_name(missing.substr(0, 256)) == "kevin_plan";
  if (findings.missing_plan) {
    std::string text;
    eval::detail::append_visible(text,
                                 "the source compiles but does not define the function that launches its kernels. "
                                 "It must define exactly: " +
                                     detail::plan_declaration(prelude));
    findings.text = eval::detail::cut_utf8(text, limit);
    return findings;
  }
  std::stable_partition(blocks.begin(), blocks.end(), [](const Block& b) { return b.own; });
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < std::min(blocks.size(), max_errors); ++i) {
    std::string text;
    std::size_t quoted_line = 0;
    const auto add = [&](const detail::Location& where, std::string_view kind, std::string_view words) {
      text += detail::show(where) + ": " + std::string(kind) + std::string(words) + '\n';
    };
    const auto quote = [&](const detail::Location& where) {
      if (where.file != kernel_file || where.line == quoted_line) return;
      text += eval::detail::quote(source, where);
      quoted_line = where.line;
    };
    const Block& block = blocks[i];
    add(block.where, "error: ", block.text);
    for (const std::string& more : block.more) text += "      " + more + '\n';
    quote(block.where);
    for (const auto& place : block.from) {
      if (place.line == quoted_line) continue;
      add(place, "note: ", "required from here");
      quote(place);
    }
    for (const Note& note : block.notes) {
      add(note.where, "note: ", note.text);
      quote(note.where);
    }
    texts.push_back(std::move(text));
  }
  const std::size_t left = blocks.size() - texts.size();
  if (left > 0) texts.push_back('(' + std::to_string(left) + " more errors)\n");
  findings.text = blocks.empty() ? std::string(eval::detail::cut_utf8("the compiler failed and gave no reason", limit))
                                 : eval::detail::join(texts, limit);
  return findings;
}

}  // namespace kevin::cuda

#endif  // KEVIN_EVAL_CUDA_DIAGNOSTICS_HPP
