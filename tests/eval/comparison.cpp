#include "kevin/eval/comparison.hpp"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "kevin/core/random.hpp"

using namespace kevin;
using eval::Difference;
using eval::Poison;

namespace {

constexpr float nan_f = std::numeric_limits<float>::quiet_NaN();
constexpr float inf_f = std::numeric_limits<float>::infinity();
const Tolerance strict{1e-4, 1e-4};
const Poison poison32(DType::float32, 0x1234567);

Difference floats(const std::vector<float>& actual, const std::vector<float>& expected, Tolerance t = strict) {
  REQUIRE(actual.size() == expected.size());
  return eval::compare(DType::float32, actual.data(), expected.data(), static_cast<std::int64_t>(actual.size()), t,
                       poison32);
}

float poison_value() { return std::bit_cast<float>(static_cast<std::uint32_t>(poison32.bits())); }

}  // namespace

TEST_CASE("compare: an element passes up to absolute + relative * |expected| and not beyond") {
  const Tolerance t{0.5, 0.25};
  CHECK(floats({2.5F}, {2.0F}, t).figures.wrong == 0);
  CHECK(floats({3.0F}, {2.0F}, t).figures.wrong == 0);  // 1 = 0.5 + 0.25 * 2, exactly
  CHECK(floats({std::nextafter(3.0F, 4.0F)}, {2.0F}, t).figures.wrong == 1);
  CHECK(floats({-3.0F}, {-2.0F}, t).figures.wrong == 0);
  CHECK(floats({0.5F}, {0.0F}, t).figures.wrong == 0);
  CHECK(floats({0.51F}, {0.0F}, t).figures.wrong == 1);
  // the scale is the expected value's, never the candidate's
  CHECK(floats({1000.0F}, {1.0F}, {0.0, 0.999}).figures.wrong == 1);
}

TEST_CASE("compare: NaN is wrong unless a NaN is expected") {
  CHECK(floats({nan_f}, {1.0F}).figures.wrong == 1);
  CHECK(floats({nan_f}, {1.0F}).figures.not_finite == 1);
  CHECK(floats({nan_f}, {nan_f}).figures.wrong == 0);
  CHECK(floats({1.0F}, {nan_f}).figures.wrong == 1);
  CHECK(floats({inf_f}, {nan_f}).figures.wrong == 1);
}

TEST_CASE("compare: an expected infinity must be met exactly") {
  CHECK(floats({inf_f}, {inf_f}).figures.wrong == 0);
  CHECK(floats({-inf_f}, {inf_f}).figures.wrong == 1);
  CHECK(floats({3e38F}, {inf_f}).figures.wrong == 1);
  CHECK(floats({nan_f}, {inf_f}).figures.wrong == 1);
  const Difference d = floats({inf_f}, {1.0F});
  CHECK(d.figures.wrong == 1);
  CHECK(d.figures.not_finite == 1);
}

TEST_CASE("compare: one NaN among many right elements is found wherever it is") {
  for (const std::size_t n : {1UL, 7UL, 1023UL, 1024UL, 1025UL, 5000UL}) {
    for (const std::size_t at : {std::size_t{0}, n / 2, n - 1}) {
      std::vector<float> expected(n, 1.5F);
      std::vector<float> actual = expected;
      actual[at] = nan_f;
      const Difference d = floats(actual, expected);
      CHECK(d.figures.wrong == 1);
      CHECK(d.first_wrong == static_cast<std::int64_t>(at));
      CHECK(d.last_wrong == static_cast<std::int64_t>(at));
    }
  }
}

TEST_CASE("compare: unwritten elements are told apart by their bits, also where a NaN is expected") {
  const std::vector<float> expected{1.0F, nan_f, 2.0F, 3.0F};
  const Difference d = floats({poison_value(), poison_value(), 2.0F, nan_f}, expected);
  CHECK(d.figures.wrong == 3);
  CHECK(d.figures.unwritten == 2);
  CHECK(d.figures.not_finite == 1);
  CHECK(d.figures.elements == 4);
}

