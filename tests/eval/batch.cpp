#include "kevin/eval/batch.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

using namespace kevin;

namespace {

/// Takes as many milliseconds as the source says; "fail" is a failure of the machinery.
struct Sleeper {
  std::atomic<int> at_once{0};
  std::atomic<int> most{0};
  Verdict evaluate(const Task&, const Candidate& c, std::uint64_t seed) {
    const int now = ++at_once;
    for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {
    }
    if (c.source == "fail") {
      --at_once;
      throw Error(ErrorCode::worker_lost, "gone");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(std::stoi(c.source)));
    --at_once;
    Verdict v;
    v.stage = Stage::correct;
    v.diagnostics = std::to_string(seed);
    return v;
  }
};

}  // namespace

TEST_CASE("evaluate_batch: outcomes come in the order of the jobs, whatever finishes first") {
  Sleeper sleeper;
  const Task task;
  std::vector<eval::Job> jobs;
  for (std::uint64_t i = 0; i < 12; ++i) jobs.push_back({&task, {std::to_string(40 - 3 * i)}, i});
  const auto outcomes = eval::evaluate_batch(sleeper, jobs, 4);
  REQUIRE(outcomes.size() == jobs.size());
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    REQUIRE(outcomes[i].verdict);
    CHECK(outcomes[i].verdict->diagnostics == std::to_string(i));
  }
  CHECK(sleeper.most > 1);
  CHECK(sleeper.most <= 4);
}

TEST_CASE("Batch: outcomes are received in the order in which they are ready") {
  Sleeper sleeper;
  const Task task;
  eval::Batch<Sleeper> batch(sleeper, 2);
  const auto slow = batch.send({&task, {"300"}, 1});
  const auto fast = batch.send({&task, {"1"}, 2});
  CHECK(batch.receive().id == fast);
  CHECK(batch.receive().id == slow);
  CHECK_THROWS_AS(static_cast<void>(batch.receive()), Error);
}

TEST_CASE("Batch: a failure of the machinery is one job's outcome and touches no other") {
  Sleeper sleeper;
  const Task task;
  const std::vector<eval::Job> jobs{{&task, {"1"}, 0}, {&task, {"fail"}, 1}, {&task, {"1"}, 2}};
  const auto outcomes = eval::evaluate_batch(sleeper, jobs, 1);
  CHECK(outcomes[0].verdict);
  CHECK_FALSE(outcomes[1].verdict);
  CHECK_THROWS_AS(std::rethrow_exception(outcomes[1].error), Error);
  CHECK(outcomes[2].verdict);
}
