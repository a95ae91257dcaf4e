#ifndef KEVIN_EVAL_CPU_COMPILER_HPP
#define KEVIN_EVAL_CPU_COMPILER_HPP

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kevin/eval/cpu/compile_jail.hpp"
#include "kevin/eval/cpu/compiler_options.hpp"
#include "kevin/eval/cpu/diagnostics.hpp"
#include "kevin/eval/cpu/elf_symbols.hpp"
#include "kevin/eval/file_cache.hpp"
#include "kevin/eval/single_flight.hpp"
#include "kevin/eval/toolchain.hpp"

namespace kevin::cpu {

/// What became of one source.
struct Compiled {
  std::string object;  ///< the shared object's bytes; empty when it failed
  /// "" or why it failed: "syntax", "link", "missing_kernel", "timeout", "memory", "too_large", "compiler_crash".
  std::string reason;
  std::string diagnostics;  ///< for the agent, see compiler_diagnostics()
  double milliseconds = 0;  ///< spent compiling; 0 when cached
  bool cached = false;      ///< found in the cache, or another thread was compiling the very same
};

/// Compiles candidates with the system's compiler into shared objects that define `kernel`.
///
/// The source is hostile. Compiler and linker run as bounded child processes that see nothing of the machine but the
/// compiler's own files, the standard headers and an empty folder of their own (Landlock), that can do what compilers
/// do and no more (seccomp), within limits of time, memory and file size; nothing of the candidate's runs at compile
/// time. The source is called kernel.cpp, its declaration is given to it, so that a wrong signature is a compile error,
/// and every symbol must be resolved at once, from libm, libmvec, libstdc++, libgcc_s and libc alone.
///
/// Results are cached by everything they depend on; not those of the moment (time, memory). Thread safe; threads that
/// ask for the same source wait for one compilation.
class Compiler {
 public:
  /// Throws Error(unsupported) when this machine has no compiler or cannot confine one; the text says what to install.
  explicit Compiler(CompilerOptions options = {})
      : options_(std::move(options)),
        toolchain_((eval::require_sandbox(), eval::find_toolchain(options_.compiler, options_.flags))),
        cache_((options_.cache_directory.empty() ? default_cache_directory() : options_.cache_directory) / "compiled",
               options_.cache_limit),
        jail_(toolchain_, options_, cache_) {}

  /// Compiles `source`, which has to define what `signature` (kernel_signature(task)) declares. A candidate's failure
  /// is in the result; throws Error when this machine fails.
  [[nodiscard]] Compiled compile(std::string_view source, std::string_view signature) {
    if (source.size() > options_.source_limit) {
      return {"", "too_large",
              "the source has " + std::to_string(source.size()) + " bytes; at most " +
                  std::to_string(options_.source_limit) + " are compiled",
              0, false};
    }
    const std::string key = cache_key(source, signature);
    bool shared = false;
    Compiled result = flights_.run(
        key, [&] { return find_or_compile(key, source, signature); }, shared);
    if (shared) {
      result.milliseconds = 0;
      result.cached = true;
    }
    return result;
  }

  /// The compiler in use.
  [[nodiscard]] const std::filesystem::path& program() const noexcept { return toolchain_.program; }
  [[nodiscard]] const eval::Toolchain& toolchain() const noexcept { return toolchain_; }
  [[nodiscard]] const CompilerOptions& options() const noexcept { return options_; }
  /// Where it compiles; empty between compilations but for a helper file, gone with the Compiler.
  [[nodiscard]] const std::filesystem::path& scratch_folder() const noexcept { return jail_.folder(); }
  /// The cache, which others may use for what they compile (keys must not begin with "kernel\n").
  [[nodiscard]] eval::FileCache& cache() noexcept { return cache_; }

 private:
  [[nodiscard]] std::string cache_key(std::string_view source, std::string_view signature) const {
    std::string key = "kernel\n";
    const auto add = [&key](std::string_view part) {
      key += std::to_string(part.size()) + ':' + std::string(part) + '\n';
    };
    add(jail_.identity());
    add(std::to_string(options_.diagnostics_limit));
    add(signature);
    add(source);
    return key;
  }

  [[nodiscard]] Compiled find_or_compile(const std::string& key, std::string_view source, std::string_view signature) {
    if (const auto stored = cache_.find(key)) {
      if (auto result = decode(*stored)) return std::move(*result);
    }
    const std::filesystem::path headers = jail_.prepared_headers(source);
    const auto start = std::chrono::steady_clock::now();
    Compiled result = compile_now(source, signature, start + options_.time_limit, headers);
    result.milliseconds = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    const bool momentary = result.reason == "timeout" || result.reason == "memory" || result.reason == "compiler_crash";
    if (!momentary) cache_.store(key, encode(result));  // not stored (disk full): only compiled again
    return result;
  }

