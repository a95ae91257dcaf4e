#include "kevin/agent/objective.hpp"

#include <doctest/doctest.h>

#include "kevin/core/random.hpp"

namespace {
/// The same random samples for the scalar code and, padded, as tensors.
struct Both {
  std::vector<kevin::rl::TokenSample> scalar;
  torch::Tensor logprobs;
  torch::Tensor sampled;
  torch::Tensor advantages;
  torch::Tensor mask;
};
Both draw(std::uint64_t seed, torch::ScalarType type, std::int64_t batch = 6, std::int64_t length = 5) {
  kevin::Rng rng(seed);
  Both both;
  both.logprobs = torch::full({batch, length}, std::nan(""), torch::kFloat64);  // padding is garbage on purpose
  both.sampled = torch::full({batch, length}, std::nan(""), torch::kFloat64);
  both.advantages = torch::zeros({batch}, torch::kFloat64);
  both.mask = torch::zeros({batch, length}, torch::kBool);
  for (std::int64_t b = 0; b < batch; ++b) {
    kevin::rl::TokenSample s;
    s.advantage = rng.uniform(-2, 2);
    both.advantages[b] = s.advantage;
    const auto tokens = static_cast<std::int64_t>(
        b == 2 ? 0 : 1 + rng.below(static_cast<std::uint64_t>(length)));  // sample 2 is fully masked
    for (std::int64_t i = 0; i < tokens; ++i) {
      s.logprobs.push_back(rng.uniform(-3, -0.1));
      s.sampled_logprobs.push_back(s.logprobs.back() + rng.uniform(-0.6, 0.6));
      both.logprobs[b][i] = s.logprobs.back();
      both.sampled[b][i] = s.sampled_logprobs.back();
      both.mask[b][i] = true;
    }
    both.scalar.push_back(std::move(s));
  }
  both.logprobs = both.logprobs.to(type).set_requires_grad(true);
  both.sampled = both.sampled.to(type);
  both.advantages = both.advantages.to(type);
  return both;
}
}  // namespace

TEST_CASE("value, gradient and statistics are those of the scalar code, in float64 and float32, with padding and KL") {
  using kevin::rl::LengthNorm;
  for (const auto type : {torch::kFloat64, torch::kFloat32}) {
    const double close = type == torch::kFloat64 ? 1e-12 : 1e-5;
    for (LengthNorm norm : {LengthNorm::sequence, LengthNorm::constant, LengthNorm::token_mean}) {
      for (double beta : {0.0, 0.05}) {
        const kevin::rl::ObjectiveOptions options{.length_norm = norm, .constant = 7, .kl_weight = beta};
        Both both = draw(17 + static_cast<std::uint64_t>(norm), type);
        const auto scalar = kevin::rl::clipped_objective(both.scalar, options);
        const auto tensor =
            kevin::agent::clipped_objective(both.logprobs, both.sampled, both.advantages, both.mask, options);
        CHECK(tensor.value.item<double>() == doctest::Approx(scalar.value).epsilon(close).scale(1));
        CHECK(tensor.mean_ratio.item<double>() == doctest::Approx(scalar.mean_ratio).epsilon(close).scale(1));
        CHECK(tensor.mean_kl.item<double>() == doctest::Approx(scalar.mean_kl).epsilon(close).scale(1));
        CHECK(tensor.clip_fraction.item<double>() == doctest::Approx(scalar.clip_fraction).epsilon(close).scale(1));
        tensor.value.backward();
        const torch::Tensor gradient = both.logprobs.grad();
        for (std::size_t b = 0; b < both.scalar.size(); ++b) {
          for (std::int64_t i = 0; i < both.logprobs.size(1); ++i) {
            const double want = static_cast<std::size_t>(i) < scalar.gradient[b].size()
                                    ? scalar.gradient[b][static_cast<std::size_t>(i)]
                                    : 0.0;
            CHECK(gradient[static_cast<std::int64_t>(b)][i].item<double>() ==
                  doctest::Approx(want).epsilon(close).scale(1));
          }
        }
      }
    }
  }
}

TEST_CASE("a batch without any token that counts has value 0 and a zero gradient") {
  torch::Tensor logprobs = torch::full({2, 3}, -1.0).set_requires_grad(true);
  const auto o = kevin::agent::clipped_objective(logprobs, torch::zeros({2, 3}), torch::ones({2}),
                                                 torch::zeros({2, 3}, torch::kBool), {});
  o.value.backward();
  CHECK(o.value.item<double>() == 0);
  CHECK(logprobs.grad().abs().sum().item<double>() == 0);
}
