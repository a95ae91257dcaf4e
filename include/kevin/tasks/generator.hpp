#ifndef KEVIN_TASKS_GENERATOR_HPP
#define KEVIN_TASKS_GENERATOR_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "kevin/core/error.hpp"
#include "kevin/core/random.hpp"
#include "kevin/refine/task.hpp"
#include "kevin/tasks/generator/axis_moves.hpp"
#include "kevin/tasks/generator/draft.hpp"
#include "kevin/tasks/generator/elementwise_moves.hpp"
#include "kevin/tasks/generator/estimate.hpp"
#include "kevin/tasks/generator/generated_id.hpp"
#include "kevin/tasks/generator/heavy.hpp"
#include "kevin/tasks/generator/sequences.hpp"

namespace kevin::tasks {

/// Bounds on what a generated task costs at full shape.
struct GeneratorLimits {
  /// least_eager_milliseconds is at least this, so that launching matters little: half more than the 0.1 ms of the
  /// paper, for results that stay in the L2 cache.
  double least_milliseconds = 0.15;
  double most_milliseconds = 10;
  std::int64_t most_elements = std::int64_t{1} << 28;  ///< of any tensor (1 GiB)
};

/// An endless supply of fusion tasks in the manner of the Kevin paper (Baronio et al. 2025, arXiv 2507.11948, appendix
/// A.2): one heavy operator (linear layer, matrix product, batched product, convolution or transposed convolution in
/// one to three dims), then two to five of activations, arithmetic with numbers, learned parameters and a second input,
/// cuts, norms, pools, reductions, softmax and residuals. The paper has a language model write them; here rules do, so
/// task `index` of a seed is the same everywhere.
///
/// No sequence of operations is one of KernelBench's levels 1 and 2 (see step_sequence). Inputs are normal, norms have
/// random weights and biases, weights are scaled by fan-in. Steps that do nothing, cancel another or leave a constant
/// are refused by rules on the values expected at each step (detail::Marginal).
///
/// Immutable after construction and safe to share between threads. Construction reads the sequences of 200 tasks (some
/// milliseconds); a task takes about a tenth of a millisecond.
class Generator {
 public:
  explicit Generator(std::uint64_t seed = 0) : seed_(seed), excluded_(kernelbench_sequences()) {}

  [[nodiscard]] std::uint64_t seed() const noexcept { return seed_; }
  /// The sequences that no task repeats.
  [[nodiscard]] const std::set<std::string>& excluded() const noexcept { return excluded_; }

  /// Task "generated/SEED/INDEX" at full shape (for a GPU of the H200's class: the reference takes 0.1 ms or more, no
  /// tensor holds more than 1 GiB), or with preset "small" the same operations at a size for a 2-core cpu.
  /// Error(not_found) for another preset.
  [[nodiscard]] Task task(std::uint64_t index, std::string_view preset = "") const {
    if (!preset.empty() && preset != "small") {
      throw Error(ErrorCode::not_found,
                  "generated tasks have no preset " + detail::quote(preset) + "; they are at full shape, or 'small'");
    }
    const bool small = preset == "small";
    Rng rng(seed_, "generated task", index);
    for (int attempt = 0; attempt < most_attempts; ++attempt) {
      std::optional<Task> task = draw(rng, small);
      if (!task) continue;
      task->id = to_string(GeneratedId{seed_, index, small});
      task->tolerance = {.absolute = 0, .relative = 1e-4, .spread = 1e-4};
      task->flags = {"generated", "normal_inputs", "random_affine"};
      return *std::move(task);
    }
    throw Error(ErrorCode::internal, "no task was found for " + to_string(GeneratedId{seed_, index, small}));
  }

 private:
  static constexpr int most_attempts = 1000;

  /// One attempt; takes the same draws whichever size is asked for.
  [[nodiscard]] std::optional<Task> draw(Rng& rng, bool small) const {
    std::optional<detail::Draft> draft = detail::draw_heavy(rng);
    const std::size_t others = 2 + static_cast<std::size_t>(rng.below(4));
    const double wanted = limits_.least_milliseconds * static_cast<double>(detail::pick(rng, {1, 2, 4, 8}));
    if (!draft || !add_others(*draft, others, rng)) return std::nullopt;
    if (excluded_.contains(step_sequence(draft->task(0)))) return std::nullopt;
    std::optional<Task> full = at_full_shape(*draft, wanted);
    if (!full) return std::nullopt;
    return small ? draft->small() : *std::move(full);
  }

  /// Adds as many steps, or fails.
  [[nodiscard]] static bool add_others(detail::Draft& draft, std::size_t count, Rng& rng) {
    struct Move {
      std::uint64_t weight;
      bool (*run)(detail::Draft&, Rng&);
    };
    static constexpr std::array moves = {Move{6, detail::try_activation}, Move{2, detail::try_cut},
                                         Move{3, detail::try_scalar},     Move{3, detail::try_parameter},
                                         Move{1, detail::try_input},      Move{2, detail::try_residual},
                                         Move{5, detail::try_norm},       Move{4, detail::try_pool},
                                         Move{2, detail::try_softmax},    Move{5, detail::try_reduction}};
    std::uint64_t sum = 0;
    for (const Move& m : moves) sum += m.weight;
    constexpr int most_tries = 60;
    for (int tries = 0; draft.steps() <= count; ++tries) {
      if (tries == most_tries) return false;
      std::uint64_t ticket = rng.below(sum);
      std::size_t chosen = 0;
      while (ticket >= moves[chosen].weight) ticket -= moves[chosen++].weight;
      (void)moves[chosen].run(draft, rng);
    }
    return true;
  }

  /// The task with the batch doubled until it costs `wanted` milliseconds; nothing when it is too large for the limits
  /// before it costs enough.
  [[nodiscard]] std::optional<Task> at_full_shape(const detail::Draft& draft, double wanted) const {
    std::optional<Task> best;
    for (std::int64_t batch = draft.task(0).inputs[0].shape[0];; batch *= 2) {
      Task task = draft.with_batch(batch);
      const double cost = least_eager_milliseconds(task);
      if (cost > limits_.most_milliseconds || largest(task) > limits_.most_elements) return best;
      if (cost >= wanted) return task;
      if (cost >= limits_.least_milliseconds) best = std::move(task);
    }
  }

  [[nodiscard]] static std::int64_t largest(const Task& task) {
    std::int64_t most = 0;
    for (const TensorSpec& t : task.inputs) most = std::max(most, element_count(t.shape));
    for (const TensorSpec& t : task.parameters) most = std::max(most, element_count(t.shape));
    for (const Op& op : task.ops) most = std::max(most, element_count(op.out_shape));
    return most;
  }

  std::uint64_t seed_;
  GeneratorLimits limits_;
  std::set<std::string> excluded_;
};

}  // namespace kevin::tasks

#endif  // KEVIN_TASKS_GENERATOR_HPP
