#ifndef KEVIN_CORE_ROLLOUT_GROUP_HPP
#define KEVIN_CORE_ROLLOUT_GROUP_HPP

#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <type_traits>
#include <vector>

#include "kevin/core/rollout.hpp"
#include "kevin/core/threads.hpp"

namespace kevin {

struct GroupOptions {
  std::size_t trajectories = 16;  ///< per task (Kevin-32B trains with 16 trajectories of 4 turns)
  std::size_t turns = 4;
  std::uint64_t seed = 0;   ///< trajectory i of task t gets derive_seed(derive_seed(seed, "task", t), "trajectory", i)
  std::size_t threads = 0;  ///< 0: as many as the machine has
  std::size_t retries = 0;  ///< further tries, with the same seeds, of a trajectory that ended with env_error
  const StopFlag* stop = nullptr;  ///< looked at between turns; what has not ended by then is StopReason::cancelled
};

namespace detail {
template <class F>
concept TwoIndexFactory = std::invocable<F&, std::size_t, std::size_t>;

template <class F>
concept OneIndexFactory = std::invocable<F&, std::size_t>;

template <class F>
struct Made;
template <OneIndexFactory F>
struct Made<F> {
  using type = std::invoke_result_t<F&, std::size_t>;
};
template <class F>
requires(!OneIndexFactory<F> && std::invocable<F&>) struct Made<F> {
  using type = std::invoke_result_t<F&>;
};

template <class F>
decltype(auto) make_one(F& make, std::size_t index) {
  if constexpr (OneIndexFactory<F>) {
    return make(index);
  } else {
    return make();
  }
}

/// Calls work(0..count-1), each once, on `threads` threads that take the next index when they are free.
template <class Work>
void for_each_index(std::size_t count, std::size_t threads, const Work& work) {
  if (threads == 0) threads = machine_threads();
  threads = std::min(threads, count);
  std::atomic<std::size_t> next{0};
  const auto loop = [&] {
    for (std::size_t i = next.fetch_add(1); i < count; i = next.fetch_add(1)) work(i);
  };
  std::vector<Thread> helpers;
  try {
    for (std::size_t t = 1; t < threads; ++t) helpers.emplace_back(loop);
  } catch (const std::exception&) {  // the system gives no more: those that there are do the work
  }
  loop();
}
}  // namespace detail

/// Plays `options.trajectories` trajectories of each of `tasks` tasks, all over one pool of threads, since compile
/// times are long-tailed. `make_env(task, trajectory)` is called once for each, on the thread that plays it.
///
/// The result is the same for any number of threads. A make_env or environment that fails marks its own trajectory
/// only.
template <detail::TwoIndexFactory MakeEnv, class P>
requires Env<std::invoke_result_t<MakeEnv&, std::size_t, std::size_t>> &&
    PolicyFor<P, std::invoke_result_t<MakeEnv&, std::size_t, std::size_t>>
[[nodiscard]] auto rollout_groups(MakeEnv&& make_env, std::size_t tasks, const P& policy, const GroupOptions& options) {
  using E = std::invoke_result_t<MakeEnv&, std::size_t, std::size_t>;
  std::vector<GroupOf<E>> groups(tasks, GroupOf<E>(options.trajectories));
  detail::for_each_index(tasks * options.trajectories, options.threads, [&](std::size_t n) {
    const std::size_t task = n / options.trajectories;
    const std::size_t index = n % options.trajectories;
    const RolloutOptions one{.turns = options.turns,
                             .seed = derive_seed(derive_seed(options.seed, "task", task), "trajectory", index),
                             .stop = options.stop};
    TrajectoryOf<E> trajectory;
    for (std::size_t attempt = 0; attempt <= options.retries; ++attempt) {
      try {
        E env = make_env(task, index);
        trajectory = rollout(env, policy, one);
      } catch (const std::exception& e) {
        trajectory = {};
        trajectory.stop = StopReason::env_error;
        trajectory.error = e.what();
      } catch (...) {
        trajectory = {};
        trajectory.stop = StopReason::env_error;
        trajectory.error = "an exception that is not a std::exception";
      }
      if (trajectory.stop != StopReason::env_error) break;
    }
    trajectory.seed = one.seed;
    trajectory.index = index;
    groups[task][index] = std::move(trajectory);
  });
  return groups;
}

/// Plays the trajectories of one task. `make_env` is called as make_env(trajectory) or make_env().
template <class MakeEnv, class P>
requires Env<typename detail::Made<std::remove_reference_t<MakeEnv>>::type> &&
    PolicyFor<P, typename detail::Made<std::remove_reference_t<MakeEnv>>::type>
[[nodiscard]] auto rollout_group(MakeEnv&& make_env, const P& policy, const GroupOptions& options = {}) {
  auto groups = rollout_groups([&](std::size_t, std::size_t index) { return detail::make_one(make_env, index); }, 1,
                               policy, options);
  return std::move(groups.front());
}

}  // namespace kevin

#endif  // KEVIN_CORE_ROLLOUT_GROUP_HPP
