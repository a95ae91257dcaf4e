#ifndef KEVIN_TASKS_OPERATIONS_HPP
#define KEVIN_TASKS_OPERATIONS_HPP

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "kevin/tasks/operation.hpp"
#include "kevin/tasks/operations/convolution.hpp"
#include "kevin/tasks/operations/elementwise.hpp"
#include "kevin/tasks/operations/loss.hpp"
#include "kevin/tasks/operations/matmul.hpp"
#include "kevin/tasks/operations/normalisation.hpp"
#include "kevin/tasks/operations/pooling.hpp"
#include "kevin/tasks/operations/reduction.hpp"
#include "kevin/tasks/operations/shape.hpp"

namespace kevin::tasks {

/// The table of all operations that a task may use, ordered by name. To add one, add an entry to the room that it
/// belongs to under kevin/tasks/operations/.
[[nodiscard]] inline const std::vector<Operation>& operations() {
  static const std::vector<Operation> table = [] {
    std::vector<Operation> all;
    for (auto* room : {&elementwise_operations, &shape_operations, &reduction_operations, &matmul_operations,
                       &convolution_operations, &pooling_operations, &normalisation_operations, &loss_operations}) {
      for (Operation& o : room()) all.push_back(std::move(o));
    }
    std::sort(all.begin(), all.end(), [](const Operation& a, const Operation& b) { return a.name < b.name; });
    return all;
  }();
  return table;
}

/// The operation called `name`, or null.
[[nodiscard]] inline const Operation* find_operation(std::string_view name) {
  const std::vector<Operation>& table = operations();
  const auto it = std::lower_bound(table.begin(), table.end(), name,
                                   [](const Operation& o, std::string_view n) { return o.name < n; });
  return it != table.end() && it->name == name ? &*it : nullptr;
}

}  // namespace kevin::tasks

#endif  // KEVIN_TASKS_OPERATIONS_HPP
