#ifndef KEVIN_EXAMPLES_TRAINING_REPORT_HPP
#define KEVIN_EXAMPLES_TRAINING_REPORT_HPP

// What grpo_kernels prints: text for people, or one JSON object a line.

#include <kevin/torch.hpp>

#include <kevin/kevin.hpp>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <iomanip>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "terminal.hpp"

namespace training_report {

namespace fs = std::filesystem;

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

  template <class Group>
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

/// How a run is told of.
struct Style {
  bool quiet = false;
  bool json = false;
  std::vector<std::string> tasks{};
  std::size_t turns = 0;
  std::size_t updates = 0;
  std::size_t evaluation = 0;
  fs::path folder{};
  std::string extension = ".cpp";  // of kernels
};

class Report {
 public:
  explicit Report(Style style) : style_(std::move(style)) {}

  void note(const char* text) const {
    if (!style_.quiet && !style_.json) std::cout << text << std::endl;
  }
  [[nodiscard]] bool bars() const { return !style_.quiet && !style_.json; }
  [[nodiscard]] fs::path checkpoint() const { return style_.folder / "checkpoint"; }
  [[nodiscard]] fs::path trajectories() const { return style_.folder / "trajectories.jsonl"; }
  [[nodiscard]] fs::path best_file(std::size_t task) const {
    std::string name = style_.tasks[task];
    for (char& c : name) {
      if (c == '/' || c == '@') c = '-';
    }
    return style_.folder / "best" / (name + style_.extension);
  }

  /// A resumed run says where it stands, above all that it has nothing left to train.
  void resumed(const kevin::agent::TrainingResult& result) const {
    if (!result.resumed) return;
    const bool complete = result.updates >= style_.updates;
    if (style_.json) {
      std::cout << kevin::json_line({{"event", "resumed"}, {"updates", result.updates}, {"complete", complete}})
                << std::endl;
    } else if (complete) {
      std::cout << "all " << result.updates << " updates of this run are made already: nothing is trained, only the "
                << "comparison is made again (--updates with a larger number trains on)" << std::endl;
    } else {
      std::cout << "going on after update " << result.updates << std::endl;
    }
  }

  template <class Progress>
  void update(const Progress& p, const Summary& all) const {
    if (style_.json) {
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
    } else if (!style_.quiet) {
      std::cout << std::fixed << "update " << std::setw(3) << p.update << '/' << style_.updates << std::setprecision(3)
                << "  mean return " << p.mean_return << "  correct " << std::setw(3)
                << static_cast<int>(100 * all.correct_share() + 0.5) << " %" << std::setprecision(2)
                << "  speedup best " << all.best << "x mean " << all.mean_speedup() << 'x';
      if (all.failed > 0) std::cout << "  (" << all.failed << " trajectories failed)";
      std::cout << std::endl;
    }
  }

  void result(const std::vector<Summary>& before, const std::vector<Summary>& after, const std::vector<double>& returns,
              std::map<std::size_t, Best> best) const {
    std::size_t fastest = 0;
    for (std::size_t i = 0; i < style_.tasks.size(); ++i) {
      if (best[i].speedup > best[fastest].speedup) fastest = i;
    }
    if (style_.json) {
      for (std::size_t i = 0; i < style_.tasks.size(); ++i) {
        const auto side = [](const Summary& s) {
          return nlohmann::json{{"mean_score", s.mean()},
                                {"low", s.interval().low},
                                {"high", s.interval().high},
                                {"correct", s.correct_share()},
                                {"best_speedup", s.best}};
        };
        std::cout << kevin::json_line({{"event", "result"},
                                       {"task", style_.tasks[i]},
                                       {"untrained", side(before[i])},
                                       {"trained", side(after[i])},
                                       {"best_speedup", best[i].speedup},
                                       {"best_kernel", best[i].source.empty() ? "" : best_file(i).string()}})
                  << '\n';
      }
      std::cout << kevin::json_line(
                       {{"event", "end"}, {"log", trajectories().string()}, {"checkpoint", checkpoint().string()}})
                << std::endl;
      return;
    }
    if (!style_.quiet && !best[fastest].source.empty()) {
      std::cout << "\nthe fastest kernel, " << style_.tasks[fastest] << ", " << std::setprecision(2)
                << best[fastest].speedup << "x:\n\n"
                << best[fastest].source << '\n';
    }
    if (!style_.quiet && returns.size() > 1) std::cout << '\n' << terminal::curve(returns, "mean return per update");
    std::cout << "\nmean score over " << style_.turns << " turns, [95 % interval], " << style_.evaluation
              << " trajectories on fresh seeds\n"
              << std::left << std::setw(28) << "task" << std::setw(34) << "untrained" << std::setw(34) << "trained"
              << "best kernel seen\n";
    for (std::size_t i = 0; i < style_.tasks.size(); ++i) {
      std::cout << std::left << std::setw(28) << style_.tasks[i] << std::setw(34) << cell(before[i]) << std::setw(34)
                << cell(after[i]) << std::fixed << std::setprecision(2) << best[i].speedup << "x of LibTorch\n";
    }
    std::cout << "\nall trajectories: " << trajectories().string()
              << "\nbest kernels:     " << (style_.folder / "best").string() << '\n';
  }

  void stopped(std::size_t updates) const {
    if (style_.json) {
      std::cout << kevin::json_line({{"event", "stopped"}, {"updates", updates}, {"checkpoint", checkpoint().string()}})
                << std::endl;
    } else {
      std::cout << "stopped after " << updates << " updates; go on with the same options and --resume --log "
                << style_.folder.string() << '\n';
    }
  }

 private:
  static std::string cell(const Summary& s) {
    std::ostringstream out;
    out << std::fixed << std::setprecision(2) << s.mean() << " [" << s.interval().low << ", " << s.interval().high
        << "]  " << static_cast<int>(100 * s.correct_share() + 0.5) << " % correct";
    return out.str();
  }

  Style style_;
};

}  // namespace training_report

#endif  // KEVIN_EXAMPLES_TRAINING_REPORT_HPP
