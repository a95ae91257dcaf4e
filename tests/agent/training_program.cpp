// Trains on the toy environment and dies by SIGKILL when it makes its N-th environment. Used by agent/training.cpp.
// usage: training_program CHECKPOINT LOG UPDATES THREADS DIE_AT_ENVIRONMENT

#include <csignal>

#include <atomic>
#include <cstdlib>

#include "agent/toy_policy.hpp"
#include "kevin/agent/training.hpp"

int main(int argc, char** argv) {
  if (argc != 6) return 2;
  const long die_at = std::atol(argv[5]);
  toy::NetPolicy policy(1);
  kevin::agent::GrpoTrainer<toy::Secret, toy::NetPolicy> trainer(policy);
  std::atomic<long> made{0};
  const auto make_env = [&](std::size_t task, std::size_t) {
    if (++made == die_at) std::raise(SIGKILL);
    return toy::Secret{.task = task};
  };
  kevin::agent::train(make_env, {"first", "second"}, trainer,
                      {.updates = static_cast<std::size_t>(std::atol(argv[3])),
                       .trajectories = 4,
                       .turns = 3,
                       .seed = 11,
                       .threads = static_cast<std::size_t>(std::atol(argv[4])),
                       .checkpoint = argv[1],
                       .log = argv[2]});
  return 0;
}
