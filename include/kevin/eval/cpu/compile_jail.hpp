#ifndef KEVIN_EVAL_CPU_COMPILE_JAIL_HPP
#define KEVIN_EVAL_CPU_COMPILE_JAIL_HPP

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <linux/filter.h>

#include "kevin/core/error.hpp"
#include "kevin/eval/blindfold_source.hpp"
#include "kevin/eval/command.hpp"
#include "kevin/eval/cpu/compiler_options.hpp"
#include "kevin/eval/cpu/diagnostics.hpp"
#include "kevin/eval/cpu/leading_headers.hpp"
#include "kevin/eval/cpu/prepared_headers.hpp"
#include "kevin/eval/file_cache.hpp"
#include "kevin/eval/sandbox.hpp"
#include "kevin/eval/scratch.hpp"
#include "kevin/eval/toolchain.hpp"

namespace kevin::cpu {

/// Where candidates are compiled: cells, each a private folder with a Landlock ruleset of its own, so that one
/// compilation sees neither the machine nor another one. Cells are reused and emptied in between; all of them lie in
/// one Scratch.
class CompileJail {
 public:
  /// Bytes of the largest file a compilation may write.
  static constexpr std::uint64_t file_limit = std::uint64_t{64} << 20;

  /// Keeps references to its arguments.
  CompileJail(const eval::Toolchain& toolchain, const CompilerOptions& options, eval::FileCache& cache)
      : toolchain_(toolchain), options_(options), scratch_("kevin-compile-"), filter_(eval::compiler_seccomp()) {
    identity_ = toolchain_.identity;
    for (const std::string& argument : compile_arguments()) identity_ += argument + '\n';
    for (const std::string& argument : link_arguments(true)) identity_ += argument + '\n';
    for (const std::string& argument : link_arguments(false)) identity_ += argument + '\n';
    make_blindfold(cache);
    if (!toolchain_.clang) {
      const auto make = [this](const std::filesystem::path& folder) { return make_headers(folder); };
      headers_ = std::make_unique<PreparedHeaders>(cache.folder().parent_path() / "headers", identity_,
                                                   options.cache_limit / 2, make);
    }
    try_direct(cache);
  }

  /// What a result depends on besides source and signature.
  [[nodiscard]] const std::string& identity() const noexcept { return identity_; }

  /// The place where all of it happens; nothing of it is left when the jail is destroyed.
  [[nodiscard]] const std::filesystem::path& folder() const noexcept { return scratch_.folder(); }

  /// A file of precompiled headers for sources that begin like this one; empty = none. May take a second, when it makes
  /// it.
  [[nodiscard]] std::filesystem::path prepared_headers(std::string_view source) {
    return headers_ ? headers_->find(leading_headers(source)) : std::filesystem::path();
  }

  /// To be called when they were the reason of a failure: they will be made afresh.
  void discard_headers(const std::filesystem::path& file) const {
    if (headers_) headers_->discard(file);
  }

  class Cell;
  /// An empty cell. Thread safe.
  [[nodiscard]] Cell enter();

 private:
  struct Room {
    std::filesystem::path folder;
    eval::LandlockRuleset rules;
  };

  [[nodiscard]] std::filesystem::path blindfold() const { return scratch_.folder() / "blindfold.so"; }

  /// The driver's arguments.
  [[nodiscard]] std::vector<std::string> compile_arguments() const {
    std::vector<std::string> all = toolchain_.arguments;
    all.insert(all.end(), toolchain_.flags.begin(), toolchain_.flags.end());
    all.insert(all.end(), {"-c", "-x", "c++"});
    return all;
  }

  [[nodiscard]] std::vector<std::string> link_arguments(bool c_only) const {
    std::vector<std::string> all{"-shared", "-o", "kernel.so", "-soname", "kernel.so"};
    all.insert(all.end(), toolchain_.start_files.begin(), toolchain_.start_files.end());
    all.insert(all.end(), {"kernel.o", "--as-needed"});
    const auto& libraries = c_only ? toolchain_.c_libraries : toolchain_.all_libraries;
    all.insert(all.end(), libraries.begin(), libraries.end());
    all.insert(all.end(), toolchain_.end_files.begin(), toolchain_.end_files.end());
    all.insert(all.end(), {"-z", "defs", "-z", "relro", "-z", "now", "-z", "noexecstack", "--eh-frame-hdr",
                           "--hash-style=gnu", "--demangle"});
    return all;
  }

