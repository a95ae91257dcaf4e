#ifndef KEVIN_EVAL_CPU_LEADING_HEADERS_HPP
#define KEVIN_EVAL_CPU_LEADING_HEADERS_HPP

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "kevin/eval/source_text.hpp"

namespace kevin::cpu {

namespace detail {

/// Standard headers whose parsing takes a good part of a compilation.
inline constexpr std::array<std::string_view, 38> heavy_headers{
    "algorithm",   "any",     "array",      "atomic",      "bitset",
    "chrono",      "cmath",   "complex",    "concepts",    "condition_variable",
    "cstdlib",     "deque",   "functional", "future",      "immintrin.h",
    "iterator",    "limits",  "map",        "math.h",      "memory",
    "mutex",       "numbers", "numeric",    "optional",    "random",
    "ranges",      "set",     "span",       "stdlib.h",    "string",
    "string_view", "thread",  "tuple",      "type_traits", "unordered_map",
    "utility",     "vector",  "x86intrin.h"};

/// And small ones that stand beside them.
inline constexpr std::array<std::string_view, 24> light_headers{
    "bit",      "cassert",          "cfloat",      "climits",   "cstddef",   "cstdint",  "cstdio",   "cstring",
    "float.h",  "initializer_list", "new",         "stddef.h",  "stdint.h",  "string.h", "limits.h", "stdio.h",
    "assert.h", "emmintrin.h",      "xmmintrin.h", "exception", "stdexcept", "version",  "cerrno",   "cctype"};

}  // namespace detail

/// The standard headers that a source includes before anything else, sorted; empty when there is none that is worth
/// preparing. Only plain lines `#include <name>` with comments between them count: nothing that comes before them could
/// change what they mean, so that including them beforehand is the same program.
[[nodiscard]] inline std::vector<std::string> leading_headers(std::string_view source) {
  std::vector<std::string> found;
  bool worth = false;
  while (eval::detail::skip_blank_and_comments(source) && source[0] == '#') {
    std::string_view line = source.substr(1, source.find('\n') - 1);
    const auto skip = [&line] { line.remove_prefix(std::min(line.size(), line.find_first_not_of(" \t"))); };
    skip();
    if (!line.starts_with("include")) break;
    line.remove_prefix(7);
    skip();
    const auto close = line.find('>');
    if (!line.starts_with('<') || close == std::string_view::npos) break;
    const std::string_view name = line.substr(1, close - 1);
    line.remove_prefix(close + 1);
    if (line.find_first_not_of(" \t\r") != std::string_view::npos &&
        !line.substr(line.find_first_not_of(" \t\r")).starts_with("//"))
      break;
    const auto in = [&](const auto& list) { return std::find(list.begin(), list.end(), name) != list.end(); };
    const bool heavy = in(detail::heavy_headers);
    if (!heavy && !in(detail::light_headers)) break;
    worth = worth || heavy;
    found.emplace_back(name);
    const auto end = source.find('\n');
    if (end == std::string_view::npos) break;
    source.remove_prefix(end);
  }
  if (!worth) return {};
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

}  // namespace kevin::cpu

#endif  // KEVIN_EVAL_CPU_LEADING_HEADERS_HPP
