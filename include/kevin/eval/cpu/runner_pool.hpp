#ifndef KEVIN_EVAL_CPU_RUNNER_POOL_HPP
#define KEVIN_EVAL_CPU_RUNNER_POOL_HPP

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <memory>
#include <mutex>
#include <span>
#include <stop_token>
#include <string>
#include <thread>
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

namespace kevin::cpu {

/// Keeps runner processes started and waiting, so that a candidate never waits for a start-up, and ends used ones in
/// the background. Every candidate gets a process of its own: nothing survives from one to the next.
///
/// The processes are children of a thread that lives as long as the pool, because the kernel kills them when the thread
/// that started them ends (so they never outlive this program, however it dies). Thread safe.
class RunnerPool {
 public:
  /// `program`: path of the compiled runner (RunnerProgram::path); `threads`: how many a candidate may use; `spares` >=
  /// 1: how many are kept waiting. Throws Error(unsupported) where a sandbox cannot be had; a program that does not
  /// start is reported by acquire().
  RunnerPool(std::filesystem::path program, int threads, std::size_t spares)
      : program_(std::move(program)), threads_(threads), spares_(spares), files_(eval::landlock({}, {})) {
    KEVIN_ASSERT(threads >= 1 && spares >= 1);
    spawner_ = std::jthread([this](std::stop_token stop) { keep_spares(stop); });
    reaper_ = std::jthread([this](std::stop_token stop) { reap(stop); });
  }

  RunnerPool(const RunnerPool&) = delete;
  RunnerPool& operator=(const RunnerPool&) = delete;

  /// All runners must have been given back.
  ~RunnerPool() {
    spawner_.request_stop();
    spawner_.join();
    reaper_.request_stop();
    reaper_.join();
  }

  /// A fresh runner. Throws Error when none can be started.
  [[nodiscard]] std::unique_ptr<Runner> acquire() {
    std::unique_lock lock(mutex_);
    failure_ = nullptr;  // of an attempt nobody waited for: try again
    ++waiting_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return !ready_.empty() || failure_; });
    --waiting_;
    if (ready_.empty()) std::rethrow_exception(std::exchange(failure_, nullptr));
    auto runner = std::move(ready_.back());
    ready_.pop_back();
    changed_.notify_all();
    return runner;
  }

  /// Ends a used runner. Returns at once.
  void retire(std::unique_ptr<Runner> runner) noexcept {
    if (!runner) return;
    runner->kill();
    const std::lock_guard lock(mutex_);
    used_.push_back(std::move(runner));
    changed_.notify_all();
  }

 private:
  void keep_spares(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    for (;;) {
      // after a failure: only when somebody has taken notice of it
      if (!changed_.wait(lock, stop, [&] { return !failure_ && ready_.size() < spares_ + waiting_; })) return;
      lock.unlock();
      std::unique_ptr<Runner> runner;
      std::exception_ptr failure;
      try {
        runner = start();
      } catch (...) {
        failure = std::current_exception();
      }
      lock.lock();
      if (runner) ready_.push_back(std::move(runner));
      failure_ = failure;
      changed_.notify_all();
    }
  }

  void reap(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (changed_.wait(lock, stop, [&] { return !used_.empty(); }) || !used_.empty()) {
      auto ended = std::exchange(used_, {});
      lock.unlock();
      ended.clear();  // waits until each is gone: memory of many gigabytes takes its time
      lock.lock();
    }
  }

  /// Starts a runner and waits until it is ready. One that is lost on the way says little: the second attempt does.
  [[nodiscard]] std::unique_ptr<Runner> start() const {
    try {
      return try_start();
    } catch (const Error& e) {
      if (e.code() != ErrorCode::worker_lost) throw;
    }
    return try_start();
  }

  [[nodiscard]] std::unique_ptr<Runner> try_start() const {
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
  std::size_t spares_;
  eval::LandlockRuleset files_;

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::vector<std::unique_ptr<Runner>> ready_;
  std::vector<std::unique_ptr<Runner>> used_;
  std::size_t waiting_ = 0;
  std::exception_ptr failure_;

  // last: they use everything above
  std::jthread spawner_;
  std::jthread reaper_;
};

}  // namespace kevin::cpu

#endif  // KEVIN_EVAL_CPU_RUNNER_POOL_HPP
