#ifndef KEVIN_EVAL_SPAWN_OPTIONS_HPP
#define KEVIN_EVAL_SPAWN_OPTIONS_HPP

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <linux/filter.h>

namespace kevin::eval {

/// Resource limits of a child (setrlimit). 0 = unchanged. Sizes in bytes. A limit above what this process itself
/// may have is cut to that.
struct Limits {
  std::uint64_t address_space = 0;
  std::uint64_t file_size = 0;
  std::uint64_t cpu_seconds = 0;  ///< SIGXCPU then; SIGKILL one second later
  std::uint64_t stack = 0;
  std::uint64_t open_files = 0;
  bool core_dumps = false;
};

/// What to start, and inside which walls.
struct SpawnOptions {
  std::filesystem::path program;
  std::vector<std::string> arguments;    ///< without the program's own name
  std::vector<std::string> environment;  ///< "NAME=value"; exactly these, never the parent's
  std::filesystem::path directory;       ///< working directory; empty = the parent's
  /// {descriptor here, number in the child}. 0, 1 and 2 where not named are /dev/null; every other one is closed.
  std::vector<std::pair<int, int>> descriptors;
  Limits limits;
  int landlock_ruleset = -1;             ///< see landlock(); -1 = none
  std::span<const sock_filter> seccomp;  ///< must allow execve; empty = none; has to outlive the call of spawn
  std::vector<int> cpus;                 ///< processors it may run on; empty = unchanged
};

}  // namespace kevin::eval

#endif  // KEVIN_EVAL_SPAWN_OPTIONS_HPP
