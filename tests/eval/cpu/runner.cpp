#include "kevin/eval/cpu/runner.hpp"

#include <doctest/doctest.h>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "kevin/eval/cpu/compiler.hpp"
#include "kevin/eval/cpu/runner_failure.hpp"
#include "kevin/eval/cpu/runner_pool.hpp"
#include "kevin/eval/cpu/runner_program.hpp"

using namespace kevin;
using End = cpu::CallResult::End;

namespace {

/// ThreadSanitizer does not bear threads in a fork of a program that has had threads.
#ifdef __SANITIZE_THREAD__
constexpr bool forks_cannot_have_threads = true;
#else
constexpr bool forks_cannot_have_threads = false;
#endif

/// Compiler, program and pool, as an evaluator has them.
struct Machine {
  explicit Machine(int threads = 1, std::size_t spares = 1)
      : program(compiler.program(), compiler.cache()), pool(program.path(), threads, spares) {}
  cpu::Compiler compiler{cpu::CompilerOptions{}};
  cpu::RunnerProgram program;
  cpu::RunnerPool pool;
};

const cpu::CallLimit limit{1000};
constexpr const char* signature = "extern \"C\" void kernel(const float* x, float* out)";

/// A loaded runner with an input and an output of 10 floats.
struct Loaded {
  Loaded(Machine& m, const std::string& source)
      : machine(m), input(40, eval::Access::read_only), output(40, eval::Access::read_write), runner(m.pool.acquire()) {
    const auto compiled = m.compiler.compile(source, signature);
    REQUIRE_MESSAGE(!compiled.object.empty(), compiled.diagnostics);
    const eval::Descriptor object = eval::sealed_memory_file("object", std::as_bytes(std::span(compiled.object)), true);
    const eval::SharedBuffer* buffers[] = {&input, &output};
    runner->prepare(object.get(), buffers, 64 << 20);
    load = runner->load(limit);
  }
  ~Loaded() { machine.pool.retire(std::move(runner)); }

