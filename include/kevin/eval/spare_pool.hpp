#ifndef KEVIN_EVAL_SPARE_POOL_HPP
#define KEVIN_EVAL_SPARE_POOL_HPP

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include "kevin/config.hpp"
#include "kevin/core/error.hpp"

namespace kevin::eval {

/// Keeps processes started and waiting, so that a candidate never waits for a start-up, and ends used ones in the
/// background. Every candidate gets a process of its own: nothing survives from one to the next.
///
/// The processes are children of threads that live as long as the pool, because the kernel kills them when the thread
/// that started them ends (so they never outlive this program, however it dies). Thread safe.
///
/// `Runner` has kill(), which ends its process without waiting; its destructor waits until the process is gone.
template <class Runner>
class SparePool {
 public:
  using Start = std::function<std::unique_ptr<Runner>()>;

  /// `start`: starts a process and waits until it is ready; Error(worker_lost) = it was lost on the way, which says
  /// little: a second attempt is made. Other failures are reported by acquire(). `spares` >= 1: how many are kept
  /// waiting; `starters` >= 1: how many are started at a time.
  SparePool(Start start, std::size_t spares, std::size_t starters = 1) : start_(std::move(start)), spares_(spares) {
    KEVIN_ASSERT(spares >= 1 && starters >= 1);
    for (std::size_t i = 0; i < starters; ++i)
      starters_.emplace_back([this](std::stop_token stop) { keep_spares(stop); });
    reaper_ = std::jthread([this](std::stop_token stop) { reap(stop); });
  }

  SparePool(const SparePool&) = delete;
  SparePool& operator=(const SparePool&) = delete;

  /// All runners must have been given back.
  ~SparePool() {
    for (auto& s : starters_) s.request_stop();
    for (auto& s : starters_) s.join();
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
      if (!changed_.wait(lock, stop, [&] { return !failure_ && ready_.size() + starting_ < spares_ + waiting_; }))
        return;
      ++starting_;
      lock.unlock();
      std::unique_ptr<Runner> runner;
      std::exception_ptr failure;
      try {
        runner = start_twice();
      } catch (...) {
        failure = std::current_exception();
      }
      lock.lock();
      --starting_;
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

  [[nodiscard]] std::unique_ptr<Runner> start_twice() const {
    try {
      return start_();
    } catch (const Error& e) {
      if (e.code() != ErrorCode::worker_lost) throw;
    }
    return start_();
  }

  Start start_;
  std::size_t spares_;

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::vector<std::unique_ptr<Runner>> ready_;
  std::vector<std::unique_ptr<Runner>> used_;
  std::size_t waiting_ = 0;
  std::size_t starting_ = 0;
  std::exception_ptr failure_;

  // last: they use everything above
  std::vector<std::jthread> starters_;
  std::jthread reaper_;
};

}  // namespace kevin::eval

#endif  // KEVIN_EVAL_SPARE_POOL_HPP
