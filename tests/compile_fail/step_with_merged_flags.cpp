// expect: StepResult
#include "kevin/kevin.hpp"

struct Done {
  int observation;
  double reward;
  bool done;
  kevin::NoInfo info;
};
struct Merged {
  using Observation = int;
  using Action = int;
  int reset(std::uint64_t) { return 0; }
  Done step(int) { return {}; }
};
struct Heads {
  int act(int, kevin::Rng&) const { return 1; }
};
int main() {
  Merged env;
  return static_cast<int>(kevin::rollout(env, Heads{}).turns.size());
}
