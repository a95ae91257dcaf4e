#ifndef KEVIN_CORE_THREADS_HPP
#define KEVIN_CORE_THREADS_HPP

#include <cstddef>
#include <functional>
#include <utility>

#if __has_include(<pthread.h>) && !defined(KEVIN_STANDARD_THREADS)
#define KEVIN_POSIX_THREADS 1
#include <pthread.h>
#include <unistd.h>
#else
#include <condition_variable>
#include <mutex>
#include <thread>
#endif

#include "kevin/core/error.hpp"

/// The little of <thread>, <mutex> and <condition_variable> that floor 0 needs. Under g++ 12 those cost more compile
/// time than <string>, <vector> and <functional> together, and every user of kevin.hpp would pay it; <pthread.h> is
/// what <memory> brings anyway. Elsewhere the standard's own are used.
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

#if defined(KEVIN_POSIX_THREADS)
/// As std::mutex.
class Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;
  ~Mutex() { ::pthread_mutex_destroy(&mutex_); }
  void lock() noexcept { ::pthread_mutex_lock(&mutex_); }
  void unlock() noexcept { ::pthread_mutex_unlock(&mutex_); }
  [[nodiscard]] ::pthread_mutex_t* native_handle() noexcept { return &mutex_; }

 private:
  ::pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
};

/// Holds a mutex as long as it lives.
class Lock {
 public:
  explicit Lock(Mutex& mutex) noexcept : mutex_(mutex) { mutex_.lock(); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
  ~Lock() { mutex_.unlock(); }
  [[nodiscard]] Mutex* mutex() const noexcept { return &mutex_; }

 private:
  Mutex& mutex_;
};
#else
using Mutex = std::mutex;
using Lock = std::unique_lock<std::mutex>;
#endif

/// A condition variable for Mutex.
class Condition {
 public:
#if defined(KEVIN_POSIX_THREADS)
  Condition() = default;
  Condition(const Condition&) = delete;
  Condition& operator=(const Condition&) = delete;
  ~Condition() { ::pthread_cond_destroy(&condition_); }
  /// Waits until `ready()`, which is called with the lock held.
  template <class Ready>
  void wait(Lock& lock, Ready ready) {
    while (!ready()) ::pthread_cond_wait(&condition_, lock.mutex()->native_handle());
  }
  void notify_one() noexcept { ::pthread_cond_signal(&condition_); }
  void notify_all() noexcept { ::pthread_cond_broadcast(&condition_); }

 private:
  ::pthread_cond_t condition_ = PTHREAD_COND_INITIALIZER;
#else
  template <class Ready>
  void wait(Lock& lock, Ready ready) {
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