  [[nodiscard]] Compiled compile_now(std::string_view source, std::string_view signature,
                                     std::chrono::steady_clock::time_point deadline,
                                     const std::filesystem::path& headers) {
    const auto failed = [&](std::string reason, std::string text) {
      return Compiled{"", std::move(reason), std::string(eval::detail::cut_utf8(text, options_.diagnostics_limit)), 0,
                      false};
    };
    CompileJail::Cell cell = jail_.enter();
    cell.write(signature_file, std::string(signature) + ";\n");
    cell.write(kernel_file, source);

    eval::CommandResult compiled = cell.compile(deadline, headers);
    const auto says = [&](const char* words) { return compiled.output.find(words) != std::string::npos; };
    if (compiled.status && !compiled.ok() && !headers.empty() &&
        (says("headers.hpp") || says("PCH file") || says("precompiled header") || end_of(compiled) == End::crash)) {
      jail_.discard_headers(headers);  // not the candidate's fault: they went away or are damaged
      compiled = cell.compile(deadline, {});
    }
    std::string object;
    if (compiled.ok()) object = cell.read("kernel.o");
    if (object.empty()) {
      switch (end_of(compiled)) {
        case End::timeout:
          return failed("timeout", "compiling took longer than " + std::to_string(options_.time_limit.count()) + " ms");
        case End::memory:
          return failed("memory",
                        "compiling needed more memory than " + std::to_string(options_.memory_limit >> 20) + " MiB");
        case End::file_size:
          return failed("too_large",
                        "the compiled code is larger than " + std::to_string(CompileJail::file_limit >> 20) + " MiB");
        case End::crash:
          return failed("compiler_crash",
                        "the compiler crashed on this source\n" +
                            compiler_diagnostics(compiled.output, source, options_.diagnostics_limit));
        case End::errors:
          return failed("syntax", compiler_diagnostics(compiled.output, source, options_.diagnostics_limit));
      }
    }

    // Most kernels need the C library at most, which links in half the time.
    const auto symbols = elf_symbols(object, false);
    const bool c_only =
        symbols && std::none_of(symbols->begin(), symbols->end(), [](const ElfSymbol& s) {
          return !s.defined && s.name.starts_with('_') && s.name != "_GLOBAL_OFFSET_TABLE_" && s.name != "__dso_handle";
        });
    eval::CommandResult linked = cell.link(deadline, c_only);
    if (c_only && linked.status && !linked.ok()) linked = cell.link(deadline, false);
    std::string library;
    if (linked.ok()) library = cell.read("kernel.so");
    if (library.empty()) {
      switch (end_of(linked)) {
        case End::timeout:
          return failed("timeout",
                        "linking took longer than " + std::to_string(options_.time_limit.count()) + " ms in all");
        case End::memory:
          return failed("memory",
                        "linking needed more memory than " + std::to_string(options_.memory_limit >> 20) + " MiB");
        case End::file_size:
          return failed("too_large",
                        "the linked code is larger than " + std::to_string(CompileJail::file_limit >> 20) + " MiB");
        case End::crash:
        case End::errors:
          return failed("link", linker_diagnostics(linked.output, options_.diagnostics_limit));
      }
    }
    if (!exports_function(library, "kernel")) {
      return failed("missing_kernel",
                    "the source compiles but does not define the function that is called: " + std::string(signature));
    }
    return {std::move(library), "", "", 0, false};
  }

  enum class End { timeout, memory, file_size, crash, errors };

  /// How a command that did not succeed ended. Text is asked only for what a status cannot tell, and only for words
  /// that tools print at the beginning of a line.
  [[nodiscard]] static End end_of(const eval::CommandResult& r) {
    if (!r.status) return End::timeout;
    End end = r.status->signaled ? r.status->code == SIGXFSZ   ? End::file_size
                                   : r.status->code == SIGXCPU ? End::timeout
                                                               : End::crash
                                 : End::errors;
    eval::detail::for_each_line(r.output, [&](std::string_view line) {
      const auto says = [&](std::string_view what) { return line.find(what) != std::string_view::npos; };
      const bool tool = !line.starts_with(kernel_file) && line.find("kernel.cpp") == std::string_view::npos;
      if (!tool) {
        if (says(": internal compiler error: ") && end == End::errors) end = End::crash;
      } else if (says("out of memory") || says("virtual memory exhausted") || says("memory exhausted") ||
                 says("Cannot allocate memory") || says("Killed signal")) {
        end = End::memory;
      } else if (says("File size limit exceeded") || says("File too large")) {
        end = End::file_size;
      } else if (says("CPU time limit exceeded")) {
        end = End::timeout;
      } else if (says("internal compiler error") || says("Segmentation fault") || says("Aborted signal")) {
        if (end == End::errors) end = End::crash;
      }
    });
    return end;
  }

  /// "reason-size diagnostics-size object-size\n" and the three.
  [[nodiscard]] static std::string encode(const Compiled& c) {
    return std::to_string(c.reason.size()) + ' ' + std::to_string(c.diagnostics.size()) + '\n' + c.reason +
           c.diagnostics + c.object;
  }

  [[nodiscard]] static std::optional<Compiled> decode(const std::string& text) {
    char* end = nullptr;
    const std::size_t reason = std::strtoul(text.c_str(), &end, 10);
    if (*end != ' ') return std::nullopt;
    const std::size_t diagnostics = std::strtoul(end, &end, 10);
    if (*end != '\n') return std::nullopt;
    const std::size_t begin = static_cast<std::size_t>(end + 1 - text.c_str());
    if (reason > text.size() - begin || diagnostics > text.size() - begin - reason) return std::nullopt;
    return Compiled{text.substr(begin + reason + diagnostics), text.substr(begin, reason),
                    text.substr(begin + reason, diagnostics), 0, true};
  }

  CompilerOptions options_;
  eval::Toolchain toolchain_;
  eval::FileCache cache_;
  CompileJail jail_;
  eval::SingleFlight<Compiled> flights_;
};

}  // namespace kevin::cpu

#endif  // KEVIN_EVAL_CPU_COMPILER_HPP
