#ifndef KEVIN_AGENT_TRAINING_HPP
#define KEVIN_AGENT_TRAINING_HPP

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <numeric>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "kevin/agent/checkpoint.hpp"
#include "kevin/agent/grpo_trainer.hpp"
#include "kevin/agent/trajectory_log.hpp"
#include "kevin/core/rollout_group.hpp"

namespace kevin::agent {

struct TrainingOptions {
  std::size_t updates = 40;
  std::size_t tasks_per_update = 0;  ///< drawn without replacement; 0: all tasks in each update (Kevin: 8)
  std::size_t trajectories = 16;     ///< per task
  std::size_t turns = 4;
  std::uint64_t seed = 0;
  std::size_t threads = 0;
  std::size_t retries = 1;             ///< of a trajectory whose environment failed
  std::filesystem::path checkpoint{};  ///< empty: none. When the file exists, training goes on from it
  std::size_t checkpoint_every = 1;    ///< updates
  std::filesystem::path log{};         ///< JSONL of all trajectories; empty: none
  const StopFlag* stop = nullptr;      ///< a request ends training after the last whole update, with a checkpoint
};

/// What is known after each update.
template <Env E>
struct TrainingProgress {
  std::size_t update = 0;                 ///< 1-based
  const std::vector<std::size_t>& tasks;  ///< of this update
  const std::vector<GroupOf<E>>& groups;  ///< one a task
  const UpdateStats& stats;
  double mean_return = 0;  ///< over all turns that took part
};

struct TrainingResult {
  std::size_t updates = 0;  ///< made in total, those before a resume included
  bool resumed = false;
  bool stopped = false;  ///< ended by a stop request
};

namespace detail {
struct Nothing {
  void operator()(const auto&) const {}
};

[[nodiscard]] inline std::vector<std::size_t> draw_tasks(std::size_t tasks, std::size_t wanted, std::uint64_t seed) {
  std::vector<std::size_t> all(tasks);
  std::iota(all.begin(), all.end(), std::size_t{0});
  if (wanted == 0 || wanted >= tasks) return all;
  Rng rng(seed, "tasks");
  for (std::size_t i = 0; i < wanted; ++i) std::swap(all[i], all[i + rng.below(tasks - i)]);
  all.resize(wanted);
  std::sort(all.begin(), all.end());
  return all;
}
}  // namespace detail

/// The training loop: in each update sample a group for each task, learn from them, log them, write a checkpoint.
///
/// `make_env(task, trajectory)` makes an environment; `task_names[task]` is what the log calls a task; `on_update` is
/// called after each update. Everything random comes from `options.seed` and the number of the update, so a run that
/// was killed and resumed goes the same way as one that was not (as far as the environment is deterministic). Throws
/// Error when a checkpoint belongs to another run.
template <class MakeEnv, Env E, TrainablePolicy<E> P,
          std::invocable<const TrainingProgress<E>&> OnUpdate = detail::Nothing>
TrainingResult train(MakeEnv make_env, const std::vector<std::string>& task_names, GrpoTrainer<E, P>& trainer,
                     const TrainingOptions& options, const OnUpdate& on_update = {}) {
  if (task_names.empty()) throw Error(ErrorCode::bad_input, "train: no tasks");
  TrainingResult result;
  std::uint64_t log_bytes = 0;
  // what must not change between the parts of one run
  const nlohmann::json identity = {{"seed", options.seed},
                                   {"tasks", task_names},
                                   {"trajectories", options.trajectories},
                                   {"turns", options.turns},
                                   {"tasks_per_update", options.tasks_per_update}};
  if (!options.checkpoint.empty() && std::filesystem::exists(options.checkpoint)) {
    const nlohmann::json facts = load_checkpoint(options.checkpoint, trainer, [&](const nlohmann::json& f) {
      if (f.value("run", nlohmann::json()) != identity) {
        throw Error(ErrorCode::bad_input, "checkpoint " + options.checkpoint.string() + " is of another run (" +
                                              f.value("run", nlohmann::json()).dump() +
                                              "); use its options, or another path to start afresh");
      }
    });
    result.resumed = true;
    try {
      result.updates = facts.at("updates").get<std::size_t>();
      log_bytes = facts.at("log_bytes").get<std::uint64_t>();
    } catch (const nlohmann::json::exception&) {
      throw Error(ErrorCode::bad_input, "checkpoint " + options.checkpoint.string() + " has a damaged header");
    }
  }
  std::error_code ignored;
  if (!result.resumed && !options.log.empty() && std::filesystem::exists(options.log, ignored) &&
      std::filesystem::file_size(options.log, ignored) > 0) {
    throw Error(ErrorCode::bad_input, options.log.string() +
                                          " holds an earlier run's trajectories and there is no "
                                          "checkpoint to go on from: move it away, or log to another file");
  }
  std::optional<TrajectoryLog> log;
  if (!options.log.empty()) log.emplace(options.log, log_bytes);
  const auto checkpoint = [&] {
    if (options.checkpoint.empty()) return;
    if (log) log->flush();
    save_checkpoint(options.checkpoint, trainer,
                    {{"run", identity}, {"updates", result.updates}, {"log_bytes", log ? log->bytes() : log_bytes}});
  };
  if (!result.resumed) checkpoint();  // from here on a killed run can be resumed
  while (result.updates < options.updates) {
    const std::uint64_t seed = derive_seed(options.seed, "update", result.updates);
    const std::vector<std::size_t> tasks = detail::draw_tasks(task_names.size(), options.tasks_per_update, seed);
    const GroupOptions group_options{.trajectories = options.trajectories,
                                     .turns = options.turns,
                                     .seed = seed,
                                     .threads = options.threads,
                                     .retries = options.retries,
                                     .stop = options.stop};
    const auto groups =
        rollout_groups([&](std::size_t i, std::size_t trajectory) { return make_env(tasks[i], trajectory); },
                       tasks.size(), trainer.policy(), group_options);
    if (stop_requested(options.stop)) {  // an update from half a batch could not be repeated
      result.stopped = true;
      break;
    }
    const UpdateStats stats = trainer.update(groups);
    ++result.updates;
    double total = 0;
    std::size_t turns = 0;
    for (std::size_t i = 0; i < groups.size(); ++i) {
      const rl::PerTurn returns = rl::returns(groups[i], trainer.config().returns);
      const rl::PerTurn advantages = rl::group_advantages(returns, trainer.config().advantages);
      for (std::size_t j = 0; j < groups[i].size(); ++j) {
        if (log)
          log->add(trajectory_json(groups[i][j], task_names[tasks[i]], result.updates, returns[j], advantages[j]));
        total += std::accumulate(returns[j].begin(), returns[j].end(), 0.0);
        turns += returns[j].size();
      }
    }
    if (log) log->flush();
    if (result.updates % std::max<std::size_t>(1, options.checkpoint_every) == 0) checkpoint();
    on_update(TrainingProgress<E>{.update = result.updates,
                                  .tasks = tasks,
                                  .groups = groups,
                                  .stats = stats,
                                  .mean_return = turns == 0 ? 0 : total / static_cast<double>(turns)});
  }
  checkpoint();
  return result;
}

}  // namespace kevin::agent

#endif  // KEVIN_AGENT_TRAINING_HPP
