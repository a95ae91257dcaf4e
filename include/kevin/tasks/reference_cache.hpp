#ifndef KEVIN_TASKS_REFERENCE_CACHE_HPP
#define KEVIN_TASKS_REFERENCE_CACHE_HPP

#include <algorithm>
#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "kevin/eval/comparison.hpp"
#include "kevin/refine/task.hpp"
#include "kevin/tasks/reference.hpp"

namespace kevin::tasks {

/// Checking a task and preparing its graph is done once for each task, and again when its content changed under the
/// same name. Thread safe.
class ReferenceCache {
 public:
  /// Throws Error(bad_input) for a task that cannot be judged.
  [[nodiscard]] std::shared_ptr<const Reference> find(const Task& task) {
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(references_.begin(), references_.end(),
                                    [&](const auto& r) { return r->task().id == task.id && r->task() == task; });
    if (found != references_.end()) {
      std::rotate(references_.begin(), found, found + 1);  // the most recent first
      return references_.front();
    }
    eval::require_valid(task.tolerance);
    references_.insert(references_.begin(), std::make_shared<const Reference>(task));
    if (references_.size() > kept) references_.pop_back();
    return references_.front();
  }

 private:
  static constexpr std::size_t kept = 64;

  std::mutex mutex_;
  std::vector<std::shared_ptr<const Reference>> references_;
};

}  // namespace kevin::tasks

#endif  // KEVIN_TASKS_REFERENCE_CACHE_HPP
