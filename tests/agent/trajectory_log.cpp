#include "kevin/agent/trajectory_log.hpp"

#include <doctest/doctest.h>

#include <unistd.h>
#include <limits>

#include "core/toy_envs.hpp"
#include "kevin/core/rollout.hpp"
#include "kevin/refine/task.hpp"

namespace fs = std::filesystem;

namespace {
struct File {
  fs::path path = fs::temp_directory_path() / ("kevin-test-" + std::to_string(::getpid()) + ".jsonl");
  File() { fs::remove(path); }
  ~File() { fs::remove(path); }
};
nlohmann::json line(std::size_t update) {
  toy::Echo env;
  return kevin::agent::trajectory_json(kevin::rollout(env, toy::Guess{}, {.turns = 2, .seed = update}), "task \"x\"",
                                       update, {0.5, 1}, {-1, 1});
}
/// An environment with kevin's own action, info and reward types.
struct Kernels {
  using Observation = int;
  using Action = kevin::Response;
  int reset(std::uint64_t) { return 0; }
  kevin::Step<int, kevin::Score, kevin::Verdict> step(const kevin::Response&) { return {}; }
};
}  // namespace

TEST_CASE("what is written is read back") {
  const File file;
  kevin::agent::TrajectoryLog log(file.path, 0);
  for (std::size_t u = 1; u <= 3; ++u) log.add(line(u));
  log.flush();
  CHECK(log.bytes() == fs::file_size(file.path));
  const auto read = kevin::agent::read_trajectory_log(file.path);
  REQUIRE(read.size() == 3);
  CHECK(read[2] == line(3));
  CHECK(read[0].at("task") == "task \"x\"");
  CHECK(read[0].at("turns").at(0).at("return") == 0.5);
  CHECK(read[0].at("turns").at(1).at("completion_ids").size() == 1);
}

TEST_CASE("opening cuts the file back to what the checkpoint knew of") {
  const File file;
  std::uint64_t known = 0;
  {
    kevin::agent::TrajectoryLog log(file.path, 0);
    log.add(line(1));
    known = log.bytes();
    log.add(line(2));
    log.flush();
  }
  {
    kevin::agent::TrajectoryLog log(file.path, known);
    log.add(line(7));
    log.flush();
  }
  const auto read = kevin::agent::read_trajectory_log(file.path);
  REQUIRE(read.size() == 2);
  CHECK(read[1].at("update") == 7);
  CHECK_THROWS_WITH_AS(kevin::agent::TrajectoryLog(file.path, 1U << 30U), doctest::Contains("belongs to another run"),
                       kevin::Error);
}

TEST_CASE("a log that is being written is refused to a second writer and left as it is") {
  const File file;
  {
    kevin::agent::TrajectoryLog log(file.path, 0);
    log.add(line(1));
    log.flush();
    CHECK_THROWS_WITH_AS(kevin::agent::TrajectoryLog(file.path, 0), doctest::Contains("another run"), kevin::Error);
    CHECK(kevin::agent::read_trajectory_log(file.path).size() == 1);
  }
  CHECK(kevin::agent::TrajectoryLog(file.path).bytes() == fs::file_size(file.path));
}

TEST_CASE("a log that cannot be written says so at once, and why") {
  CHECK_THROWS_WITH_AS(kevin::agent::TrajectoryLog("/dev/null/log.jsonl"), doctest::Contains("Not a directory"),
                       kevin::Error);
}

TEST_CASE("lines are strict JSON: NaN and infinity become null, invalid UTF-8 is replaced") {
  kevin::BasicTrajectory<kevin::BasicTurn<Kernels>> t;
  t.turns.resize(1);
  t.turns[0].action.source = "int \xff\xfe x;";
  t.turns[0].reward.value = std::numeric_limits<double>::infinity();
  t.turns[0].info.stage = kevin::Stage::correct;
  t.turns[0].info.speedup = std::numeric_limits<double>::quiet_NaN();
  t.turns[0].info.error =
      kevin::ErrorFigures{.elements = 4, .wrong = 1, .max_absolute = std::numeric_limits<double>::infinity()};
  const std::string text = kevin::json_line(kevin::agent::trajectory_json(t, "id", 1, {std::nan("")}, {}));
  const auto back = nlohmann::json::parse(text);
  const auto& turn = back.at("turns").at(0);
  CHECK(turn.at("info").at("speedup").is_null());
  CHECK(turn.at("info").at("error").at("max_absolute").is_null());
  CHECK(turn.at("info").at("correct") == true);
  CHECK(turn.at("reward").at("value").is_null());
  CHECK(turn.at("return").is_null());
  CHECK(turn.at("advantage").is_null());
  CHECK(turn.at("action").at("source").get<std::string>().find("int ") == 0);
}

TEST_CASE("a bad line is reported with file and line number; an unfinished last line is left out") {
  const File file;
  const auto write = [&](const std::string& text) {
    std::ofstream(file.path, std::ios::binary | std::ios::trunc) << text;
  };
  const std::string good = kevin::json_line(line(1)) + '\n';
  write(good + "{not json\n");
  CHECK_THROWS_WITH_AS(kevin::agent::read_trajectory_log(file.path), doctest::Contains(":2: not a JSON object"),
                       kevin::Error);
  write(good + good + R"({"schema":"other/1"})" + "\n");
  CHECK_THROWS_WITH_AS(kevin::agent::read_trajectory_log(file.path), doctest::Contains(":3: 'schema'"), kevin::Error);
  write(R"({"schema":"kevin.trajectory/1","turns":3})"
        "\n");
  CHECK_THROWS_WITH_AS(kevin::agent::read_trajectory_log(file.path), doctest::Contains("'turns'"), kevin::Error);
  write(good + good.substr(0, 40));
  CHECK(kevin::agent::read_trajectory_log(file.path).size() == 1);
  fs::remove(file.path);
  CHECK_THROWS_WITH_AS(kevin::agent::read_trajectory_log(file.path), doctest::Contains("cannot read"), kevin::Error);
}
