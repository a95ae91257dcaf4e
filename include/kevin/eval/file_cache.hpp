#ifndef KEVIN_EVAL_FILE_CACHE_HPP
#define KEVIN_EVAL_FILE_CACHE_HPP

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kevin/eval/descriptor.hpp"

namespace kevin::eval {

/// FNV-1a with 64 bits (Fowler, Noll, Vo): for file names and to notice damage, not against an enemy.
struct Fnv1a {
  [[nodiscard]] constexpr std::uint64_t operator()(std::string_view text,
                                                   std::uint64_t hash = 0xcbf29ce484222325ULL) const noexcept {
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
    return hash;
  }
};

namespace detail {

/// Reads all of an open file into `text`; false on an error.
[[nodiscard]] inline bool read_all(int fd, std::string& text) {
  struct stat info {};
  if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) return false;
  text.resize(static_cast<std::size_t>(info.st_size));
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t count = ::pread(fd, text.data() + done, text.size() - done, static_cast<off_t>(done));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    done += static_cast<std::size_t>(count);
  }
  return true;
}

/// Writes all of `text`; false on an error (errno says which).
[[nodiscard]] inline bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(fd, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

/// Makes `folder` (and what is above it) if need be; true when it then is a folder of this user's that nobody else may
/// write to, and the folder above is nobody else's either: whoever could write there could plant objects.
[[nodiscard]] inline bool private_folder(const std::filesystem::path& folder) {
  std::error_code ignored;
  if (folder.has_parent_path()) std::filesystem::create_directories(folder.parent_path(), ignored);
  ::mkdir(folder.c_str(), 0700);
  struct stat own {
  }, above{};
  if (::lstat(folder.c_str(), &own) != 0 || !S_ISDIR(own.st_mode) || own.st_uid != ::geteuid() ||
      (own.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return false;
  }
  const std::filesystem::path parent = folder.has_parent_path() ? folder.parent_path() : std::filesystem::path(".");
  // others may write above (as to /tmp) only where nobody can rename what is not his
  return ::stat(parent.c_str(), &above) == 0 && (above.st_uid == ::geteuid() || above.st_uid == 0) &&
         ((above.st_mode & (S_IWGRP | S_IWOTH)) == 0 || (above.st_mode & S_ISVTX) != 0);
}

}  // namespace detail

/// A folder of values found again by key, shared safely by any number of processes and threads.
///
/// A file is named by a 64-bit hash of the key, but holds the whole key, which is compared: keys that collide are
/// misses for each other, never mixed up. Values are published by rename of a complete temporary file, and carry a
/// checksum: what is cut short or damaged is a miss. Above `max_bytes` the values not used for longest are removed.
/// Nothing here throws for a full disk, a missing right or a foreign folder: then values are simply not found and
/// store() returns false. A folder that belongs to another user or that others may write to is not used, since
/// whoever can write to it could plant objects.
template <class Hash = Fnv1a>
class BasicFileCache {
 public:
  BasicFileCache(std::filesystem::path folder, std::uint64_t max_bytes, Hash hash = {})
      : folder_(std::move(folder)), max_bytes_(max_bytes), hash_(std::move(hash)) {
    usable_ = detail::private_folder(folder_);
  }

  /// Whether the folder exists and is ours.
  [[nodiscard]] bool usable() const noexcept { return usable_; }
  [[nodiscard]] const std::filesystem::path& folder() const noexcept { return folder_; }

  /// The value stored for exactly this key, or nullopt.
  [[nodiscard]] std::optional<std::string> find(std::string_view key) const {
    if (!usable_) return std::nullopt;
    const Descriptor file(::open(path(key).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    std::string text;
    if (!file || !detail::read_all(file.get(), text)) return std::nullopt;
    std::string_view rest = text;
    const auto number = [&rest] {
      std::uint64_t n = 0;
      std::memcpy(&n, rest.data(), sizeof n);
      rest.remove_prefix(sizeof n);
      return n;
    };
    if (rest.size() < magic.size() + 3 * sizeof(std::uint64_t) || rest.substr(0, magic.size()) != magic)
      return std::nullopt;
    rest.remove_prefix(magic.size());
    const std::uint64_t key_size = number();
    const std::uint64_t value_size = number();
    const std::uint64_t checksum = number();
    if (key_size > rest.size() || value_size != rest.size() - key_size) return std::nullopt;
    if (rest.substr(0, key_size) != key || Fnv1a{}(rest) != checksum) return std::nullopt;
    ::futimens(file.get(), nullptr);  // used just now; without the right to say so the entry only ages sooner
    return std::string(rest.substr(key_size));
  }

  /// Keeps `value` for `key`, in place of what its file held before. False = not stored.
  bool store(std::string_view key, std::string_view value) {
    const std::uint64_t size = magic.size() + 3 * sizeof(std::uint64_t) + key.size() + value.size();
    if (!usable_ || size > max_bytes_) return false;
    make_room(size);

    std::string head(magic);
    const auto number = [&head](std::uint64_t n) { head.append(reinterpret_cast<const char*>(&n), sizeof n); };
    number(key.size());
    number(value.size());
    number(Fnv1a{}(value, Fnv1a{}(key)));

    // Unique among processes (mkstemp's random part) and threads; the dot keeps it apart from entries.
    std::string temporary = (folder_ / ".new-XXXXXX").string();
    const Descriptor file(::mkostemp(temporary.data(), O_CLOEXEC));
    if (!file) return false;
    if (detail::write_all(file.get(), head) && detail::write_all(file.get(), key) &&
        detail::write_all(file.get(), value) && ::rename(temporary.c_str(), path(key).c_str()) == 0) {
      return true;
    }
    ::unlink(temporary.c_str());
    return false;
  }

  /// Bytes of all entries in the folder now.
  [[nodiscard]] std::uint64_t bytes() const {
    std::uint64_t sum = 0;
    for (const Entry& e : entries()) sum += e.size;
    return sum;
  }

 private:
  static constexpr std::string_view magic = "kevin-cache-1\n";
  using Clock = std::filesystem::file_time_type::clock;

  struct Entry {
    std::filesystem::file_time_type used;
    std::uint64_t size;
    std::filesystem::path path;
  };

  [[nodiscard]] std::filesystem::path path(std::string_view key) const {
    static constexpr char digits[] = "0123456789abcdef";
    std::uint64_t hash = hash_(key);
    std::string name(16, '0');
    for (auto c = name.rbegin(); c != name.rend(); ++c, hash >>= 4) *c = digits[hash & 15];
    return folder_ / (name + ".entry");
  }

  /// What is in the folder; removes temporary files that a dead process left an hour ago.
  [[nodiscard]] std::vector<Entry> entries() const {
    std::vector<Entry> all;
    std::error_code error;
    for (std::filesystem::directory_iterator file(folder_, error), end; !error && file != end; file.increment(error)) {
      std::error_code gone;  // another process may remove it at any time
      const auto used = file->last_write_time(gone);
      const auto size = file->file_size(gone);
      if (gone) continue;
      if (file->path().extension() == ".entry") {
        all.push_back({used, size, file->path()});
      } else if (used < Clock::now() - std::chrono::hours(1)) {
        std::filesystem::remove(file->path(), gone);
      }
    }
    return all;
  }

  /// Looks at the folder only when what this process added since the last look could have filled it.
  void make_room(std::uint64_t size) {
    const std::lock_guard lock(mutex_);
    if (known_ && *known_ + size <= max_bytes_) {
      *known_ += size;
      return;
    }
    std::vector<Entry> all = entries();
    std::uint64_t sum = 0;
    for (const Entry& e : all) sum += e.size;
    if (sum + size > max_bytes_) {
      std::sort(all.begin(), all.end(), [](const Entry& a, const Entry& b) { return a.used < b.used; });
      const std::uint64_t goal = max_bytes_ - max_bytes_ / 10;  // some air, so that not every store looks again
      for (const Entry& e : all) {
        if (sum + size <= goal || sum == 0) break;
        std::error_code gone;
        std::filesystem::remove(e.path, gone);
        sum -= e.size;
      }
    }
    known_ = sum + size;
  }

  std::filesystem::path folder_;
  std::uint64_t max_bytes_;
  Hash hash_;
  bool usable_ = false;
  std::mutex mutex_;
  std::optional<std::uint64_t> known_;
};

/// The cache as it is used.
class FileCache : public BasicFileCache<> {
  using BasicFileCache<>::BasicFileCache;
};

}  // namespace kevin::eval

#endif  // KEVIN_EVAL_FILE_CACHE_HPP