  void make_blindfold(eval::FileCache& cache) const {
    const std::string key = "blindfold\n" + toolchain_.identity + std::string(eval::blindfold_source);
    std::optional<std::string> library = cache.find(key);
    if (!library) {
      const eval::Scratch::Part part = eval::Scratch::Part(scratch_.folder() / "make-blindfold");
      write_file(part.path() / "blindfold.cpp", eval::blindfold_source);
      eval::SpawnOptions command = bare(part.path());
      command.program = toolchain_.program;
      command.arguments = toolchain_.arguments;
      for (const char* argument :
           {"-O1", "-x", "c++", "-shared", "-fPIC", "-fno-lto", "-fno-exceptions", "-nodefaultlibs",
            "-U_FORTIFY_SOURCE", "-o", "blindfold.so", "blindfold.cpp", "-lc"}) {
        command.arguments.emplace_back(argument);
      }
      const auto made =
          eval::run_command(command, std::chrono::steady_clock::now() + std::chrono::seconds(60), eval::Capture::both);
      if (!made.ok())
        throw Error(ErrorCode::unsupported,
                    toolchain_.program.string() + " cannot make a shared library: " + made.output.substr(0, 500));
      library = read_file(part.path() / "blindfold.so");
      static_cast<void>(cache.store(key, *library));  // without a cache it is made each time
    }
    write_file(blindfold(), *library);
  }

  /// Whether the compiler works without its driver; the answer is kept with the compiler's identity.
  void try_direct(eval::FileCache& cache);

  [[nodiscard]] bool make_headers(const std::filesystem::path& folder) const {
    eval::SpawnOptions command = bare(folder);
    command.program = toolchain_.program;
    command.arguments = compile_arguments();
    // the later -x wins; everything else must be as it will be when the result is used
    command.arguments.insert(command.arguments.end(), {"-x", "c++-header", "-o", "headers.hpp.gch", "headers.hpp"});
    return eval::run_command(command, std::chrono::steady_clock::now() + std::chrono::seconds(60), eval::Capture::both)
        .ok();
  }

  /// A command in `folder`, without walls.
  [[nodiscard]] eval::SpawnOptions bare(const std::filesystem::path& folder) const {
    eval::SpawnOptions command;
    command.directory = folder;
    command.environment = toolchain_.environment;
    command.environment.push_back("TMPDIR=" + folder.string());
    return command;
  }

  [[nodiscard]] std::unique_ptr<Room> make_room() {
    const std::filesystem::path folder = scratch_.folder() / ("cell-" + std::to_string(rooms_made_++));
    if (::mkdir(folder.c_str(), 0700) != 0) eval::detail::throw_errno("making " + folder.string());
    std::vector<std::filesystem::path> readable = toolchain_.readable;
    readable.push_back(blindfold());
    if (headers_ && !headers_->folder().empty()) readable.push_back(headers_->folder());
    const std::vector<std::filesystem::path> writable{folder};
    return std::make_unique<Room>(Room{folder, eval::landlock(readable, writable)});
  }

  static void write_file(const std::filesystem::path& path, std::string_view text) {
    const eval::Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!file || !eval::detail::write_all(file.get(), text))
      eval::detail::throw_errno("writing " + path.string() + " (TMPDIR names another place)");
  }

  /// Empty when it cannot be read.
  [[nodiscard]] static std::string read_file(const std::filesystem::path& path) {
    const eval::Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    std::string text;
    if (!file || !eval::detail::read_all(file.get(), text)) text.clear();
    return text;
  }

  const eval::Toolchain& toolchain_;
  const CompilerOptions& options_;
  eval::Scratch scratch_;
  std::vector<sock_filter> filter_;
  std::string identity_;
  bool direct_ = false;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Room>> free_;
  std::unique_ptr<PreparedHeaders> headers_;
  unsigned long rooms_made_ = 0;
};

/// One compilation's place. Emptied and given back on destruction.
class CompileJail::Cell {
 public:
  Cell(CompileJail& jail, std::unique_ptr<Room> room) : jail_(&jail), room_(std::move(room)) {}
  Cell(Cell&&) = default;
  Cell& operator=(Cell&&) = delete;
  ~Cell() {
    if (!room_) return;
    std::error_code error;
    for (std::filesystem::directory_iterator entry(room_->folder, error), end; !error && entry != end;
         entry.increment(error)) {
      std::filesystem::remove_all(entry->path(), error);
      if (error) break;
    }
    if (error) return;  // not empty for certain: never used again, and removed with the jail
    const std::lock_guard lock(jail_->mutex_);
    jail_->free_.push_back(std::move(room_));
  }

