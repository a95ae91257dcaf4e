#ifndef KEVIN_REFINE_FORMAT_HPP
#define KEVIN_REFINE_FORMAT_HPP

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "kevin/refine/fenced_blocks.hpp"
#include "kevin/refine/format_error.hpp"
#include "kevin/refine/response.hpp"
#include "kevin/refine/text.hpp"

namespace kevin {

/// How much a text may depart from the documented form, which is
///
///     <think>
///     any thought (this part may be missing)
///     </think>
///
///     ```cpp
///     the complete kernel
///     ```
///
///     <summary>
///     a few sentences
///     </summary>
enum class FormatMode {
  strict,   ///< exactly that: one block, fenced with at least three ` or ~ and marked as C++, and nothing else but
            ///< blanks
  lenient,  ///< what models write: see parse_response
};

/// What parse_response made of a text. On error `response` holds the thought as far as it was found, and no source.
struct ParsedResponse {
  Response response;
  std::optional<FormatError> error;

  [[nodiscard]] bool ok() const noexcept { return !error; }
  explicit operator bool() const noexcept { return ok(); }
};

namespace detail {

[[nodiscard]] inline ParsedResponse format_failure(std::string_view text, FormatFault fault, std::size_t position,
                                                   std::string thought = {}) {
  position = std::min(position, text.size());
  std::size_t line = 1;
  for (std::size_t i = 0; i < position; ++i) line += text[i] == '\n' ? 1 : 0;
  return {{std::move(thought), {}, {}},
          FormatError{fault, position, "line " + std::to_string(line) + ": " + std::string(explain(fault))}};
}

/// A part of an answer, ready to be carried on.
[[nodiscard]] inline std::string prose_part(std::string_view text) { return std::string(trim(clean(text))); }

[[nodiscard]] inline ParsedResponse parse_strict(std::string_view text) {
  if (const std::size_t bad = find_unclean(text); bad != text.npos)
    return format_failure(text, FormatFault::invalid_text, bad);
  const auto skip = [&](std::size_t i) { return std::min(text.size(), text.find_first_not_of(blanks, i)); };
  const auto fail = [&](FormatFault fault, std::size_t at, std::string thought = {}) {
    return format_failure(text, fault, at, std::move(thought));
  };
  const auto line_at = [&](std::size_t i) {
    std::string_view line = text.substr(i, text.find('\n', i) - i);
    while (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    return line;
  };
  const auto next_line = [&](std::size_t i) { return std::min(text.size() - 1, text.find('\n', i)) + 1; };

  std::size_t at = skip(0);
  if (at == text.size()) return fail(FormatFault::empty_text, 0);
  std::string thought;
  if (text.substr(at).starts_with("<think>")) {
    const std::size_t close = text.find("</think>", at);
    if (close == text.npos) return fail(FormatFault::unclosed_thought, at);
    thought = prose_part(text.substr(at + 7, close - at - 7));
    at = skip(close + 8);
  }
  const FenceLine open = fence_line(line_at(at));
  if (!open) {
    const bool later = text.find("```", at) != text.npos;
    const bool before = thought.find("```") != thought.npos;
    return fail(later    ? FormatFault::unexpected_text
                : before ? FormatFault::code_only_in_thought
                         : FormatFault::no_code_block,
                at, std::move(thought));
  }
  if (language_of(open.info) != Language::cpp) return fail(FormatFault::wrong_language, at, std::move(thought));
  const std::size_t content = next_line(at);
  std::size_t end = content;
  std::size_t after = text.npos;
  while (end < text.size()) {
    const FenceLine fence = fence_line(line_at(end));
    if (fence && fence.mark == open.mark && fence.length >= open.length) {
      if (fence.length > open.length || !fence.info.empty())
        return fail(FormatFault::several_code_blocks, end, std::move(thought));
      after = next_line(end);
      break;
    }
    end = next_line(end);
  }
  if (after == text.npos) return fail(FormatFault::unclosed_code_block, at, std::move(thought));
  std::string_view source = text.substr(content, end - content);
  if (!source.empty()) source.remove_suffix(1);  // the line end before the closing fence is the fence's
  while (!source.empty() && source.back() == '\r') source.remove_suffix(1);
  if (blank(source)) return fail(FormatFault::empty_code_block, at, std::move(thought));
  at = skip(after);
  if (fence_line(line_at(at))) return fail(FormatFault::several_code_blocks, at, std::move(thought));
  if (at < text.size() && !text.substr(at).starts_with("<summary>"))
    return fail(FormatFault::unexpected_text, at, std::move(thought));
  const std::size_t close = text.find("</summary>", at);
  if (close == text.npos) return fail(FormatFault::missing_summary, at, std::move(thought));
  std::string summary = prose_part(text.substr(at + 9, close - at - 9));
  if (summary.empty()) return fail(FormatFault::missing_summary, at, std::move(thought));
  if (const std::size_t rest = skip(close + 10); rest != text.size())
    return fail(FormatFault::unexpected_text, rest, std::move(thought));
  return {{std::move(thought), std::move(summary), clean(source)}, std::nullopt};
}

/// What stands in [begin, end) outside of everything the scan found.
[[nodiscard]] inline std::string prose(std::string_view text, std::size_t begin, std::size_t end, const Scan& scan) {
  std::string out;
  for (const Piece& piece : scan.pieces) {
    const Span& span = piece.whole;
    if (span.end <= begin) continue;
    if (span.begin >= end) break;
    if (span.begin > begin) out.append(text.substr(begin, span.begin - begin)).append(1, '\n');
    begin = span.end;
  }
  if (begin < end) out.append(text.substr(begin, end - begin));
  return out;
}

/// Where the text begins behind a heading such as "Summary: ...", "## Summary" or "**Summary of changes**: ...";
/// npos without one.
[[nodiscard]] inline std::size_t marked_summary(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.size(), text.find('\n', at));
    const std::string_view line = text.substr(at, end - at);
    const std::size_t word = std::min(line.size(), line.find_first_not_of(" \t#*_>-"));
    if (has_at(line, word, "summary")) {
      const std::size_t colon = line.find(':', word);
      if (colon != line.npos && colon - word <= 40) {
        return std::min(text.size(), text.find_first_not_of("*_ \t\r", at + colon + 1));
      }
      const std::size_t rest = line.find_first_not_of("*_ \t\r", word + 7);
      if (rest == line.npos) return end;
    }
    at = end + 1;
  }
  return text.npos;
}

/// The summary that goes with the block `chosen`.
[[nodiscard]] inline std::string find_summary(std::string_view text, std::size_t begin, const Scan& scan,
                                              const Piece& chosen) {
  const Span* tagged = nullptr;
  for (const Piece& s : scan.pieces) {
    if (s.kind != Piece::Kind::summary) continue;
    const bool after = s.content.begin >= chosen.whole.end;
    if (s.content.begin >= chosen.whole.begin && !after) continue;  // inside the block
    tagged = &s.content;
    if (after) break;
  }
  if (tagged != nullptr && !blank(tagged->of(text))) return prose_part(tagged->of(text));
  const std::size_t end =
      scan.unclosed_fence >= chosen.whole.end ? std::min(text.size(), scan.unclosed_fence) : text.size();
  const std::string parts[2] = {prose(text, chosen.whole.end, end, scan), prose(text, begin, chosen.whole.begin, scan)};
  for (const std::string& part : parts) {  // a tag that is not closed, or not at a line's start
    if (const Span open = find_tag(part, 0, part.size(), false, TagKind::summary)) {
      const Span close = find_tag(part, open.end, part.size(), true, TagKind::summary);
      return prose_part(std::string_view(part).substr(open.end, close ? close.begin - open.end : part.npos));
    }
  }
  for (const std::string& part : parts) {
    if (const std::size_t marked = marked_summary(part); marked != part.npos) {
      return prose_part(std::string_view(part).substr(marked));
    }
  }
  return prose_part(blank(parts[0]) ? parts[1] : parts[0]);
}

/// Which block is the kernel: the last of those that rank highest; null when none will do.
[[nodiscard]] inline const Piece* choose_block(std::string_view text, const Scan& scan) {
  const Piece* best = nullptr;
  int best_rank = 1;
  for (const Piece& b : scan.pieces) {
    if (b.kind != Piece::Kind::block) continue;
    const std::string_view code = b.content.of(text);
    if (blank(code)) continue;
    const bool kernel = code.find("extern \"C\"") != code.npos || code.find("void kernel") != code.npos ||
                        code.find("__global__") != code.npos;
    const bool other = b.language == Language::other;
    const int rank = kernel ? (other ? 2 : 4) : other ? 0 : b.language == Language::cpp ? 3 : 1;
    if (rank >= best_rank) {
      best = &b;
      best_rank = rank;
    }
  }
  return best;
}

[[nodiscard]] inline ParsedResponse parse_lenient(std::string_view text) {
  if (blank(text)) return format_failure(text, FormatFault::empty_text, 0);
  // A chat template that ends the prompt with "<think>" leaves only the closing tag to the answer.
  std::size_t begin = text.starts_with("\xEF\xBB\xBF") ? 3 : 0;
  std::string thought;
  std::size_t thought_begin = text.npos;
  if (const Span close = find_tag(text, begin, text.size(), true, TagKind::thought)) {
    if (!find_tag(text, begin, close.begin, false, TagKind::thought)) {
      thought = prose_part(text.substr(begin, close.begin - begin));
      thought_begin = begin;
      begin = close.end;
    }
  }
  Scan scan = Scanner(text, false).run(begin);
  const Piece* chosen = choose_block(text, scan);
  if (chosen == nullptr && scan.unclosed_thought == text.npos) {
    Scan again = Scanner(text, true).run(begin);
    if (choose_block(text, again) != nullptr) scan = std::move(again);
    chosen = choose_block(text, scan);
  }
  bool code_in_thought = thought_begin != text.npos && thought.find("```") != thought.npos;
  for (const Piece& s : scan.pieces) {
    if (s.kind != Piece::Kind::thought) continue;
    const std::string part = prose_part(s.content.of(text));
    if (part.empty()) continue;
    if (!thought.empty()) thought += '\n';
    thought += part;
    if (thought_begin == text.npos) thought_begin = s.content.begin;
    code_in_thought = code_in_thought || part.find("```") != part.npos;
  }
  if (chosen == nullptr) {
    const auto fail = [&](FormatFault fault, std::size_t at) {
      return format_failure(text, fault, at, std::move(thought));
    };
    if (scan.unclosed_thought != text.npos) return fail(FormatFault::unclosed_thought, scan.unclosed_thought);
    if (scan.unclosed_fence != text.npos) return fail(FormatFault::unclosed_code_block, scan.unclosed_fence);
    const Piece* last = nullptr;
    for (const Piece& b : scan.pieces) {
      if (b.kind != Piece::Kind::block) continue;
      if (blank(b.content.of(text))) return fail(FormatFault::empty_code_block, b.whole.begin);
      last = &b;
    }
    if (last != nullptr) return fail(FormatFault::wrong_language, last->whole.begin);
    if (code_in_thought) return fail(FormatFault::code_only_in_thought, thought_begin);
    return fail(FormatFault::no_code_block, text.size());
  }
  std::string summary = find_summary(text, begin, scan, *chosen);
  return {{std::move(thought), std::move(summary), clean(chosen->content.of(text))}, std::nullopt};
}

/// `text` with every closing tag of this kind broken up ("< /think>"), so that it cannot end the part it stands in.
[[nodiscard]] inline std::string defuse(std::string_view text, TagKind kind) {
  std::string out;
  std::size_t done = 0;
  while (const Span tag = find_tag(text, done, text.size(), true, kind)) {
    out.append(text.substr(done, tag.begin - done))
        .append("< ")
        .append(text.substr(tag.begin + 1, tag.end - tag.begin - 1));
    done = tag.end;
  }
  return out.append(text.substr(done));
}

}  // namespace detail

