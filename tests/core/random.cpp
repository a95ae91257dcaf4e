#include "kevin/core/random.hpp"

#include <doctest/doctest.h>

#include <array>
#include <random>
#include <set>

using kevin::derive_seed;
using kevin::Rng;

static_assert(std::uniform_random_bit_generator<Rng>);

TEST_CASE("a derived seed depends on seed, name and index, and on nothing else") {
  CHECK(derive_seed(1, "a", 0) == derive_seed(1, "a", 0));
  std::set<std::uint64_t> seen;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    for (const char* name : {"env", "policy", "", "a", "b"}) {
      for (std::uint64_t index = 0; index < 20; ++index) seen.insert(derive_seed(seed, name, index));
    }
  }
  CHECK(seen.size() == 20 * 5 * 20);
}

TEST_CASE("draws are the same on every platform") {
  // The first outputs of SplitMix64 from state 0 (Vigna's reference implementation)
  Rng rng(0);
  CHECK(rng() == 0xe220a8397b1dcdafULL);
  CHECK(rng() == 0x6e789e6aa1b965f4ULL);
  CHECK(rng() == 0x06c45d188009454fULL);
}

TEST_CASE("a generator goes on from its state") {
  Rng a(5, "x");
  static_cast<void>(a());
  Rng b(a.state());
  CHECK(a() == b());
}

TEST_CASE("below is within bounds and covers them evenly") {
  Rng rng(3);
  std::array<int, 7> counts{};
  for (int i = 0; i < 70000; ++i) ++counts.at(rng.below(7));
  for (int c : counts) {
    CHECK(c > 9500);
    CHECK(c < 10500);
  }
}

TEST_CASE("uniform lies in [0, 1) and normal has mean 0 and deviation 1") {
  Rng rng(11);
  double sum = 0;
  double squares = 0;
  for (int i = 0; i < 100000; ++i) {
    const double u = rng.uniform();
    CHECK_UNARY(u >= 0 && u < 1);
    const double n = rng.normal();
    sum += n;
    squares += n * n;
  }
  CHECK(sum / 100000 == doctest::Approx(0).epsilon(0.02).scale(1));
  CHECK(squares / 100000 == doctest::Approx(1).epsilon(0.02));
}
