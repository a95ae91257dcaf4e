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
  /// Dynamic sampling (DAPO, arXiv 2503.14476, section 3.2): groups without a signal are sampled again so many times,
  /// from tasks that the update does not have yet, where there are some. The log keeps what they said.
  std::size_t resample_rounds = 0;
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

/// Tasks in place of tasks[slots[...]]: such as the update does not have, drawn without replacement; where these run
/// out, the old ones.
[[nodiscard]] inline std::vector<std::size_t> replace_tasks(std::size_t number, const std::vector<std::size_t>& tasks,
                                                            const std::vector<std::size_t>& slots, std::uint64_t seed) {
  std::vector<std::size_t> spare;
  for (std::size_t t = 0; t < number; ++t) {
    if (std::find(tasks.begin(), tasks.end(), t) == tasks.end()) spare.push_back(t);
  }
  Rng rng(seed, "tasks");
  std::vector<std::size_t> chosen;
  for (const std::size_t slot : slots) {
    const std::size_t i = chosen.size();
    if (i < spare.size()) std::swap(spare[i], spare[i + rng.below(spare.size() - i)]);
    chosen.push_back(i < spare.size() ? spare[i] : tasks[slot]);
  }
  return chosen;
}
}  // namespace detail

/// One run of training: in each update sample a group for each task, learn from them, log them, write a checkpoint.
/// Everything random comes from `options.seed` and the number of the update, so a run that was killed and resumed goes
/// the same way as one that was not (as far as the environment is deterministic).
template <Env E, TrainablePolicy<E> P>
class TrainingRun {
 public:
  /// Gets hold of log and checkpoint, so that whatever is wrong with them is told before any work: restores `trainer`
  /// (kept by reference) when the checkpoint's file is there, else writes a first checkpoint, from where on a killed
  /// run can be resumed. `task_names[task]` is what the log calls a task. Throws Error(bad_input) for files of another
  /// run, Error(resource) for those that cannot be written or are in use by a run that is still going on.
  TrainingRun(std::vector<std::string> task_names, GrpoTrainer<E, P>& trainer, TrainingOptions options)
      : task_names_(std::move(task_names)), trainer_(trainer), options_(std::move(options)) {
    if (task_names_.empty()) throw Error(ErrorCode::bad_input, "train: no tasks");
    // what must not change between the parts of one run
    identity_ = {{"seed", options_.seed},
                 {"tasks", task_names_},
                 {"trajectories", options_.trajectories},
                 {"turns", options_.turns},
                 {"tasks_per_update", options_.tasks_per_update},
                 {"resample_rounds", options_.resample_rounds}};
    if (!options_.log.empty()) log_.emplace(options_.log);  // first: its lock also guards the checkpoint
    std::error_code error;
    if (!options_.checkpoint.empty() && std::filesystem::exists(options_.checkpoint, error)) {
      restore();
      return;
    }
    if (log_ && log_->bytes() > 0) {
      throw Error(ErrorCode::bad_input, options_.log.string() +
                                            " holds an earlier run's trajectories and there is no "
                                            "checkpoint to go on from: move it away, or log to another file");
    }
    save();
  }
  TrainingRun(const TrainingRun&) = delete;
  TrainingRun& operator=(const TrainingRun&) = delete;

  /// What was made so far; `resumed`: by an earlier run.
  [[nodiscard]] const TrainingResult& result() const noexcept { return result_; }

  /// Makes the updates that are missing. `make_env(task, trajectory)` makes an environment; `on_update` is called after
  /// each update.
  template <class MakeEnv, std::invocable<const TrainingProgress<E>&> OnUpdate = detail::Nothing>
  TrainingResult train(MakeEnv make_env, const OnUpdate& on_update = {}) {
    result_.stopped = false;
    while (result_.updates < options_.updates && !result_.stopped) update(make_env, on_update);
    save();
    return result_;
  }

 private:
  void restore() {
    const std::string name = "checkpoint " + options_.checkpoint.string();
    const nlohmann::json facts = load_checkpoint(options_.checkpoint, trainer_, [&](const nlohmann::json& f) {
      if (f.value("run", nlohmann::json()) != identity_) {
        throw Error(ErrorCode::bad_input, name + " is of another run (" + f.value("run", nlohmann::json()).dump() +
                                              "); use its options, or another path to start afresh");
      }
    });
    result_.resumed = true;
    try {
      result_.updates = facts.at("updates").template get<std::size_t>();
      log_bytes_ = facts.at("log_bytes").template get<std::uint64_t>();
    } catch (const nlohmann::json::exception&) {
      throw Error(ErrorCode::bad_input, name + " has a damaged header");
    }
    if (log_) log_->cut(log_bytes_);
  }

  void save() {
    if (options_.checkpoint.empty()) return;
    if (log_) {
      log_->flush();
      log_bytes_ = log_->bytes();
    }
    save_checkpoint(options_.checkpoint, trainer_,
                    {{"run", identity_}, {"updates", result_.updates}, {"log_bytes", log_bytes_}});
  }

