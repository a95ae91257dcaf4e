#include "kevin/eval/cuda/head_start.hpp"

#include <doctest/doctest.h>

using kevin::cuda::HeadStart;

TEST_CASE("HeadStart: rounds in which every run was in time count, and change nothing") {
  HeadStart h;
  for (int round = 0; round < 100; ++round) {
    h.saw(false);
    h.saw(false);
    CHECK(h.end_round());
  }
  CHECK(h.microseconds() == HeadStart::shortest);
  CHECK_FALSE(h.gave_up());
}

TEST_CASE("HeadStart: a round with one late run does not count, and the next has twice the head start") {
  HeadStart h;
  h.saw(false);
  h.saw(true);
  h.saw(false);
  CHECK_FALSE(h.end_round());
  CHECK(h.microseconds() == 2 * HeadStart::shortest);
  h.saw(false);
  CHECK(h.end_round());  // lateness belongs to its round
  CHECK(h.microseconds() == 2 * HeadStart::shortest);
}

TEST_CASE("HeadStart: what is late with the longest counts after some rounds, and says so") {
  HeadStart h;
  for (int round = 0; round < HeadStart::patience; ++round) {
    h.saw(true);
    CHECK_FALSE(h.end_round());
  }
  CHECK(h.microseconds() == HeadStart::longest);
  CHECK_FALSE(h.gave_up());
  h.saw(true);
  CHECK(h.end_round());
  CHECK(h.microseconds() == HeadStart::longest);
  CHECK(h.gave_up());
}

TEST_CASE("HeadStart: none is none, and every round counts") {
  HeadStart h = HeadStart::none();
  for (int round = 0; round < 100; ++round) {
    h.saw(true);
    CHECK(h.end_round());
  }
  CHECK(h.microseconds() == 0);
  CHECK_FALSE(h.gave_up());
}
