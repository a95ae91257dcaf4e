#include "kevin/agent/kernel_space/cuda/product.hpp"

#include <doctest/doctest.h>

#include <string>

#include "agent/kernel_space/cuda/renderings.hpp"

using namespace kevin_test;

TEST_CASE("cuda: products compile, whatever is chosen, but for vectors that do not exist") {
  if (!nvrtc_here()) return;
  for (const SpaceCase& c : product_cases()) {
    CAPTURE(c.name);
    const Renderings renderings(c.task);
    CHECK(renderings.space().family() == "product");
    renderings.check(c, 8);
  }
}

TEST_CASE("cuda: every tile compiles with every engine") {
  if (!nvrtc_here()) return;
  const Renderings renderings(product_cases()[0].task);
  for (const char* engine : {"fma", "tf32x3", "bf16x3", "tf32", "half"}) {
    for (const char* tile :
         {"rows=16 columns=16 micro=8x8", "rows=16 columns=128 micro=8x4", "rows=128 columns=16 micro=8x4",
          "rows=128 columns=128 micro=8x8", "rows=32 columns=64 micro=2x2"}) {
      const std::string words = std::string(tile) + " buffers=2 depth=8 pad=8 split=2 engine=" + engine;
      CAPTURE(words);
      CHECK(renderings.failure(words) == "");
    }
  }
}

TEST_CASE("cuda: a knob is there where it matters") {
  const auto has = [](const kevin::Task& task, const std::string& name) {
    const auto space = kevin::agent::kernel_space(task, kevin::Backend::cuda);
    for (const auto& knob : space.knobs()) {
      if (knob.name == name) return true;
    }
    return false;
  };
  const auto cases = product_cases();
  CHECK_FALSE(has(cases[0].task, "chain"));
  CHECK_FALSE(has(cases[0].task, "math"));
  CHECK(has(cases[3].task, "chain"));
  CHECK_FALSE(has(cases[3].task, "algorithm"));
  CHECK(has(cases[4].task, "algorithm"));
}
