// Trains the choice policy on real kernels with times replaced by a function of the source, and dies by SIGKILL when it
// makes its N-th environment. Used by agent/kernel_training.cpp.
// usage: kernel_training_program CHECKPOINT LOG UPDATES THREADS DIE_AT_ENVIRONMENT

#include <csignal>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <vector>

#include "kevin/cpu.hpp"
#include "kevin/eval/deterministic_times.hpp"
#include "kevin/kevin.hpp"
#include "kevin/torch.hpp"

int main(int argc, char** argv) {
  if (argc != 6) return 2;
  using Evaluator = kevin::eval::DeterministicTimes<kevin::cpu::Evaluator>;
  using Environment = kevin::RefinementEnv<Evaluator>;
  const long die_at = std::atol(argv[5]);
  kevin::cpu::EvaluatorOptions options;
  options.judge.measure_time = false;
  kevin::cpu::Evaluator real(options);
  Evaluator evaluator(real);
  const std::vector<std::string> names{"kevin/l1/25@small", "kevin/l1/36@small"};
  std::vector<kevin::Task> tasks;
  for (const std::string& name : names) tasks.push_back(kevin::tasks::find(name));
  kevin::agent::ChoicePolicy policy(tasks, 4);
  kevin::agent::GrpoTrainer<Environment, kevin::agent::ChoicePolicy> trainer(policy, {.learning_rate = 0.01});
  std::atomic<long> made{0};
  const auto make_env = [&](std::size_t task, std::size_t) {
    if (++made == die_at) std::raise(SIGKILL);
    return Environment(tasks[task], evaluator);
  };
  kevin::agent::train(make_env, names, trainer,
                      {.updates = static_cast<std::size_t>(std::atol(argv[3])),
                       .trajectories = 4,
                       .turns = 2,
                       .seed = 11,
                       .threads = static_cast<std::size_t>(std::atol(argv[4])),
                       .checkpoint = argv[1],
                       .log = argv[2]});
  return 0;
}
