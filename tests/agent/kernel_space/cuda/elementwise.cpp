#include "kevin/agent/kernel_space/cuda/elementwise.hpp"

#include <doctest/doctest.h>

#include <string>

#include "agent/kernel_space/cuda/renderings.hpp"

using namespace kevin_test;

TEST_CASE("cuda: element-wise kernels compile, whatever is chosen, but for vectors that do not exist") {
  if (!nvrtc_here()) return;
  for (const SpaceCase& c : elementwise_cases()) {
    CAPTURE(c.name);
    const Renderings renderings(c.task);
    CHECK(renderings.space().family() == "elementwise");
    renderings.check(c, 4);
  }
}

TEST_CASE("cuda: every element-wise op compiles at every level of accuracy") {
  if (!nvrtc_here()) return;
  const kevin::Shape shape{4, 8};
  for (const char* op :
       {"relu", "leaky_relu", "abs", "neg", "square", "exp", "sqrt", "tanh", "sigmoid", "silu", "softsign", "gelu",
        "hardsigmoid", "hardswish", "hardtanh", "elu", "selu", "softplus", "mish"}) {
    CAPTURE(op);
    const Renderings renderings(space_task({normal("x", shape)}, {}, {{op, {}, {"x"}, "t1", shape}}));
    for (const char* words : {"", "math=fast", "math=coarse", "math=libm precision=float64", "precision=bfloat16"}) {
      CAPTURE(words);
      CHECK(renderings.failure(words) == "");
    }
  }
  const kevin::Op clamp{"clamp", {{"min", -HUGE_VAL}, {"max", HUGE_VAL}}, {"x"}, "t1", shape};
  CHECK(Renderings(space_task({normal("x", shape)}, {}, {clamp})).failure("") == "");
}

TEST_CASE("cuda: more than 2^31 elements are counted") {
  if (!nvrtc_here()) return;
  const kevin::Shape shape{1 << 16, 1 << 16};
  const Renderings renderings(
      space_task({normal("x", shape), normal("y", {1 << 16})}, {}, {{"add_input", {}, {"x", "y"}, "t1", shape}}));
  CHECK(renderings.failure("width=4 walk=stride") == "");
  const std::string source = renderings.space().render(choices_of(renderings.space(), "width=4"));
  CHECK(source.find("typedef long long Index;") != std::string::npos);
}
