#ifndef KEVIN_CORE_WRAPPERS_RECORD_EPISODE_STATISTICS_HPP
#define KEVIN_CORE_WRAPPERS_RECORD_EPISODE_STATISTICS_HPP

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <optional>
#include <ostream>
#include <span>
#include <utility>
#include <vector>

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
  friend std::ostream& operator<<(std::ostream& out, const EpisodeInfo& i) requires requires { out << i.info; }
  { return out << i.info; }
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
  explicit RecordEpisodeStatistics(E env, std::size_t buffer_length = 100)
      : env_(std::move(env)), buffer_length_(buffer_length) {
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
      // Those that are too many go all at once, so that no step moves the others but one in buffer_length.
      if (episodes_.size() / 2 >= buffer_length_) episodes_.erase(episodes_.begin(), episodes_.end() - kept());
      episodes_.push_back(current_);
    }
    return result;
  }

  /// The last episodes, oldest first; valid until the next step.
  [[nodiscard]] std::span<const EpisodeStatistics> episodes() const noexcept {
    return {episodes_.end() - kept(), episodes_.end()};
  }
  [[nodiscard]] E& unwrapped() noexcept { return env_; }

 private:
  /// How many of `episodes_` are told.
  [[nodiscard]] std::ptrdiff_t kept() const noexcept {
    return static_cast<std::ptrdiff_t>(std::min(episodes_.size(), buffer_length_));
  }

  E env_;
  std::size_t buffer_length_;
  EpisodeStatistics current_{};
  double start_ = 0;
  std::vector<EpisodeStatistics> episodes_;  // the last `buffer_length_`, behind at most as many older ones
};

}  // namespace kevin

#endif  // KEVIN_CORE_WRAPPERS_RECORD_EPISODE_STATISTICS_HPP
