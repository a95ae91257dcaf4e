// expect: Evaluator
#include "kevin/refine/refinement_env.hpp"

struct NoSeed {
  kevin::Verdict evaluate(const kevin::Task&, const kevin::Candidate&) { return {}; }
};

kevin::RefinementEnv<NoSeed>* env = nullptr;
