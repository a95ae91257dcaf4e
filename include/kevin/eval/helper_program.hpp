#ifndef KEVIN_EVAL_HELPER_PROGRAM_HPP
#define KEVIN_EVAL_HELPER_PROGRAM_HPP

#include <chrono>
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
#include "kevin/eval/descriptor.hpp"
#include "kevin/eval/file_cache.hpp"
#include "kevin/eval/memory_file.hpp"
#include "kevin/eval/process.hpp"
#include "kevin/eval/scratch.hpp"

namespace kevin::eval {

namespace detail {

/// Compiles `source_text` to a program and gives its bytes.
[[nodiscard]] inline std::string compile_helper(std::string_view name, const std::filesystem::path& compiler,
                                                std::string_view source_text, const std::vector<std::string>& flags,
                                                std::string_view purpose) {
  const Scratch scratch("kevin-compile-");  // as the compiler's: whose next start sweeps what a killed one left
  const std::filesystem::path& folder = scratch.folder();
  const std::string source = (folder / (std::string(name) + ".cpp")).string();
  const std::string program = (folder / name).string();
  const std::string messages = (folder / "messages").string();
  const auto write_file = [](const std::string& path) {
    return Descriptor(::open(path.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600));
  };
  const Descriptor source_file = write_file(source);
  if (!source_file || !write_all(source_file.get(), source_text)) throw_errno("writing " + source);
  const Descriptor message_file = write_file(messages);
  if (!message_file) throw_errno("writing " + messages);

  SpawnOptions options;
  options.program = compiler;
  options.arguments = {source, "-o", program};
  options.arguments.insert(options.arguments.end(), flags.begin(), flags.end());
  options.environment = {"PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C", "TMPDIR=" + folder.string()};
  options.directory = folder;
  options.descriptors = {{message_file.get(), 1}, {message_file.get(), 2}};
  Child child = spawn(options);
  const auto status = child.wait_until(std::chrono::steady_clock::now() + std::chrono::minutes(2));
  std::string binary;
  const Descriptor file(::open(program.c_str(), O_RDONLY | O_CLOEXEC));
  if (!status || *status != ExitStatus{} || !file || !read_all(file.get(), binary) || binary.empty()) {
    std::string text;
    if (!read_all(message_file.get(), text)) text.clear();
    throw Error(ErrorCode::unsupported,
                compiler.string() + " could not compile the program that " + std::string(purpose) + ": " +
                    (status ? text.substr(0, 2000) : std::string("it did not finish in two minutes")));
  }
  return binary;
}

}  // namespace detail

/// A small program that this library brings as source and that the system's compiler makes, so that users of a
/// header-only library need no second binary. It is found in `cache` the second time, and held in a sealed file in
/// memory: no other process can change it, and no file system mounted noexec stands in the way.
class HelperProgram {
 public:
  /// `compiler`: a path; `flags`: for compiling and linking; `name`: in the cache's key and the process' name;
  /// `purpose`: ends the sentence "could not compile the program that ...".
  /// Throws Error(unsupported) with the compiler's own words when it does not compile.
  HelperProgram(std::string_view name, const std::filesystem::path& compiler, std::string_view source,
                const std::vector<std::string>& flags, std::string_view purpose, FileCache& cache) {
    std::string key = std::string(name) + '\n' + compiler.string() + '\n' + compiler_stamp(compiler) + '\n';
    for (const std::string& flag : flags) key += flag + ' ';
    key += '\n';
    key += source;
    std::optional<std::string> binary = cache.find(key);
    if (!binary) {
      binary = detail::compile_helper(name, compiler, source, flags, purpose);
      // a cache that cannot be written only costs the next start a second
      static_cast<void>(cache.store(key, *binary));
    }
    const Descriptor file =
        sealed_memory_file(("kevin-" + std::string(name)).c_str(), std::as_bytes(std::span(*binary)), true);
    // opened again for reading (a file open for writing cannot be executed), by a number that no child's own ones cover
    const Descriptor readable(::open(("/proc/self/fd/" + std::to_string(file.get())).c_str(), O_RDONLY | O_CLOEXEC));
    file_.reset(::fcntl(readable.get(), F_DUPFD_CLOEXEC, 64));
    if (!file_) detail::throw_errno("holding the " + std::string(name) + "'s program");
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

  Descriptor file_;
};

}  // namespace kevin::eval

#endif  // KEVIN_EVAL_HELPER_PROGRAM_HPP
