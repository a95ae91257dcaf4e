#include "kevin/eval/timing.hpp"

#include <doctest/doctest.h>

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kevin/core/random.hpp"

using namespace kevin;

TEST_CASE("median_bounds: the ranks of the tables of the sign test") {
  // e.g. Conover, Practical Nonparametric Statistics, table A3: n = 6: 1st and 6th; 10: 2nd and 9th; 20: 6th and 15th;
  // 50: 18th and 33rd
  CHECK(eval::median_bounds(6) == std::pair<std::size_t, std::size_t>{0, 5});
  CHECK(eval::median_bounds(10) == std::pair<std::size_t, std::size_t>{1, 8});
  CHECK(eval::median_bounds(20) == std::pair<std::size_t, std::size_t>{5, 14});
  CHECK(eval::median_bounds(50) == std::pair<std::size_t, std::size_t>{17, 32});
}

TEST_CASE("median_bounds: the whole range for few samples, sane for any number") {
  CHECK(eval::median_bounds(0) == std::pair<std::size_t, std::size_t>{0, 0});
  CHECK(eval::median_bounds(1) == std::pair<std::size_t, std::size_t>{0, 0});
  CHECK(eval::median_bounds(3) == std::pair<std::size_t, std::size_t>{0, 2});
  for (const std::size_t n : {100UL, 1000UL, 5000UL}) {
    const auto [low, high] = eval::median_bounds(n);
    CHECK(low < n / 2);
    CHECK(high >= n / 2);
    CHECK(low + high == n - 1);
  }
}

TEST_CASE("median_bounds: cover the true median in at least 95 of 100 draws") {
  Rng rng(11);
  int covered = 0;
  const int draws = 2000;
  for (int i = 0; i < draws; ++i) {
    std::vector<double> samples;
    for (int k = 0; k < 25; ++k) samples.push_back(rng.uniform() * rng.uniform());  // skewed; median 0.1867
    const Timing t = eval::summarize(samples);
    covered += t.low_ms <= 0.1867 && 0.1867 <= t.high_ms ? 1 : 0;
  }
  CHECK(covered > draws * 94 / 100);
}

TEST_CASE("summarize: median of odd and even counts") {
  const Timing odd = eval::summarize({5, 1, 3});
  CHECK(odd.median_ms == 3);
  CHECK(odd.low_ms == 1);
  CHECK(odd.high_ms == 5);
  CHECK(odd.samples == 3);
  CHECK(eval::summarize({4, 1, 3, 2}).median_ms == 2.5);
  CHECK(eval::summarize({}) == Timing{});
}

TEST_CASE("enough: narrow intervals, the budget, or the highest number of rounds") {
  const eval::StoppingRule rule{8, 40, 0.05, 100, 15};
  const Timing narrow{1.0, 0.99, 1.02, 8};
  const Timing wide{1.0, 0.8, 1.2, 8};
  CHECK(eval::enough(rule, narrow, narrow, 16, 0));
  CHECK_FALSE(eval::enough(rule, narrow, wide, 16, 0));
  CHECK_FALSE(eval::enough(rule, wide, narrow, 16, 0));
  CHECK(eval::enough(rule, wide, wide, 100, 0));
  CHECK(eval::enough(rule, wide, wide, 16, 15));
  Timing few = narrow;
  few.samples = 7;
  CHECK_FALSE(eval::enough(rule, few, few, 300, 100));
  CHECK(eval::enough(rule, few, few, 400, 0));
  Timing many = wide;
  many.samples = 40;
  CHECK(eval::enough(rule, many, many, 1, 0));
}

TEST_CASE("CpuClock: advances with work, not with sleep") {
  const eval::CpuClock mine(::getpid());
  const eval::CpuClock thread = eval::CpuClock::this_thread();
  const std::int64_t before = thread.nanoseconds();
  ::usleep(50'000);
  const std::int64_t slept = thread.nanoseconds() - before;
  CHECK(slept < 40'000'000);
  volatile double x = 1;
  const std::int64_t process_before = mine.nanoseconds();
  while (thread.nanoseconds() - before - slept < 5'000'000) x = x * 1.0000001;
  CHECK(mine.nanoseconds() - process_before >= 4'000'000);
}
