#ifndef KEVIN_EVAL_CPU_RUNNER_PROGRAM_HPP
#define KEVIN_EVAL_CPU_RUNNER_PROGRAM_HPP

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

#include "kevin/core/error.hpp"
#include "kevin/eval/cpu/runner_source.hpp"
#include "kevin/eval/descriptor.hpp"
#include "kevin/eval/file_cache.hpp"
#include "kevin/eval/memory_file.hpp"
#include "kevin/eval/process.hpp"
#include "kevin/eval/scratch.hpp"

namespace kevin::cpu {

namespace detail {

/// What the linker is told: the libraries are named although the runner itself could do without some, so that a
/// candidate, which can open no file any more, finds them loaded.
[[nodiscard]] inline std::vector<std::string> runner_flags() {
  return {"-std=c++17", "-O2", "-pthread", "-Wl,--no-as-needed", "-lm", "-lstdc++", "-lgcc_s", "-ldl"};
}

[[nodiscard]] inline std::string compile_runner(const std::filesystem::path& compiler) {
  const eval::Scratch scratch("kevin-compile-");  // as the compiler's: whose next start sweeps what a killed one left
  const std::filesystem::path& folder = scratch.folder();
  const std::string source = (folder / "runner.cpp").string();
  const std::string program = (folder / "runner").string();
  const std::string messages = (folder / "messages").string();
  const auto write_file = [](const std::string& path) {
    return eval::Descriptor(::open(path.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600));
  };
  const eval::Descriptor source_file = write_file(source);
  if (!source_file || !eval::detail::write_all(source_file.get(), runner_source))
    eval::detail::throw_errno("writing " + source);
  const eval::Descriptor message_file = write_file(messages);
  if (!message_file) eval::detail::throw_errno("writing " + messages);

  eval::SpawnOptions options;
  options.program = compiler;
  options.arguments = {source, "-o", program};
  for (std::string& flag : runner_flags()) options.arguments.push_back(std::move(flag));
  options.environment = {"PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C", "TMPDIR=" + folder.string()};
  options.directory = folder;
  options.descriptors = {{message_file.get(), 1}, {message_file.get(), 2}};
  eval::Child child = eval::spawn(options);
  const auto status = child.wait_until(std::chrono::steady_clock::now() + std::chrono::minutes(2));
  std::string binary;
  const eval::Descriptor file(::open(program.c_str(), O_RDONLY | O_CLOEXEC));
  if (!status || *status != eval::ExitStatus{} || !file || !eval::detail::read_all(file.get(), binary) ||
      binary.empty()) {
    std::string text;
    if (!eval::detail::read_all(message_file.get(), text)) text.clear();
    throw Error(ErrorCode::unsupported,
                compiler.string() + " could not compile the program that runs candidates: " +
                    (status ? text.substr(0, 2000) : std::string("it did not finish in two minutes")));
  }
  return binary;
}

}  // namespace detail

/// The runner's program, compiled from runner_source by `compiler` (a path), or found in `cache`. It is held in a
/// sealed file in memory: no other process can change it, and no file system mounted noexec stands in the way.
class RunnerProgram {
 public:
  /// Throws Error(unsupported) with the compiler's own words when it does not compile.
  RunnerProgram(const std::filesystem::path& compiler, eval::FileCache& cache) {
    std::string key = "runner\n" + compiler.string() + '\n' + compiler_stamp(compiler) + '\n';
    for (const std::string& flag : detail::runner_flags()) key += flag + ' ';
    key += '\n';
    key += runner_source;
    std::optional<std::string> binary = cache.find(key);
    if (!binary) {
      binary = detail::compile_runner(compiler);
      static_cast<void>(
          cache.store(key, *binary));  // a cache that cannot be written only costs the next start a second
    }
    const eval::Descriptor file = eval::sealed_memory_file("kevin-runner", std::as_bytes(std::span(*binary)), true);
    // opened again for reading (a file open for writing cannot be executed), by a number that no child's own ones cover
    const eval::Descriptor readable(
        ::open(("/proc/self/fd/" + std::to_string(file.get())).c_str(), O_RDONLY | O_CLOEXEC));
    file_.reset(::fcntl(readable.get(), F_DUPFD_CLOEXEC, 64));
    if (!file_) eval::detail::throw_errno("holding the runner's program");
  }

  /// A path that leads to it in this process and in a child of it until the child's exec.
  [[nodiscard]] std::filesystem::path path() const { return "/proc/self/fd/" + std::to_string(file_.get()); }

 private:
  /// Tells a compiler that was replaced from the one before: size and time of its file.
  [[nodiscard]] static std::string compiler_stamp(const std::filesystem::path& compiler) {
    std::error_code error;
    const auto real = std::filesystem::canonical(compiler, error);
    const auto size = std::filesystem::file_size(real, error);
    const auto time = std::filesystem::last_write_time(real, error);
    return error ? std::string() : std::to_string(size) + ' ' + std::to_string(time.time_since_epoch().count());
  }

  eval::Descriptor file_;
};

}  // namespace kevin::cpu

#endif  // KEVIN_EVAL_CPU_RUNNER_PROGRAM_HPP
