#include "kevin/rl/objective.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "kevin/core/random.hpp"

using kevin::rl::clipped_objective;
using kevin::rl::LengthNorm;
using kevin::rl::objective_named;
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

struct GoldenLoss {
  const char* name;
  double clip_low, clip_high, constant, beta, dual;
  std::vector<TokenSample> samples;
  double value;
  std::vector<std::vector<double>> gradient;
};

TEST_CASE("values and gradients are those of a second writing of the papers' formulas, to 1e-6") {
  const std::vector<GoldenLoss> golden{
#include "golden/objectives.inc"
  };
  REQUIRE(golden.size() == 10);
  for (const GoldenLoss& g : golden) {
    CAPTURE(g.name);
    ObjectiveOptions options = objective_named(g.name);
    options.clip_low = g.clip_low;
    options.clip_high = g.clip_high;
    options.constant = g.constant;
    options.kl_weight = g.beta;
    if (g.dual > 0) options.dual_clip = g.dual;
    const auto o = clipped_objective(g.samples, options);
    CHECK(o.value == doctest::Approx(g.value).epsilon(1e-6));
    CHECK(o.clip_fraction > 0);  // or the golden values would say little
    for (std::size_t j = 0; j < g.samples.size(); ++j) {
      REQUIRE(o.gradient[j].size() == g.gradient[j].size());
      for (std::size_t i = 0; i < g.gradient[j].size(); ++i)
        CHECK(o.gradient[j][i] == doctest::Approx(g.gradient[j][i]).epsilon(1e-6).scale(1));
    }
  }
}

TEST_CASE("losses are known by the names of the literature, and another name is refused with the list") {
  CHECK(objective_named("kevin").clip_high == 0.28);
  CHECK(objective_named("kevin").length_norm == LengthNorm::constant);
  CHECK(objective_named("gspo").ratio == kevin::rl::RatioLevel::sequence);
  CHECK_THROWS_WITH_AS(objective_named("ppo"), doctest::Contains("kevin, grpo, dr_grpo"), kevin::Error);
}

TEST_CASE("dual clip bounds what a bad token with a runaway ratio can pull") {
  const auto at = [](double ratio, double advantage) {
    return clipped_objective(std::vector<TokenSample>{{{std::log(ratio)}, {0.0}, advantage, {}}}, {.dual_clip = 3.0});
  };
  CHECK(at(2.9, -1).value == doctest::Approx(-2.9));
  CHECK(at(10, -1).value == doctest::Approx(-3));
  CHECK(at(10, -1).gradient[0][0] == 0);
  CHECK(at(10, 1).value == doctest::Approx(1.28));  // good tokens are bounded by clip_high already
}

TEST_CASE("the KL penalty is against the reference where there is one, else against the sampling policy") {
  const ObjectiveOptions kl{.kl_weight = 1};
  const double without = clipped_objective(std::vector<TokenSample>{{{-1.0}, {-1.2}, 0.0, {}}}, kl).value;
  const double with = clipped_objective(std::vector<TokenSample>{{{-1.0}, {-1.2}, 0.0, {}, {-0.9}}}, kl).value;
  CHECK(without == doctest::Approx(-kevin::rl::k3(-0.2)));
  CHECK(with == doctest::Approx(-kevin::rl::k3(0.1)));
}

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
      ObjectiveOptions options{.length_norm = norm, .constant = 16, .kl_weight = beta};
      if (beta > 0) options.ratio = kevin::rl::RatioLevel::sequence;
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
