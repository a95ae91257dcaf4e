#include "kevin/core/policy.hpp"

#include <doctest/doctest.h>

#include <string>

#include "core/toy_envs.hpp"

namespace {
struct Mutating {
  int act(int, kevin::Rng&) { return 0; }  // not const: cannot be called from several threads
};
struct NoRng {
  int act(int) const { return 0; }
};
static_assert(kevin::Policy<toy::Repeat, int, int>);
static_assert(kevin::PolicyFor<toy::Guess, toy::Echo>);
static_assert(!kevin::Policy<Mutating, int, int>);
static_assert(!kevin::Policy<NoRng, int, int>);
static_assert(!kevin::Policy<toy::Repeat, int, std::string>);
}  // namespace

TEST_CASE("a policy may answer with a bare action or with a decision that carries its tokens") {
  kevin::Rng rng(1);
  const auto bare = kevin::detail::to_decision<int>(toy::Repeat{}.act(4, rng));
  CHECK(bare.action == 4);
  CHECK(bare.sample.completion_ids.empty());
  const auto with_tokens = kevin::detail::to_decision<int>(toy::Guess{}.act(4, rng));
  CHECK(with_tokens.sample.completion_ids.size() == 1);
  CHECK(with_tokens.sample.completion_ids.front() == with_tokens.action);
}