  /// A group for each of `tasks`.
  template <class MakeEnv>
  [[nodiscard]] std::vector<GroupOf<E>> sample(MakeEnv& make_env, const std::vector<std::size_t>& tasks,
                                               std::uint64_t seed) {
    return rollout_groups([&](std::size_t i, std::size_t trajectory) { return make_env(tasks[i], trajectory); },
                          tasks.size(), trainer_.policy(),
                          {.trajectories = options_.trajectories,
                           .turns = options_.turns,
                           .seed = seed,
                           .threads = options_.threads,
                           .retries = options_.retries,
                           .stop = options_.stop});
  }

  /// Numbers of the groups from which nothing can be learnt.
  [[nodiscard]] std::vector<std::size_t> without_signal(const std::vector<GroupOf<E>>& groups) const {
    std::vector<std::size_t> found;
    const GrpoConfig& config = trainer_.config();
    for (std::size_t i = 0; i < groups.size(); ++i) {
      if (!rl::has_signal(rl::group_advantages(rl::returns(groups[i], config.returns), config.advantages)))
        found.push_back(i);
    }
    return found;
  }

  /// Logs a group and gives its returns.
  rl::PerTurn log(std::size_t task, const GroupOf<E>& group) {
    rl::PerTurn returns = rl::returns(group, trainer_.config().returns);
    if (!log_) return returns;
    const rl::PerTurn advantages = rl::group_advantages(returns, trainer_.config().advantages);
    for (std::size_t j = 0; j < group.size(); ++j)
      log_->add(trajectory_json(group[j], task_names_[task], result_.updates, returns[j], advantages[j]));
    return returns;
  }

  template <class MakeEnv, class OnUpdate>
  void update(MakeEnv& make_env, const OnUpdate& on_update) {
    const std::uint64_t seed = derive_seed(options_.seed, "update", result_.updates);
    std::vector<std::size_t> tasks = detail::draw_tasks(task_names_.size(), options_.tasks_per_update, seed);
    std::vector<GroupOf<E>> groups = sample(make_env, tasks, seed);
    std::vector<std::pair<std::size_t, GroupOf<E>>> discarded;
    for (std::size_t round = 0; round < options_.resample_rounds && !stop_requested(options_.stop); ++round) {
      const std::vector<std::size_t> barren = without_signal(groups);
      if (barren.empty()) break;
      const std::uint64_t again = derive_seed(seed, "resample", round);
      const std::vector<std::size_t> others = detail::replace_tasks(task_names_.size(), tasks, barren, again);
      std::vector<GroupOf<E>> fresh = sample(make_env, others, again);
      for (std::size_t k = 0; k < barren.size(); ++k) {
        discarded.emplace_back(std::exchange(tasks[barren[k]], others[k]),
                               std::exchange(groups[barren[k]], std::move(fresh[k])));
      }
    }
    if (stop_requested(options_.stop)) {  // an update from half a batch could not be repeated
      result_.stopped = true;
      return;
    }
    const UpdateStats stats = trainer_.update(groups);
    ++result_.updates;
    for (const auto& [task, group] : discarded) log(task, group);
    double total = 0;
    std::size_t turns = 0;
    for (std::size_t i = 0; i < groups.size(); ++i) {
      for (const auto& trajectory : log(tasks[i], groups[i])) {
        total += std::accumulate(trajectory.begin(), trajectory.end(), 0.0);
        turns += trajectory.size();
      }
    }
    if (log_) log_->flush();
    if (result_.updates % std::max<std::size_t>(1, options_.checkpoint_every) == 0) save();
    on_update(TrainingProgress<E>{.update = result_.updates,
                                  .tasks = tasks,
                                  .groups = groups,
                                  .stats = stats,
                                  .mean_return = turns == 0 ? 0 : total / static_cast<double>(turns)});
  }

  std::vector<std::string> task_names_;
  GrpoTrainer<E, P>& trainer_;
  TrainingOptions options_;
  nlohmann::json identity_;
  std::optional<TrajectoryLog> log_;
  std::uint64_t log_bytes_ = 0;
  TrainingResult result_;
};

/// A TrainingRun from its beginning to its end.
template <class MakeEnv, Env E, TrainablePolicy<E> P,
          std::invocable<const TrainingProgress<E>&> OnUpdate = detail::Nothing>
TrainingResult train(MakeEnv make_env, const std::vector<std::string>& task_names, GrpoTrainer<E, P>& trainer,
                     const TrainingOptions& options, const OnUpdate& on_update = {}) {
  return TrainingRun<E, P>(task_names, trainer, options).train(std::move(make_env), on_update);
}

}  // namespace kevin::agent

#endif  // KEVIN_AGENT_TRAINING_HPP