TEST_CASE("compare: a single wrong row is not hidden by right ones, an outlier does not loosen the rest") {
  std::vector<float> expected(10'000, 1.0F);
  std::vector<float> actual = expected;
  expected[17] = actual[17] = 1e30F;
  for (std::size_t i = 5000; i < 5010; ++i) actual[i] = 0;
  const Difference d = floats(actual, expected);
  CHECK(d.figures.wrong == 10);
  CHECK(d.first_wrong == 5000);
  CHECK(d.last_wrong == 5009);
  CHECK(d.figures.max_absolute == doctest::Approx(1.0));
}

TEST_CASE("compare: figures of right outputs are the largest errors") {
  const Difference d = floats({1.00001F, 2.0F, 0.00001F}, {1.0F, 2.0F, 0.0F});
  CHECK(d.figures.wrong == 0);
  CHECK(d.figures.max_absolute == doctest::Approx(1e-5).epsilon(0.02));
  CHECK(d.figures.max_relative == doctest::Approx(1e-5).epsilon(0.02));  // 0 is left out of the relative error
  CHECK(d.first_wrong == -1);
}

TEST_CASE("compare: agrees with the law applied one element at a time, on random bits") {
  Rng rng(7);
  const Tolerance t{1e-3, 1e-2};
  for (int round = 0; round < 20; ++round) {
    const std::size_t n = 1 + rng.below(4000);
    std::vector<float> expected(n);
    std::vector<float> actual(n);
    std::int64_t wrong = 0;
    for (std::size_t i = 0; i < n; ++i) {
      expected[i] = rng.below(50) == 0 ? std::bit_cast<float>(static_cast<std::uint32_t>(rng()))
                                       : static_cast<float>(rng.normal());
      actual[i] = rng.below(50) == 0 ? std::bit_cast<float>(static_cast<std::uint32_t>(rng()))
                                     : expected[i] * (1 + 0.011F * static_cast<float>(rng.uniform()));
      if (rng.below(100) == 0) actual[i] = poison_value();
      const double a = actual[i];
      const double e = expected[i];
      bool right = std::isfinite(e) ? std::fabs(a - e) <= t.absolute + t.relative * std::fabs(e)
                   : std::isnan(e)  ? std::isnan(a)
                                    : a == e;
      if (std::bit_cast<std::uint32_t>(actual[i]) == poison32.bits()) right = false;
      wrong += right ? 0 : 1;
    }
    CHECK(floats(actual, expected, t).figures.wrong == wrong);
  }
}

TEST_CASE("certainly_right: true only where compare finds nothing wrong, and true for ordinary outputs") {
  Rng rng(11);
  const auto certain = [](const std::vector<float>& actual, const std::vector<float>& expected, Tolerance t) {
    return eval::certainly_right(DType::float32, actual.data(), expected.data(),
                                 static_cast<std::int64_t>(actual.size()), t);
  };
  const std::size_t n = 2500;  // two blocks and a rest
  std::vector<float> expected(n);
  for (float& e : expected) e = static_cast<float>(rng.normal());
  std::vector<float> close = expected;
  for (float& a : close) a *= 1 + 1e-6F;
  CHECK(certain(close, expected, strict));
  CHECK_FALSE(certain(close, expected, {0, 0}));
  CHECK(certain(close, expected, {0, 0, 1e-4}));

  const std::vector<float> odd = {nan_f, inf_f, -inf_f, 3e38F, -3e38F, poison_value(), 0.0F, 1e-45F};
  for (int round = 0; round < 2000; ++round) {
    std::vector<float> actual = close;
    const std::size_t i = rng.below(n);
    const bool spread = rng.below(4) == 0;
    const Tolerance t{spread ? 0 : rng.below(2) == 0 ? 1e-4 : 1e-29, rng.below(2) == 0 ? 0 : 1e-2, spread ? 1e-4 : 0};
    std::vector<float> target = expected;
    if (rng.below(3) == 0) {
      actual[i] = odd[rng.below(odd.size())];
      target[i] = odd[rng.below(odd.size())];
    } else {  // at the limit, a few steps to either side
      const double limit = eval::resolved(t, DType::float32, target.data(), n).absolute +
                           t.relative * std::fabs(static_cast<double>(target[i]));
      actual[i] = static_cast<float>(static_cast<double>(target[i]) + limit);
      const float towards = rng.below(2) == 0 ? inf_f : -inf_f;
      for (std::uint64_t step = rng.below(4); step > 0; --step) actual[i] = std::nextafter(actual[i], towards);
    }
    if (certain(actual, target, t)) REQUIRE(floats(actual, target, t).figures.wrong == 0);
  }
}

TEST_CASE("compare: integers are exact and a bool is a byte of 0 or 1") {
  const std::vector<std::int32_t> e32{1, -5, 2'000'000'000};
  std::vector<std::int32_t> a32 = e32;
  const Poison p32(DType::int32, 0xdeadbeef);
  CHECK(eval::compare(DType::int32, a32.data(), e32.data(), 3, {1e9, 1e9}, p32).figures.wrong == 0);
  a32[1] = -4;
  a32[2] = static_cast<std::int32_t>(static_cast<std::uint32_t>(p32.bits()));
  const Difference d = eval::compare(DType::int32, a32.data(), e32.data(), 3, {1e9, 1e9}, p32);
  CHECK(d.figures.wrong == 2);
  CHECK(d.figures.unwritten == 1);
  // a right answer that happens to equal the poison is right
  const std::vector<std::int32_t> same{static_cast<std::int32_t>(static_cast<std::uint32_t>(p32.bits()))};
  CHECK(eval::compare(DType::int32, same.data(), same.data(), 1, strict, p32).figures.wrong == 0);

  const std::vector<std::int64_t> e64{1LL << 62, 3};
  const std::vector<std::int64_t> a64{(1LL << 62) + 1, 3};  // equal as doubles
  CHECK(eval::compare(DType::int64, a64.data(), e64.data(), 2, strict, Poison(DType::int64, 1)).figures.wrong == 1);

  const std::vector<std::uint8_t> eb{0, 1, 1};
  const std::vector<std::uint8_t> ab{0, 1, 2};
  CHECK(eval::compare(DType::boolean, ab.data(), eb.data(), 3, strict, Poison(DType::boolean, 0)).figures.wrong == 1);
}

TEST_CASE("compare: half precision types are read as their values") {
  // 1.0, 1.5, -2, infinity, the smallest subnormal; then as bfloat16
  const std::vector<std::uint16_t> half{0x3c00, 0x3e00, 0xc000, 0x7c00, 0x0001};
  CHECK(eval::detail::half_to_double(0x3c00) == 1.0);
  CHECK(eval::detail::half_to_double(0xc000) == -2.0);
  CHECK(eval::detail::half_to_double(0x7bff) == 65504.0);
  CHECK(eval::detail::half_to_double(0x0001) == std::ldexp(1.0, -24));
  CHECK(std::isnan(eval::detail::half_to_double(0x7e01)));
  CHECK(eval::detail::bfloat16_to_double(0x3fc0) == 1.5);
  const Poison p(DType::float16, 99);
  CHECK(eval::compare(DType::float16, half.data(), half.data(), 5, {0, 0}, p).figures.wrong == 0);
  std::vector<std::uint16_t> other = half;
  other[1] = 0x3e01;  // 1.5 + 2^-10
  CHECK(eval::compare(DType::float16, other.data(), half.data(), 5, {1e-3, 0}, p).figures.wrong == 0);
  CHECK(eval::compare(DType::float16, other.data(), half.data(), 5, {9e-4, 0}, p).figures.wrong == 1);
  other[3] = static_cast<std::uint16_t>(p.bits());
  CHECK(eval::compare(DType::float16, other.data(), half.data(), 5, {1e-3, 0}, p).figures.unwritten == 1);
  CHECK(eval::compare(DType::bfloat16, half.data(), half.data(), 5, {0, 0}, Poison(DType::bfloat16, 5)).figures.wrong ==
        0);
}

TEST_CASE("Poison: is a NaN of each floating type, no bool, and random") {
  Rng rng(3);
  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t r = rng();
    CHECK(std::isnan(std::bit_cast<float>(static_cast<std::uint32_t>(Poison(DType::float32, r).bits()))));
    CHECK(std::isnan(std::bit_cast<double>(Poison(DType::float64, r).bits())));
    CHECK(std::isnan(eval::detail::half_to_double(static_cast<std::uint16_t>(Poison(DType::float16, r).bits()))));
    CHECK(std::isnan(eval::detail::bfloat16_to_double(static_cast<std::uint16_t>(Poison(DType::bfloat16, r).bits()))));
    CHECK(Poison(DType::boolean, r).bits() > 1);
  }
  CHECK(Poison(DType::float32, 1).bits() != Poison(DType::float32, 2).bits());
}

TEST_CASE("Poison: fills every element of every type, odd counts too") {
  for (const DType t :
       {DType::float32, DType::float64, DType::float16, DType::bfloat16, DType::int32, DType::int64, DType::boolean}) {
    const auto size = static_cast<std::size_t>(size_of(t));
    const Poison p(t, 0x9e3779b97f4a7c15ULL);
    std::vector<std::byte> memory(size * 13 + 1, std::byte{0});
    p.fill(memory.data(), size * 13);
    for (std::size_t i = 0; i < 13; ++i) {
      std::uint64_t bits = 0;
      std::memcpy(&bits, memory.data() + i * size, size);
      CHECK(bits == p.bits());
    }
    CHECK(memory.back() == std::byte{0});
  }
}

TEST_CASE("describe: gives counts, places and two digits, and no expected value") {
  const Difference d = floats({1.23456789F, poison_value(), nan_f}, {7.654321F, 1.0F, 2.0F});
  const std::string text = eval::describe("`out`", d);
  CHECK(text.find("3 of 3 elements are wrong, 1 of them never written, 1 of them NaN or infinite") !=
        std::string::npos);
  CHECK(text.find("between flat index 0 and 2") != std::string::npos);
  CHECK(text.find("largest absolute error 6.4e+00") != std::string::npos);
  CHECK(text.find("7.65") == std::string::npos);
  CHECK(text.find("6.41") == std::string::npos);
}

TEST_CASE("describe: a relative error is told only where something else than 0 was expected") {
  CHECK(eval::describe("`out`", floats({3.0F}, {2.0F})).find(", largest relative error 5.0e-01") != std::string::npos);
  CHECK(eval::describe("`out`", floats({3.0F}, {0.0F})).find("relative") == std::string::npos);
}

TEST_CASE("require_valid: refuses tolerances that would accept anything") {
  CHECK_NOTHROW(eval::require_valid({0, 0}));
  CHECK_THROWS_AS(eval::require_valid({-1, 0}), Error);
  CHECK_THROWS_AS(eval::require_valid({0, std::numeric_limits<double>::infinity()}), Error);
  CHECK_THROWS_AS(eval::require_valid({std::nan(""), 0}), Error);
  CHECK_NOTHROW(eval::require_valid({0, 0, 0.5}));
  CHECK_THROWS_AS(eval::require_valid({0, 0, -1e-9}), Error);
  CHECK_THROWS_AS(eval::require_valid({0, 0, std::nan("")}), Error);
}

TEST_CASE("compare: a spread allows its share of the expected output's standard deviation, and not more") {
  // half 10, half 30: a standard deviation of 10
  std::vector<float> expected(3000, 10.0F);
  for (std::size_t i = 1500; i < expected.size(); ++i) expected[i] = 30.0F;
  const Tolerance t{0.25, 0.125, 0.5};  // 0.25 + 0.125 * 10 + 0.5 * 10 = 6.5 where 10 is expected
  std::vector<float> actual = expected;
  actual[7] = 16.5F;
  CHECK(floats(actual, expected, t).figures.wrong == 0);
  actual[7] = std::nextafter(16.5F, 20.0F);
  CHECK(floats(actual, expected, t).figures.wrong == 1);
  CHECK(floats(actual, expected, {0.25, 0.125}).figures.wrong == 1);
  // of what is expected, never of what the candidate gives
  std::vector<float> wild = expected;
  for (std::size_t i = 0; i < wild.size(); i += 2) wild[i] = 1e6F;
  CHECK(floats(wild, expected, t).figures.wrong == 1500);
  // an output that is constant has none
  CHECK(floats({1.5F, 1.0F}, {1.0F, 1.0F}, {0, 0, 1}).figures.wrong == 1);
}

TEST_CASE("compare: a spread says nothing about integers") {
  const std::vector<std::int32_t> expected{0, 1000};
  const std::vector<std::int32_t> actual{1, 1000};
  const Poison p(DType::int32, 0xdeadbeef);
  CHECK(eval::compare(DType::int32, actual.data(), expected.data(), 2, {1, 1, 1}, p).figures.wrong == 1);
}

TEST_CASE("resolved: the same law without a spread") {
  const std::vector<float> expected{1.0F, 3.0F};
  const Tolerance t = eval::resolved({0.5, 0.25, 0.125}, DType::float32, expected.data(), 2);
  CHECK(t == Tolerance{0.625, 0.25, 0});
  CHECK(eval::resolved(strict, DType::float32, expected.data(), 2) == strict);
  const std::vector<std::int32_t> integers{1, 3};
  CHECK(eval::resolved({0, 0, 1}, DType::int32, integers.data(), 2) == Tolerance{0, 0, 0});
}

TEST_CASE("compare: counts what KernelBench would not accept, whatever the tolerance") {
  const auto outside = [](const std::vector<float>& actual, const std::vector<float>& expected, Tolerance t) {
    return floats(actual, expected, t).figures.outside_kernelbench;
  };
  for (const Tolerance t : {Tolerance{0, 0}, Tolerance{1e-5, 1e-5}, Tolerance{1, 1}, Tolerance{0, 0, 1}}) {
    CHECK(outside({1.00015F, 0.00009F}, {1.0F, 0.0F}, t) == 0);  // 1e-4 + 1e-4 * 1.00015
    CHECK(outside({1.00025F, 0.00011F}, {1.0F, 0.0F}, t) == 2);
    CHECK(outside({nan_f, inf_f, inf_f}, {nan_f, inf_f, 1.0F}, t) == 2);  // no NaN passes, equal infinities do
    CHECK(outside({poison_value()}, {1.0F}, t) == 1);
  }
}

TEST_CASE("compare: whole blocks are counted for KernelBench as single elements are") {
  Rng rng(23);
  for (int round = 0; round < 60; ++round) {
    const std::size_t n = 4096;
    // values around 0, 1 and 1000, each with errors around KernelBench's limit; some rounds with zeros
    const double scale = round % 3 == 0 ? 0.01 : round % 3 == 1 ? 1.0 : 1000.0;
    const double error = rng.uniform(0.2, 2) * 1e-4 * (1 + scale);
    std::vector<float> expected(n);
    std::vector<float> actual(n);
    std::int64_t outside = 0;
    for (std::size_t i = 0; i < n; ++i) {
      expected[i] = rng.below(7) == 0 && round % 2 == 0 ? 0.0F : static_cast<float>(scale * rng.normal());
      actual[i] = expected[i] + static_cast<float>(rng.uniform(-error, error));
      const double a = actual[i];
      outside += std::fabs(a - static_cast<double>(expected[i])) <= 1e-4 + 1e-4 * std::fabs(a) ? 0 : 1;
    }
    const Tolerance loose{round % 5 == 0 ? 1e-4 : 10, 1};  // every element is right
    const Difference d = floats(actual, expected, loose);
    if (loose.absolute > 1) CHECK(d.figures.wrong == 0);
    CHECK(d.figures.outside_kernelbench == outside);
  }
}

TEST_CASE("compare: KernelBench's rule for half types, float64 and integers") {
  const auto outside = [](DType type, const auto& actual, const auto& expected) {
    return eval::compare(type, actual.data(), expected.data(), static_cast<std::int64_t>(actual.size()), {0, 0},
                         Poison(type, 4711))
        .figures.outside_kernelbench;
  };
  using Bits = std::vector<std::uint16_t>;
  // 1 + 20/1024 and 1 + 21/1024 beside 1: 1e-2 + 1e-2 * 1.02 is 20.7/1024
  CHECK(outside(DType::float16, Bits{0x3c14, 0x3c15}, Bits{0x3c00, 0x3c00}) == 1);
  CHECK(outside(DType::bfloat16, Bits{0x3f82, 0x3f83}, Bits{0x3f80, 0x3f80}) == 1);  // 2/128 and 3/128
  using Doubles = std::vector<double>;
  CHECK(outside(DType::float64, Doubles{1.00015, 1.00025}, Doubles{1, 1}) == 1);
  // the scale is the candidate's value, not the expected one's, whose limit would be 100.0001 for both
  CHECK(outside(DType::float64, Doubles{1e6 + 100.005}, Doubles{1e6}) == 0);
  CHECK(outside(DType::float64, Doubles{1e6 - 99.9995}, Doubles{1e6}) == 1);
  using Integers = std::vector<std::int64_t>;
  CHECK(outside(DType::int64, Integers{4, 20001}, Integers{3, 20000}) == 1);  // 1e-4 of 20001 is more than 1
}

TEST_CASE("accumulate adds outputs up, keep_worst takes the worst launch") {
  ErrorFigures sum{.elements = 10, .wrong = 1, .max_absolute = 2, .max_relative = 1, .outside_kernelbench = 3};
  eval::accumulate(sum, {.elements = 5, .wrong = 1, .max_absolute = 1, .max_relative = 2, .outside_kernelbench = 4});
  CHECK(sum ==
        ErrorFigures{.elements = 15, .wrong = 2, .max_absolute = 2, .max_relative = 2, .outside_kernelbench = 7});
  ErrorFigures worst{.elements = 10, .max_absolute = 2, .max_relative = 1, .outside_kernelbench = 3};
  eval::keep_worst(worst, {.elements = 10, .max_absolute = 1, .max_relative = 2, .outside_kernelbench = 4});
  eval::keep_worst(worst, {.elements = 10, .outside_kernelbench = 1});
  CHECK(worst == ErrorFigures{.elements = 10, .max_absolute = 2, .max_relative = 2, .outside_kernelbench = 4});
}
