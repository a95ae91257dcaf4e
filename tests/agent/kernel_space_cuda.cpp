// The sources of the CUDA kernel spaces, judged on a GPU: what ought to be right is, what cannot be is told why.
#include "kevin/agent/kernel_space.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "agent/kernel_space/cuda/renderings.hpp"
#include "eval/cuda/gpu.hpp"

using namespace kevin_test;

namespace {

void judge(const SpaceCase& c, int mixtures) {
  CAPTURE(c.name);
  const auto space = kevin::agent::kernel_space(c.task, kevin::Backend::cuda);
  const auto stage = [&](const std::string& words, kevin::Stage expected) {
    const kevin::Candidate candidate{space.render(choices_of(space, words))};
    const kevin::Verdict v = gpu_test::evaluator()->evaluate(c.task, candidate, 7);
    CAPTURE(words);
    CAPTURE(v.reason);
    CAPTURE(v.diagnostics);
    CHECK(kevin::to_string(v.stage) == kevin::to_string(expected));
  };
  each_option(space, [&](const std::string& words) {
    const bool wrong =
        std::any_of(c.wrong.begin(), c.wrong.end(), [&](const WrongChoice& w) { return w.words == words; });
    if (!wrong) stage(words, kevin::Stage::correct);
  });
  for (const WrongChoice& w : c.wrong) stage(w.words, w.stage);
  each_mixture(space, c, mixtures, [&](const std::string& words) { stage(words, kevin::Stage::correct); });
}

}  // namespace

TEST_CASE("cuda spaces on a GPU: element-wise") {
  if (gpu_test::evaluator() == nullptr) return;
  for (const SpaceCase& c : elementwise_cases()) judge(c, 8);
}

TEST_CASE("cuda spaces on a GPU: lines") {
  if (gpu_test::evaluator() == nullptr) return;
  for (const SpaceCase& c : line_cases()) judge(c, 8);
}

TEST_CASE("cuda spaces on a GPU: products") {
  if (gpu_test::evaluator() == nullptr) return;
  for (const SpaceCase& c : product_cases()) judge(c, 12);
}
