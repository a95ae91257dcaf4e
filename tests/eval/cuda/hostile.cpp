#include <doctest/doctest.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include <unistd.h>

#include "gpu.hpp"
#include "hostile_candidates.hpp"

using namespace kevin;

TEST_CASE("cuda hostile candidates: each gets the right verdict, and an honest one after it is judged correct") {
  cuda::Evaluator* evaluator = gpu_test::evaluator();
  if (evaluator == nullptr) return;
  const Task task = gpu_test::relu_task(gpu_hostile::elements);
  for (const gpu_hostile::Candidate& c : gpu_hostile::candidates()) {
    const Verdict v = evaluator->evaluate(task, {c.source}, 7);
    CAPTURE(c.name);
    CAPTURE(to_string(v.stage));
    CAPTURE(v.reason);
    CAPTURE(v.diagnostics);
    CHECK(v.stage == c.stage);
    if (!c.reasons.empty()) CHECK(std::count(c.reasons.begin(), c.reasons.end(), v.reason) == 1);
    CHECK(v.speedup.has_value() == v.correct());
    CHECK(v.diagnostics.find("root:") == std::string::npos);
    const Verdict honest = evaluator->evaluate(task, {gpu_test::relu_source(gpu_hostile::elements)}, 8);
    CAPTURE(honest.diagnostics);
    CHECK(honest.correct());
  }
}
