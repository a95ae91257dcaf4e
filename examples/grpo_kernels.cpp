// An agent that learns to write faster kernels over several turns of real compiling, checking and timing.
// Prints what happens; everything it does with the toolkit is in train_and_compare().

#include <kevin/torch.hpp>

#include <kevin/cpu.hpp>
#include <kevin/cuda.hpp>
#include <kevin/kevin.hpp>

#include <CLI/CLI.hpp>

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "command_line.hpp"
#include "terminal.hpp"
#include "training_report.hpp"

namespace {

namespace fs = std::filesystem;
using Policy = kevin::agent::ChoicePolicy;
using training_report::Best;
using training_report::Summary;

struct Options {
  std::vector<std::string> tasks{"kevin/l1/25@small", "kevin/l1/36@small", "kevin/l2/12@small"};
  std::size_t turns = 3;
  std::size_t trajectories = 8;
  std::size_t updates = 16;
  std::size_t evaluation = 12;  // trajectories a task, before and after
  std::size_t threads = 0;
  std::uint64_t seed = 1;
  std::string backend = "cpu";
  int gpu = 0;
  fs::path log;
  bool resume = false;
  bool quiet = false;
  bool json = false;
};

/// Set by Ctrl-C and SIGTERM: training ends after the turns that are under way, with a checkpoint.
kevin::StopFlag stop_asked = false;

extern "C" void ask_to_stop(int) {
  if (stop_asked.exchange(true)) ::_exit(130);  // a second Ctrl-C ends at once
  constexpr char text[] = "\nstopping after the turns that are under way (Ctrl-C again ends at once)\n";
  [[maybe_unused]] const auto written = ::write(2, text, sizeof text - 1);
}

/// The source of kernels for `backend`.
const char* extension(kevin::Backend backend) { return backend == kevin::Backend::cuda ? ".cu" : ".cpp"; }

template <kevin::Evaluator Evaluator>
class Run {
  using Environment = kevin::RefinementEnv<Evaluator>;
  using Group = kevin::GroupOf<Environment>;
  using Training = kevin::agent::TrainingRun<Environment, Policy>;

 public:
  /// `make_evaluator` is called once what is wrong with options and files is told.
  Run(Options options, kevin::Backend backend, std::function<std::unique_ptr<Evaluator>()> make_evaluator)
      : options_(std::move(options)),
        backend_(backend),
        make_evaluator_(std::move(make_evaluator)),
        report_({options_.quiet, options_.json, options_.tasks, options_.turns, options_.updates, options_.evaluation,
                 options_.log, extension(backend)}) {
    for (std::size_t i = 0; i < options_.tasks.size(); ++i) {
      const std::string& id = options_.tasks[i];
      if (std::find(options_.tasks.begin(), options_.tasks.begin() + static_cast<std::ptrdiff_t>(i), id) !=
          options_.tasks.begin() + static_cast<std::ptrdiff_t>(i)) {
        throw kevin::Error(kevin::ErrorCode::bad_input, "--task names " + id + " twice");
      }
      tasks_.push_back(std::make_shared<const kevin::Task>(kevin::tasks::find(id)));
    }
  }

  int train_and_compare() {
    std::vector<kevin::Task> tasks;
    for (const auto& t : tasks_) tasks.push_back(*t);
    Policy policy(tasks, options_.seed, hidden, backend_);
    const Policy untrained(tasks, options_.seed, hidden, backend_);
    kevin::agent::GrpoTrainer<Environment, Policy> trainer(policy, grpo());
    Training training(options_.tasks, trainer, training_options());  // tells what is wrong with the folder of --log
    if (options_.resume) remember(report_.trajectories());
    evaluator_ = make_evaluator_();
    report_.resumed(training.result());
    report_.note("evaluating the untrained policy");
    const auto before = evaluate(untrained, "untrained");
    if (stop_asked) return stopped(training.result().updates);
    std::vector<double> returns;
    const auto result = train(training, returns);
    if (result.stopped || stop_asked) return stopped(result.updates);
    report_.note("evaluating the trained policy on the same fresh seeds");
    const auto after = evaluate(policy, "trained");
    if (stop_asked) return stopped(result.updates);
    save_best();
    report_.result(before, after, returns, best_);
    return 0;
  }

