// expect: ContextPolicy
#include "kevin/refine/refinement_env.hpp"

struct MyEvaluator {
  kevin::Verdict evaluate(const kevin::Task&, const kevin::Candidate&, std::uint64_t) { return {}; }
};
struct NoCompact {};

kevin::RefinementEnv<MyEvaluator, kevin::KevinReward, NoCompact>* env = nullptr;
