#ifndef KEVIN_EVAL_CUDA_COMPILER_HPP
#define KEVIN_EVAL_CUDA_COMPILER_HPP

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kevin/core/error.hpp"
#include "kevin/eval/cache_directory.hpp"
#include "kevin/eval/cuda/compile_pool.hpp"
#include "kevin/eval/cuda/compile_worker_source.hpp"
#include "kevin/eval/cuda/compiled.hpp"
#include "kevin/eval/cuda/compiler_options.hpp"
#include "kevin/eval/cuda/diagnostics.hpp"
#include "kevin/eval/cuda/kernel_resources.hpp"
#include "kevin/eval/cuda/leading_includes.hpp"
#include "kevin/eval/cuda/nvrtc.hpp"
#include "kevin/eval/file_cache.hpp"
#include "kevin/eval/helper_program.hpp"
#include "kevin/eval/sandbox.hpp"
#include "kevin/eval/single_flight.hpp"
#include "kevin/eval/toolchain.hpp"

namespace kevin::cuda {

/// Compiles CUDA candidates with NVRTC, in a pool of processes that see nothing of the machine but NVRTC and its
/// headers. Needs no CUDA toolkit when this library is built, no GPU and no driver.
///
/// The source is hostile: it is given to NVRTC in memory as kernel.cu, after the prelude kevin.cuh, within limits of
/// time, memory and size. All of it is device code (-default-device), so nothing of the candidate's runs at compile
/// time. Results are cached by everything they depend on; not those of the moment (time, memory). A CUBIN does not
/// depend on the driver. Thread safe; threads that ask for the same source wait for one compilation.
class Compiler {
 public:
  /// Throws Error(unsupported) when this machine has no NVRTC, no C++ compiler or no sandbox; the text says what to
  /// install. Throws Error(bad_input) when NVRTC does not take the flags or the architecture.
  explicit Compiler(CompilerOptions options = {})
      : options_(std::move(options)),
        nvrtc_((eval::require_sandbox(), find_nvrtc(options_))),
        cache_((options_.cache_directory.empty() ? eval::default_cache_directory() : options_.cache_directory) / "cuda",
               options_.cache_limit),
        program_("nvrtc", eval::detail::locate_compiler("").program, compile_worker_source(), compile_worker_flags(),
                 "compiles CUDA candidates", cache_),
        pool_(program_.path(), options_, nvrtc_) {
    meet_nvrtc();
  }

  /// Compiles `source`, which has to define the `kevin_plan` that `prelude` declares. A candidate's failure is in the
  /// result; throws Error when this machine fails.
  [[nodiscard]] Compiled compile(std::string_view source, std::string_view prelude) {
    if (source.size() > options_.source_limit) {
      return failed("too_large", "the source has " + std::to_string(source.size()) + " bytes; at most " +
                                     std::to_string(options_.source_limit) + " are compiled");
    }
    if (const auto zero = source.find('\0'); zero != std::string_view::npos) {
      const auto line = 1 + std::count(source.begin(), source.begin() + static_cast<std::ptrdiff_t>(zero), '\n');
      return failed("syntax", "kernel.cu:" + std::to_string(line) + ": error: the source contains a zero byte");
    }
    const std::string key = cache_key(source, prelude);
    bool shared = false;
    Compiled result = flights_.run(
        key, [&] { return find_or_compile(key, source, prelude); }, shared);
    if (shared) {
      result.milliseconds = 0;
      result.cached = true;
    }
    return result;
  }

  /// NVRTC's version: "13.0".
  [[nodiscard]] std::string version() const { return version_; }
  /// What it compiles for, each 10 * major + minor.
  [[nodiscard]] std::vector<int> architectures() const { return architectures_; }
  /// What is compiled for.
  [[nodiscard]] const std::string& architecture() const noexcept { return architecture_; }
  /// The library in use and its headers.
  [[nodiscard]] const Nvrtc& nvrtc() const noexcept { return nvrtc_; }
  [[nodiscard]] const CompilerOptions& options() const noexcept { return options_; }
  /// The processes.
  [[nodiscard]] const CompilePool& pool() const noexcept { return pool_; }

 private:
  using Outcome = CompileWorker::Outcome;
  // nvrtcResult
  static constexpr std::string_view success = "0", out_of_memory = "1", invalid_option = "5", failed_compilation = "6";

