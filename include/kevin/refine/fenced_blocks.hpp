#ifndef KEVIN_REFINE_FENCED_BLOCKS_HPP
#define KEVIN_REFINE_FENCED_BLOCKS_HPP

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kevin/refine/text.hpp"

/// How a model's text is taken apart: lines, fences, tags, and the scan that finds all of them in one pass.
namespace kevin::detail {

/// The bytes [begin, end) of a text.
struct Span {
  std::size_t begin = 0;
  std::size_t end = 0;
  [[nodiscard]] std::string_view of(std::string_view text) const { return text.substr(begin, end - begin); }
};

/// A line that opens or closes a fenced block (CommonMark 0.30, section 4.5; any indentation, since lists indent).
struct FenceLine {
  char mark = '`';
  std::size_t length = 0;
  std::string_view info;  ///< what follows the marks, trimmed; a closing fence has none
};

[[nodiscard]] inline std::optional<FenceLine> fence_line(std::string_view line) {
  const std::size_t first = line.find_first_not_of(" \t");
  if (first == std::string_view::npos || (line[first] != '`' && line[first] != '~')) return std::nullopt;
  const char mark = line[first];
  std::size_t end = line.find_first_not_of(mark, first);
  if (end == std::string_view::npos) end = line.size();
  if (end - first < 3) return std::nullopt;
  const std::string_view info = trim(line.substr(end));
  if (mark == '`' && info.find('`') != std::string_view::npos) return std::nullopt;
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
  for (const std::string_view name : {"text", "txt", "plaintext", "markdown", "md", "python", "py", "bash", "sh", "shell", "console", "json", "diff",
                                      "asm", "makefile", "cmake"}) {
    if (info.size() == name.size() && has_at(info, 0, name)) return true;
  }
  return false;
}

/// Which tags are meant.
enum class TagKind { thought, summary };

[[nodiscard]] constexpr bool has_name_at(std::string_view text, std::size_t i, std::string_view name) noexcept {
  return has_at(text, i, name) && i + name.size() < text.size() && text[i + name.size()] == '>';
}

/// The tag of this kind at `i`, opening or closing, in upper or lower case.
[[nodiscard]] inline std::optional<Span> tag_at(std::string_view text, std::size_t i, bool closing, TagKind kind) {
  const std::string_view head = closing ? "</" : "<";
  if (!has_at(text, i, head)) return std::nullopt;
  const std::size_t first = i + head.size();
  const auto tag = [&](std::string_view name) { return Span{i, first + name.size() + 1}; };
  if (kind == TagKind::summary) {
    if (has_name_at(text, first, "summary")) return tag("summary");
    return std::nullopt;
  }
  for (const std::string_view name : {"think", "thinking", "thought", "thoughts", "reasoning"}) {
    if (has_name_at(text, first, name)) return tag(name);
  }
  return std::nullopt;
}

/// The first such tag in [from, to).
[[nodiscard]] inline std::optional<Span> find_tag(std::string_view text, std::size_t from, std::size_t to, bool closing, TagKind kind) {
  const std::string_view part = text.substr(0, to);
  for (std::size_t i = part.find('<', from); i != std::string_view::npos; i = part.find('<', i + 1)) {
    if (const auto tag = tag_at(part, i, closing, kind)) return tag;
  }
  return std::nullopt;
}

/// A complete fenced block.
struct Block {
  Span whole;    ///< with both fences
  Span content;  ///< the lines between; without the line end before the closing fence
  Language language = Language::none;
};

/// What one pass over a text found, in order of their ends.
struct Scan {
  std::vector<Block> blocks;
  std::vector<Span> thoughts;                  ///< between the tags
  std::vector<Span> summaries;                 ///< between the tags
  std::vector<Span> covered;                   ///< everything that is not prose, tags and fences included; in order, apart
  std::optional<std::size_t> unclosed_fence;   ///< where the first fence opens that is never closed
  std::optional<std::size_t> unclosed_thought; ///< where the tag stands that is never closed
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
    if (!open_.empty()) scan_.unclosed_fence = open_.front().begin;
    return std::move(scan_);
  }

 private:
  struct Open {
    std::size_t begin;
    std::size_t content;
    FenceLine fence;
    std::size_t blocks_before;
  };
  static constexpr std::size_t max_depth = 16;

  /// Reads the line at `at`; returns where to go on.
  std::size_t line(std::size_t at) {
    // Looked for once a line, not once a tag: a line may hold a million of them.
    if (line_end_ == std::string_view::npos || line_end_ < at) line_end_ = std::min(text_.size(), text_.find('\n', at));
    const std::size_t next = std::min(text_.size(), line_end_ + 1);
    std::string_view line = text_.substr(at, line_end_ - at);
    while (!line.empty() && line.back() == '\r') line.remove_suffix(1);

    if (open_.empty()) {
      if (const std::size_t after = tags(at, at + line.size()); after != at) return after;
    }
    if (const auto fence = fence_line(line)) {
      this->fence(*fence, at, next);
    } else if (eager_) {
      eager_line(line, at, next);
    }
    return next;
  }

