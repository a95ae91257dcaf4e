#ifndef KEVIN_EVAL_DETERMINISTIC_TIMES_HPP
#define KEVIN_EVAL_DETERMINISTIC_TIMES_HPP

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>

#include "kevin/core/random.hpp"
#include "kevin/refine/evaluator.hpp"
#include "kevin/refine/task.hpp"
#include "kevin/refine/verdict.hpp"

namespace kevin::eval {

/// An Evaluator that asks another one, and then replaces everything that depends on a clock by a function of the task's
/// name and the candidate's source. For tests of reproducibility: two runs then give the same verdicts to the last bit.
///
/// Every correct verdict gets times, also when the inner evaluator measured none: baseline 1 ms, candidate between
/// 0.25 and 4 ms. As thread safe as the inner evaluator, which must outlive it.
template <kevin::Evaluator E>
class DeterministicTimes {
 public:
  explicit DeterministicTimes(E& inner) noexcept : inner_(&inner) {}

  [[nodiscard]] Verdict evaluate(const Task& task, const Candidate& candidate, std::uint64_t seed) {
    Verdict v = inner_->evaluate(task, candidate, seed);
    v.compile_ms = 0;
    v.evaluate_ms = 0;
    v.compile_cached = false;
    v.candidate.reset();
    v.baseline.reset();
    v.speedup.reset();
    v.speed_of_light_ms.reset();
    constexpr std::string_view on_the_measurement[] = {"unsteady_times",   "few_samples", "below_clock_resolution",
                                                       "late_launches",    "throttled",   "clocks_disagree",
                                                       "faster_than_light"};
    v.flags.erase(std::remove_if(v.flags.begin(), v.flags.end(),
                                 [&](const std::string& flag) {
                                   return std::ranges::find(on_the_measurement, flag) != std::end(on_the_measurement);
                                 }),
                  v.flags.end());
    if (!v.correct()) return v;
    Rng rng(derive_seed(derive_seed(0, task.id), candidate.source), "time");
    const double ms = 0.25 * (1.0 + 15.0 * rng.uniform());
    v.candidate = Timing{ms, ms, ms, 1};
    v.baseline = Timing{1, 1, 1, 1};
    v.speedup = 1 / ms;
    return v;
  }

 private:
  E* inner_;
};

}  // namespace kevin::eval

#endif  // KEVIN_EVAL_DETERMINISTIC_TIMES_HPP
