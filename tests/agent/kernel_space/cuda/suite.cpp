// Every embedded task that has a kernel space for the cpu has one for CUDA; its sources compile.
#include <doctest/doctest.h>

#include <cstddef>
#include <string>

#include "agent/kernel_space/cuda/renderings.hpp"
#include "kevin/agent/choice_vocabulary.hpp"
#include "kevin/tasks/suite.hpp"

using namespace kevin_test;

namespace {

/// The family that writes the task; empty for none.
std::string family(const kevin::Task& task, kevin::Backend backend) {
  try {
    return kevin::agent::kernel_space(task, backend).family();
  } catch (const kevin::Error& e) {
    CHECK(e.code() == kevin::ErrorCode::unsupported);
    return "";
  }
}

}  // namespace

TEST_CASE("cuda: the same tasks have kernel spaces, of the same families, and one vocabulary holds them") {
  std::vector<kevin::Task> written;
  for (const kevin::Task& task : kevin::tasks::all()) {
    CAPTURE(task.id);
    if (task.id == "kernelbench/l1/37") continue;  // below
    CHECK(family(task, kevin::Backend::cuda) == family(task, kevin::Backend::cpu));
    if (task.id.starts_with("kevin/") && !family(task, kevin::Backend::cuda).empty()) written.push_back(task);
  }
  CHECK(written.size() > 15);
  const kevin::agent::ChoiceVocabulary words(written, kevin::Backend::cuda);
  for (std::size_t i = 0; i < written.size(); ++i) {
    const auto& space = words.space(i);
    const auto choices = space.choose({});
    const auto read = space.read_summary(space.summary(choices));
    for (std::size_t k = 0; k < choices.size(); ++k) CHECK(read[k] == choices[k]);
    CHECK(space.render(choices).find("void kevin_plan(const float* ") != std::string::npos);
  }
}

TEST_CASE("cuda: lines of more than 2^30 elements, as those of one task, have no kernel space, and the error says so") {
  const kevin::Task task = kevin::tasks::find("kernelbench/l1/37");
  CHECK(family(task, kevin::Backend::cpu) == "rows");
  CHECK_THROWS_WITH_AS(static_cast<void>(kevin::agent::kernel_space(task, kevin::Backend::cuda)),
                       doctest::Contains("its lines have more than 2^30 elements"), kevin::Error);
  CHECK(family(kevin::tasks::find("kernelbench/l1/37@small"), kevin::Backend::cuda) == "rows");
}

TEST_CASE("cuda: every option for every hardened task compiles, but for vectors that do not exist") {
  if (!nvrtc_here()) return;
  for (const kevin::Task& task : kevin::tasks::all()) {
    if (!task.id.starts_with("kevin/") || family(task, kevin::Backend::cuda).empty()) continue;
    CAPTURE(task.id);
    const Renderings renderings(task);
    each_option(renderings.space(), [&](const std::string& words) {
      CAPTURE(words);
      CHECK(renderings.failure(words) == (words == "width=8" ? "syntax" : ""));
    });
  }
}