 private:
  static constexpr std::int64_t hidden = 64;  // neurons of the policy

  [[nodiscard]] static kevin::agent::GrpoConfig grpo() {
    kevin::agent::GrpoConfig config;
    config.learning_rate = 0.01;
    config.max_gradient_norm = 1;
    config.gradient_steps = 4;
    config.entropy_weight = 0.01;
    return config;
  }

  Environment make_env(std::size_t task, terminal::ProgressBar* bar) {
    if (bar != nullptr) {
      const std::lock_guard lock(screen_);
      bar->set(played_++);
    }
    return {tasks_[task], *evaluator_};
  }

  std::vector<Summary> evaluate(const Policy& policy, const char* what) {
    played_ = 0;
    terminal::ProgressBar bar(what, tasks_.size() * options_.evaluation, report_.bars());
    const auto groups = kevin::rollout_groups([&](std::size_t task, std::size_t) { return make_env(task, &bar); },
                                              tasks_.size(), policy,
                                              {.trajectories = options_.evaluation,
                                               .turns = options_.turns,
                                               .seed = kevin::derive_seed(options_.seed, "evaluation"),
                                               .threads = options_.threads,
                                               .retries = 1,
                                               .stop = &stop_asked});
    std::vector<Summary> summaries(groups.size());
    for (std::size_t i = 0; i < groups.size(); ++i) {
      summaries[i].add(groups[i]);
      remember(i, groups[i]);
    }
    return summaries;
  }

  [[nodiscard]] kevin::agent::TrainingOptions training_options() const {
    return {.updates = options_.updates,
            .trajectories = options_.trajectories,
            .turns = options_.turns,
            .seed = options_.seed,
            .threads = options_.threads,
            .checkpoint = report_.checkpoint(),
            .log = report_.trajectories(),
            .stop = &stop_asked};
  }

  kevin::agent::TrainingResult train(Training& training, std::vector<double>& returns) {
    played_ = 0;
    terminal::ProgressBar bar("training", options_.updates * tasks_.size() * options_.trajectories, report_.bars());
    return training.train([&](std::size_t task, std::size_t) { return make_env(task, &bar); },
                          [&](const kevin::agent::TrainingProgress<Environment>& p) {
                            Summary all;
                            for (std::size_t i = 0; i < p.groups.size(); ++i) {
                              all.add(p.groups[i]);
                              remember(p.tasks[i], p.groups[i]);
                            }
                            returns.push_back(p.mean_return);
                            const std::lock_guard lock(screen_);
                            played_ = p.update * tasks_.size() * options_.trajectories;
                            bar.clear();
                            report_.update(p, all);
                            bar.set(played_);
                          });
  }

  void remember(std::size_t task, const Group& group) {
    for (const auto& t : group) {
      for (const auto& turn : t.turns) {
        if (turn.info.correct() && turn.info.speedup.value_or(0) > best_[task].speedup)
          best_[task] = {*turn.info.speedup, turn.action.source};
      }
    }
  }

  /// Kernels of the part of the run before a resume.
  void remember(const fs::path& log) {
    for (const auto& t : kevin::agent::read_trajectory_log(log)) {
      const auto task = std::find(options_.tasks.begin(), options_.tasks.end(), t.value("task", ""));
      if (task == options_.tasks.end()) continue;
      Best& best = best_[static_cast<std::size_t>(task - options_.tasks.begin())];
      for (const auto& turn : t["turns"]) {
        const auto& speedup = turn.at("info").at("speedup");
        if (turn["info"].at("stage") == "correct" && speedup.is_number() && speedup > best.speedup)
          best = {speedup, turn.at("action").at("source")};
      }
    }
  }

  void save_best() const {
    fs::create_directories(options_.log / "best");
    for (const auto& [task, best] : best_) {
      if (!best.source.empty()) std::ofstream(report_.best_file(task)) << best.source;
    }
  }

