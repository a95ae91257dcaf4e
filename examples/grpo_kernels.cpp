// An agent that learns to write faster kernels over several turns of real compiling, checking and timing.
// Prints what happens; everything it does with the toolkit is in train_and_compare().

#include <kevin/torch.hpp>

#include <kevin/cpu.hpp>
#include <kevin/kevin.hpp>

#include <CLI/CLI.hpp>

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "command_line.hpp"
#include "terminal.hpp"

namespace {

namespace fs = std::filesystem;
using Environment = kevin::RefinementEnv<kevin::cpu::Evaluator>;
using Policy = kevin::agent::ChoicePolicy;
using Group = kevin::GroupOf<Environment>;

struct Options {
  std::vector<std::string> tasks{"kernelbench/l1/25@small", "kernelbench/l1/36@small", "kernelbench/l2/12@small"};
  std::size_t turns = 3;
  std::size_t trajectories = 8;
  std::size_t updates = 16;
  std::size_t evaluation = 12;  // trajectories a task, before and after
  std::size_t threads = 0;
  std::uint64_t seed = 1;
  std::string backend = "cpu";
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

/// The fastest correct kernel seen for each task.
struct Best {
  double speedup = 0;
  std::string source;
};

struct Summary {               // of a set of trajectories
  std::vector<double> scores;  // mean over the turns of each trajectory
  std::size_t turns = 0;
  std::size_t correct = 0;
  double best = 0;
  double speedups = 0;  // sum over correct turns
  std::size_t failed = 0;

  void add(const Group& group) {
    for (const auto& t : group) {
      if (!t.valid() || t.turns.empty()) {
        ++failed;
        continue;
      }
      double total = 0;
      for (const auto& turn : t.turns) {
        total += turn.reward;
        ++turns;
        if (!turn.info.correct()) continue;
        ++correct;
        speedups += turn.info.speedup.value_or(0);
        best = std::max(best, turn.info.speedup.value_or(0));
      }
      scores.push_back(total / static_cast<double>(t.turns.size()));
    }
  }
  [[nodiscard]] double mean() const { return scores.empty() ? 0 : kevin::rl::mean(scores); }
  [[nodiscard]] double correct_share() const {
    return turns == 0 ? 0 : static_cast<double>(correct) / static_cast<double>(turns);
  }
  [[nodiscard]] double mean_speedup() const { return correct == 0 ? 0 : speedups / static_cast<double>(correct); }
  [[nodiscard]] kevin::rl::Interval interval() const {
    return scores.empty() ? kevin::rl::Interval{} : kevin::rl::bootstrap_interval(scores, 0);
  }
};

class Run {
 public:
  explicit Run(Options options) : options_(std::move(options)) {
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
    Policy policy(tasks, options_.seed);
    const Policy untrained(tasks, options_.seed);
    kevin::agent::GrpoTrainer<Environment, Policy> trainer(policy, grpo());
    Training training(options_.tasks, trainer, training_options());  // tells what is wrong with the folder of --log
    if (options_.resume) remember(trajectories());
    evaluator_.emplace();
    tell_resumed(training.result());
    note("evaluating the untrained policy");
    const auto before = evaluate(untrained, "untrained");
    if (stop_asked) return stopped(training.result().updates);
    std::vector<double> returns;
    const auto result = train(training, returns);
    if (result.stopped || stop_asked) return stopped(result.updates);
    note("evaluating the trained policy on the same fresh seeds");
    const auto after = evaluate(policy, "trained");
    if (stop_asked) return stopped(result.updates);
    report(before, after, returns);
    return 0;
  }

 private:
  using Training = kevin::agent::TrainingRun<Environment, Policy>;

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
    terminal::ProgressBar bar(what, tasks_.size() * options_.evaluation, !options_.quiet && !options_.json);
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
            .checkpoint = checkpoint(),
            .log = trajectories(),
            .stop = &stop_asked};
  }

  /// A resumed run says where it stands, above all that it has nothing left to train.
  void tell_resumed(const kevin::agent::TrainingResult& result) const {
    if (!result.resumed) return;
    const bool complete = result.updates >= options_.updates;
    if (options_.json) {
      std::cout << kevin::json_line({{"event", "resumed"}, {"updates", result.updates}, {"complete", complete}})
                << std::endl;
    } else if (complete) {
      std::cout << "all " << result.updates << " updates of this run are made already: nothing is trained, only the "
                << "comparison is made again (--updates with a larger number trains on)" << std::endl;
    } else {
      std::cout << "going on after update " << result.updates << std::endl;
    }
  }

