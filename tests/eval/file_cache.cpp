#include "kevin/eval/file_cache.hpp"

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using kevin::eval::BasicFileCache;
using kevin::eval::FileCache;
namespace fs = std::filesystem;

struct Folder {
  fs::path path = fs::temp_directory_path() / ("kevin-cache-" + std::to_string(::getpid()));
  Folder() { fs::remove_all(path); }
  ~Folder() { fs::remove_all(path); }
};

struct SameHash {
  std::uint64_t operator()(std::string_view) const { return 7; }
};

std::string value_of(const std::string& key) { return key + std::string(2000, key.back()); }

std::size_t files(const fs::path& folder) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

}  // namespace

TEST_CASE("a cache gives back what was stored, bytes and all, also to a later process") {
  const Folder folder;
  const std::string key("a\0b\n", 4);
  const std::string value("\0\xff\n", 3);
  {
    FileCache cache(folder.path, 1 << 20);
    CHECK(cache.usable());
    CHECK_FALSE(cache.find(key));
    CHECK(cache.store(key, value));
    CHECK(cache.store("empty", ""));
  }
  const FileCache again(folder.path, 1 << 20);
  REQUIRE(again.find(key));
  CHECK(*again.find(key) == value);
  CHECK(*again.find("empty") == "");
  CHECK_FALSE(again.find("a"));
}

TEST_CASE("keys with the same hash are never mixed up: the last one stored wins, the other is a miss") {
  const Folder folder;
  BasicFileCache<SameHash> cache(folder.path, 1 << 20);
  CHECK(cache.store("one", "1"));
  CHECK_FALSE(cache.find("two"));
  CHECK(cache.store("two", "2"));
  CHECK_FALSE(cache.find("one"));
  CHECK(cache.find("two") == "2");
  CHECK(files(folder.path) == 1);
}

TEST_CASE("an entry that is cut short, damaged or not ours is a miss and can be stored again") {
  const Folder folder;
  FileCache cache(folder.path, 1 << 20);
  REQUIRE(cache.store("key", "some value"));
  const fs::path file = fs::directory_iterator(folder.path)->path();
  const auto size = fs::file_size(file);
  for (std::uintmax_t length = 0; length < size; ++length) {
    fs::resize_file(file, length);
    CHECK_FALSE(cache.find("key"));
    REQUIRE(cache.store("key", "some value"));
  }
  for (std::uintmax_t at = 0; at < size; ++at) {
    std::fstream f(file, std::ios::in | std::ios::out | std::ios::binary);
    f.seekg(static_cast<std::streamoff>(at));
    const int old = f.get();
    f.seekp(static_cast<std::streamoff>(at));
    f.put(static_cast<char>(old ^ 0x10));
    f.close();
    CHECK_FALSE(cache.find("key"));
    REQUIRE(cache.store("key", "some value"));
  }
  std::ofstream(file, std::ios::app) << "tail";
  CHECK_FALSE(cache.find("key"));
  REQUIRE(cache.store("key", "some value"));
  CHECK(cache.find("key") == "some value");
}

TEST_CASE("above its size a cache drops what was not used for longest") {
  const Folder folder;
  FileCache cache(folder.path, 50'000);
  const auto key = [](int i) { return "key " + std::to_string(i); };
  for (int i = 0; i < 20; ++i) {
    REQUIRE(cache.store(key(i), value_of(key(i))));
    // file times of one instant would leave the order open
    const auto time = fs::file_time_type::clock::now() - std::chrono::seconds(1000 - i);
    for (const auto& f : fs::directory_iterator(folder.path)) {
      if (fs::last_write_time(f) > fs::file_time_type::clock::now() - std::chrono::seconds(100))
        fs::last_write_time(f, time);
    }
  }
  CHECK(cache.find(key(0)));  // used now: the youngest
  for (int i = 20; i < 30; ++i) REQUIRE(cache.store(key(i), value_of(key(i))));
  CHECK(cache.bytes() <= 50'000);
  CHECK(cache.find(key(0)));
  CHECK_FALSE(cache.find(key(1)));
  CHECK(cache.find(key(29)));
  CHECK_FALSE(cache.store("big", std::string(60'000, 'x')));
  CHECK(cache.find(key(29)));
}

TEST_CASE("what cannot be written is not stored and does no harm") {
  const Folder folder;
  SUBCASE("a folder that cannot be made") {
    FileCache cache("/proc/no/such/folder", 1000);
    CHECK_FALSE(cache.usable());
    CHECK_FALSE(cache.store("key", "value"));
    CHECK_FALSE(cache.find("key"));
  }
  SUBCASE("a folder that others may write to") {
    fs::create_directory(folder.path);
    fs::permissions(folder.path, fs::perms::all);
    FileCache cache(folder.path, 1000);
    CHECK_FALSE(cache.usable());
    CHECK_FALSE(cache.store("key", "value"));
  }
  SUBCASE("a link in place of the folder") {
    fs::create_directory_symlink(fs::temp_directory_path(), folder.path);
    const FileCache cache(folder.path, 1000);
    CHECK_FALSE(cache.usable());
    fs::remove(folder.path);
  }
  SUBCASE("a disk that takes no more, here a limit on file size") {
    FileCache cache(folder.path, 1 << 20);
    REQUIRE(cache.store("key", "value"));
    const pid_t pid = ::fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
      ::signal(SIGXFSZ, SIG_IGN);
      const rlimit limit{1000, 1000};
      ::setrlimit(RLIMIT_FSIZE, &limit);
      const bool stored = cache.store("key", std::string(5000, 'x'));
      ::_exit(!stored && cache.find("key") == "value" ? 0 : 1);
    }
    int status = 0;
    REQUIRE(::waitpid(pid, &status, 0) == pid);
    CHECK(status == 0);
    CHECK(files(folder.path) == 1);
  }
}

TEST_CASE("threads and processes that hammer one small cache only ever see whole values") {
  const Folder folder;
  const auto hammer = [&](int seed) {
    FileCache cache(folder.path, 40'000);
    int wrong = 0;
    for (int i = 0; i < 400; ++i) {
      const std::string key = "key " + std::to_string((i * 7 + seed) % 40);
      if (const auto found = cache.find(key)) wrong += *found != value_of(key);
      cache.store(key, value_of(key));
    }
    return wrong;
  };
  std::vector<pid_t> children;
  for (int child = 0; child < 3; ++child) {
    const pid_t pid = ::fork();
    REQUIRE(pid >= 0);
    if (pid == 0) ::_exit(hammer(child) == 0 ? 0 : 1);
    children.push_back(pid);
  }
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 3; t < 6; ++t) threads.emplace_back([&, t] { wrong += hammer(t); });
  for (auto& t : threads) t.join();
  CHECK(wrong == 0);
  for (const pid_t pid : children) {
    int status = 0;
    REQUIRE(::waitpid(pid, &status, 0) == pid);
    CHECK(status == 0);
  }
  for (const auto& f : fs::directory_iterator(folder.path)) CHECK(f.path().extension() == ".entry");
}
