#ifndef KEVIN_CORE_THREADS_HPP
#define KEVIN_CORE_THREADS_HPP

#include <cstddef>
#include <functional>
#include <mutex>
#include <utility>

#if __has_include(<pthread.h>) && !defined(KEVIN_STANDARD_THREADS)
#define KEVIN_POSIX_THREADS 1
#include <pthread.h>
#include <unistd.h>
#else
#include <condition_variable>
#include <thread>
#endif

#include "kevin/core/error.hpp"

/// The little of <thread> and <condition_variable> that floor 0 needs. Under g++ 12 those two cost as much compile time as
/// <string>, <vector> and <functional> together, and every user of kevin.hpp would pay it; <pthread.h> is what <mutex>
/// brings anyway. Elsewhere the standard's own are used.
namespace kevin::detail {

/// A thread that is joined by its destructor. `run` must not throw.
class Thread {
 public:
#if defined(KEVIN_POSIX_THREADS)
  /// Throws Error(resource) when the system gives no more threads.
  explicit Thread(std::function<void()> run) {
    auto* task = new std::function<void()>(std::move(run));
    if (::pthread_create(&id_, nullptr, &start, task) == 0) return;
    delete task;
    throw Error(ErrorCode::resource, "the system gives no more threads: ask for fewer");
  }
  Thread(Thread&& other) noexcept : id_(other.id_), joinable_(std::exchange(other.joinable_, false)) {}
  Thread& operator=(Thread&&) = delete;
  ~Thread() {
    if (joinable_) ::pthread_join(id_, nullptr);
  }

 private:
  static void* start(void* task) {
    auto* run = static_cast<std::function<void()>*>(task);
    (*run)();
    delete run;
    return nullptr;
  }
  ::pthread_t id_{};
  bool joinable_ = true;
#else
  explicit Thread(std::function<void()> run) : thread_(std::move(run)) {}

 private:
  std::jthread thread_;
#endif
};

/// A condition variable for std::mutex.
class Condition {
 public:
#if defined(KEVIN_POSIX_THREADS)
  Condition() = default;
  Condition(const Condition&) = delete;
  Condition& operator=(const Condition&) = delete;
  ~Condition() { ::pthread_cond_destroy(&condition_); }
  /// Waits until `ready()`, which is called with the lock held.
  template <class Ready>
  void wait(std::unique_lock<std::mutex>& lock, Ready ready) {
    while (!ready()) ::pthread_cond_wait(&condition_, lock.mutex()->native_handle());
  }
  void notify_one() noexcept { ::pthread_cond_signal(&condition_); }
  void notify_all() noexcept { ::pthread_cond_broadcast(&condition_); }

 private:
  ::pthread_cond_t condition_ = PTHREAD_COND_INITIALIZER;
#else
  template <class Ready>
  void wait(std::unique_lock<std::mutex>& lock, Ready ready) {
    condition_.wait(lock, std::move(ready));
  }
  void notify_one() noexcept { condition_.notify_one(); }
  void notify_all() noexcept { condition_.notify_all(); }

 private:
  std::condition_variable condition_;
#endif
};

/// How many threads run at once on this machine, at least 1.
[[nodiscard]] inline std::size_t machine_threads() noexcept {
#if defined(KEVIN_POSIX_THREADS)
  const long n = ::sysconf(_SC_NPROCESSORS_ONLN);
#else
  const auto n = std::thread::hardware_concurrency();
#endif
  return n > 0 ? static_cast<std::size_t>(n) : 1;
}

}  // namespace kevin::detail

#endif  // KEVIN_CORE_THREADS_HPP
