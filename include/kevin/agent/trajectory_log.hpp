#ifndef KEVIN_AGENT_TRAJECTORY_LOG_HPP
#define KEVIN_AGENT_TRAJECTORY_LOG_HPP

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <istream>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/file.h>

#include "kevin/agent/json.hpp"
#include "kevin/core/error.hpp"
#include "kevin/core/trajectory.hpp"
#include "kevin/eval/descriptor.hpp"
#include "kevin/rl/advantages.hpp"
#include "kevin/rl/returns.hpp"

namespace kevin::agent {

namespace detail {
template <class T>
[[nodiscard]] nlohmann::json json_or_null(const T& value) {
  if constexpr (std::is_convertible_v<const T&, double> && !std::is_same_v<T, Score>) {
    return json_number(static_cast<double>(value));
  } else if constexpr (requires(nlohmann::json & j) { to_json(j, value); } ||
                       std::is_constructible_v<nlohmann::json, const T&>) {
    return nlohmann::json(value);
  } else {
    return nullptr;
  }
}
}  // namespace detail

/// One trajectory as a JSON object (schema "kevin.trajectory/1"). `returns` and `advantages` hold one number a turn, or
/// are empty where the trajectory took no part.
template <Trajectory T>
[[nodiscard]] nlohmann::json trajectory_json(const T& trajectory, const std::string& task, std::size_t update,
                                             const std::vector<double>& returns,
                                             const std::vector<double>& advantages) {
  nlohmann::json turns = nlohmann::json::array();
  for (std::size_t t = 0; t < trajectory.turns.size(); ++t) {
    const auto& turn = trajectory.turns[t];
    nlohmann::json logprobs = nlohmann::json::array();
    for (float p : turn.sample.logprobs) logprobs.push_back(json_number(static_cast<double>(p)));
    turns.push_back({{"action", detail::json_or_null(turn.action)},
                     {"info", detail::json_or_null(turn.info)},
                     {"reward", detail::json_or_null(turn.reward)},
                     {"return", t < returns.size() ? json_number(returns[t]) : nlohmann::json()},
                     {"advantage", t < advantages.size() ? json_number(advantages[t]) : nlohmann::json()},
                     {"terminated", turn.terminated},
                     {"truncated", turn.truncated},
                     {"prompt_ids", turn.sample.prompt_ids},
                     {"completion_ids", turn.sample.completion_ids},
                     {"answer_truncated", turn.sample.truncated},
                     {"logprobs", std::move(logprobs)}});
  }
  return {{"schema", "kevin.trajectory/1"}, {"update", update},         {"task", task},
          {"trajectory", trajectory.index}, {"seed", trajectory.seed},  {"stop", to_string(trajectory.stop)},
          {"error", trajectory.error},      {"turns", std::move(turns)}};
}

/// Appends trajectories to a JSONL file, one a line. Nothing is written before the first line is added. While it lives
/// it holds a lock (flock) on the file: two runs that write the same log would destroy each other's.
class TrajectoryLog {
 public:
  /// Opens `path` for appending. Throws Error(resource) when that is not possible, as while another one has it open.
  explicit TrajectoryLog(std::filesystem::path path) : path_(std::move(path)) {
    std::error_code ec;
    if (path_.has_parent_path()) std::filesystem::create_directories(path_.parent_path(), ec);
    lock_.reset(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
    const int error = errno;
    if (lock_) out_.open(path_, std::ios::binary | std::ios::app);
    if (!lock_ || !out_)
      throw Error(ErrorCode::resource, "cannot write to " + path_.string() + ": " + eval::detail::errno_text(error));
    // a file system that has no locks is no reason not to train
    if (::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      throw Error(ErrorCode::resource, path_.string() +
                                           " is being written by another run that is still going on: wait "
                                           "for its end, stop it, or log to another place");
    }
    bytes_ = std::filesystem::file_size(path_, ec);
    if (ec) throw Error(ErrorCode::resource, "cannot look at " + path_.string() + ": " + ec.message());
  }

  /// The same, cut back to `keep_bytes` (what a checkpoint says it held), so that resuming neither doubles nor loses
  /// lines. Throws also Error(bad_input).
  TrajectoryLog(std::filesystem::path path, std::uint64_t keep_bytes) : TrajectoryLog(std::move(path)) {
    cut(keep_bytes);
  }

  /// Cuts the file back to `keep_bytes`. Before anything is added. Throws Error(resource | bad_input).
  void cut(std::uint64_t keep_bytes) {
    if (bytes_ < keep_bytes) {
      throw Error(ErrorCode::bad_input, path_.string() + " holds " + std::to_string(bytes_) +
                                            " bytes, but the checkpoint was written when it held " +
                                            std::to_string(keep_bytes) +
                                            ": it belongs to another run; move it or the checkpoint away");
    }
    std::error_code ec;
    if (bytes_ > keep_bytes) std::filesystem::resize_file(path_, keep_bytes, ec);
    if (ec) throw Error(ErrorCode::resource, "cannot cut " + path_.string() + " back: " + ec.message());
    bytes_ = keep_bytes;
  }

  void add(const nlohmann::json& trajectory) {
    const std::string line = json_line(trajectory) + '\n';
    out_ << line;
    bytes_ += line.size();
  }
  /// Throws Error(resource) when the lines could not be written (disk full).
  void flush() {
    out_.flush();
    if (!out_) throw Error(ErrorCode::resource, "cannot write to " + path_.string() + " (is the disk full?)");
  }
  /// Of the file, with what was added.
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }

 private:
  std::filesystem::path path_;
  eval::Descriptor lock_;
  std::uint64_t bytes_ = 0;
  std::ofstream out_;
};

/// Reads the lines of a log; `name` is what errors call it. Throws Error(bad_input) with name and line number for a
/// line that is no trajectory. A last line without its end (the writer was killed) is left out.
[[nodiscard]] inline std::vector<nlohmann::json> read_trajectory_log(std::istream& in, const std::string& name) {
  std::vector<nlohmann::json> trajectories;
  std::string line;
  for (std::size_t number = 1; std::getline(in, line); ++number) {
    if (in.eof()) break;
    const auto fail = [&](const std::string& what) {
      throw Error(ErrorCode::bad_input, name + ':' + std::to_string(number) + ": " + what);
    };
    nlohmann::json j = nlohmann::json::parse(line, nullptr, false);
    if (j.is_discarded() || !j.is_object()) fail("not a JSON object");
    const auto schema = j.find("schema");
    if (schema == j.end() || *schema != "kevin.trajectory/1") fail("'schema' is not \"kevin.trajectory/1\"");
    const auto turns = j.find("turns");
    if (turns == j.end() || !turns->is_array()) fail("'turns' is missing or not an array");
    trajectories.push_back(std::move(j));
  }
  return trajectories;
}
/// The same from a file. Throws also Error(not_found).
[[nodiscard]] inline std::vector<nlohmann::json> read_trajectory_log(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw Error(ErrorCode::not_found, "cannot read " + path.string());
  return read_trajectory_log(in, path.string());
}

}  // namespace kevin::agent

#endif  // KEVIN_AGENT_TRAJECTORY_LOG_HPP