  int stopped(std::size_t updates) const {
    save_best();
    report_.stopped(updates);
    return 130;
  }

  Options options_;
  kevin::Backend backend_;
  std::function<std::unique_ptr<Evaluator>()> make_evaluator_;
  training_report::Report report_;
  std::unique_ptr<Evaluator> evaluator_;
  std::vector<std::shared_ptr<const kevin::Task>> tasks_;
  std::map<std::size_t, Best> best_;
  std::mutex screen_;
  std::size_t played_ = 0;
};

int run_on_cpu(const Options& options) {
  using Evaluator = kevin::cpu::Evaluator;
  return Run<Evaluator>(options, kevin::Backend::cpu, [] { return std::make_unique<Evaluator>(); }).train_and_compare();
}

int run_on_gpu(const Options& options) {
  using Evaluator = kevin::cuda::Evaluator;
  kevin::cuda::EvaluatorOptions evaluator;
  evaluator.gpus = {options.gpu};
  return Run<Evaluator>(options, kevin::Backend::cuda, [&] { return std::make_unique<Evaluator>(evaluator); })
      .train_and_compare();
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{
      "Trains an agent with GRPO to write faster kernels over several turns of real compiling, checking and timing. "
      "Exit "
      "status: 0 done, 2 could not be done, 130 stopped by Ctrl-C."};
  app.add_option("--task", options.tasks,
                 "Task (evaluate --list prints them), may be given several times or as a list with commas")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--turns", options.turns, "Turns of a trajectory")->check(CLI::Range(1, 64))->capture_default_str();
  app.add_option("--trajectories", options.trajectories, "Trajectories a task in each update")
      ->check(CLI::Range(2, 1024))
      ->capture_default_str();
  app.add_option("--updates", options.updates, "Updates of the policy")
      ->check(CLI::Range(0, 1000000))
      ->capture_default_str();
  app.add_option("--evaluation", options.evaluation, "Trajectories a task for the comparison before and after")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  app.add_option("--threads", options.threads, "Trajectories played at a time (0: as many as cores)")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  app.add_option("--seed", options.seed, "Seed of everything random")
      ->check(command_line::whole_number)
      ->capture_default_str();
  app.add_option("--backend", options.backend, "Where kernels run")
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->capture_default_str();
  app.add_option("--gpu", options.gpu, "Which GPU, as CUDA counts (cuda)")
      ->check(CLI::Range(0, 1023))
      ->capture_default_str();
  app.add_option("--log", options.log,
                 "Folder for trajectories, checkpoint and best kernels (default: a new one among the temporary files)")
      ->take_last();
  app.add_flag("--resume", options.resume, "Go on from the checkpoint in the folder of --log");
  app.add_flag("--quiet", options.quiet, "Only the final table");
  app.add_flag("--json", options.json, "One JSON object a line instead of text");
  if (const auto status = command_line::parse(app, argc, argv)) return *status;
  std::signal(SIGINT, ask_to_stop);
  std::signal(SIGTERM, ask_to_stop);
  try {
    if (options.resume && options.log.empty())
      throw kevin::Error(kevin::ErrorCode::bad_input, "--resume needs --log with the folder of the run to go on with");
    if (options.log.empty())
      options.log = kevin::eval::temporary_folder() / ("kevin-grpo-" + std::to_string(::getpid()));
    std::error_code error;
    const bool there = fs::exists(options.log / "checkpoint", error);
    if (there && !options.resume) {
      throw kevin::Error(
          kevin::ErrorCode::bad_input,
          options.log.string() + " holds an earlier run: pass --resume to go on with it, or another folder");
    }
    if (options.resume && !there)
      throw kevin::Error(kevin::ErrorCode::not_found, "there is no checkpoint in " + options.log.string() +
                                                          " to resume from: start it without --resume");
    at::set_num_threads(1);  // the policy is small; the cores belong to the kernels
    return options.backend == "cuda" ? run_on_gpu(options) : run_on_cpu(options);
  } catch (const std::exception& e) {
    std::cerr << "grpo_kernels: " << e.what() << '\n';
    return 2;
  }
}
