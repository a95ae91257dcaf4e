#include "kevin/refine/verdict.hpp"

#include <doctest/doctest.h>

#include <sstream>
#include <string>

using kevin::Stage;
using kevin::Verdict;

namespace {
std::string shown(const Verdict& v) {
  std::ostringstream out;
  out << v;
  return out.str();
}
}  // namespace

TEST_CASE("a verdict is shown in one line") {
  Verdict v;
  v.stage = Stage::compile;
  v.reason = "error";
  v.diagnostics = "kernel.cpp:1: error\nnote: more";
  CHECK(shown(v) == "compile (error): kernel.cpp:1: error");
  v.stage = Stage::correctness;
  v.reason.clear();
  v.diagnostics.clear();
  CHECK(shown(v) == "wrong output");
  v.stage = Stage::correct;
  CHECK(shown(v) == "correct");
  v.speedup = 1.8302;
  v.candidate = kevin::Timing{0.212, 0.2, 0.22, 5};
  v.baseline = kevin::Timing{0.388, 0.38, 0.39, 5};
  CHECK(shown(v) == "correct, 1.83x (0.212 ms, baseline 0.388 ms)");
}

TEST_CASE("showing a verdict leaves the stream's precision alone") {
  std::ostringstream out;
  Verdict v;
  v.stage = Stage::correct;
  v.speedup = 2;
  v.candidate = v.baseline = kevin::Timing{};
  const auto before = out.precision();
  out << v;
  CHECK(out.precision() == before);
}

TEST_CASE("only the last stage is correct") {
  for (const Stage stage : {Stage::format, Stage::compile, Stage::run, Stage::correctness, Stage::correct}) {
    Verdict v;
    v.stage = stage;
    CHECK(v.correct() == (stage == Stage::correct));
  }
  CHECK(to_string(Stage::run) == "run");
}
