// Training on real kernels is reproducible: everything but times comes from the seed.
#include <doctest/doctest.h>

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "kevin/agent/trajectory_log.hpp"

namespace fs = std::filesystem;

namespace {
struct Folder {
  fs::path path = fs::temp_directory_path() / ("kevin-test-" + std::to_string(::getpid()) + "-kernel-training");
  Folder() { fs::create_directories(path); }
  ~Folder() { fs::remove_all(path); }
};
std::string contents(const fs::path& p) {
  std::ifstream in(p, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
/// Runs kernel_training_program for three updates of 8 environments; returns the shell's exit status.
int train(const fs::path& folder, const std::string& name, int threads, int die_at) {
  const std::string command = "'" KEVIN_KERNEL_TRAINING_PROGRAM "' '" + (folder / (name + ".checkpoint")).string() +
                              "' '" + (folder / (name + ".jsonl")).string() + "' 3 " + std::to_string(threads) + ' ' +
                              std::to_string(die_at) + " 2>/dev/null";
  return std::system(command.c_str());
}
/// The first line in which two logs differ, for the message of a failed check; empty when they are the same.
std::string difference(const fs::path& a, const fs::path& b) {
  std::ifstream first(a);
  std::ifstream second(b);
  std::string x;
  std::string y;
  while (std::getline(first, x)) {
    if (!std::getline(second, y)) return "the second log is shorter";
    if (x == y) continue;
    const auto at = static_cast<std::size_t>(std::mismatch(x.begin(), x.end(), y.begin(), y.end()).first - x.begin());
    const std::size_t from = at < 200 ? 0 : at - 200;
    return x.substr(from, 400) + "\n--- and ---\n" + y.substr(from, 400);
  }
  return std::getline(second, y) ? "the first log is shorter" : "";
}
}  // namespace

TEST_CASE("one thread or eight, killed and resumed or not: the same trajectories, parameters and log, byte for byte") {
  const Folder folder;
  REQUIRE(train(folder.path, "whole", 1, 0) == 0);
  const auto log = kevin::agent::read_trajectory_log(folder.path / "whole.jsonl");
  REQUIRE(log.size() == 3 * 2 * 4);
  std::size_t correct = 0;
  for (const auto& trajectory : log) {
    REQUIRE(trajectory.at("stop") == "turn_limit");
    for (const auto& turn : trajectory.at("turns")) correct += turn.at("info").at("stage") == "correct" ? 1 : 0;
  }
  CHECK(correct > 0);
  CHECK(correct < 48);

  REQUIRE(train(folder.path, "eight", 8, 0) == 0);
  for (const int die_at : {5, 20}) {
    const std::string name = "killed" + std::to_string(die_at);
    CHECK(train(folder.path, name, 2, die_at) != 0);
    REQUIRE(train(folder.path, name, 2, 0) == 0);
  }
  for (const char* name : {"eight", "killed5", "killed20"}) {
    CAPTURE(name);
    CHECK(difference(folder.path / "whole.jsonl", folder.path / (std::string(name) + ".jsonl")) == "");
    CHECK(contents(folder.path / "whole.checkpoint") == contents(folder.path / (std::string(name) + ".checkpoint")));
  }
}