  /// How to go about it.
  struct Way {
    bool headers = true;    ///< use precompiled headers where that pays
    bool resources = true;  ///< ask the assembler for what kernels need
    bool fresh = false;     ///< in a process that has compiled nothing yet
  };
  struct Attempt {
    CompileWorker::Reply reply;
    bool used_worker = false;   ///< the process had compiled something else before
    bool used_headers = false;  ///< with precompiled headers
    std::string includes;       ///< those headers
  };

  /// Starts the first process, asks for version and architectures, and tries the options on a small source, so that
  /// whatever is wrong with this machine is told here and not by the first candidate.
  void meet_nvrtc() {
    auto worker = pool_.acquire("", false);
    const std::vector<std::string> greeting = worker->greet();
    pool_.release(std::move(worker));
    if (!greeting[0].empty())
      throw Error(ErrorCode::unsupported, nvrtc_.file.string() + " cannot be used: " + greeting[0]);
    version_ = greeting[1];
    std::istringstream numbers(greeting[2]);
    for (int number = 0; numbers >> number;) architectures_.push_back(number);
    const int number = version_number();
    if (number < 1200) {
      throw Error(ErrorCode::unsupported, nvrtc_.file.string() + " is NVRTC " + version_ +
                                              ": 12.0 or later is needed (pip install nvidia-cuda-nvrtc)");
    }
    architecture_ = !options_.architecture.empty() ? options_.architecture : standard_architecture();
    arguments_ = {"--gpu-architecture=" + architecture_, "--std=c++20", "-default-device", "--modify-stack-limit=false",
                  "--disable-warnings"};
    if (number >= 1209) arguments_.emplace_back("--no-cache");
    for (const auto& folder : nvrtc_.include) arguments_.push_back("-I" + folder.string());
    arguments_.insert(arguments_.end(), options_.flags.begin(), options_.flags.end());
    headers_ = options_.precompiled_headers && number >= 1208;
    identity_ = version_ + '\n' + nvrtc_.identity;
    for (const std::string& argument : arguments_) identity_ += argument + '\n';

    const Attempt attempt = try_once("__global__ void k(float* x) { x[0] = 1; }\n", "", {});
    if (attempt.reply.outcome != Outcome::answered) {
      throw Error(ErrorCode::unsupported, nvrtc_.file.string() + " does not compile a small kernel (" +
                                              CompileWorker::describe(attempt.reply.status) + ')');
    }
    if (const std::string& result = attempt.reply.fields[0]; result != success) {
      throw Error(result == invalid_option ? ErrorCode::bad_input : ErrorCode::unsupported,
                  "NVRTC " + version_ + " does not compile a small kernel for " + architecture_ + ": " +
                      attempt.reply.fields[1].substr(0, 1000));
    }
  }

  [[nodiscard]] int version_number() const {
    int major = 0, minor = 0;
    char dot = 0;
    std::istringstream(version_) >> major >> dot >> minor;
    return 100 * major + minor;
  }

  /// That of the options' compute capability, else the best one up to 9.0.
  [[nodiscard]] std::string standard_architecture() const {
    if (const int asked = options_.capability; asked != 0)
      return architecture_for(asked / 10, asked % 10, architectures_);
    int best = 0, least = 0;
    for (const int known : architectures_) {
      if (known <= 90) best = std::max(best, known);
      least = least == 0 ? known : std::min(least, known);
    }
    const int number = best != 0 ? best : least;
    return architecture_for(number / 10, number % 10, architectures_);
  }

  [[nodiscard]] std::string cache_key(std::string_view source, std::string_view prelude) const {
    std::string key = "cuda\n";
    const auto add = [&key](std::string_view part) {
      key += std::to_string(part.size()) + ':' + std::string(part) + '\n';
    };
    add(identity_);
    add(std::to_string(options_.diagnostics_limit));
    add(prelude);
    add(source);
    return key;
  }

  [[nodiscard]] Compiled failed(std::string reason, std::string_view text) const {
    Compiled result;
    result.reason = std::move(reason);
    result.diagnostics = eval::detail::cut_utf8(text, options_.diagnostics_limit);
    return result;
  }

