#ifndef KEVIN_CORE_WRAPPERS_RECORD_EPISODE_STATISTICS_HPP
#define KEVIN_CORE_WRAPPERS_RECORD_EPISODE_STATISTICS_HPP

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <deque>
#include <optional>
#include <ostream>
#include <utility>

#include "kevin/core/env.hpp"
#include "kevin/core/error.hpp"

namespace kevin {

namespace detail {
/// Seconds of the clock that is never set. <chrono> has it too, but its calendar is dear to compile.
[[nodiscard]] inline double steady_seconds() noexcept {
  std::timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}
}  // namespace detail

/// What is known of an episode when it has ended.
struct EpisodeStatistics {
  double total_reward = 0;
  std::size_t length = 0;
  double seconds = 0;  ///< wall time since reset
};

/// The wrapped environment's info, and in the last step of an episode its statistics.
template <class InfoT>
struct EpisodeInfo {
  InfoT info{};
  std::optional<EpisodeStatistics> episode{};
  friend std::ostream& operator<<(std::ostream& out, const EpisodeInfo& i)
    requires requires { out << i.info; }
  {
    return out << i.info;
  }
};

/// Adds the statistics of an episode to the info of its last step, and keeps those of the last `buffer_length` episodes
/// (Gymnasium's RecordEpisodeStatistics; its info["episode"] is `info.episode` here).
template <Env E>
class RecordEpisodeStatistics {
 public:
  using Observation = ObservationOf<E>;
  using Action = ActionOf<E>;
  using StepResultType = Step<Observation, RewardOf<E>, EpisodeInfo<InfoOf<E>>>;

  /// Throws Error(bad_input) when buffer_length is 0.
  explicit RecordEpisodeStatistics(E env, std::size_t buffer_length = 100) : env_(std::move(env)), buffer_length_(buffer_length) {
    if (buffer_length == 0) throw Error(ErrorCode::bad_input, "RecordEpisodeStatistics: buffer_length is 0");
  }

  Observation reset(std::uint64_t seed) {
    current_ = {};
    start_ = detail::steady_seconds();
    return env_.reset(seed);
  }

  StepResultType step(const Action& action) {
    StepOf<E> inner = env_.step(action);
    StepResultType result;
    result.terminated = inner.terminated;
    result.truncated = inner.truncated;
    current_.total_reward += static_cast<double>(inner.reward);
    ++current_.length;
    result.observation = std::move(inner.observation);
    result.reward = std::move(inner.reward);
    result.info.info = std::move(inner.info);
    if (result.done()) {
      current_.seconds = detail::steady_seconds() - start_;
      result.info.episode = current_;
      episodes_.push_back(current_);
      if (episodes_.size() > buffer_length_) episodes_.pop_front();
    }
    return result;
  }

  /// The last episodes, oldest first.
  [[nodiscard]] const std::deque<EpisodeStatistics>& episodes() const noexcept { return episodes_; }
  [[nodiscard]] E& unwrapped() noexcept { return env_; }

 private:
  E env_;
  std::size_t buffer_length_;
  EpisodeStatistics current_{};
  double start_ = 0;
  std::deque<EpisodeStatistics> episodes_;
};

}  // namespace kevin

#endif  // KEVIN_CORE_WRAPPERS_RECORD_EPISODE_STATISTICS_HPP
