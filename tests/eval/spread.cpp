#include "kevin/eval/spread.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "kevin/core/random.hpp"

using namespace kevin;

namespace {

constexpr float nan_f = std::numeric_limits<float>::quiet_NaN();
constexpr float inf_f = std::numeric_limits<float>::infinity();

double spread(const std::vector<float>& x) {
  return eval::spread_of(DType::float32, x.data(), static_cast<std::int64_t>(x.size()));
}
double spread(const std::vector<double>& x) {
  return eval::spread_of(DType::float64, x.data(), static_cast<std::int64_t>(x.size()));
}

/// In two passes, in long double.
template <class T>
double by_definition(const std::vector<T>& x) {
  long double mean = 0;
  for (const T v : x) mean += static_cast<long double>(v) / static_cast<long double>(x.size());
  long double squares = 0;
  for (const T v : x) squares += (static_cast<long double>(v) - mean) * (static_cast<long double>(v) - mean);
  return static_cast<double>(std::sqrt(squares / static_cast<long double>(x.size())));
}

}  // namespace

TEST_CASE("the spread is the standard deviation, dividing by the number of elements") {
  CHECK(spread(std::vector<float>{1, 3}) == 1);
  CHECK(spread(std::vector<float>{2, 4, 4, 4, 5, 5, 7, 9}) == 2);
  CHECK(spread(std::vector<float>{-5}) == 0);
  CHECK(spread(std::vector<float>(5000, 0.1F)) == 0);
  Rng rng(5);
  for (const std::size_t n : {7UL, 1023UL, 1024UL, 1025UL, 30000UL}) {
    std::vector<float> x(n);
    for (float& v : x) v = static_cast<float>(rng.normal());
    CHECK(spread(x) == doctest::Approx(by_definition(x)).epsilon(1e-12));
  }
}

TEST_CASE("a mean that dwarfs the spread does not cancel it, nor does a first element far from the others") {
  Rng rng(6);
  for (const double mean : {1e3, 1e6, -1e9}) {
    std::vector<double> x(20000);
    for (double& v : x) v = mean + rng.normal();
    CHECK(spread(x) == doctest::Approx(by_definition(x)).epsilon(1e-9));
    x[0] = 0;
    CHECK(spread(x) == doctest::Approx(by_definition(x)).epsilon(1e-9));
  }
}

TEST_CASE("NaNs and infinities are left out, wherever they are") {
  for (const std::size_t n : {3UL, 1024UL, 2500UL}) {
    std::vector<float> x(n, 1.0F);
    for (std::size_t i = 0; i < n; i += 2) x[i] = 5.0F;
    for (const float odd : {nan_f, inf_f, -inf_f}) {
      for (const std::size_t at : {std::size_t{0}, n / 2, n - 1}) {
        std::vector<float> with = x;
        std::vector<float> without = x;
        with[at] = odd;
        without.erase(without.begin() + static_cast<std::ptrdiff_t>(at));
        CHECK(spread(with) == doctest::Approx(by_definition(without)).epsilon(1e-12));
      }
    }
  }
  CHECK(spread(std::vector<float>(2000, nan_f)) == 0);
}

TEST_CASE("all real types have one, the others none; squares beyond double give none rather than all") {
  const std::vector<std::uint16_t> half{0x3c00, 0x4200, 0x7c00};  // 1, 3, infinity
  CHECK(eval::spread_of(DType::float16, half.data(), 3) == 1);
  const std::vector<std::uint16_t> brain{0x3f80, 0x4040, 0x7fc0};  // 1, 3, NaN
  CHECK(eval::spread_of(DType::bfloat16, brain.data(), 3) == 1);
  const std::vector<std::int32_t> integers{1, 3};
  CHECK(eval::spread_of(DType::int32, integers.data(), 2) == 0);
  CHECK(spread(std::vector<float>{3e38F, -3e38F}) == doctest::Approx(3e38));
  CHECK(spread(std::vector<double>{1e300, -1e300}) == 0);
}
