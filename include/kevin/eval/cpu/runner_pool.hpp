#ifndef KEVIN_EVAL_CPU_RUNNER_POOL_HPP
#define KEVIN_EVAL_CPU_RUNNER_POOL_HPP

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <sys/socket.h>
#include <unistd.h>

#include "kevin/config.hpp"
#include "kevin/core/error.hpp"
#include "kevin/eval/cpu/runner.hpp"
#include "kevin/eval/cpu/runner_protocol.hpp"
#include "kevin/eval/memory_file.hpp"
#include "kevin/eval/process.hpp"
#include "kevin/eval/sandbox.hpp"
#include "kevin/eval/spare_pool.hpp"

namespace kevin::cpu {

/// Runner processes of the cpu evaluator, kept started and waiting (eval::SparePool).
class RunnerPool {
 public:
  /// `program`: path of the compiled runner (RunnerProgram::path); `threads`: how many a candidate may use; `spares` >=
  /// 1: how many are kept waiting. Throws Error(unsupported) where a sandbox cannot be had; a program that does not
  /// start is reported by acquire().
  RunnerPool(std::filesystem::path program, int threads, std::size_t spares)
      : program_(std::move(program)), threads_(threads), files_(eval::landlock({}, {})) {
    KEVIN_ASSERT(threads >= 1);
    pool_.emplace([this] { return start(); }, spares);
  }

  /// A fresh runner. Throws Error when none can be started.
  [[nodiscard]] std::unique_ptr<Runner> acquire() { return pool_->acquire(); }

  /// Ends a used runner. Returns at once.
  void retire(std::unique_ptr<Runner> runner) noexcept { pool_->retire(std::move(runner)); }

 private:
  [[nodiscard]] std::unique_ptr<Runner> start() const {
    int pair[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
      eval::detail::throw_errno("socketpair for a runner");
    eval::Descriptor control(pair[0]);
    eval::Descriptor theirs(pair[1]);
    eval::SpawnOptions options;
    options.program = program_;
    options.arguments = {std::to_string(::getpid())};
    options.directory = "/";
    options.descriptors = {{theirs.get(), protocol::control_descriptor}, {files_.fd(), protocol::landlock_descriptor}};
    options.limits.file_size = 1;
    options.limits.cpu_seconds = 3600;  // the judge's own limits are far below; this one needs no judge
    options.limits.stack = std::uint64_t{8} << 20;
    options.limits.open_files = protocol::max_buffers + 32;
    eval::Child child = eval::spawn(options);
    theirs.reset();  // so that the end of the process closes the channel
    // by process: only so can the filter let abort() signal the process itself and nobody else
    const auto filter = eval::runner_seccomp(threads_, child.pid());
    auto runner = std::make_unique<Runner>(
        std::move(child), std::move(control),
        eval::sealed_memory_file("kevin-filter", std::as_bytes(std::span(filter)), false), threads_);
    runner->await_ready();
    return runner;
  }

  std::filesystem::path program_;
  int threads_;
  eval::LandlockRuleset files_;
  std::optional<eval::SparePool<Runner>> pool_;  // last: its threads use everything above
};

}  // namespace kevin::cpu

#endif  // KEVIN_EVAL_CPU_RUNNER_POOL_HPP