  /// Makes a file. Throws Error(resource).
  void write(std::string_view name, std::string_view text) const { write_file(room_->folder / name, text); }
  /// A file's bytes; empty when there is none.
  [[nodiscard]] std::string read(std::string_view name) const { return read_file(room_->folder / name); }

  /// kernel.cpp -> kernel.o, with `headers` included before all (empty = none).
  [[nodiscard]] eval::CommandResult compile(std::chrono::steady_clock::time_point deadline,
                                            const std::filesystem::path& headers) const {
    std::vector<std::string> arguments = jail_->direct_ ? jail_->toolchain_.front : jail_->compile_arguments();
    if (!headers.empty()) arguments.insert(arguments.end(), {"-include", headers.string()});
    arguments.insert(arguments.end(), {"-include", std::string(signature_file), std::string(kernel_file), "-o",
                                       jail_->direct_ ? "kernel.s" : "kernel.o"});
    if (!jail_->direct_) return run(jail_->toolchain_.program, std::move(arguments), deadline);
    eval::CommandResult compiled = run_tool(std::move(arguments), deadline);
    if (!compiled.ok()) return compiled;
    arguments = jail_->toolchain_.assembler;
    arguments.insert(arguments.end(), {"-o", "kernel.o", "kernel.s"});
    return run_tool(std::move(arguments), deadline);
  }

  /// kernel.o -> kernel.so, with the C library or with all.
  [[nodiscard]] eval::CommandResult link(std::chrono::steady_clock::time_point deadline, bool c_only) const {
    return run(jail_->toolchain_.linker, jail_->link_arguments(c_only), deadline);
  }

 private:
  /// A command whose first word is the program.
  [[nodiscard]] eval::CommandResult run_tool(std::vector<std::string> words,
                                             std::chrono::steady_clock::time_point deadline) const {
    const std::filesystem::path program = words.front();
    words.erase(words.begin());
    return run(program, std::move(words), deadline);
  }

  [[nodiscard]] eval::CommandResult run(const std::filesystem::path& program, std::vector<std::string> arguments,
                                        std::chrono::steady_clock::time_point deadline) const {
    eval::SpawnOptions command = jail_->bare(room_->folder);
    command.program = program;
    command.arguments = std::move(arguments);
    command.environment.push_back("LD_PRELOAD=" + jail_->blindfold().string());
    command.limits.address_space = jail_->options_.memory_limit;
    command.limits.file_size = file_limit;
    command.limits.cpu_seconds = static_cast<std::uint64_t>(jail_->options_.time_limit.count()) / 1000 + 2;
    command.limits.open_files = 256;
    command.landlock_ruleset = room_->rules.fd();
    command.seccomp = jail_->filter_;
    return eval::run_command(std::move(command), deadline, eval::Capture::errors);
  }

  CompileJail* jail_;
  std::unique_ptr<Room> room_;
};

inline void CompileJail::try_direct(eval::FileCache& cache) {
  if (toolchain_.front.empty()) return;
  const std::string key = "direct\n" + identity_;
  const auto known = cache.find(key);
  direct_ = true;
  if (known) {
    direct_ = *known == "yes";
    return;
  }
  const Cell cell = enter();
  cell.write(signature_file, "extern \"C\" void kernel(const float* x, float* out);\n");
  cell.write(kernel_file, "#include <cmath>\nvoid kernel(const float* x, float* out) { out[0] = std::exp(x[0]); }\n");
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  direct_ = cell.compile(deadline, {}).ok() && cell.link(deadline, true).ok();
  static_cast<void>(cache.store(key, direct_ ? "yes" : "no"));  // without a cache it is tried each time
}

inline CompileJail::Cell CompileJail::enter() {
  std::unique_ptr<Room> room;
  {
    const std::lock_guard lock(mutex_);
    if (!free_.empty()) {
      room = std::move(free_.back());
      free_.pop_back();
    } else {
      room = make_room();
    }
  }
  return Cell(*this, std::move(room));
}

}  // namespace kevin::cpu

#endif  // KEVIN_EVAL_CPU_COMPILE_JAIL_HPP
