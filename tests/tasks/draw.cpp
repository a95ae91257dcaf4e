#include "kevin/tasks/draw.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

using kevin::Distribution;
using kevin::DType;
using kevin::TensorSpec;
using kevin::tasks::draw_into;
using Kind = Distribution::Kind;
using Structure = Distribution::Structure;

namespace {

template <class T = float>
std::vector<T> drawn(kevin::Shape shape, Distribution d, std::uint64_t seed, DType dtype = DType::float32) {
  const TensorSpec spec{.name = "x", .shape = std::move(shape), .dtype = dtype, .distribution = d};
  std::vector<T> values(static_cast<std::size_t>(kevin::element_count(spec.shape)));
  draw_into(spec, seed, values.data());
  return values;
}

struct Moments {
  double mean = 0, variance = 0, skewness = 0, kurtosis = 0;
};

Moments moments(const std::vector<float>& values) {
  const auto n = static_cast<double>(values.size());
  Moments m;
  for (float v : values) m.mean += static_cast<double>(v) / n;
  for (float v : values) m.variance += std::pow(static_cast<double>(v) - m.mean, 2) / n;
  for (float v : values) m.skewness += std::pow((static_cast<double>(v) - m.mean) / std::sqrt(m.variance), 3) / n;
  for (float v : values) m.kurtosis += std::pow((static_cast<double>(v) - m.mean) / std::sqrt(m.variance), 4) / n;
  return m;
}

}  // namespace

TEST_CASE("a draw depends on the seed alone") {
  for (Kind kind : {Kind::uniform, Kind::normal, Kind::integer, Kind::sign}) {
    const Distribution d{.kind = kind, .a = 1, .b = 9};
    CHECK(drawn({7, 11}, d, 3) == drawn({7, 11}, d, 3));
    CHECK(drawn({7, 11}, d, 3) != drawn({7, 11}, d, 4));
  }
}

TEST_CASE("a shorter draw is the beginning of a longer one, whatever the lengths") {
  for (Kind kind : {Kind::uniform, Kind::normal, Kind::integer, Kind::sign}) {
    const Distribution d{.kind = kind, .a = 0, .b = 5};
    const std::vector<float> whole = drawn({1031}, d, 5);
    for (std::int64_t n : {1, 2, 3, 255, 256, 257, 511, 1030}) {
      const std::vector<float> part = drawn({n}, d, 5);
      CHECK(std::equal(part.begin(), part.end(), whole.begin()));
    }
  }
}

TEST_CASE("uniform draws lie in [low, high) with the moments of the distribution") {
  const std::vector<float> x = drawn({200000}, {.kind = Kind::uniform, .a = -1, .b = 3}, 1);
  for (float v : x) REQUIRE((v >= -1.0F && v < 3.0F));
  const Moments m = moments(x);
  CHECK(m.mean == doctest::Approx(1).epsilon(0.02));
  CHECK(m.variance == doctest::Approx(16.0 / 12).epsilon(0.02));
}

TEST_CASE("uniform draws never reach the upper bound, even where rounding would") {
  const std::vector<float> x = drawn({100000}, {.kind = Kind::uniform, .a = 1e6, .b = 1e6 + 0.25}, 1);
  for (float v : x) REQUIRE((v >= 1e6F && v < 1e6F + 0.25F));
}

TEST_CASE("normal draws have the first four moments and the tails of the normal distribution") {
  const std::vector<float> x = drawn({400000}, {.kind = Kind::normal, .a = 0, .b = 1}, 2);
  const Moments m = moments(x);
  CHECK(std::fabs(m.mean) < 0.008);
  CHECK(m.variance == doctest::Approx(1).epsilon(0.01));
  CHECK(std::fabs(m.skewness) < 0.02);
  CHECK(m.kurtosis == doctest::Approx(3).epsilon(0.02));
  double beyond2 = 0;
  double beyond3 = 0;
  for (float v : x) {
    REQUIRE(std::isfinite(v));
    beyond2 += std::fabs(v) > 2 ? 1 : 0;
    beyond3 += std::fabs(v) > 3 ? 1 : 0;
  }
  CHECK(beyond2 / 400000 == doctest::Approx(0.0455).epsilon(0.05));
  CHECK(beyond3 / 400000 == doctest::Approx(0.0027).epsilon(0.15));
  // the two of a pair are independent
  double covariance = 0;
  for (std::size_t i = 0; i + 1 < x.size(); i += 2)
    covariance += static_cast<double>(x[i]) * static_cast<double>(x[i + 1]);
  CHECK(std::fabs(covariance / 200000) < 0.01);
}

TEST_CASE("normal draws follow mean and standard deviation") {
  const Moments m = moments(drawn({200000}, {.kind = Kind::normal, .a = 5, .b = 0.5}, 2));
  CHECK(m.mean == doctest::Approx(5).epsilon(0.005));
  CHECK(m.variance == doctest::Approx(0.25).epsilon(0.02));
}

TEST_CASE("logarithm, sine and cosine of the normal draw agree with the standard library") {
  for (double u = 1e-9; u < 1; u *= 1.003) {
    const auto x = static_cast<float>(u);
    REQUIRE(kevin::tasks::detail::fast_log(x) == doctest::Approx(std::log(x)).epsilon(1e-6));
  }
  for (double t = -0.5; t <= 0.5; t += 1e-3) {
    const auto x = static_cast<float>(t);
    REQUIRE(kevin::tasks::detail::sin_quarter(x) == doctest::Approx(std::sin(std::acos(0.0) * t)).epsilon(1e-6));
    REQUIRE(kevin::tasks::detail::cos_quarter(x) == doctest::Approx(std::cos(std::acos(0.0) * t)).epsilon(1e-6));
  }
}

