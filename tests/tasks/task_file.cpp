#include "kevin/tasks/task_file.hpp"

#include <doctest/doctest.h>

#include <stdlib.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "kevin/tasks/suite.hpp"

using kevin::Error;
using kevin::ErrorCode;
using kevin::Task;
using kevin::tasks::parse_tasks;
using kevin::tasks::read_task;
using nlohmann::json;

namespace {

json valid() {
  return json::parse(R"({"schema": "kevin.task/1", "id": "mine/one", "name": "One",
    "inputs": [{"name": "x", "shape": [4, 6]}],
    "ops": [{"op": "relu", "in": ["x"], "out": "t1"}, {"op": "neg", "in": ["t1"], "out": "t2"}]})");
}

}  // namespace

TEST_CASE("text may hold one task, an array, or a task a line") {
  json second = valid();
  second["id"] = "mine/two";
  const std::string one = valid().dump();
  const std::string two = second.dump();
  CHECK(parse_tasks(one).size() == 1);
  CHECK(parse_tasks(valid().dump(2)).size() == 1);
  CHECK(parse_tasks("\n\n" + one + "\n").size() == 1);
  CHECK(parse_tasks("[" + one + ",\n" + two + "]").size() == 2);
  CHECK(parse_tasks(one + "\n\n" + two + "\r\n").size() == 2);
}

TEST_CASE("an error in a list of tasks names the line or the number") {
  const std::string one = valid().dump();
  json wrong = valid();
  wrong["ops"][1]["in"][0] = "t7";
  wrong["id"] = "mine/two";
  CHECK_THROWS_WITH_AS((void)parse_tasks(one + "\n\n" + wrong.dump(), "f.jsonl"),
                       "bad_input: f.jsonl: line 3: task 'mine/two': ops[1].in[0]: 't7' is not defined before ('neg')",
                       Error);
  CHECK_THROWS_WITH_AS((void)parse_tasks("[" + one + "," + wrong.dump() + "]", "f.json"),
                       "bad_input: f.json: [1]: task 'mine/two': ops[1].in[0]: 't7' is not defined before ('neg')",
                       Error);
  CHECK_THROWS_WITH_AS((void)parse_tasks(one + "\n" + one, "f"),
                       "bad_input: f: line 2: the id 'mine/one' is taken by an earlier task", Error);
  CHECK_THROWS_WITH_AS((void)parse_tasks(one + "\n{]", "f"),
                       doctest::Contains("bad_input: f: line 2: is not JSON: parse error"), Error);
}

TEST_CASE("text that is no task is an Error") {
  for (const std::string text :
       {"", " \n\t", "[]", "null", "7", "{", "{}", "[[]]", "\"x\"", "{\"a\": nan}", "{\"schema\": \"kevin.task/1\"}",
        "\xff\xfe", "{\"id\": \"\xff\"}", "{\"id\": 1e999}", "[1, 2"}) {
    CAPTURE(text);
    CHECK_THROWS_AS((void)parse_tasks(text), Error);
  }
  CHECK_THROWS_WITH_AS((void)parse_tasks(""), "bad_input: text: holds no task", Error);
  CHECK_THROWS_WITH_AS((void)parse_tasks("{\"id\": \"a\", \"id\": \"b\"}"),
                       "bad_input: text: has the key 'id' twice in one object", Error);
  CHECK_THROWS_WITH_AS((void)parse_tasks(std::string(100000, '[')), "bad_input: text: is nested deeper than 16 levels",
                       Error);
}

TEST_CASE("files are loaded by path, and a missing one is not_found") {
  std::string path = "/tmp/kevin_task_file_XXXXXX";
  const int descriptor = ::mkstemp(path.data());
  REQUIRE(descriptor >= 0);
  ::close(descriptor);
  std::ofstream(path) << valid().dump(1);
  CHECK(kevin::tasks::load_tasks(path).front() == read_task(valid()));
  std::ofstream(path) << valid().dump() << std::string(100000, '\n');  // more than one read
  CHECK(kevin::tasks::load_tasks(path).size() == 1);
  std::ofstream(path) << "{";
  CHECK_THROWS_WITH_AS((void)kevin::tasks::load_tasks(path), doctest::Contains((path + ": is not JSON").c_str()),
                       Error);
  std::ofstream(path) << "";
  CHECK_THROWS_WITH_AS((void)kevin::tasks::load_tasks(path), doctest::Contains("holds no task"), Error);
  std::remove(path.c_str());
  for (const std::string& unreadable : {path, std::string("/tmp"), std::string()}) {  // gone, a folder, nothing
    CAPTURE(unreadable);
    try {
      (void)kevin::tasks::load_tasks(unreadable);
      FAIL("no error");
    } catch (const Error& e) {
      CHECK(e.code() == ErrorCode::not_found);
      CHECK(std::string(e.what()).find("'" + unreadable + "'") != std::string::npos);
    }
  }
}

TEST_CASE("one task of a file is taken by its id, or without where there is no other") {
  const std::string one = std::string(KEVIN_TEST_DATA_DIR) + "/examples/own_task.json";
  CHECK(kevin::tasks::find_in_file(one, "").id == "mine/relu");
  CHECK(kevin::tasks::find_in_file(one, "mine/relu").id == "mine/relu");
  CHECK_THROWS_WITH_AS((void)kevin::tasks::find_in_file(one, "mine/rely"),
                       doctest::Contains("has no task 'mine/rely'; near: 'mine/relu'"), Error);
  std::string path = "/tmp/kevin_task_file_XXXXXX";
  const int descriptor = ::mkstemp(path.data());
  REQUIRE(descriptor >= 0);
  ::close(descriptor);
  json second = valid();
  second["id"] = "mine/two";
  std::ofstream(path) << valid().dump() << '\n' << second.dump();
  CHECK(kevin::tasks::find_in_file(path, "mine/two") == read_task(second));
  CHECK_THROWS_WITH_AS((void)kevin::tasks::find_in_file(path, ""),
                       doctest::Contains(("holds 2 tasks: name one, '" + path + "#mine/one'").c_str()), Error);
  std::remove(path.c_str());
}
