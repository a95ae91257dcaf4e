#ifndef KEVIN_EVAL_CUDA_HIDDEN_TIME_HPP
#define KEVIN_EVAL_CUDA_HIDDEN_TIME_HPP

#include <vector>

#include "kevin/eval/timing.hpp"

namespace kevin::cuda {

/// The GPU's events lie in the driver's memory of the candidate's own context. Should it have got hold of them, then
/// what they hide shows on the judge's clock: as time that passes beside them, from asking for a run to its answer, and
/// that an empty plan does not need.
class HiddenTime {
 public:
  /// Forgets all: launches are measured in another way from here on.
  void start_over() {
    beside_.clear();
    beside_nothing_.clear();
  }
  void saw_run(double wall_ms, double event_ms) { beside_.push_back(wall_ms - event_ms); }
  void saw_nothing(double wall_ms, double event_ms) { beside_nothing_.push_back(wall_ms - event_ms); }

  /// Milliseconds that each run took beyond `median_ms`, the events' figure for it; 0 when that is no more than two
  /// processes on a busy machine owe to chance. Needs a run of each kind.
  [[nodiscard]] double beyond(double median_ms) const {
    const double hidden = eval::summarize(beside_).median_ms - eval::summarize(beside_nothing_).median_ms;
    return hidden > 0.1 + 0.25 * median_ms ? hidden : 0;
  }

 private:
  std::vector<double> beside_;
  std::vector<double> beside_nothing_;
};

}  // namespace kevin::cuda

#endif  // KEVIN_EVAL_CUDA_HIDDEN_TIME_HPP
