#ifndef KEVIN_EVAL_CPU_COMPILER_OPTIONS_HPP
#define KEVIN_EVAL_CPU_COMPILER_OPTIONS_HPP

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "kevin/eval/cache_directory.hpp"

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

using eval::default_cache_directory;

}  // namespace kevin::cpu

#endif  // KEVIN_EVAL_CPU_COMPILER_OPTIONS_HPP
