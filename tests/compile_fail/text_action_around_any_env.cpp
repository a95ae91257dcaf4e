// expect: TextSteppable
#include "kevin/refine/text_action.hpp"

struct Coin {
  using Observation = int;
  using Action = int;
  int reset(std::uint64_t) { return 0; }
  kevin::Step<int> step(int) { return {}; }
};

kevin::TextAction<Coin>* env = nullptr;
