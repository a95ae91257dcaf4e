#ifndef KEVIN_EVAL_TIMING_THREAD_HPP
#define KEVIN_EVAL_TIMING_THREAD_HPP

#include <condition_variable>
#include <deque>
#include <future>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>

#include <pthread.h>
#include <sched.h>

#include "kevin/core/error.hpp"
#include "kevin/eval/descriptor.hpp"

namespace kevin::eval {

namespace detail {
/// One timed section at a time in this process, however many evaluators it has.
inline std::mutex exclusive_timing;
}  // namespace detail

/// `count` processors out of those the calling thread may use, beginning with the one it runs on.
/// Throws Error(bad_input) when there are fewer.
[[nodiscard]] inline cpu_set_t nearby_processors(int count) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) detail::throw_errno("asking for this thread's processors");
  if (count > CPU_COUNT(&allowed)) {
    throw Error(ErrorCode::bad_input, std::to_string(count) + " threads wanted, but this process may use " +
                                          std::to_string(CPU_COUNT(&allowed)) + " processor(s)");
  }
  cpu_set_t chosen;
  CPU_ZERO(&chosen);
  int cpu = ::sched_getcpu();
  for (int left = count; left > 0; cpu = (cpu + 1) % CPU_SETSIZE) {
    const auto c = static_cast<unsigned>(cpu < 0 ? 0 : cpu);
    if (!CPU_ISSET(c, &allowed)) continue;
    CPU_SET(c, &chosen);
    --left;
  }
  return chosen;
}

/// Restricts the calling thread to some processors while it lives.
class PinnedThread {
 public:
  explicit PinnedThread(const cpu_set_t& cpus) {
    CPU_ZERO(&before_);
    if (::sched_getaffinity(0, sizeof before_, &before_) != 0 || ::sched_setaffinity(0, sizeof cpus, &cpus) != 0) {
      detail::throw_errno("pinning a thread to processors");
    }
  }
  ~PinnedThread() { ::sched_setaffinity(0, sizeof before_, &before_); }
  PinnedThread(const PinnedThread&) = delete;
  PinnedThread& operator=(const PinnedThread&) = delete;

  /// The processors it could use before, and will again.
  [[nodiscard]] const cpu_set_t& before() const noexcept { return before_; }

 private:
  cpu_set_t before_;
};

/// The thread on which everything is timed, one section after another. It is one thread so that what a library keeps by
/// thread (OpenMP's helpers, memory arenas) is warm and set up once, and a caller's thread is never changed.
class TimingThread {
 public:
  TimingThread() : thread_([this](std::stop_token stop) { work(stop); }) {}
  TimingThread(const TimingThread&) = delete;
  TimingThread& operator=(const TimingThread&) = delete;

  /// Runs `section` there and waits for it; what it throws is thrown here. While it runs no other section does.
  template <class Section>
  void run(Section&& section) {
    std::packaged_task<void()> task([&section] {
      const std::lock_guard exclusive(detail::exclusive_timing);
      section();
    });
    auto done = task.get_future();
    {
      const std::lock_guard lock(mutex_);
      queue_.push_back(std::move(task));
    }
    changed_.notify_one();
    done.get();
  }

 private:
  void work(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (changed_.wait(lock, stop, [&] { return !queue_.empty(); })) {
      auto task = std::move(queue_.front());
      queue_.pop_front();
      lock.unlock();
      task();
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<std::packaged_task<void()>> queue_;
  std::jthread thread_;  // last: uses everything above
};

}  // namespace kevin::eval

#endif  // KEVIN_EVAL_TIMING_THREAD_HPP
