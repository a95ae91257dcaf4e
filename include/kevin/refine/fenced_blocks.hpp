#ifndef KEVIN_REFINE_FENCED_BLOCKS_HPP
#define KEVIN_REFINE_FENCED_BLOCKS_HPP

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "kevin/refine/text.hpp"

/// How a model's text is taken apart: lines, fences, tags, and the scan that finds all of them in one pass.
namespace kevin::detail {

// What is looked for and may be missing is returned as a type with an empty value (Span, FenceLine, npos), and what a
// scan finds is one list: each further std::optional or std::vector would make every file that includes kevin.hpp
// nearly one percent dearer to compile.

/// The bytes [begin, end) of a text; converts to false when there are none.
struct Span {
  std::size_t begin = 0;
  std::size_t end = 0;
  explicit operator bool() const noexcept { return begin < end; }
  [[nodiscard]] std::string_view of(std::string_view text) const { return text.substr(begin, end - begin); }
};

/// A line that opens or closes a fenced block (CommonMark 0.30, section 4.5; any indentation, since lists indent).
/// Converts to false when it is none.
struct FenceLine {
  char mark = '`';
  std::size_t length = 0;
  std::string_view info{};  ///< what follows the marks, trimmed; a closing fence has none
  explicit operator bool() const noexcept { return length > 0; }
};

[[nodiscard]] inline FenceLine fence_line(std::string_view line) {
  const std::size_t first = line.find_first_not_of(" \t");
  if (first == std::string_view::npos || (line[first] != '`' && line[first] != '~')) return {};
  const char mark = line[first];
  std::size_t end = line.find_first_not_of(mark, first);
  if (end == std::string_view::npos) end = line.size();
  if (end - first < 3) return {};
  const std::string_view info = trim(line.substr(end));
  if (mark == '`' && info.find('`') != std::string_view::npos) return {};
  return FenceLine{mark, end - first, info};
}

enum class Language { cpp, none, other };

/// What an info string says: C, C++ or CUDA by any usual name; nothing; or something else.
[[nodiscard]] inline Language language_of(std::string_view info) {
  std::string word;
  for (const char c : info) {
    if (blanks.find(c) != std::string_view::npos || c == ',' || c == ':' || c == '}') break;
    if (c != '{' && c != '.') word += lower(c);
    if (word.size() > 16) break;
  }
  if (word.empty()) return Language::none;
  if (word.starts_with("c++") || word.starts_with("cpp") || word.starts_with("cuda")) return Language::cpp;
  for (const std::string_view name : {"c", "cc", "cxx", "h", "hh", "hpp", "hxx", "cu", "cuh", "c99"}) {
    if (word == name) return Language::cpp;
  }
  return Language::other;
}

/// Whether a fence with this info string, met inside a block, opens a block of its own (and is no closing fence with
/// words behind it).
[[nodiscard]] inline bool opens_nested(std::string_view info) {
  if (language_of(info) == Language::cpp) return true;
  for (const std::string_view name : {"text", "txt", "plaintext", "markdown", "md", "python", "py", "bash", "sh",
                                      "shell", "console", "json", "diff", "asm", "makefile", "cmake"}) {
    if (info.size() == name.size() && has_at(info, 0, name)) return true;
  }
  return false;
}

/// Which tags are meant.
enum class TagKind { thought, summary };

[[nodiscard]] constexpr bool has_name_at(std::string_view text, std::size_t i, std::string_view name) noexcept {
  return has_at(text, i, name) && i + name.size() < text.size() && text[i + name.size()] == '>';
}

/// The tag of this kind at `i`, opening or closing, in upper or lower case; false without one.
[[nodiscard]] inline Span tag_at(std::string_view text, std::size_t i, bool closing, TagKind kind) {
  const std::string_view head = closing ? "</" : "<";
  if (!has_at(text, i, head)) return {};
  const std::size_t first = i + head.size();
  const auto tag = [&](std::string_view name) { return Span{i, first + name.size() + 1}; };
  if (kind == TagKind::summary) {
    if (has_name_at(text, first, "summary")) return tag("summary");
    return {};
  }
  for (const std::string_view name : {"think", "thinking", "thought", "thoughts", "reasoning"}) {
    if (has_name_at(text, first, name)) return tag(name);
  }
  return {};
}

/// The first such tag in [from, to); false without one.
[[nodiscard]] inline Span find_tag(std::string_view text, std::size_t from, std::size_t to, bool closing,
                                   TagKind kind) {
  const std::string_view part = text.substr(0, to);
  for (std::size_t i = part.find('<', from); i != std::string_view::npos; i = part.find('<', i + 1)) {
    if (const Span tag = tag_at(part, i, closing, kind)) return tag;
  }
  return {};
}

/// A part of a text that is not prose.
struct Piece {
  enum class Kind {
    block,  ///< a complete fenced block
    thought,
    summary,
    open_thought,  ///< begins with the tag that is never closed, and ends with the text
  };
  Kind kind = Kind::block;
  Span whole;    ///< with both fences or tags
  Span content;  ///< what is between; of a block the lines, without the line end before the closing fence
  Language language = Language::none;  ///< of a block
};

/// What one pass over a text found.
struct Scan {
  std::vector<Piece> pieces;                              ///< in order, apart
  std::size_t unclosed_fence = std::string_view::npos;    ///< where the first fence opens that is never closed
  std::size_t unclosed_thought = std::string_view::npos;  ///< where the tag stands that is never closed
};

/// One pass over text[begin, end). Inside a block, a fence with a language opens a nested block, a bare one closes the
/// innermost of its own length, else the innermost shorter one. A C++ block swallows what is nested in it; any other
/// block gives way to what is nested in it. `eager` also takes fences that are not alone on their line: "}```" closes,
/// "so: ```cpp" opens, "``` and so on" closes.
/// Linear in the text's length: every search for a closing tag that fails is not repeated, and nesting is bounded.
class Scanner {
 public:
  Scanner(std::string_view text, bool eager) : text_(text), eager_(eager) {}

