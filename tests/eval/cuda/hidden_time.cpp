#include "kevin/eval/cuda/hidden_time.hpp"

#include <doctest/doctest.h>

using kevin::cuda::HiddenTime;

TEST_CASE("what passes beside the events of a run and not of an empty plan is hidden time") {
  HiddenTime h;
  for (const double jitter : {-0.01, 0.0, 0.01}) {
    h.saw_nothing(0.06 + jitter, 0.002);
    h.saw_run(1.56 + jitter, 0.5);
  }
  CHECK(h.beyond(0.5) == doctest::Approx(1.002));
}

TEST_CASE("a busy machine's tenth of a millisecond and a quarter of the time are forgiven") {
  HiddenTime h;
  h.saw_nothing(0.05, 0.0);
  h.saw_run(1.30, 1.0);  // 0.25 more than nothing
  CHECK(h.beyond(1.0) == 0);
  CHECK(h.beyond(0.1) == doctest::Approx(0.25));
}

TEST_CASE("one late answer among many is no sign") {
  HiddenTime h;
  for (int i = 0; i < 9; ++i) h.saw_nothing(0.05, 0.0);
  for (int i = 0; i < 9; ++i) h.saw_run(i == 4 ? 30.0 : 0.55, 0.5);
  CHECK(h.beyond(0.5) == 0);
}

TEST_CASE("starting over forgets what was seen") {
  HiddenTime h;
  h.saw_nothing(0.05, 0.0);
  h.saw_run(10, 0.5);
  h.start_over();
  h.saw_nothing(0.05, 0.0);
  h.saw_run(0.55, 0.5);
  CHECK(h.beyond(0.5) == 0);
}
