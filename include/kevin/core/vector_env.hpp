#ifndef KEVIN_CORE_VECTOR_ENV_HPP
#define KEVIN_CORE_VECTOR_ENV_HPP

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "kevin/core/env.hpp"
#include "kevin/core/error.hpp"
#include "kevin/core/random.hpp"
#include "kevin/core/threads.hpp"

namespace kevin {

namespace detail {
/// First in, first out. Beside <vector>, <deque> is dear to compile.
template <class T>
class Queue {
 public:
  [[nodiscard]] bool empty() const noexcept { return first_ == items_.size(); }
  void push(T item) { items_.push_back(std::move(item)); }
  /// The oldest; there must be one.
  [[nodiscard]] T pop() {
    T item = std::move(items_[first_++]);
    if (2 * first_ >= items_.size()) {  // the taken ones leave together: on average a pop moves one other at most
      items_.erase(items_.begin(), items_.begin() + static_cast<std::ptrdiff_t>(first_));
      first_ = 0;
    }
    return item;
  }

 private:
  std::vector<T> items_;
  std::size_t first_ = 0;  // those before it are taken
};
}  // namespace detail

/// Many environments of one kind, stepped by a bounded number of threads; results come back in the order in which they
/// are finished, each with the number of its environment, since a kernel's compile time is long-tailed.
///
/// Per environment the order is reset or step, then its result, then the next; two requests at once for one environment
/// are Error(order). There is no automatic reset: the last step's observation is the terminal one. An exception from
/// one environment is that result's `error` and touches no other; the environment may be reset and goes on. send, reset
/// and receive may be called from any thread.
template <Env E>
class VectorEnv {
 public:
  struct Result {
    std::size_t env = 0;
    bool was_reset = false;  ///< answer to reset: only `step.observation` is set
    Step<ObservationOf<E>, RewardOf<E>, InfoOf<E>> step{};
    std::string error;  ///< what the environment threw; empty: fine
    [[nodiscard]] bool ok() const noexcept { return error.empty(); }
  };

  /// `threads` 0: as many as the machine has. Throws Error(bad_input) when `envs` is empty.
  explicit VectorEnv(std::vector<E> envs, std::size_t threads = 0)
      : envs_(std::move(envs)), busy_(envs_.size(), false) {
    if (envs_.empty()) throw Error(ErrorCode::bad_input, "VectorEnv: no environments");
    if (threads == 0) threads = detail::machine_threads();
    threads = std::min(threads, envs_.size());
    for (std::size_t i = 0; i < threads; ++i) {
      try {
        threads_.emplace_back([this] { work(); });
      } catch (const std::exception&) {
        if (threads_.empty()) throw;
        break;  // fewer do as well
      }
    }
  }
  VectorEnv(const VectorEnv&) = delete;
  VectorEnv& operator=(const VectorEnv&) = delete;
  /// Waits for the steps that are running; those that have not begun are dropped.
  ~VectorEnv() {
    {
      const detail::Lock lock(mutex_);
      ended_ = true;
    }
    queued_.notify_all();
    threads_.clear();
  }

  [[nodiscard]] std::size_t size() const noexcept { return envs_.size(); }

  /// Starts a reset of environment `env`.
  void reset(std::size_t env, std::uint64_t seed) {
    enqueue(env, [this, env, seed](Result& r) {
      r.was_reset = true;
      r.step.observation = envs_[env].reset(seed);
    });
  }
  /// Starts resets of all: environment i gets derive_seed(seed, "env", i), so that neighbouring seeds share no episode.
  void reset_all(std::uint64_t seed) {
    for (std::size_t i = 0; i < envs_.size(); ++i) reset(i, derive_seed(seed, "env", i));
  }

  /// Starts a step of environment `env`.
  void send(std::size_t env, ActionOf<E> action) {
    enqueue(env, [this, env, a = std::move(action)](Result& r) {
      auto s = envs_[env].step(a);
      r.step.terminated = s.terminated;
      r.step.truncated = s.truncated;
      r.step.observation = std::move(s.observation);
      r.step.reward = std::move(s.reward);
      r.step.info = std::move(s.info);
    });
  }

  /// Waits for the next finished result. Throws Error(order) when nothing is under way, instead of waiting for ever.
  [[nodiscard]] Result receive() {
    detail::Lock lock(mutex_);
    if (in_flight_ == 0) throw Error(ErrorCode::order, "VectorEnv::receive: nothing is under way; send or reset first");
    finished_.wait(lock, [&] { return !results_.empty() || in_flight_ == 0; });
    if (results_.empty()) throw Error(ErrorCode::order, "VectorEnv::receive: another thread took the last result");
    Result r = results_.pop();
    busy_[r.env] = false;
    if (--in_flight_ == 0) finished_.notify_all();
    return r;
  }

  /// Waits for `count` results (at most as many as are under way).
  [[nodiscard]] std::vector<Result> receive(std::size_t count) {
    std::vector<Result> batch;
    while (batch.size() < count && in_flight() > 0) batch.push_back(receive());
    return batch;
  }

  /// Requests that have not been received yet.
  [[nodiscard]] std::size_t in_flight() const {
    const detail::Lock lock(mutex_);
    return in_flight_;
  }

 private:
  struct Job {
    std::size_t env;
    std::function<void(Result&)> run;
  };

  void enqueue(std::size_t env, std::function<void(Result&)> run) {
    {
      const detail::Lock lock(mutex_);
      if (env >= envs_.size())
        throw Error(ErrorCode::bad_input, "VectorEnv: there is no environment " + std::to_string(env));
      if (busy_[env])
        throw Error(ErrorCode::order, "VectorEnv: environment " + std::to_string(env) +
                                          " has a request under way; receive its result first");
      busy_[env] = true;
      ++in_flight_;
      jobs_.push({env, std::move(run)});
    }
    queued_.notify_one();
  }

  void work() {
    for (;;) {
      Job job;
      {
        detail::Lock lock(mutex_);
        queued_.wait(lock, [&] { return ended_ || !jobs_.empty(); });
        if (ended_) return;
        job = jobs_.pop();
      }
      Result result;
      result.env = job.env;
      try {
        job.run(result);
      } catch (const std::exception& e) {
        result.error = *e.what() == '\0' ? "an exception without text" : e.what();
      } catch (...) {
        result.error = "an exception that is not a std::exception";
      }
      {
        const detail::Lock lock(mutex_);
        results_.push(std::move(result));
      }
      finished_.notify_one();
    }
  }

  std::vector<E> envs_;
  mutable detail::Mutex mutex_;
  detail::Condition queued_;
  detail::Condition finished_;
  detail::Queue<Job> jobs_;
  detail::Queue<Result> results_;
  std::vector<bool> busy_;
  std::size_t in_flight_ = 0;
  bool ended_ = false;
  std::vector<detail::Thread> threads_;
};

}  // namespace kevin

#endif  // KEVIN_CORE_VECTOR_ENV_HPP