  [[nodiscard]] Scan run(std::size_t begin) {
    for (std::size_t at = begin; at < text_.size();) at = line(at);
    if (depth_ > 0) scan_.unclosed_fence = open_[0].begin;
    return std::move(scan_);
  }

 private:
  struct Open {
    std::size_t begin = 0;
    std::size_t content = 0;
    FenceLine fence{};
    std::size_t pieces_before = 0;
  };
  static constexpr std::size_t max_depth = 16;

  /// Reads the line at `at`; returns where to go on.
  std::size_t line(std::size_t at) {
    // Looked for once a line, not once a tag: a line may hold a million of them.
    if (line_end_ == std::string_view::npos || line_end_ < at) line_end_ = std::min(text_.size(), text_.find('\n', at));
    const std::size_t next = std::min(text_.size(), line_end_ + 1);
    std::string_view line = text_.substr(at, line_end_ - at);
    while (!line.empty() && line.back() == '\r') line.remove_suffix(1);

    if (depth_ == 0) {
      if (const std::size_t after = tags(at, at + line.size()); after != at) return after;
    }
    if (const FenceLine fence = fence_line(line)) {
      this->fence(fence, at, next);
    } else if (eager_) {
      eager_line(line, at, next);
    }
    return next;
  }

  /// Outside of blocks: a thought or a tagged summary that begins in the line [at, end). Returns where it ends, or
  /// `at`.
  std::size_t tags(std::size_t at, std::size_t end) {
    const std::size_t first = std::min(end, text_.find_first_not_of(" \t", at));
    if (!no_thought_end_ && no_thought_until_ < end) {
      const Span tag = find_tag(text_, at, end, false, TagKind::thought);
      const Span close = tag ? find_tag(text_, tag.end, text_.size(), true, TagKind::thought) : Span{};
      if (close) {
        scan_.pieces.push_back({Piece::Kind::thought, {tag.begin, close.end}, {tag.end, close.begin}});
        return close.end;
      }
      if (tag) no_thought_end_ = true;
      no_thought_until_ = end;
    }
    if (no_thought_end_ && tag_at(text_, first, false, TagKind::thought)) {
      scan_.unclosed_thought = first;
      scan_.pieces.push_back({Piece::Kind::open_thought, {first, text_.size()}, {}});
      return text_.size();
    }
    if (const Span tag = tag_at(text_, first, false, TagKind::summary); tag && !no_summary_end_) {
      if (const Span close = find_tag(text_, tag.end, text_.size(), true, TagKind::summary)) {
        scan_.pieces.push_back({Piece::Kind::summary, {tag.begin, close.end}, {tag.end, close.begin}});
        return close.end;
      }
      no_summary_end_ = true;
    }
    return at;
  }

