#include "kevin/agent/training.hpp"

#include <doctest/doctest.h>

#include <unistd.h>
#include <cstdlib>
#include <iterator>
#include <set>

#include "agent/toy_policy.hpp"

namespace fs = std::filesystem;
using kevin::agent::TrainingOptions;
using Trainer = kevin::agent::GrpoTrainer<toy::Secret, toy::NetPolicy>;

namespace {
struct Folder {
  fs::path path = fs::temp_directory_path() / ("kevin-test-" + std::to_string(::getpid()) + "-training");
  Folder() { fs::create_directories(path); }
  ~Folder() { fs::remove_all(path); }
};
const auto make_env = [](std::size_t task, std::size_t) { return toy::Secret{.task = task}; };
std::string contents(const fs::path& p) {
  std::ifstream in(p, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
/// Runs training_program; returns the shell's exit status.
int run_program(const fs::path& folder, const std::string& name, int updates, int threads, int die_at) {
  const std::string command = "'" KEVIN_TRAINING_PROGRAM "' '" + (folder / (name + ".checkpoint")).string() + "' '" +
                              (folder / (name + ".jsonl")).string() + "' " + std::to_string(updates) + ' ' +
                              std::to_string(threads) + ' ' + std::to_string(die_at) + " 2>/dev/null";
  return std::system(command.c_str());
}
}  // namespace

TEST_CASE("training improves the mean return and reports each update") {
  toy::NetPolicy policy(3);
  Trainer trainer(policy, {.learning_rate = 0.02, .max_gradient_norm = 5});
  std::vector<double> returns;
  const auto result =
      kevin::agent::train(make_env, {"a", "b"}, trainer, {.updates = 50, .trajectories = 16, .turns = 3, .seed = 5},
                          [&](const kevin::agent::TrainingProgress<toy::Secret>& p) {
                            CHECK(p.update == returns.size() + 1);
                            CHECK(p.groups.size() == 2);
                            returns.push_back(p.mean_return);
                          });
  CHECK(result.updates == 50);
  REQUIRE(returns.size() == 50);
  CHECK(returns.back() > 3 * returns.front());
}

TEST_CASE(
    "with dynamic sampling an update learns from other tasks than those that teach nothing, and the log keeps all") {
  const Folder folder;
  const fs::path log = folder.path / "log.jsonl";
  toy::NetPolicy policy(3);
  Trainer trainer(policy);
  const auto half_hopeless = [](std::size_t task, std::size_t) {
    return toy::Secret{.task = task % 2, .hopeless = task >= 2};
  };
  std::size_t groups = 0;
  kevin::agent::train(half_hopeless, {"a", "b", "c", "d"}, trainer,
                      {.updates = 6,
                       .tasks_per_update = 2,
                       .trajectories = 16,
                       .turns = 3,
                       .resample_rounds = 20,
                       .seed = 5,
                       .log = log},
                      [&](const kevin::agent::TrainingProgress<toy::Secret>& p) {
                        CHECK(p.stats.groups_without_signal == 0);
                        CHECK(p.tasks.size() == 2);
                        for (const std::size_t t : p.tasks) CHECK(t < 2);
                        groups += p.groups.size();
                      });
  CHECK(groups == 12);
  const auto lines = kevin::agent::read_trajectory_log(log);
  CHECK(lines.size() > 12 * 16);  // those that were discarded too
  CHECK(std::any_of(lines.begin(), lines.end(), [](const auto& l) { return l.at("task") == "c"; }));
}

TEST_CASE(
    "a run killed at any moment and resumed leaves the checkpoint and the log of an undisturbed run, byte for byte") {
  const Folder folder;
  REQUIRE(run_program(folder.path, "whole", 6, 2, 0) == 0);
  for (int die_at : {1, 9, 20, 41}) {  // 8 environments an update
    const std::string name = "killed" + std::to_string(die_at);
    CHECK(run_program(folder.path, name, 6, 2, die_at) != 0);
    CHECK(run_program(folder.path, name, 6, 2, 3) != 0);  // and a second time
    REQUIRE(run_program(folder.path, name, 6, 1, 0) == 0);
    CHECK(contents(folder.path / (name + ".checkpoint")) == contents(folder.path / "whole.checkpoint"));
    CHECK(contents(folder.path / (name + ".jsonl")) == contents(folder.path / "whole.jsonl"));
  }
}

TEST_CASE("the number of threads changes nothing") {
  const Folder folder;
  for (int threads : {1, 8}) REQUIRE(run_program(folder.path, std::to_string(threads), 4, threads, 0) == 0);
  CHECK(contents(folder.path / "1.checkpoint") == contents(folder.path / "8.checkpoint"));
  CHECK(contents(folder.path / "1.jsonl") == contents(folder.path / "8.jsonl"));
  CHECK(kevin::agent::read_trajectory_log(folder.path / "1.jsonl").size() == 4 * 2 * 4);
}

TEST_CASE("a stop request ends training between updates with a checkpoint, and the run can go on") {
  const Folder folder;
  const fs::path file = folder.path / "checkpoint";
  kevin::StopFlag stop = false;
  toy::NetPolicy policy(3);
  Trainer trainer(policy);
  TrainingOptions options{.updates = 5, .trajectories = 4, .turns = 3, .seed = 5, .checkpoint = file, .stop = &stop};
  const auto result =
      kevin::agent::train(make_env, {"a"}, trainer, options, [&](const kevin::agent::TrainingProgress<toy::Secret>& p) {
        if (p.update == 2) stop = true;
      });
  CHECK(result.stopped);
  CHECK(result.updates == 2);
  options.stop = nullptr;
  const auto rest = kevin::agent::train(make_env, {"a"}, trainer, options);
  CHECK(rest.resumed);
  CHECK(rest.updates == 5);
}

TEST_CASE("a checkpoint of another run is refused before anything is changed") {
  const Folder folder;
  toy::NetPolicy policy(3);
  Trainer trainer(policy);
  TrainingOptions options{
      .updates = 1, .trajectories = 4, .turns = 3, .seed = 5, .checkpoint = folder.path / "checkpoint"};
  kevin::agent::train(make_env, {"a"}, trainer, options);
  options.seed = 6;
  CHECK_THROWS_WITH_AS(kevin::agent::train(make_env, {"a"}, trainer, options), doctest::Contains("another run"),
                       kevin::Error);
  CHECK_THROWS_AS(kevin::agent::train(make_env, {}, trainer, options), kevin::Error);
}

TEST_CASE("tasks of an update are drawn without replacement and change from update to update") {
  std::set<std::vector<std::size_t>> seen;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const auto tasks = kevin::agent::detail::draw_tasks(6, 3, seed);
    CHECK(std::set<std::size_t>(tasks.begin(), tasks.end()).size() == 3);
    seen.insert(tasks);
  }
  CHECK(seen.size() > 5);
  CHECK(kevin::agent::detail::draw_tasks(3, 0, 1).size() == 3);
}

TEST_CASE("a log without a checkpoint beside it is somebody's data: refused, and left as it was") {
  const Folder folder;
  std::ofstream(folder.path / "log.jsonl") << "precious\n";
  toy::NetPolicy policy(3);
  Trainer trainer(policy);
  const TrainingOptions options{.updates = 1,
                                .trajectories = 4,
                                .turns = 3,
                                .checkpoint = folder.path / "checkpoint",
                                .log = folder.path / "log.jsonl"};
  CHECK_THROWS_WITH_AS(kevin::agent::train(make_env, {"a"}, trainer, options), doctest::Contains("move it away"),
                       kevin::Error);
  CHECK(contents(folder.path / "log.jsonl") == "precious\n");
}

TEST_CASE("whatever is wrong with log or checkpoint is told before the first trajectory") {
  const Folder folder;
  toy::NetPolicy policy(3);
  Trainer trainer(policy);
  using Run = kevin::agent::TrainingRun<toy::Secret, toy::NetPolicy>;
  TrainingOptions options{.updates = 2,
                          .trajectories = 4,
                          .turns = 3,
                          .seed = 5,
                          .checkpoint = folder.path / "checkpoint",
                          .log = folder.path / "log.jsonl"};
  {
    Run first({"a"}, trainer, options);
    CHECK_FALSE(first.result().resumed);
    CHECK_THROWS_WITH_AS(Run({"a"}, trainer, options), doctest::Contains("still going on"), kevin::Error);
    CHECK(first.train(make_env).updates == 2);
  }
  {
    const Run again({"a"}, trainer, options);
    CHECK(again.result().resumed);
    CHECK(again.result().updates == 2);
  }
  options.turns = 4;
  CHECK_THROWS_WITH_AS(Run({"a"}, trainer, options), doctest::Contains("another run"), kevin::Error);
  options.log = "/dev/null/log.jsonl";
  CHECK_THROWS_WITH_AS(Run({"a"}, trainer, options), doctest::Contains("cannot write to /dev/null"), kevin::Error);
  options.log.clear();
  options.checkpoint = "/dev/null/checkpoint";
  CHECK_THROWS_WITH_AS(Run({"a"}, trainer, options), doctest::Contains("/dev/null/checkpoint"), kevin::Error);
}

TEST_CASE("a run killed in its first update can be resumed") {
  const Folder folder;
  CHECK(run_program(folder.path, "early", 2, 2, 2) != 0);
  CHECK(fs::exists(folder.path / "early.checkpoint"));
  CHECK(run_program(folder.path, "early", 2, 2, 0) == 0);
}