  [[nodiscard]] Compiled find_or_compile(const std::string& key, std::string_view source, std::string_view prelude) {
    if (const auto stored = cache_.find(key)) {
      if (auto result = decode_compiled(*stored)) return std::move(*result);
    }
    double milliseconds = 0;
    Compiled result = compile_now(source, prelude, milliseconds);
    result.milliseconds = milliseconds;
    const bool momentary = result.reason == "timeout" || result.reason == "memory" || result.reason == "compiler_crash";
    if (!momentary) cache_.store(key, encode_compiled(result));  // not stored (disk full): only compiled again
    return result;
  }

  /// Tries until the answer is one that a second attempt would not change: nobody may be judged by a process that
  /// others have used up, by headers that did not fit, or by somebody's kill.
  [[nodiscard]] Compiled compile_now(std::string_view source, std::string_view prelude, double& milliseconds) {
    Way way;
    bool killed = false;
    std::optional<std::string> blamed;
    for (;;) {
      const Attempt attempt = try_once(source, prelude, way, &milliseconds);
      const CompileWorker::Reply& reply = attempt.reply;
      const bool succeeded = reply.outcome == Outcome::answered && reply.fields[0] == success;
      if (succeeded && blamed) blame_headers(*blamed);
      if (!succeeded && attempt.used_headers) blamed = attempt.includes;
      switch (reply.outcome) {
        case Outcome::timeout:
          if (attempt.used_headers && std::exchange(way.headers, false)) continue;  // making them takes time, too
          return failed("timeout", "compiling took longer than " + std::to_string(options_.time_limit.count()) + " ms");
        case Outcome::too_large:
          if (attempt.used_headers && std::exchange(way.headers, false)) continue;  // or they are
          return failed("too_large",
                        "the compiled code is larger than " + std::to_string(CompileWorker::code_limit >> 20) + " MiB");
        case Outcome::killed:
          if (killed) {
            throw Error(ErrorCode::worker_lost,
                        "two processes that compiled the same CUDA candidate were ended from "
                        "outside (" +
                            CompileWorker::describe(reply.status) + "): is the machine short of memory?");
          }
          killed = true;
          way = {false, way.resources, true};
          continue;
        case Outcome::crashed:
          if (attempt.used_worker || attempt.used_headers) {
            way = {false, way.resources, true};
            continue;
          }
          if (reply.status == eval::ExitStatus{false, CompileWorker::memory_exit}) return no_memory();
          return failed("compiler_crash", "the compiler crashed on this source");
        case Outcome::answered:
          break;
      }
      if (reply.fields[0] == out_of_memory) {
        if (!attempt.used_worker) return no_memory();
        way = {false, way.resources, true};
        continue;
      }
      const std::string& log = reply.fields[1];
      if (succeeded) {
        if (reply.fields[2].empty() && reply.fields[3].empty())
          return failed("compiler_crash", "the compiler gave no code for this source");
        Compiled result;
        result.cubin = reply.fields[2];
        result.ptx = reply.fields[3];
        result.kernels = kernel_resources(log);
        result.remarks = assembler_remarks(log, options_.diagnostics_limit);
        return result;
      }
      Findings findings = compiler_findings(log, source, prelude, options_.diagnostics_limit);
      // a header that does not bear to be included twice
      if (findings.elsewhere && attempt.used_headers && std::exchange(way.headers, false)) continue;
      // no errors: there was no room for precompiled headers, say
      if (findings.errors == 0 && attempt.used_headers) {
        way = {false, way.resources, true};
        continue;
      }
      // asked for what kernels need, the assembler does not tell what is wrong with them ("uses too much shared data")
      if (findings.errors == 0 && std::exchange(way.resources, false)) continue;
      if (findings.errors == 0 && reply.fields[0] != failed_compilation)
        return failed("compiler_crash", "the compiler failed and gave no reason");
      return failed(findings.missing_plan ? "missing_plan" : "syntax", findings.text);
    }
  }

  [[nodiscard]] Compiled no_memory() const {
    return failed("memory",
                  "compiling needed more memory than " + std::to_string(options_.memory_limit >> 20) + " MiB");
  }

