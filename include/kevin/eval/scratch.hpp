#ifndef KEVIN_EVAL_SCRATCH_HPP
#define KEVIN_EVAL_SCRATCH_HPP

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kevin/core/error.hpp"
#include "kevin/eval/descriptor.hpp"

namespace kevin::eval {

/// The system's folder for temporary files: $TMPDIR, else /tmp. Where $TMPDIR names no folder it is /tmp too.
[[nodiscard]] inline std::filesystem::path temporary_folder() {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::temp_directory_path(error);
  return error ? "/tmp" : folder;
}

/// A private folder below the system's temporary folder (or another), removed with everything in it on destruction;
/// what a process left that died before is removed when the next one makes its own. A living owner holds a lock (flock)
/// on its folder, so that a process id used again or another container's do not mislead the sweep.
class Scratch {
 public:
  /// Names begin with `prefix`. Throws Error(resource) when the folder cannot be made.
  explicit Scratch(std::string_view prefix = "kevin-scratch-", const std::filesystem::path& parent = temporary_folder())
      : owner_(::getpid()) {
    sweep(parent, prefix);
    std::string name = (parent / (std::string(prefix) + "XXXXXX")).string();
    if (!::mkdtemp(name.data()))
      detail::throw_errno("making a temporary folder " + name + " (TMPDIR names another place)");
    folder_ = std::filesystem::canonical(name);
    lock_.reset(::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!lock_ || ::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0) detail::throw_errno("locking " + name);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() {
    std::error_code ignored;
    if (::getpid() == owner_) std::filesystem::remove_all(folder_, ignored);  // not in a fork of the owner
  }

  [[nodiscard]] const std::filesystem::path& folder() const noexcept { return folder_; }

  /// A folder inside, removed on destruction.
  class Part {
   public:
    explicit Part(std::filesystem::path path) : path_(std::move(path)) {
      if (::mkdir(path_.c_str(), 0700) != 0) detail::throw_errno("making " + path_.string());
    }
    Part(const Part&) = delete;
    Part& operator=(const Part&) = delete;
    ~Part() {
      std::error_code ignored;
      std::filesystem::remove_all(path_, ignored);
    }
    [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

   private:
    std::filesystem::path path_;
  };

  /// Thread safe.
  [[nodiscard]] Part part() { return Part(folder_ / std::to_string(next_++)); }

 private:
  static void sweep(const std::filesystem::path& parent, std::string_view prefix) {
    std::error_code error;
    for (std::filesystem::directory_iterator entry(parent, error), end; !error && entry != end;
         entry.increment(error)) {
      if (!entry->path().filename().string().starts_with(prefix)) continue;
      struct stat info {};
      // A folder this young may be about to be locked by its owner.
      if (::lstat(entry->path().c_str(), &info) != 0 || !S_ISDIR(info.st_mode) || info.st_uid != ::geteuid() ||
          info.st_mtime + 30 > std::chrono::system_clock::to_time_t(std::chrono::system_clock::now())) {
        continue;
      }
      const Descriptor lock(::open(entry->path().c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
      if (!lock || ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) continue;
      std::error_code ignored;
      std::filesystem::remove_all(entry->path(), ignored);
    }
  }

  pid_t owner_;
  std::filesystem::path folder_;
  Descriptor lock_;
  std::atomic<unsigned long> next_{0};
};

}  // namespace kevin::eval

#endif  // KEVIN_EVAL_SCRATCH_HPP
