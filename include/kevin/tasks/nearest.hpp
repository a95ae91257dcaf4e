#ifndef KEVIN_TASKS_NEAREST_HPP
#define KEVIN_TASKS_NEAREST_HPP

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kevin::tasks::detail {

/// Number of insertions, deletions and replacements that turn `a` into `b` (Levenshtein's distance).
[[nodiscard]] inline std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, replaced}));
    }
  }
  return row[b.size()];
}

/// Up to `most` of the names that are closest to `name`, closest first; none that has less than half in common with it.
[[nodiscard]] inline std::vector<std::string> nearest(std::string_view name, const std::vector<std::string>& names,
                                                      std::size_t most = 3) {
  name = name.substr(0, 128);
  std::vector<std::pair<std::size_t, std::string>> ranked;
  for (const std::string& n : names) {
    const std::size_t distance = edit_distance(name, n);
    if (2 * distance <= std::max(name.size(), n.size())) ranked.emplace_back(distance, n);
  }
  std::stable_sort(ranked.begin(), ranked.end(), [](const auto& x, const auto& y) { return x.first < y.first; });
  std::vector<std::string> result;
  for (std::size_t i = 0; i < std::min(most, ranked.size()); ++i) result.push_back(ranked[i].second);
  return result;
}

/// ASCII letters made small.
[[nodiscard]] inline std::string lower_case(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

/// "; near: 'a', 'b'", or nothing.
[[nodiscard]] inline std::string nearest_text(std::string_view name, const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& n : nearest(name, names)) text += (text.empty() ? "; near: '" : ", '") + n + '\'';
  return text;
}

}  // namespace kevin::tasks::detail

#endif  // KEVIN_TASKS_NEAREST_HPP
