#include "kevin/agent/kernel_space/cuda/lines.hpp"

#include <doctest/doctest.h>

#include <string>

#include "agent/kernel_space/cuda/renderings.hpp"

using namespace kevin_test;

TEST_CASE("cuda: softmax, norms and reductions compile, whatever is chosen, but for vectors that do not exist") {
  if (!nvrtc_here()) return;
  for (const SpaceCase& c : line_cases()) {
    CAPTURE(c.name);
    const Renderings renderings(c.task);
    CHECK(renderings.space().family() == (c.name.find("columns") == std::string::npos ? "rows" : "columns"));
    renderings.check(c, 4);
  }
}

TEST_CASE("cuda: every line op compiles, with every algorithm") {
  if (!nvrtc_here()) return;
  for (const char* op :
       {"softmax", "log_softmax", "logsumexp", "sum", "mean", "max_reduce", "min_reduce", "rms_norm"}) {
    CAPTURE(op);
    const std::string name = op;
    const bool reduces = name != "softmax" && name != "log_softmax" && name != "rms_norm";
    for (const std::int64_t dim : {0, 1}) {
      const kevin::Shape out = !reduces ? kevin::Shape{5, 37} : kevin::Shape{dim == 0 ? 37 : 5};
      const Renderings renderings(space_task({normal("x", {5, 37})}, {}, {{op, {{"dim", dim}}, {"x"}, "t1", out}}));
      for (const kevin::agent::Knob& knob : renderings.space().knobs()) {
        if (knob.name != "algorithm") continue;
        for (const std::string& option : knob.options) {
          for (const char* keep : {"no", "registers", "shared"}) {
            const std::string words = "algorithm=" + option + " keep=" + keep + " width=4";
            CAPTURE(words);
            CHECK(renderings.failure(words) == "");
          }
        }
      }
      CHECK(renderings.failure("precision=float64 reduce=shared") == "");
    }
  }
}

TEST_CASE("cuda: columns are no more than a block has threads") {
  const kevin::Task task =
      space_task({normal("x", {4, 9, 70})}, {}, {{"sum", {{"dim", std::int64_t{1}}}, {"x"}, "t1", {4, 70}}});
  const auto space = kevin::agent::kernel_space(task, kevin::Backend::cuda);
  const std::string source = space.render(choices_of(space, "threads=32 columns=64"));
  CHECK(source.find("constexpr int TEAM = 1,") != std::string::npos);
  CHECK(source.find("kevin::launch<lines>(12, 32)") != std::string::npos);
}
