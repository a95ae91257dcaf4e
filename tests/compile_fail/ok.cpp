// expect: success
#include "kevin/kevin.hpp"

struct Coin {
  using Observation = int;
  using Action = int;
  int reset(std::uint64_t) { return 0; }
  kevin::Step<int> step(int) { return {}; }
};
struct Heads {
  int act(int, kevin::Rng&) const { return 1; }
};
int main() {
  Coin coin;
  return static_cast<int>(kevin::rollout(coin, Heads{}).turns.size());
}
