#ifndef KEVIN_EVAL_TEXT_SAFETY_HPP
#define KEVIN_EVAL_TEXT_SAFETY_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace kevin::eval::detail {

struct Utf8Unit {
  std::size_t length;  ///< bytes, at least 1
  bool valid;
  std::uint32_t point;  ///< meaningful when valid
};

/// The code point at the front of `text` (not empty); overlong forms, surrogates and what is above U+10FFFF are
/// invalid.
[[nodiscard]] constexpr Utf8Unit first_utf8(std::string_view text) noexcept {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {1, true, lead};
  const std::size_t length = lead >= 0xF0 && lead < 0xF5   ? 4
                             : lead >= 0xE0 && lead < 0xF0 ? 3
                             : lead >= 0xC2 && lead < 0xE0 ? 2
                                                           : 0;
  if (length == 0 || text.size() < length) return {1, false, 0};
  std::uint32_t point = lead & (0xFFU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {1, false, 0};
    point = (point << 6) | (byte(i) & 0x3FU);
  }
  const bool overlong = (length == 3 && point < 0x800) || (length == 4 && point < 0x10000);
  if (overlong || point > 0x10FFFF || (point >= 0xD800 && point < 0xE000)) return {1, false, 0};
  return {length, true, point};
}

/// Control characters, and those that change the direction or existence of what a reader sees.
[[nodiscard]] constexpr bool invisible(std::uint32_t point) noexcept {
  return (point < 0x20 && point != '\t') || (point >= 0x7F && point < 0xA0) || point == 0xAD ||
         (point >= 0x200B && point <= 0x200F) || (point >= 0x2028 && point <= 0x202E) ||
         (point >= 0x2060 && point <= 0x206F) || point == 0xFEFF || (point >= 0xFFF9 && point <= 0xFFFB) ||
         (point >= 0xE0000 && point <= 0xE0FFF);
}

/// Appends `text` (one line) as valid UTF-8 in which everything is visible: bytes that are not UTF-8 become \xNN,
/// invisible characters \u{NNNN}. Returns the number of code points appended.
inline std::size_t append_visible(std::string& out, std::string_view text) {
  static constexpr char digits[] = "0123456789abcdef";
  std::size_t count = 0;
  while (!text.empty()) {
    const Utf8Unit unit = first_utf8(text);
    if (!unit.valid) {
      const auto byte = static_cast<unsigned char>(text[0]);
      out += "\\x";
      out += digits[byte >> 4];
      out += digits[byte & 15];
      count += 4;
    } else if (invisible(unit.point)) {
      std::string number;
      for (std::uint32_t p = unit.point; p != 0 || number.empty(); p >>= 4)
        number.insert(number.begin(), digits[p & 15]);
      out += "\\u{" + number + '}';
      count += 4 + number.size();
    } else {
      out.append(text.substr(0, unit.length));
      ++count;
    }
    text.remove_prefix(unit.length);
  }
  return count;
}

/// The longest prefix of valid UTF-8 `text` that has at most `limit` bytes and ends between two code points.
[[nodiscard]] constexpr std::string_view cut_utf8(std::string_view text, std::size_t limit) noexcept {
  if (text.size() <= limit) return text;
  while (limit > 0 && (static_cast<unsigned char>(text[limit]) & 0xC0) == 0x80) --limit;
  return text.substr(0, limit);
}

[[nodiscard]] constexpr bool path_character(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
         c == '.' || c == '+' || c == '/' || c == '@' || c == '~' || static_cast<unsigned char>(c) >= 0x80;
}

/// How a file is called towards an agent: of what follows the last include folder the last two components
/// ("bits/stl_algo.h"), else its last component. So a message shows which standard header it speaks of, and no folder
/// of the host.
[[nodiscard]] inline std::string_view short_name(std::string_view path) noexcept {
  while (path.ends_with('/')) path.remove_suffix(1);
  std::size_t kept = 1;
  if (const auto at = path.rfind("/include/"); at != std::string_view::npos) {
    path.remove_prefix(at + 9);
    if (path.starts_with("c++/")) {  // c++/12/bits/x.h, and x86_64-linux-gnu/c++/12/bits/x.h below
      const auto version = path.find('/', 4);
      if (version != std::string_view::npos) path.remove_prefix(version + 1);
    } else if (const auto nested = path.find("/c++/"); nested != std::string_view::npos) {
      const auto version = path.find('/', nested + 5);
      if (version != std::string_view::npos) path.remove_prefix(version + 1);
    }
    kept = 2;
  }
  std::size_t begin = path.size();
  for (; kept > 0 && begin != std::string_view::npos && begin > 0; --kept) begin = path.rfind('/', begin - 1);
  if (begin != std::string_view::npos) path.remove_prefix(begin);
  while (path.starts_with('/')) path.remove_prefix(1);
  return path;
}

/// Whether a run of path characters is more of a path than a message may repeat: absolute, upward, or of three
/// components and more. Two stay as they are: "bits/stl_algo.h", but also "a/b" and "float/double", which are no paths.
[[nodiscard]] inline bool tells_folders(std::string_view run) noexcept {
  std::size_t components = 0;
  for (std::size_t i = 0; i < run.size(); ++i)
    if (run[i] != '/' && (i == 0 || run[i - 1] == '/')) ++components;
  return components > 2 || (components > 0 && run[0] == '/') || run.find("../") != std::string_view::npos;
}

/// `text` with every path in it that tells folders reduced to <short name>.
[[nodiscard]] inline std::string without_paths(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    const bool start = i == 0 || !path_character(text[i - 1]);
    if (start && path_character(text[i])) {
      std::size_t end = i;
      while (end < text.size() && path_character(text[end])) ++end;
      const std::string_view run = text.substr(i, end - i);
      if (tells_folders(run)) {
        const std::string_view name = short_name(run);
        // without the angle brackets where the message has its own
        const bool quoted = i > 0 && (text[i - 1] == '<' || text[i - 1] == '"');
        out += quoted ? std::string(name) : '<' + std::string(name) + '>';
      } else {
        out.append(run);
      }
      i = end;
    } else {
      out += text[i++];
    }
  }
  return out;
}

}  // namespace kevin::eval::detail

#endif  // KEVIN_EVAL_TEXT_SAFETY_HPP