  Machine& machine;
  eval::SharedBuffer input;
  eval::SharedBuffer output;
  std::unique_ptr<cpu::Runner> runner;
  cpu::CallResult load;
};

bool exists(pid_t pid) { return ::kill(pid, 0) == 0; }

/// Waits until `condition` holds, ten seconds at most.
template <class Condition>
bool eventually(Condition condition) {
  for (int i = 0; i < 1000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

}  // namespace

TEST_CASE("Runner: an idle call returns and costs little processor time") {
  Machine m;
  auto runner = m.pool.acquire();
  for (int i = 0; i < 20; ++i) CHECK(runner->idle(limit).end == End::returned);
  m.pool.retire(std::move(runner));
}

TEST_CASE("Runner: a candidate sees the judge's input and the judge sees its output") {
  Machine m;
  Loaded c(m,
           "extern \"C\" void kernel(const float* x, float* out) { for (int i = 0; i < 10; ++i) out[i] = 2 * x[i]; }");
  REQUIRE(c.load.end == End::returned);
  for (int round = 1; round < 4; ++round) {
    float in[10];
    for (int i = 0; i < 10; ++i) in[i] = static_cast<float>(i * round);
    std::memcpy(c.input.data(), in, sizeof in);
    CHECK(c.runner->launch(limit).end == End::returned);
    float out[10];
    std::memcpy(out, c.output.data(), sizeof out);
    for (int i = 0; i < 10; ++i) CHECK(out[i] == 2 * in[i]);
    CHECK(c.output.intact());
  }
}

TEST_CASE("Runner: the candidate's processor time is what the kernel accounts, and the wall clock is not shorter") {
  Machine m;
  Loaded c(m, R"(#include <ctime>
extern "C" void kernel(const float*, float*) {
  timespec a, b;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
  do clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
  while ((b.tv_sec - a.tv_sec) * 1000000000L + b.tv_nsec - a.tv_nsec < 5000000);
})");
  REQUIRE(c.load.end == End::returned);
  const auto call = c.runner->launch(limit);
  CHECK(call.end == End::returned);
  CHECK(call.cpu_ms >= 5.0);
  CHECK(call.wall_ms >= 5.0);
}

TEST_CASE("Runner: what was not loaded is reported with the loader's words, without a path") {
  Machine m;
  auto runner = m.pool.acquire();
  const std::string nonsense = "this is no shared object";
  const eval::Descriptor object = eval::sealed_memory_file("object", std::as_bytes(std::span(nonsense)), true);
  runner->prepare(object.get(), {}, 64 << 20);
  const auto call = runner->load(limit);
  CHECK(call.end == End::load_failed);
  const auto failure = cpu::explain(call, {}, limit, true);
  CHECK(failure.reason == "load_failed");
  CHECK(failure.text.find("/proc") == std::string::npos);
  m.pool.retire(std::move(runner));
}

TEST_CASE("Runner: says which buffer an invalid access went out of") {
  Machine m;
  const std::vector<KernelArgument> arguments{{"const float*", "x", {10}}, {"float*", "out", {10}}};
  const auto text_of = [&](const std::string& body) {
    Loaded c(m, "extern \"C\" void kernel(const float* x, float* out) { (void)x; (void)out; " + body + " }");
    REQUIRE(c.load.end == End::returned);
    const auto call = c.runner->launch(limit);
    CHECK(call.end == End::died);
    const auto failure = cpu::explain(call, arguments, limit, false);
    CHECK(failure.reason == "segmentation_fault");
    return failure.text;
  };
  CHECK(text_of("out[10000] = 1;") == "segmentation fault: a write past the end of `out`");
  CHECK(text_of("out[-10000] = 1;") == "segmentation fault: a write before the start of `out`");
  CHECK(text_of("volatile float y = x[10000]; (void)y;") == "segmentation fault: a read past the end of `x`");
  CHECK(text_of("const_cast<float*>(x)[3] = 1;") == "segmentation fault: a write to `x`, which is read-only");
}

TEST_CASE("RunnerPool: every candidate gets another process, and retired ones are gone") {
  Machine m(1, 2);
  std::set<pid_t> seen;
  std::vector<pid_t> pids;
  for (int i = 0; i < 6; ++i) {
    auto runner = m.pool.acquire();
    CHECK(seen.insert(runner->pid()).second);
    pids.push_back(runner->pid());
    m.pool.retire(std::move(runner));
  }
  for (const pid_t pid : pids) CHECK(eventually([&] { return !exists(pid); }));
}

TEST_CASE("RunnerPool: its destruction ends the spare processes") {
  std::vector<pid_t> pids;
  {
    Machine m(1, 3);
    for (int i = 0; i < 2; ++i) {
      auto runner = m.pool.acquire();
      pids.push_back(runner->pid());
      m.pool.retire(std::move(runner));
    }
  }
  for (const pid_t pid : pids) CHECK_FALSE(exists(pid));
}

TEST_CASE("RunnerPool: when the judge is killed, its runners go with it" * doctest::skip(forks_cannot_have_threads)) {
  int pipe[2];
  REQUIRE(::pipe(pipe) == 0);
  const pid_t judge = ::fork();
  REQUIRE(judge >= 0);
  if (judge == 0) {
    Machine m(1, 1);
    auto first = m.pool.acquire();
    auto second = m.pool.acquire();
    const pid_t pids[2] = {first->pid(), second->pid()};
    if (::write(pipe[1], pids, sizeof pids) < 0) ::_exit(1);
    for (;;) ::pause();
  }
  pid_t pids[2] = {};
  REQUIRE(::read(pipe[0], pids, sizeof pids) == static_cast<ssize_t>(sizeof pids));
  CHECK(exists(pids[0]));
  CHECK(exists(pids[1]));
  ::kill(judge, SIGKILL);
  CHECK(::waitpid(judge, nullptr, 0) == judge);
  // an orphan may stay a zombie where nothing reaps for the init process: ended all the same
  const auto ended = [](pid_t pid) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
    std::string text;
    std::getline(file, text);
    const std::size_t end = text.rfind(") ");
    return end == std::string::npos || text[end + 2] == 'Z' || text[end + 2] == 'X';
  };
  for (const pid_t pid : pids) CHECK(eventually([&] { return ended(pid); }));
  ::close(pipe[0]);
  ::close(pipe[1]);
}

TEST_CASE("RunnerPool: many threads at once are each given a runner of their own") {
  Machine m(1, 2);
  std::vector<std::thread> threads;
  std::vector<pid_t> pids(8);
  for (std::size_t t = 0; t < pids.size(); ++t) {
    threads.emplace_back([&, t] {
      auto runner = m.pool.acquire();
      if (runner->idle(limit).end == End::returned) pids[t] = runner->pid();
      m.pool.retire(std::move(runner));
    });
  }
  for (auto& t : threads) t.join();
  CHECK(std::set<pid_t>(pids.begin(), pids.end()).size() == pids.size());
  CHECK(std::set<pid_t>(pids.begin(), pids.end()).count(0) == 0);
}

TEST_CASE("RunnerPool: a program that does not start is an Error, and the next attempt is made afresh") {
  cpu::RunnerPool pool("/nonexistent/runner", 1, 1);
  for (int i = 0; i < 2; ++i) {
    try {
      static_cast<void>(pool.acquire());
      FAIL("a runner came from a program that does not exist");
    } catch (const Error& e) {
      CHECK(e.code() == ErrorCode::not_found);
    }
  }
}

TEST_CASE("RunnerPool: a program that is no runner is an Error") {
  cpu::RunnerPool pool("/bin/true", 1, 1);
  CHECK_THROWS_AS(static_cast<void>(pool.acquire()), Error);
}

TEST_CASE("RunnerProgram: is compiled once and then found in the cache") {
  cpu::Compiler compiler{cpu::CompilerOptions{}};
  const cpu::RunnerProgram first(compiler.program(), compiler.cache());
  const cpu::RunnerProgram second(compiler.program(), compiler.cache());
  CHECK(first.path() != second.path());
  CHECK(::access(second.path().c_str(), X_OK) == 0);
}

TEST_CASE("RunnerProgram: what a killed program left of compiling it is removed by the next one" *
          doctest::skip(forks_cannot_have_threads)) {
  namespace fs = std::filesystem;
  // Killed while its compiler sleeps: the folder is there, and nobody holds it any more.
  const fs::path folder = fs::temp_directory_path() / ("kevin-test-runner-" + std::to_string(::getpid()));
  fs::create_directories(folder);
  const std::string script = (folder / "compiler").string();
  std::ofstream(script) << "#!/bin/sh\nexec sleep 60\n";
  fs::permissions(script, fs::perms::owner_all);
  const auto compiling = [&] {
    std::set<std::string> all;
    for (const auto& entry : fs::directory_iterator(fs::temp_directory_path())) {
      if (entry.path().filename().string().starts_with("kevin-compile-") && fs::exists(entry.path() / "messages"))
        all.insert(entry.path().string());
    }
    return all;
  };
  const auto before = compiling();
  const pid_t pid = ::fork();
  REQUIRE(pid >= 0);
  if (pid == 0) {
    eval::FileCache nowhere("/nonexistent/folder/cache", 1);
    const cpu::RunnerProgram program(script, nowhere);
    ::_exit(1);
  }
  std::string left;
  CHECK(eventually([&] {
    for (const std::string& path : compiling()) {
      if (before.count(path) == 0) left = path;
    }
    return !left.empty();
  }));
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
  CHECK(fs::exists(left));
  fs::last_write_time(left, fs::file_time_type::clock::now() - std::chrono::hours(1));
  CHECK(eventually([&] {  // the compiler, which dies with its starter, may hold it for a moment
    const eval::Scratch sweeper("kevin-compile-");
    return !fs::exists(left);
  }));
  fs::remove_all(folder);
}

TEST_CASE("RunnerProgram: a compiler that fails is an Error that says what it said") {
  eval::FileCache nowhere("/nonexistent/folder/cache", 1);
  try {
    const cpu::RunnerProgram program("/bin/false", nowhere);
    FAIL("/bin/false compiled something");
  } catch (const Error& e) {
    CHECK(e.code() == ErrorCode::unsupported);
    CHECK(std::string(e.what()).find("/bin/false") != std::string::npos);
  }
}