TEST_CASE("integers cover their range evenly, in every type") {
  const Distribution d{.kind = Kind::integer, .a = -2, .b = 3};
  std::vector<int> count(5);
  for (std::int64_t v : drawn<std::int64_t>({50000}, d, 9, DType::int64)) {
    REQUIRE((v >= -2 && v < 3));
    ++count[static_cast<std::size_t>(v + 2)];
  }
  for (int c : count) CHECK(c == doctest::Approx(10000).epsilon(0.05));
  const auto narrow = drawn<std::int32_t>({100}, d, 9, DType::int32);
  const auto wide = drawn<std::int64_t>({100}, d, 9, DType::int64);
  CHECK(std::equal(narrow.begin(), narrow.end(), wide.begin()));

  const auto mask = drawn<unsigned char>({10000}, {.kind = Kind::integer, .a = 0, .b = 2}, 9, DType::boolean);
  std::size_t set = 0;
  for (unsigned char v : mask) {
    REQUIRE(v <= 1);
    set += v;
  }
  CHECK(static_cast<double>(set) == doctest::Approx(5000).epsilon(0.05));
}

TEST_CASE("constants and signs are what they say") {
  for (float v : drawn({10}, {.kind = Kind::constant, .a = 0.25}, 1)) CHECK(v == 0.25F);
  double sum = 0;
  for (float v : drawn({10000}, {.kind = Kind::sign}, 1)) {
    REQUIRE(std::fabs(v) == 1.0F);
    sum += static_cast<double>(v);
  }
  CHECK(std::fabs(sum) < 400);
}

TEST_CASE("structures shape the last dims of every matrix") {
  const auto at = [](const std::vector<float>& m, std::size_t b, std::size_t i, std::size_t j) {
    return m[(b * 5 + i) * 5 + j];
  };
  const auto with = [](Structure s) { return Distribution{.kind = Kind::uniform, .a = 0.5, .b = 1, .structure = s}; };
  const auto plain = drawn({2, 5, 5}, with(Structure::none), 4);
  const auto symmetric = drawn({2, 5, 5}, with(Structure::symmetric), 4);
  const auto upper = drawn({2, 5, 5}, with(Structure::upper), 4);
  const auto lower = drawn({2, 5, 5}, with(Structure::lower), 4);
  const auto softmax = drawn({2, 5, 5}, with(Structure::softmax), 4);
  for (std::size_t b = 0; b < 2; ++b) {
    for (std::size_t i = 0; i < 5; ++i) {
      float sum = 0;
      for (std::size_t j = 0; j < 5; ++j) {
        CHECK(at(symmetric, b, i, j) == (at(plain, b, i, j) + at(plain, b, j, i)) / 2);
        CHECK(at(upper, b, i, j) == (j < i ? 0.0F : at(plain, b, i, j)));
        CHECK(at(lower, b, i, j) == (j > i ? 0.0F : at(plain, b, i, j)));
        sum += at(softmax, b, i, j);
      }
      CHECK(sum == doctest::Approx(1));
    }
  }
}

TEST_CASE("a random scale multiplies the whole tensor by one number below 1") {
  Distribution d{.kind = Kind::uniform, .a = 1, .b = 2};
  const auto plain = drawn({100}, d, 6);
  d.random_scale = true;
  const auto scaled = drawn({100}, d, 6);
  const float scale = scaled[0] / plain[0];
  CHECK((scale >= 0 && scale < 1));
  for (std::size_t i = 0; i < plain.size(); ++i) CHECK(scaled[i] == doctest::Approx(plain[i] * scale));
}

TEST_CASE("16-bit types are the nearest of their type") {
  using kevin::tasks::detail::to_bfloat16;
  using kevin::tasks::detail::to_float16;
  CHECK(to_bfloat16(1.0F) == 0x3f80);
  CHECK(to_bfloat16(-2.5F) == 0xc020);
  CHECK(to_bfloat16(1.00390625F) == 0x3f80);  // a tie goes to even
  CHECK(to_bfloat16(1.01171875F) == 0x3f82);  // and so does this one
  CHECK(to_float16(1.0F) == 0x3c00);
  CHECK(to_float16(-2.5F) == 0xc100);
  CHECK(to_float16(65504.0F) == 0x7bff);
  CHECK(to_float16(65519.0F) == 0x7bff);
  CHECK(to_float16(65520.0F) == 0x7c00);    // infinity
  CHECK(to_float16(0x1.0p-24F) == 0x0001);  // the smallest
  CHECK(to_float16(0x1.0p-14F) == 0x0400);  // the smallest normal one
  CHECK(to_float16(0x1.ff8p-15F) == 0x03ff);
  CHECK(to_float16(0.0F) == 0x0000);
  const auto half = drawn<std::uint16_t>({64}, {.kind = Kind::normal, .a = 0, .b = 1}, 3, DType::float16);
  const auto full = drawn({64}, {.kind = Kind::normal, .a = 0, .b = 1}, 3);
  for (std::size_t i = 0; i < half.size(); ++i) CHECK(half[i] == to_float16(full[i]));
}

TEST_CASE("float64 draws have the uniform's and the normal's values at float32 accuracy") {
  for (Kind kind : {Kind::uniform, Kind::normal}) {
    const Distribution d{.kind = kind, .a = 0.25, .b = 2};
    const auto narrow = drawn<float>({333}, d, 8);
    const auto wide = drawn<double>({333}, d, 8, DType::float64);
    for (std::size_t i = 0; i < narrow.size(); ++i)
      CHECK(static_cast<double>(narrow[i]) == doctest::Approx(wide[i]).epsilon(1e-5));
  }
}
