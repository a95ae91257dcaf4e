// An environment of your own, with your own types: rollout, returns and the GRPO trainer, and no kernel in sight.
//
// The game: a number from 0 to 15 is hidden. Each turn you guess; you are told "higher" or "lower". Three turns a game.

#include <kevin/torch.hpp>

#include <kevin/kevin.hpp>

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <iostream>

struct Hint {  // what the player sees: the range that is still possible
  int low = 0;
  int high = 15;
};

struct HigherLower {
  using Observation = Hint;
  using Action = int;
  int hidden = 0;
  Hint hint;

  Hint reset(std::uint64_t seed) {
    hidden = static_cast<int>(kevin::Rng(seed, "hidden").below(16));
    return hint = {};
  }
  kevin::Step<Hint> step(int guess) {
    if (guess < hidden) hint.low = std::max(hint.low, guess + 1);
    if (guess > hidden) hint.high = std::min(hint.high, guess - 1);
    kevin::Step<Hint> result;
    result.observation = hint;
    result.reward = guess == hidden ? 1.0 : -0.02 * (hint.high - hint.low);  // a narrow range is worth something
    result.terminated = guess == hidden;
    return result;
  }
};

class Player {  // a linear policy over the 16 numbers; models kevin::agent::TrainablePolicy
 public:
  Player() {
    const torch::NoGradGuard no_grad;
    net_->weight.zero_();
    net_->bias.zero_();
  }
  kevin::Decision<int> act(const Hint& hint, kevin::Rng& rng) const {
    const torch::NoGradGuard no_grad;
    const torch::Tensor p = logits(features(hint)).log_softmax(0);
    int choice = 0;
    for (double u = rng.uniform(); choice < 15 && (u -= std::exp(p[choice].item<double>())) > 0;) ++choice;
    return {.action = choice,
            .sample = {.prompt_ids = {}, .completion_ids = {choice}, .logprobs = {p[choice].item<float>()}}};
  }
  kevin::agent::TokenEvaluation evaluate(std::span<const Hint* const> hints,
                                         std::span<const kevin::Sample* const> samples) {
    std::vector<torch::Tensor> rows;
    std::vector<std::int64_t> ids;
    for (const Hint* h : hints) rows.push_back(features(*h));
    for (const kevin::Sample* s : samples) ids.push_back(s->completion_ids.at(0));
    const torch::Tensor p = logits(torch::stack(rows)).log_softmax(1);
    const torch::Tensor chosen = p.gather(1, torch::tensor(ids).unsqueeze(1));
    return {chosen, -(p.exp() * p).sum(1, true), torch::ones_like(chosen, torch::kBool)};
  }
  torch::nn::Module& module() { return *net_; }

 private:
  static torch::Tensor features(const Hint& hint) {  // one-hot of each end of the range
    torch::Tensor x = torch::zeros({32});
    x[hint.low] = 1;
    x[16 + hint.high] = 1;
    return x;
  }
  torch::Tensor logits(const torch::Tensor& x) const {
    return torch::nn::functional::linear(x, net_->weight, net_->bias);
  }
  torch::nn::Linear net_{32, 16};
};

int main() {
  static_assert(kevin::Env<HigherLower> && kevin::agent::TrainablePolicy<Player, HigherLower>);
  Player player;
  kevin::agent::GrpoTrainer<HigherLower, Player> trainer(player, {.learning_rate = 0.05, .max_gradient_norm = 5});
  const auto found = [&] {  // share of games in which the number was found
    const auto games =
        kevin::rollout_group([] { return HigherLower{}; }, player, {.trajectories = 500, .turns = 3, .seed = 12345});
    return static_cast<double>(
               std::count_if(games.begin(), games.end(), [](const auto& g) { return g.turns.back().terminated; })) /
           500;
  };
  const double before = found();
  for (std::uint64_t update = 0; update < 60; ++update) {
    trainer.update(
        kevin::rollout_group([] { return HigherLower{}; }, player, {.trajectories = 64, .turns = 3, .seed = update}));
  }
  std::cout << std::fixed << std::setprecision(2) << "found in three guesses: untrained " << before << ", trained "
            << found() << '\n';
}