  [[nodiscard]] Attempt try_once(std::string_view source, std::string_view prelude, const Way& way,
                                 double* milliseconds = nullptr) {
    Attempt attempt;
    std::string& includes = attempt.includes;
    includes = prelude_includes(prelude, nvrtc_.include);
    if (headers_ && way.headers) includes += leading_includes(source, nvrtc_.include);
    attempt.used_headers = headers_ && way.headers && worth_preparing(includes);
    std::unique_ptr<CompileWorker> worker = pool_.acquire(attempt.used_headers ? includes : std::string(), way.fresh);
    const auto start = CompileWorker::Clock::now();
    try {
      if (!greeted(*worker)) {
        attempt.reply.outcome = Outcome::killed;
        pool_.retire(std::move(worker));
        return attempt;
      }
      attempt.used_worker = worker->jobs() > 0;
      std::string main = attempt.used_headers ? includes + "#pragma nv_hdrstop\n" : std::string();
      main += "#include \"kevin.cuh\"\n#include \"kernel.cu\"\n";
      std::vector<std::string> own;
      if (way.resources) own.emplace_back("-Xptxas=-v");
      if (attempt.used_headers) own.insert(own.end(), {"-pch", "--pch-dir=" + worker->headers().string()});
      const std::string source_text(source), prelude_text(prelude);
      std::vector<std::string_view> request{main, source_text, prelude_text};
      request.insert(request.end(), arguments_.begin(), arguments_.end());
      request.insert(request.end(), own.begin(), own.end());
      attempt.reply = worker->compile(request, CompileWorker::Clock::now() + options_.time_limit);
    } catch (...) {
      pool_.retire(std::move(worker));
      throw;
    }
    if (attempt.reply.outcome == Outcome::answered) {
      if (attempt.used_headers) note_prepared(*worker, includes, attempt.reply.fields[1]);
      pool_.release(std::move(worker));
    } else {
      pool_.retire(std::move(worker));
    }
    if (milliseconds) {
      *milliseconds += std::chrono::duration<double, std::milli>(CompileWorker::Clock::now() - start).count();
    }
    return attempt;
  }

  /// False when the process ended before it was ready, as one does that was killed while it waited.
  [[nodiscard]] bool greeted(CompileWorker& worker) const {
    try {
      if (const std::string& trouble = worker.greet()[0]; !trouble.empty())
        throw Error(ErrorCode::unsupported, nvrtc_.file.string() + " cannot be used any more: " + trouble);
    } catch (const Error& e) {
      if (e.code() != ErrorCode::worker_lost) throw;
      return false;
    }
    return true;
  }

  /// Making precompiled headers costs more than it saves once: so not before the same ones are asked for again.
  [[nodiscard]] bool worth_preparing(const std::string& includes) {
    const std::lock_guard lock(mutex_);
    if (asked_.size() > 4096) asked_.clear();
    return ++asked_[includes] > 1 && useless_.count(includes) == 0;
  }

  /// They made a process fail on a source on which it does not fail without them: a full disk, perhaps.
  void blame_headers(const std::string& includes) {
    const std::lock_guard lock(mutex_);
    if (blamed_.size() > 4096) blamed_.clear();
    if (++blamed_[includes] >= 3) useless_.insert(includes);
  }

  void note_prepared(CompileWorker& worker, const std::string& includes, std::string_view log) {
    if (log.find("using precompiled header file") != std::string_view::npos ||
        log.find("creating precompiled header file") != std::string_view::npos) {
      worker.set_prepared(includes);
    } else if (log.find("could not create PCH file") != std::string_view::npos ||
               log.find("PCH creation") != std::string_view::npos) {
      const std::lock_guard lock(mutex_);
      if (useless_.size() < 4096) useless_.insert(includes);
    }
  }

  CompilerOptions options_;
  Nvrtc nvrtc_;
  eval::FileCache cache_;
  eval::HelperProgram program_;
  CompilePool pool_;
  std::string version_;
  std::vector<int> architectures_;
  std::string architecture_;
  std::vector<std::string> arguments_;
  std::string identity_;
  bool headers_ = false;
  eval::SingleFlight<Compiled> flights_;
  std::mutex mutex_;
  std::map<std::string, std::size_t> asked_;
  std::map<std::string, std::size_t> blamed_;
  std::set<std::string> useless_;
};

}  // namespace kevin::cuda

#endif  // KEVIN_EVAL_CUDA_COMPILER_HPP
