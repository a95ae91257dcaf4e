#include "kevin/core/math.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <initializer_list>
#include <limits>

namespace m = kevin::detail;

TEST_CASE("the functions have the results of <cmath>") {
  for (const double x : {1e-300, 0.25, 1.0, 2.5, 300.0}) {
    CHECK(m::sqrt(x) == std::sqrt(x));
    CHECK(m::exp(x) == std::exp(x));
    CHECK(m::expm1(x) == std::expm1(x));
    CHECK(m::log(x) == std::log(x));
    CHECK(m::cos(x) == std::cos(x));
  }
}

TEST_CASE("infinities and NaN are not finite") {
  CHECK(m::is_finite(0.0));
  CHECK(m::is_finite(std::numeric_limits<double>::max()));
  CHECK(m::is_finite(-std::numeric_limits<double>::denorm_min()));
  CHECK_FALSE(m::is_finite(std::numeric_limits<double>::infinity()));
  CHECK_FALSE(m::is_finite(-std::numeric_limits<double>::infinity()));
  CHECK_FALSE(m::is_finite(std::numeric_limits<double>::quiet_NaN()));
}