/// Takes thought, summary and kernel from a model's text, in time linear in its length. Any bytes are allowed.
///
/// Lenient mode accepts whatever strict mode accepts, with the same result, and otherwise:
///  - thought: between <think> (thinking, thought, reasoning; any case) and the next closing tag, wherever it stands
///  and
///    also several times; a closing tag without an opening one ends a thought that began with the text. Code inside a
///    thought is a draft and is never taken; a thought that is never closed is an error, or truncated answers would
///    count;
///  - kernel: of all complete fenced blocks the last that is C++ by its mark (or has none) and looks like a kernel
///    (`extern "C"`, `void kernel` or `__global__`), because the last word counts and a snippet in an explanation is no
///    answer; else the last marked as C++; else the last that looks like a kernel though marked otherwise; else the
///    last without a mark. Fences nested in a block that is marked as C++ belong to it; in any other block they are
///    blocks of their own. When that gives nothing, fences that share their line with text are tried ("}```");
///  - summary: tagged, else behind a heading "Summary", else the text after the kernel, else the text before; may be
///  empty;
///  - CRLF and CR become LF; NUL and bytes that are not UTF-8 become U+FFFD.
[[nodiscard]] inline ParsedResponse parse_response(std::string_view text, FormatMode mode = FormatMode::lenient) {
  ParsedResponse strict = detail::parse_strict(text);
  if (strict.ok() || mode == FormatMode::strict) return strict;
  return detail::parse_lenient(text);
}

