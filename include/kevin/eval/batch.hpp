#ifndef KEVIN_EVAL_BATCH_HPP
#define KEVIN_EVAL_BATCH_HPP

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include "kevin/config.hpp"
#include "kevin/core/error.hpp"
#include "kevin/refine/evaluator.hpp"
#include "kevin/refine/task.hpp"
#include "kevin/refine/verdict.hpp"

namespace kevin::eval {

/// One candidate to be judged. The task is kept by reference and must outlive the verdict.
struct Job {
  const Task* task = nullptr;
  Candidate candidate;
  std::uint64_t seed = 0;
};

/// What became of a job: a verdict, or the failure of the machinery that kept it from being judged.
struct Outcome {
  std::size_t id = 0;  ///< as send() returned it
  std::optional<Verdict> verdict;
  std::exception_ptr error;  ///< set when there is no verdict
};

/// Judges many candidates at once: jobs are sent, outcomes received in the order in which they are ready. With several
/// threads one candidate compiles while another has the processor or the GPU to itself. send and receive may be called
/// from any threads.
template <Evaluator E>
class Batch {
 public:
  /// Keeps a reference to `evaluator`. `threads`: jobs under way at a time; >= 1.
  Batch(E& evaluator, std::size_t threads) : evaluator_(evaluator) {
    KEVIN_ASSERT(threads >= 1);
    for (std::size_t i = 0; i < threads; ++i) workers_.emplace_back([this](std::stop_token stop) { work(stop); });
  }
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;
  /// Waits for the jobs under way; those that were not begun are dropped.
  ~Batch() {
    for (auto& w : workers_) w.request_stop();
    workers_.clear();
  }

  /// Queues a job and returns its number: 0, 1, 2, ...
  std::size_t send(Job job) {
    KEVIN_ASSERT(job.task != nullptr);
    const std::lock_guard lock(mutex_);
    waiting_.push_back({sent_, std::move(job)});
    changed_.notify_all();
    return sent_++;
  }

  /// The next outcome that is ready; waits for one. Throws Error(order) when nothing is under way.
  [[nodiscard]] Outcome receive() {
    std::unique_lock lock(mutex_);
    if (received_ == sent_) throw Error(ErrorCode::order, "receive() without a job that was sent and not yet received");
    changed_.wait(lock, [&] { return !ready_.empty(); });
    Outcome outcome = std::move(ready_.front());
    ready_.pop_front();
    ++received_;
    return outcome;
  }

 private:
  void work(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (changed_.wait(lock, stop, [&] { return !waiting_.empty(); }) && !stop.stop_requested()) {
      auto [id, job] = std::move(waiting_.front());
      waiting_.pop_front();
      lock.unlock();
      Outcome outcome{id, {}, nullptr};
      try {
        outcome.verdict = evaluator_.evaluate(*job.task, job.candidate, job.seed);
      } catch (...) {
        outcome.error = std::current_exception();
      }
      lock.lock();
      ready_.push_back(std::move(outcome));
      changed_.notify_all();
    }
  }

  E& evaluator_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<std::pair<std::size_t, Job>> waiting_;
  std::deque<Outcome> ready_;
  std::size_t sent_ = 0;
  std::size_t received_ = 0;
  std::vector<std::jthread> workers_;  // last: they use everything above
};

/// Judges all of `jobs`, `threads` at a time, and returns the outcomes in their order.
template <Evaluator E>
[[nodiscard]] std::vector<Outcome> evaluate_batch(E& evaluator, std::span<const Job> jobs, std::size_t threads) {
  Batch<E> batch(evaluator, threads);
  for (const Job& job : jobs) batch.send(job);
  std::vector<Outcome> outcomes(jobs.size());
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    Outcome o = batch.receive();
    outcomes[o.id] = std::move(o);
  }
  return outcomes;
}

}  // namespace kevin::eval

#endif  // KEVIN_EVAL_BATCH_HPP