  /// Outside of blocks: a thought or a tagged summary that begins in the line [at, end). Returns where it ends, or `at`.
  std::size_t tags(std::size_t at, std::size_t end) {
    const std::size_t first = std::min(end, text_.find_first_not_of(" \t", at));
    if (!no_thought_end_ && no_thought_until_ < end) {
      const auto tag = find_tag(text_, at, end, false, TagKind::thought);
      const auto close = tag ? find_tag(text_, tag->end, text_.size(), true, TagKind::thought) : std::nullopt;
      if (close) {
        scan_.thoughts.push_back({tag->end, close->begin});
        scan_.covered.push_back({tag->begin, close->end});
        return close->end;
      }
      if (tag) no_thought_end_ = true;
      no_thought_until_ = end;
    }
    if (no_thought_end_ && tag_at(text_, first, false, TagKind::thought)) {
      scan_.unclosed_thought = first;
      scan_.covered.push_back({first, text_.size()});
      return text_.size();
    }
    if (const auto tag = tag_at(text_, first, false, TagKind::summary); tag && !no_summary_end_) {
      if (const auto close = find_tag(text_, tag->end, text_.size(), true, TagKind::summary)) {
        scan_.summaries.push_back({tag->end, close->begin});
        scan_.covered.push_back({tag->begin, close->end});
        return close->end;
      }
      no_summary_end_ = true;
    }
    return at;
  }

  void fence(const FenceLine& fence, std::size_t at, std::size_t next) {
    if (open_.empty() || (!fence.info.empty() && opens_nested(fence.info))) {
      if (open_.size() < max_depth) open_.push_back({at, next, fence, scan_.blocks.size()});
    } else if (fence.info.empty() || eager_) {
      close(fence.mark, fence.length, at, next);
    }
  }

  void close(char mark, std::size_t length, std::size_t content_end, std::size_t next) {
    std::size_t level = open_.size();
    for (std::size_t i = open_.size(); i > 0 && level == open_.size(); --i) {
      if (open_[i - 1].fence.mark == mark && open_[i - 1].fence.length == length) level = i - 1;
    }
    for (std::size_t i = open_.size(); i > 0 && level == open_.size(); --i) {
      if (open_[i - 1].fence.mark == mark && open_[i - 1].fence.length < length) level = i - 1;
    }
    if (level == open_.size()) return;
    const Open open = open_[level];
    while (open_.size() > level) open_.pop_back();
    Block block{{open.begin, next}, {open.content, std::max(open.content, content_end)}, language_of(open.fence.info)};
    // the line end before the closing fence belongs to the fence
    if (block.content.end > block.content.begin && text_[block.content.end - 1] == '\n') --block.content.end;
    while (block.content.end > block.content.begin && text_[block.content.end - 1] == '\r') --block.content.end;
    const bool nests = scan_.blocks.size() > open.blocks_before;
    if (nests && block.language != Language::cpp) return;
    while (scan_.blocks.size() > open.blocks_before) scan_.blocks.pop_back();
    while (!scan_.covered.empty() && scan_.covered.back().begin >= open.begin) scan_.covered.pop_back();
    scan_.blocks.push_back(block);
    scan_.covered.push_back(block.whole);
  }

  void eager_line(std::string_view line, std::size_t at, std::size_t next) {
    if (!open_.empty()) {
      const Open& top = open_.back();
      const std::string_view body = trim(line);
      const std::size_t last = body.find_last_not_of(top.fence.mark);
      if (body.empty() || last == std::string_view::npos || body.size() - last - 1 != top.fence.length) return;
      const auto body_end = static_cast<std::size_t>(body.data() - text_.data()) + last + 1;
      close(top.fence.mark, top.fence.length, body_end, next);
    } else if (const std::size_t marks = line.find("```"); marks != std::string_view::npos) {
      const auto fence = fence_line(line.substr(marks));
      if (fence && language_of(fence->info) == Language::cpp) open_.push_back({at + marks, next, *fence, scan_.blocks.size()});
    }
  }

  std::string_view text_;
  bool eager_;
  Scan scan_;
  std::vector<Open> open_;
  std::size_t line_end_ = std::string_view::npos;
  std::size_t no_thought_until_ = 0;  // no opening tag of a thought before it
  bool no_thought_end_ = false;       // no closing tag of a thought in the rest of the text
  bool no_summary_end_ = false;
};

}  // namespace kevin::detail

#endif  // KEVIN_REFINE_FENCED_BLOCKS_HPP
