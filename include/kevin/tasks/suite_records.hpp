#ifndef KEVIN_TASKS_SUITE_RECORDS_HPP
#define KEVIN_TASKS_SUITE_RECORDS_HPP

#include <algorithm>
#include <array>
#include <string_view>

/// The embedded tasks as text: what kevin/tasks/suite.hpp reads and what the generator must not repeat.
namespace kevin::tasks {

namespace detail {

struct Record {
  std::string_view id;
  std::string_view presets;  ///< their names, separated by blanks
  std::string_view json;
};

inline constexpr std::array suite_records = {
#include "kevin/tasks/data/kernelbench_l1.inc"
#include "kevin/tasks/data/kernelbench_l2.inc"
#include "kevin/tasks/data/kevin_small.inc"
};

/// Calls `visit(record, preset)` for each embedded task; preset "" = the record as it stands.
template <class Visit>
void for_each_task(Visit visit) {
  for (const Record& record : suite_records) {
    visit(record, std::string_view());
    for (std::string_view rest = record.presets; !rest.empty();) {
      const std::string_view preset = rest.substr(0, rest.find(' '));
      visit(record, preset);
      rest.remove_prefix(std::min(rest.size(), preset.size() + 1));
    }
  }
}

}  // namespace detail

}  // namespace kevin::tasks

#endif  // KEVIN_TASKS_SUITE_RECORDS_HPP
