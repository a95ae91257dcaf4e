#include "kevin/rl/objective.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "kevin/core/random.hpp"

using kevin::rl::clipped_objective;
using kevin::rl::LengthNorm;
using kevin::rl::ObjectiveOptions;
using kevin::rl::TokenSample;

namespace {
std::vector<TokenSample> random_samples(std::uint64_t seed) {
  kevin::Rng rng(seed);
  std::vector<TokenSample> samples;
  for (std::size_t j = 0; j < 5; ++j) {
    TokenSample s;
    s.advantage = rng.uniform(-2, 2);
    for (std::size_t i = 0; i < 1 + j; ++i) {
      s.logprobs.push_back(rng.uniform(-3, -0.1));
      s.sampled_logprobs.push_back(s.logprobs.back() + rng.uniform(-0.6, 0.6));
      s.mask.push_back(rng.uniform() < 0.7);
    }
    samples.push_back(std::move(s));
  }
  samples[2].mask.assign(samples[2].mask.size(), false);  // fully masked
  samples[4].mask.clear();                                // all tokens count
  return samples;
}
}  // namespace

TEST_CASE("k3 golden numbers") {
  CHECK(kevin::rl::k3(0.1) == doctest::Approx(0.005171).epsilon(1e-4));
  CHECK(kevin::rl::k3(-0.2) == doctest::Approx(0.018731).epsilon(1e-4));
  CHECK(kevin::rl::k3(0) == 0);
}

TEST_CASE("on policy the objective is the mean advantage and the gradient its share") {
  const std::vector<TokenSample> samples{{{-1.0}, {-1.0}, 2.0, {}}, {{-0.5}, {-0.5}, -1.0, {}}};
  const auto o = clipped_objective(samples, {.length_norm = LengthNorm::sequence});
  CHECK(o.value == doctest::Approx(0.5));
  CHECK(o.gradient[0][0] == doctest::Approx(1.0));
  CHECK(o.gradient[1][0] == doctest::Approx(-0.5));
  CHECK(o.mean_ratio == doctest::Approx(1));
  CHECK(o.clip_fraction == 0);
}

TEST_CASE("clip-higher: a good token may rise by 28 %, a bad one fall by 20 %, and the other sides are free") {
  const auto value = [](double ratio, double advantage) {
    return clipped_objective(std::vector<TokenSample>{{{std::log(ratio)}, {0.0}, advantage, {}}}).value;
  };
  CHECK(value(1.27, 1) == doctest::Approx(1.27));
  CHECK(value(1.5, 1) == doctest::Approx(1.28));
  CHECK(value(0.5, 1) == doctest::Approx(0.5));  // min keeps the worse
  CHECK(value(0.5, -1) == doctest::Approx(-0.8));
  CHECK(value(1.5, -1) == doctest::Approx(-1.5));
}

TEST_CASE("the gradient is the derivative of the value, for every normalisation, with masks and KL") {
  for (LengthNorm norm : {LengthNorm::sequence, LengthNorm::constant, LengthNorm::token_mean}) {
    for (double beta : {0.0, 0.1}) {
      const ObjectiveOptions options{.length_norm = norm, .constant = 16, .kl_weight = beta};
      auto samples = random_samples(static_cast<std::uint64_t>(norm) + 10);
      const auto o = clipped_objective(samples, options);
      for (std::size_t j = 0; j < samples.size(); ++j) {
        for (std::size_t i = 0; i < samples[j].logprobs.size(); ++i) {
          const double h = 1e-6;
          double& x = samples[j].logprobs[i];
          const double at = x;
          x = at + h;
          const double up = clipped_objective(samples, options).value;
          x = at - h;
          const double down = clipped_objective(samples, options).value;
          x = at;
          CHECK(o.gradient[j][i] == doctest::Approx((up - down) / (2 * h)).epsilon(1e-4).scale(0.01));
        }
      }
    }
  }
}

TEST_CASE("fully masked samples are left out of the mean, not counted as zero") {
  std::vector<TokenSample> samples{{{-1.0, -2.0}, {-1.1, -1.9}, 1.5, {}}, {{-1.0}, {-1.0}, 3.0, {false}}};
  for (LengthNorm norm : {LengthNorm::sequence, LengthNorm::constant, LengthNorm::token_mean}) {
    const auto both = clipped_objective(samples, {.length_norm = norm});
    const auto alone = clipped_objective(std::span(samples).first(1), {.length_norm = norm});
    CHECK(both.value == doctest::Approx(alone.value));
    CHECK(both.gradient[1][0] == 0);
  }
}

TEST_CASE("no samples and no counted tokens give 0, and wrong lengths are refused") {
  CHECK(clipped_objective({}).value == 0);
  CHECK(clipped_objective(std::vector<TokenSample>{{{-1.0}, {-1.0}, 1.0, {false}}}).value == 0);
  CHECK_THROWS_AS(clipped_objective(std::vector<TokenSample>{{{-1.0}, {}, 1.0, {}}}), kevin::Error);
  CHECK_THROWS_AS(clipped_objective(std::vector<TokenSample>{{{-1.0}, {-1.0}, 1.0, {true, true}}}), kevin::Error);
}