/// The form in which a response survives writing and reading: valid UTF-8 with LF, thought and summary trimmed and
/// without closing tags of their own, a source of blanks alone empty. canonical(canonical(r)) == canonical(r).
[[nodiscard]] inline Response canonical(const Response& r) {
  Response c{detail::prose_part(r.thought), detail::prose_part(r.summary), detail::clean(r.source)};
  c.thought = detail::defuse(c.thought, detail::TagKind::thought);
  c.summary = detail::defuse(c.summary, detail::TagKind::summary);
  if (detail::blank(c.source)) c.source.clear();
  return c;
}

/// The documented text of a response. For a response with a source, parse_response(format_response(r)) gives
/// canonical(r); in strict mode too when there is a summary. Empty parts are left out.
[[nodiscard]] inline std::string format_response(const Response& response) {
  const Response r = canonical(response);
  std::string text;
  // An empty thought keeps a closing tag in what follows from being read as the end of one.
  const auto ends_thought = [](std::string_view part) {
    return static_cast<bool>(detail::find_tag(part, 0, part.size(), true, detail::TagKind::thought));
  };
  if (!r.thought.empty() || ends_thought(r.source) || ends_thought(r.summary))
    text += "<think>\n" + r.thought + "\n</think>\n\n";
  // Written with one more line end than the source has: the one before the closing fence is the fence's.
  if (!r.source.empty()) text += detail::fenced(r.source + '\n', "cpp") + '\n';
  if (!r.summary.empty()) text += "<summary>\n" + r.summary + "\n</summary>\n";
  return text;
}

}  // namespace kevin

#endif  // KEVIN_REFINE_FORMAT_HPP
