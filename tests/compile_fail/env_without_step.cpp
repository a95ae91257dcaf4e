// expect: Env
#include "kevin/kevin.hpp"

struct NoStep {
  using Observation = int;
  using Action = int;
  int reset(std::uint64_t) { return 0; }
};
struct Heads {
  int act(int, kevin::Rng&) const { return 1; }
};
int main() {
  NoStep env;
  return static_cast<int>(kevin::rollout(env, Heads{}).turns.size());
}