  void fence(const FenceLine& fence, std::size_t at, std::size_t next) {
    if (depth_ == 0 || (!fence.info.empty() && opens_nested(fence.info))) {
      if (depth_ < max_depth) open_[depth_++] = {at, next, fence, scan_.pieces.size()};
    } else if (fence.info.empty() || eager_) {
      close(fence.mark, fence.length, at, next);
    }
  }

  void close(char mark, std::size_t length, std::size_t content_end, std::size_t next) {
    std::size_t level = depth_;
    for (std::size_t i = depth_; i > 0 && level == depth_; --i) {
      if (open_[i - 1].fence.mark == mark && open_[i - 1].fence.length == length) level = i - 1;
    }
    for (std::size_t i = depth_; i > 0 && level == depth_; --i) {
      if (open_[i - 1].fence.mark == mark && open_[i - 1].fence.length < length) level = i - 1;
    }
    if (level == depth_) return;
    const Open open = open_[level];
    depth_ = level;
    Piece block{Piece::Kind::block,
                {open.begin, next},
                {open.content, std::max(open.content, content_end)},
                language_of(open.fence.info)};
    // the line end before the closing fence belongs to the fence
    if (block.content.end > block.content.begin && text_[block.content.end - 1] == '\n') --block.content.end;
    while (block.content.end > block.content.begin && text_[block.content.end - 1] == '\r') --block.content.end;
    const bool nests = scan_.pieces.size() > open.pieces_before;
    if (nests && block.language != Language::cpp) return;
    while (scan_.pieces.size() > open.pieces_before) scan_.pieces.pop_back();
    scan_.pieces.push_back(block);
  }

  void eager_line(std::string_view line, std::size_t at, std::size_t next) {
    if (depth_ > 0) {
      const Open& top = open_[depth_ - 1];
      const std::string_view body = trim(line);
      const std::size_t last = body.find_last_not_of(top.fence.mark);
      if (body.empty() || last == std::string_view::npos || body.size() - last - 1 != top.fence.length) return;
      const auto body_end = static_cast<std::size_t>(body.data() - text_.data()) + last + 1;
      close(top.fence.mark, top.fence.length, body_end, next);
    } else if (const std::size_t marks = line.find("```"); marks != std::string_view::npos) {
      const FenceLine fence = fence_line(line.substr(marks));
      if (fence && language_of(fence.info) == Language::cpp)
        open_[depth_++] = {at + marks, next, fence, scan_.pieces.size()};
    }
  }

  std::string_view text_;
  bool eager_;
  Scan scan_;
  std::array<Open, max_depth> open_{};  // the first depth_, outermost first
  std::size_t depth_ = 0;
  std::size_t line_end_ = std::string_view::npos;
  std::size_t no_thought_until_ = 0;  // no opening tag of a thought before it
  bool no_thought_end_ = false;       // no closing tag of a thought in the rest of the text
  bool no_summary_end_ = false;
};

}  // namespace kevin::detail

#endif  // KEVIN_REFINE_FENCED_BLOCKS_HPP
