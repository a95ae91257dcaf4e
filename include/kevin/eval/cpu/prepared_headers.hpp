#ifndef KEVIN_EVAL_CPU_PREPARED_HEADERS_HPP
#define KEVIN_EVAL_CPU_PREPARED_HEADERS_HPP

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kevin/eval/file_cache.hpp"

namespace kevin::cpu {

/// Precompiled standard headers (g++), one set for each list of headers that sources begin with: parsing <cmath> alone
/// takes several times as long as compiling a small kernel, and an agent compiles thousands of them.
///
/// A set is made when a list is asked for the second time, from text made here, never from a candidate's. Sets lie in a
/// folder that all processes of a user share; the ones not used for longest are removed above `max_bytes`. Where
/// anything fails there is simply no set. Thread safe.
class PreparedHeaders {
 public:
  /// Compiles `folder`/headers.hpp to `folder`/headers.hpp.gch; false = failed.
  using Make = std::function<bool(const std::filesystem::path& folder)>;

  /// `identity`: changes whenever a set made before may not be used; `make` empty = this compiler has no such thing.
  PreparedHeaders(std::filesystem::path folder, std::string identity, std::uint64_t max_bytes, Make make)
      : folder_(std::move(folder)), identity_(std::move(identity)), max_bytes_(max_bytes), make_(std::move(make)) {
    usable_ = make_ && eval::detail::private_folder(folder_);
  }

  /// The folder that a compiler must be able to read; empty = none.
  [[nodiscard]] std::filesystem::path folder() const { return usable_ ? folder_ : std::filesystem::path(); }

  /// The file to include first for sources that begin with `headers`; empty = none (yet).
  [[nodiscard]] std::filesystem::path find(const std::vector<std::string>& headers) {
    if (!usable_ || headers.empty()) return {};
    std::string text;
    for (const std::string& header : headers) text += "#include <" + header + ">\n";
    const std::filesystem::path file = set(text) / "headers.hpp";
    const std::lock_guard lock(mutex_);
    State& state = states_[text];
    ++state.asked;
    if (state.failed) return {};
    struct stat info {};
    const std::filesystem::path compiled = file.string() + ".gch";
    if (::stat(compiled.c_str(), &info) == 0) {
      ::utimensat(AT_FDCWD, compiled.c_str(), nullptr, 0);  // used just now
      return file;
    }
    if (state.asked < 2) return {};
    state.failed = !make(text);
    return state.failed ? std::filesystem::path() : file;
  }

  /// Removes a set that find() gave and that turned out to be unusable.
  void discard(const std::filesystem::path& file) const {
    std::error_code ignored;
    if (file.parent_path().parent_path() == folder_) std::filesystem::remove_all(file.parent_path(), ignored);
  }

 private:
  struct State {
    std::uint64_t asked = 0;
    bool failed = false;
  };

  [[nodiscard]] std::filesystem::path set(std::string_view text) const {
    const eval::Fnv1a hash;
    return folder_ / std::to_string(hash(text, hash(identity_)));
  }

  bool make(const std::string& text) {
    std::string temporary = (folder_ / ".new-XXXXXX").string();
    if (!::mkdtemp(temporary.data())) return false;
    std::error_code error;
    const auto failed = [&] {
      std::filesystem::remove_all(temporary, error);
      return false;
    };
    {
      const eval::Descriptor file(
          ::open((temporary + "/headers.hpp").c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
      if (!file || !eval::detail::write_all(file.get(), text)) return failed();
    }
    if (!make_(temporary)) return failed();
    {
      const eval::Descriptor file(::open((temporary + "/headers.hpp.gch").c_str(), O_RDONLY | O_CLOEXEC));
      if (!file || ::fsync(file.get()) != 0) return failed();  // a crash must not leave a set that is cut short
    }
    make_room();
    // Another process may have been faster: then its set stays.
    if (::rename(temporary.c_str(), set(text).c_str()) != 0) failed();
    return std::filesystem::exists(set(text) / "headers.hpp.gch", error);
  }

  void make_room() const {
    struct Set {
      std::filesystem::file_time_type used;
      std::uint64_t bytes;
      std::filesystem::path path;
    };
    std::vector<Set> sets;
    std::uint64_t sum = 0;
    std::error_code error;
    for (std::filesystem::directory_iterator entry(folder_, error), end; !error && entry != end;
         entry.increment(error)) {
      std::error_code gone;
      const bool left = entry->path().filename().string().starts_with('.');
      const auto file = left ? entry->path() : entry->path() / "headers.hpp.gch";
      const auto used = std::filesystem::last_write_time(file, gone);
      if (left) {
        if (!gone && used < std::filesystem::file_time_type::clock::now() - std::chrono::hours(1))
          std::filesystem::remove_all(entry->path(), gone);
        continue;
      }
      const auto bytes = std::filesystem::file_size(file, gone);
      if (gone) continue;
      sets.push_back({used, bytes, entry->path()});
      sum += bytes;
    }
    std::sort(sets.begin(), sets.end(), [](const Set& a, const Set& b) { return a.used < b.used; });
    for (const Set& s : sets) {
      if (sum <= max_bytes_) break;
      std::error_code gone;
      std::filesystem::remove_all(s.path, gone);  // a compiler that has it open goes on with it
      sum -= s.bytes;
    }
  }

  std::filesystem::path folder_;
  std::string identity_;
  std::uint64_t max_bytes_;
  Make make_;
  bool usable_ = false;
  std::mutex mutex_;
  std::map<std::string, State> states_;
};

}  // namespace kevin::cpu

#endif  // KEVIN_EVAL_CPU_PREPARED_HEADERS_HPP
