#include "hostile_candidates.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>

#include "kevin/eval/cpu/evaluator.hpp"

using namespace kevin;

namespace {

cpu::EvaluatorOptions options(int threads) {
  cpu::EvaluatorOptions o;
  o.judge.threads = threads;
  o.judge.launch_ms = 600;
  o.judge.memory = std::uint64_t{256} << 20;
  o.judge.timing.max_rounds = 8;
  o.compiler.time_limit = std::chrono::milliseconds(4000);
  return o;
}

void check(cpu::Evaluator& evaluator, const hostile::Candidate& c) {
  const Task task = hostile::task();
  const Verdict v = evaluator.evaluate(task, {c.source}, 7);
  CAPTURE(c.name);
  CAPTURE(to_string(v.stage));
  CAPTURE(v.reason);
  CAPTURE(v.diagnostics);
  CHECK(v.stage == c.stage);
  if (!c.reasons.empty()) CHECK(std::count(c.reasons.begin(), c.reasons.end(), v.reason) == 1);
  CHECK(v.reason.empty() == v.correct());
  CHECK(v.speedup.has_value() == v.correct());
  // nothing of the host in what the agent is told
  CHECK(v.diagnostics.find("root:") == std::string::npos);
  CHECK(v.diagnostics.find("/proc/") == std::string::npos);
  CHECK(v.diagnostics.size() < 4000);

  const Verdict honest = evaluator.evaluate(task, hostile::honest(), 8);
  CAPTURE(honest.diagnostics);
  CHECK(honest.correct());
  CHECK_FALSE(std::filesystem::exists("/tmp/kevin_hostile_was_here"));
}

}  // namespace

TEST_CASE("hostile candidates: each gets the right verdict, and an honest one after it is judged correct") {
  cpu::Evaluator evaluator(options(1));
  for (const hostile::Candidate& c : hostile::candidates()) {
    if (c.threads == 1) check(evaluator, c);
  }
}

TEST_CASE("hostile candidates: with two threads allowed") {
  cpu::Evaluator evaluator(options(2));
  for (const hostile::Candidate& c : hostile::candidates()) {
    if (c.threads == 2) check(evaluator, c);
  }
}

TEST_CASE("hostile candidates: 50 MB of source are refused") {
  cpu::Evaluator evaluator(options(1));
  check(evaluator, hostile::fifty_megabytes());
}

TEST_CASE("hostile candidates: work done after a forged early answer is timed all the same") {
  cpu::Evaluator evaluator(options(1));
  for (const hostile::Candidate& c : hostile::candidates()) {
    if (c.name != "answers early and computes then") continue;
    const Verdict v = evaluator.evaluate(hostile::task(), {c.source}, 9);
    REQUIRE(v.correct());
    CHECK(v.candidate->low_ms >= 1.9);  // it computes for two milliseconds after it said that it had finished
    return;
  }
  FAIL("the candidate is missing from the table");
}
