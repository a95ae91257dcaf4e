#include "kevin/agent/objective.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "kevin/core/random.hpp"

namespace {
/// The same random samples for the scalar code and, padded, as tensors.
struct Both {
  std::vector<kevin::rl::TokenSample> scalar;
  kevin::agent::ObjectiveBatch batch;
};

/// Some samples are fully masked, some tokens are; half the batches have a reference; some have advantages of 0 alone,
/// as a group of equal scores gives.
Both draw(std::uint64_t seed, torch::ScalarType type, std::int64_t batch = 6, std::int64_t length = 5) {
  kevin::Rng rng(seed);
  Both both;
  const torch::Tensor garbage = torch::full({batch, length}, std::nan(""), torch::kFloat64);
  torch::Tensor logprobs = garbage.clone();
  torch::Tensor sampled = garbage.clone();
  torch::Tensor reference = garbage.clone();
  torch::Tensor advantages = torch::zeros({batch}, torch::kFloat64);
  torch::Tensor mask = torch::zeros({batch, length}, torch::kBool);
  const bool has_reference = rng.below(2) == 0;
  const bool constant = rng.below(10) == 0;
  for (std::int64_t b = 0; b < batch; ++b) {
    kevin::rl::TokenSample s;
    s.advantage = constant ? 0 : rng.uniform(-2, 2);
    advantages[b] = s.advantage;
    const auto tokens = static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(length) + 1));
    for (std::int64_t i = 0; i < tokens; ++i) {
      s.logprobs.push_back(rng.uniform(-3, -0.1));
      s.sampled_logprobs.push_back(s.logprobs.back() + rng.uniform(-0.9, 0.9));
      s.mask.push_back(rng.below(5) != 0);
      if (has_reference) s.reference_logprobs.push_back(s.logprobs.back() + rng.uniform(-0.6, 0.6));
      if (!s.mask.back()) continue;  // stays garbage
      logprobs[b][i] = s.logprobs.back();
      sampled[b][i] = s.sampled_logprobs.back();
      if (has_reference) reference[b][i] = s.reference_logprobs.back();
      mask[b][i] = true;
    }
    both.scalar.push_back(std::move(s));
  }
  both.batch = {.logprobs = logprobs.to(type).set_requires_grad(true),
                .sampled_logprobs = sampled.to(type),
                .advantages = advantages.to(type),
                .mask = mask};
  if (has_reference) both.batch.reference_logprobs = reference.to(type);
  return both;
}
}  // namespace

namespace {
kevin::rl::ObjectiveOptions random_options(kevin::Rng& rng) {
  kevin::rl::ObjectiveOptions o;
  o.clip_low = rng.uniform(0.05, 0.5);
  o.clip_high = rng.uniform(0.05, 0.5);
  o.length_norm = static_cast<kevin::rl::LengthNorm>(rng.below(4));
  o.constant = rng.uniform(1, 20);
  o.kl_weight = rng.below(2) == 0 ? 0 : rng.uniform(0, 0.2);
  o.surrogate = static_cast<kevin::rl::Surrogate>(rng.below(2));
  o.ratio = static_cast<kevin::rl::RatioLevel>(rng.below(2));
  if (rng.below(2) == 0) o.dual_clip = rng.uniform(1.1, 2);
  return o;
}

void compare(Both both, const kevin::rl::ObjectiveOptions& options, double close) {
  const auto scalar = kevin::rl::clipped_objective(both.scalar, options);
  const auto tensor = kevin::agent::clipped_objective(both.batch, options);
  CHECK(tensor.value.item<double>() == doctest::Approx(scalar.value).epsilon(close).scale(1));
  CHECK(tensor.mean_ratio.item<double>() == doctest::Approx(scalar.mean_ratio).epsilon(close).scale(1));
  CHECK(tensor.mean_kl.item<double>() == doctest::Approx(scalar.mean_kl).epsilon(close).scale(1));
  CHECK(tensor.clip_fraction.item<double>() == doctest::Approx(scalar.clip_fraction).epsilon(close).scale(1));
  tensor.value.backward();
  const torch::Tensor gradient = both.batch.logprobs.grad().to(torch::kFloat64).contiguous();
  const std::int64_t length = gradient.size(1);
  double worst = 0;
  for (std::size_t b = 0; b < both.scalar.size(); ++b) {
    for (std::int64_t i = 0; i < length; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const double want = at < scalar.gradient[b].size() ? scalar.gradient[b][at] : 0.0;
      const double got = gradient.data_ptr<double>()[static_cast<std::int64_t>(b) * length + i];
      worst = std::max(worst, std::isfinite(got) ? std::abs(got - want) : 1.0);
    }
  }
  CHECK(worst <= close);
}
}  // namespace

TEST_CASE("value, gradient and statistics are those of the scalar code on 1,000 random batches of all losses") {
  kevin::Rng rng(32);
  for (std::uint64_t i = 0; i < 1000; ++i) {
    const auto batch = static_cast<std::int64_t>(1 + rng.below(8));
    const auto length = static_cast<std::int64_t>(1 + rng.below(6));
    compare(draw(i, torch::kFloat64, batch, length), random_options(rng), 1e-12);
  }
  for (std::uint64_t i = 0; i < 100; ++i) compare(draw(i, torch::kFloat32), random_options(rng), 1e-5);
}

TEST_CASE("the parts of a batch add up to the batch, whatever their lengths and masks") {
  kevin::Rng rng(33);
  for (std::uint64_t i = 0; i < 50; ++i) {
    kevin::rl::ObjectiveOptions options = random_options(rng);
    if (options.length_norm == kevin::rl::LengthNorm::local_token_mean)  // which is not so on purpose
      options.length_norm = kevin::rl::LengthNorm::token_mean;
    const Both both = draw(i, torch::kFloat64, 7, 5);
    const auto whole = kevin::agent::clipped_objective(both.batch, options);
    const auto all = kevin::agent::counts_of(both.batch.mask);
    double value = 0;
    double ratio = 0;
    for (const auto& [from, count] : {std::pair<std::int64_t, std::int64_t>{0, 3}, {3, 3}, {6, 1}}) {
      const auto rows = [from = from, count = count](const torch::Tensor& t) {
        return t.defined() ? t.narrow(0, from, count) : t;
      };
      const kevin::agent::ObjectiveBatch part{.logprobs = rows(both.batch.logprobs),
                                              .sampled_logprobs = rows(both.batch.sampled_logprobs),
                                              .advantages = rows(both.batch.advantages),
                                              .mask = rows(both.batch.mask),
                                              .reference_logprobs = rows(both.batch.reference_logprobs)};
      const auto o = kevin::agent::clipped_objective(part, options, all);
      value += o.value.item<double>();
      ratio += o.mean_ratio.item<double>();
    }
    CHECK(value == doctest::Approx(whole.value.item<double>()).epsilon(1e-12).scale(1));
    CHECK(ratio == doctest::Approx(whole.mean_ratio.item<double>()).epsilon(1e-12));
  }
}

TEST_CASE("a batch without any token that counts has value 0 and a zero gradient") {
  torch::Tensor logprobs = torch::full({2, 3}, -1.0).set_requires_grad(true);
  const auto o = kevin::agent::clipped_objective(
      {logprobs, torch::zeros({2, 3}), torch::ones({2}), torch::zeros({2, 3}, torch::kBool)}, {});
  o.value.backward();
  CHECK(o.value.item<double>() == 0);
  CHECK(logprobs.grad().abs().sum().item<double>() == 0);
}
