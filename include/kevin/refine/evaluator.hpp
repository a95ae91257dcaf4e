#ifndef KEVIN_REFINE_EVALUATOR_HPP
#define KEVIN_REFINE_EVALUATOR_HPP

#include <concepts>
#include <cstdint>

#include "kevin/refine/task.hpp"
#include "kevin/refine/verdict.hpp"

namespace kevin {

/// An Evaluator judges a candidate against a task.
///
/// Semantics that the compiler cannot check: whatever the candidate does, evaluate returns a Verdict in bounded time
/// and the next candidate is judged normally; inputs are drawn from `seed`; the same arguments give the same verdict in
/// all but times; it may be called from several threads at once; only a failure of the machinery throws (kevin::Error).
template <class E>
concept Evaluator = requires(E& evaluator, const Task& task, const Candidate& candidate, std::uint64_t seed) {
  { evaluator.evaluate(task, candidate, seed) } -> std::same_as<Verdict>;
};

}  // namespace kevin

#endif  // KEVIN_REFINE_EVALUATOR_HPP
