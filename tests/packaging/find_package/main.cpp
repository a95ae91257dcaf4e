#include <kevin/kevin.hpp>

#include <cstdio>

namespace {
struct Coin {
  using Observation = int;
  using Action = int;
  int reset(std::uint64_t) { return 0; }
  kevin::Step<int> step(int side) {
    kevin::Step<int> result;
    result.reward = side == 1 ? 1.0 : 0.0;
    result.terminated = true;
    return result;
  }
};
struct AlwaysHeads {
  int act(int, kevin::Rng&) const { return 1; }
};
}  // namespace

int main() {
  Coin coin;
  const auto trajectory = kevin::rollout(coin, AlwaysHeads{}, {.turns = 1, .seed = 1});
  std::printf("kevin %d.%d: %zu turn, reward %.1f\n", KEVIN_VERSION_MAJOR, KEVIN_VERSION_MINOR, trajectory.turns.size(),
              static_cast<double>(trajectory.turns.at(0).reward));
  return trajectory.turns.at(0).reward == 1.0 ? 0 : 1;
}