  kevin::agent::TrainingResult train(Training& training, std::vector<double>& returns) {
    played_ = 0;
    terminal::ProgressBar bar("training", options_.updates * tasks_.size() * options_.trajectories,
                              !options_.quiet && !options_.json);
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
                            print_update(p, all);
                            bar.set(played_);
                          });
  }

  void print_update(const kevin::agent::TrainingProgress<Environment>& p, const Summary& all) const {
    if (options_.json) {
      std::cout << kevin::json_line({{"event", "update"},
                                     {"update", p.update},
                                     {"mean_return", kevin::json_number(p.mean_return)},
                                     {"correct", all.correct_share()},
                                     {"best_speedup", all.best},
                                     {"mean_speedup", all.mean_speedup()},
                                     {"failed_trajectories", all.failed},
                                     {"entropy", kevin::json_number(p.stats.entropy)},
                                     {"approx_kl", kevin::json_number(p.stats.approx_kl)},
                                     {"gradient_norm", kevin::json_number(p.stats.gradient_norm)},
                                     {"steps_skipped", p.stats.steps_skipped}})
                << std::endl;
    } else if (!options_.quiet) {
      std::cout << std::fixed << "update " << std::setw(3) << p.update << '/' << options_.updates
                << std::setprecision(3) << "  mean return " << p.mean_return << "  correct " << std::setw(3)
                << static_cast<int>(100 * all.correct_share() + 0.5) << " %" << std::setprecision(2)
                << "  speedup best " << all.best << "x mean " << all.mean_speedup() << 'x';
      if (all.failed > 0) std::cout << "  (" << all.failed << " trajectories failed)";
      std::cout << std::endl;
    }
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
      if (!best.source.empty()) std::ofstream(best_file(task)) << best.source;
    }
  }

  void report(const std::vector<Summary>& before, const std::vector<Summary>& after,
              const std::vector<double>& returns) {
    std::size_t fastest = 0;
    save_best();
    for (std::size_t i = 0; i < tasks_.size(); ++i) {
      if (best_[i].speedup > best_[fastest].speedup) fastest = i;
    }
    if (options_.json) {
      for (std::size_t i = 0; i < tasks_.size(); ++i) {
        const auto side = [](const Summary& s) {
          return nlohmann::json{{"mean_score", s.mean()},
                                {"low", s.interval().low},
                                {"high", s.interval().high},
                                {"correct", s.correct_share()},
                                {"best_speedup", s.best}};
        };
        std::cout << kevin::json_line({{"event", "result"},
                                       {"task", options_.tasks[i]},
                                       {"untrained", side(before[i])},
                                       {"trained", side(after[i])},
                                       {"best_speedup", best_[i].speedup},
                                       {"best_kernel", best_[i].source.empty() ? "" : best_file(i).string()}})
                  << '\n';
      }
      std::cout << kevin::json_line(
                       {{"event", "end"}, {"log", trajectories().string()}, {"checkpoint", checkpoint().string()}})
                << std::endl;
      return;
    }
    if (!options_.quiet && !best_[fastest].source.empty()) {
      std::cout << "\nthe fastest kernel, " << options_.tasks[fastest] << ", " << std::setprecision(2)
                << best_[fastest].speedup << "x:\n\n"
                << best_[fastest].source << '\n';
    }
    if (!options_.quiet && returns.size() > 1) std::cout << '\n' << terminal::curve(returns, "mean return per update");
    std::cout << "\nmean score over " << options_.turns << " turns, [95 % interval], " << options_.evaluation
              << " trajectories on fresh seeds\n"
              << std::left << std::setw(28) << "task" << std::setw(34) << "untrained" << std::setw(34) << "trained"
              << "best kernel seen\n";
    for (std::size_t i = 0; i < tasks_.size(); ++i) {
      std::cout << std::left << std::setw(28) << options_.tasks[i] << std::setw(34) << cell(before[i]) << std::setw(34)
                << cell(after[i]) << std::fixed << std::setprecision(2) << best_[i].speedup << "x of LibTorch\n";
    }
    std::cout << "\nall trajectories: " << trajectories().string()
              << "\nbest kernels:     " << (options_.log / "best").string() << '\n';
  }

  static std::string cell(const Summary& s) {
    std::ostringstream out;
    out << std::fixed << std::setprecision(2) << s.mean() << " [" << s.interval().low << ", " << s.interval().high
        << "]  " << static_cast<int>(100 * s.correct_share() + 0.5) << " % correct";
    return out.str();
  }

  int stopped(std::size_t updates) const {
    save_best();
    if (options_.json) {
      std::cout << kevin::json_line({{"event", "stopped"}, {"updates", updates}, {"checkpoint", checkpoint().string()}})
                << std::endl;
    } else {
      std::cout << "stopped after " << updates << " updates; go on with the same options and --resume --log "
                << options_.log.string() << '\n';
    }
    return 130;
  }

  void note(const char* text) const {
    if (!options_.quiet && !options_.json) std::cout << text << std::endl;
  }
  [[nodiscard]] fs::path checkpoint() const { return options_.log / "checkpoint"; }
  [[nodiscard]] fs::path trajectories() const { return options_.log / "trajectories.jsonl"; }
  [[nodiscard]] fs::path best_file(std::size_t task) const {
    std::string name = options_.tasks[task];
    for (char& c : name) {
      if (c == '/' || c == '@') c = '-';
    }
    return options_.log / "best" / (name + ".cpp");
  }

  Options options_;
  std::optional<kevin::cpu::Evaluator> evaluator_;
  std::vector<std::shared_ptr<const kevin::Task>> tasks_;
  std::map<std::size_t, Best> best_;
  std::mutex screen_;
  std::size_t played_ = 0;
};

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
      ->check(CLI::IsMember({"cpu"}))
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
    return Run(options).train_and_compare();
  } catch (const std::exception& e) {
    std::cerr << "grpo_kernels: " << e.what() << '\n';
    return 2;
  }
}
