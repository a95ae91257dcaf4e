#ifndef KEVIN_EVAL_CPU_COMPILER_OPTIONS_HPP
#define KEVIN_EVAL_CPU_COMPILER_OPTIONS_HPP

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <unistd.h>

#include "kevin/eval/scratch.hpp"

namespace kevin::cpu {

/// How candidates are compiled.
struct CompilerOptions {
  std::string compiler;  ///< name or path; "" = $CXX, else c++, g++, clang++ in $PATH
  std::vector<std::string> flags{"-std=c++20", "-O3",
                                 "-march=native"};      ///< for compiling only: linking is not the candidate's business
  std::chrono::milliseconds time_limit{10000};          ///< compiling and linking together
  std::uint64_t memory_limit = std::uint64_t{2} << 30;  ///< bytes of address space of each process
  std::size_t source_limit = std::size_t{256} << 10;    ///< bytes
  std::size_t diagnostics_limit = 2000;                 ///< bytes
  std::filesystem::path cache_directory;                ///< "" = default_cache_directory()
  std::uint64_t cache_limit = std::uint64_t{512} << 20;  ///< bytes
};

/// $KEVIN_CACHE_DIR, else $XDG_CACHE_HOME/kevin, else ~/.cache/kevin, else kevin-<user id> in the temporary folder.
[[nodiscard]] inline std::filesystem::path default_cache_directory() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::filesystem::path(value ? value : "");
  };
  if (const auto own = variable("KEVIN_CACHE_DIR"); !own.empty()) return own;
  if (const auto user = variable("XDG_CACHE_HOME"); user.is_absolute()) return user / "kevin";
  if (const auto home = variable("HOME"); home.is_absolute()) return home / ".cache" / "kevin";
  return eval::temporary_folder() / ("kevin-" + std::to_string(::geteuid()));
}

}  // namespace kevin::cpu

#endif  // KEVIN_EVAL_CPU_COMPILER_OPTIONS_HPP
