#include "kevin/rl/metrics.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <optional>
#include <vector>

using namespace kevin::rl;

namespace {
/// Best of each k-subset, averaged, by going through all subsets.
double best_by_enumeration(const std::vector<double>& x, std::size_t k) {
  double sum = 0;
  double count = 0;
  for (unsigned bits = 0; bits < 1U << x.size(); ++bits) {
    if (static_cast<std::size_t>(__builtin_popcount(bits)) != k) continue;
    double best = -1e300;
    for (std::size_t i = 0; i < x.size(); ++i) {
      if ((bits >> i & 1U) != 0) best = std::max(best, x[i]);
    }
    sum += best;
    ++count;
  }
  return sum / count;
}
}  // namespace

TEST_CASE("best@k is the mean of the best over all subsets of k") {
  const std::vector<double> x{0.0, 1.3, 0.7, 0.7, 2.9, -0.4, 0.0};
  for (std::size_t k = 1; k <= x.size(); ++k) CHECK(best_at_k(x, k) == doctest::Approx(best_by_enumeration(x, k)));
  CHECK(best_at_k(x, 1) == doctest::Approx(avg_at_k(x)));
  CHECK(best_at_k(x, x.size()) == doctest::Approx(2.9));
}

TEST_CASE("pass@k is best@k of zeros and ones") {
  for (std::size_t n = 1; n <= 9; ++n) {
    for (std::size_t c = 0; c <= n; ++c) {
      std::vector<double> x(n, 0.0);
      std::fill_n(x.begin(), c, 1.0);
      for (std::size_t k = 1; k <= n; ++k) CHECK(pass_at_k(n, c, k) == doctest::Approx(best_by_enumeration(x, k)));
    }
  }
  CHECK(pass_at_k(1000000, 1, 1) == doctest::Approx(1e-6));
}

TEST_CASE("fast_p counts strictly by default, and fast_0 is the share of correct tasks") {
  const std::vector<std::optional<double>> s{1.0, 2.0, std::nullopt, 0.5};
  CHECK(fast_p(s, 0) == doctest::Approx(0.75));
  CHECK(fast_p(s, 1) == doctest::Approx(0.25));
  CHECK(fast_p(s, 1, true) == doctest::Approx(0.5));
}

TEST_CASE("geometric mean") {
  CHECK(geometric_mean(std::vector{1.0, 4.0}) == doctest::Approx(2));
  CHECK(geometric_mean(std::vector<double>(400, 1e300)) == doctest::Approx(1e300));
  CHECK_THROWS_AS(geometric_mean(std::vector{1.0, 0.0}), kevin::Error);
}

TEST_CASE("the bootstrap interval covers the mean, shrinks with more values and is the same for a seed") {
  kevin::Rng rng(4);
  std::vector<double> few;
  std::vector<double> many;
  for (int i = 0; i < 400; ++i) {
    const double x = rng.normal();
    if (i < 25) few.push_back(x);
    many.push_back(x);
  }
  const auto wide = bootstrap_interval(few, 1);
  const auto narrow = bootstrap_interval(many, 1);
  CHECK(narrow.low <= mean(many));
  CHECK(narrow.high >= mean(many));
  CHECK(narrow.high - narrow.low < wide.high - wide.low);
  // the normal approximation: 2 * 1.96 / sqrt(400) = 0.196
  CHECK(narrow.high - narrow.low == doctest::Approx(0.196).epsilon(0.15));
  CHECK(bootstrap_interval(few, 1).low == wide.low);
}

TEST_CASE("impossible arguments are refused with a text that names them") {
  CHECK_THROWS_WITH_AS(pass_at_k(4, 1, 5), doctest::Contains("k=5"), kevin::Error);
  CHECK_THROWS_AS(pass_at_k(4, 5, 1), kevin::Error);
  CHECK_THROWS_AS(best_at_k({}, 1), kevin::Error);
  CHECK_THROWS_AS(mean({}), kevin::Error);
  CHECK_THROWS_AS(fast_p({}, 1), kevin::Error);
  CHECK_THROWS_AS(bootstrap_interval({}, 1), kevin::Error);
}
