#ifndef KEVIN_EVAL_CPU_RUNNER_PROGRAM_HPP
#define KEVIN_EVAL_CPU_RUNNER_PROGRAM_HPP

#include <filesystem>
#include <string>
#include <vector>

#include "kevin/eval/cpu/runner_source.hpp"
#include "kevin/eval/file_cache.hpp"
#include "kevin/eval/helper_program.hpp"

namespace kevin::cpu {

namespace detail {

/// What the linker is told: the libraries are named although the runner itself could do without some, so that a
/// candidate, which can open no file any more, finds them loaded.
[[nodiscard]] inline std::vector<std::string> runner_flags() {
  return {"-std=c++17", "-O2", "-pthread", "-Wl,--no-as-needed", "-lm", "-lstdc++", "-lgcc_s", "-ldl"};
}

}  // namespace detail

/// The runner's program, compiled from runner_source; see eval::HelperProgram.
class RunnerProgram : public eval::HelperProgram {
 public:
  /// Throws Error(unsupported) with the compiler's own words when it does not compile.
  RunnerProgram(const std::filesystem::path& compiler, eval::FileCache& cache)
      : HelperProgram("runner", compiler, runner_source, detail::runner_flags(), "runs candidates", cache) {}
};

}  // namespace kevin::cpu

#endif  // KEVIN_EVAL_CPU_RUNNER_PROGRAM_HPP
