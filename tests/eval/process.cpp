#include "kevin/eval/process.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kevin/eval/command.hpp"
#include "kevin/eval/sandbox.hpp"
#include "kevin/eval/scratch.hpp"

namespace {

using namespace kevin::eval;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

SpawnOptions shell(std::string script) {
  SpawnOptions o;
  o.program = "/bin/sh";
  o.arguments = {"-c", std::move(script)};
  o.environment = {"PATH=/usr/bin:/bin"};
  return o;
}

std::string output(SpawnOptions o) {
  const CommandResult r = run_command(std::move(o), Clock::now() + 20s, Capture::both);
  REQUIRE(r.status);
  return r.output;
}

/// Whether a process exists and is no zombie.
bool alive(pid_t pid) {
  const std::string path = "/proc/" + std::to_string(pid) + "/stat";
  const int fd = ::open(path.c_str(), O_RDONLY);
  if (fd < 0) return false;
  char text[256] = {};
  const ssize_t n = ::read(fd, text, sizeof text - 1);
  ::close(fd);
  const std::string stat(text, n > 0 ? static_cast<std::size_t>(n) : 0);
  const auto paren = stat.rfind(')');
  return paren != std::string::npos && stat[paren + 2] != 'Z' && stat[paren + 2] != 'X';
}

bool gone_soon(pid_t pid) {
  for (int i = 0; i < 1000 && alive(pid); ++i) std::this_thread::sleep_for(10ms);
  return !alive(pid);
}

}  // namespace

TEST_CASE("a child's exit code or signal is told") {
  CHECK(spawn(shell("exit 7")).wait() == ExitStatus{false, 7});
  CHECK(spawn(shell("kill -SEGV $$")).wait() == ExitStatus{true, SIGSEGV});
  Child child = spawn(shell("exit 1"));
  CHECK(child.wait() == ExitStatus{false, 1});
  CHECK(child.wait() == ExitStatus{false, 1});  // and can be asked again
  CHECK_FALSE(child.running());
  child.kill();  // after the end: nothing happens
}

TEST_CASE("waiting ends at its deadline and the child goes on") {
  Child child = spawn(shell("exec sleep 100"));
  CHECK(child.running());
  CHECK_FALSE(child.wait_until(Clock::now() + 20ms));
  CHECK_FALSE(child.wait_until(Clock::time_point::min()));
  CHECK(child.running());
  child.kill();
  CHECK(child.wait() == ExitStatus{true, SIGKILL});
}

TEST_CASE("the environment, arguments, directory and descriptors of a child are exactly those asked for") {
  ::setenv("KEVIN_TEST_SECRET", "x", 1);
  const int leaked = ::open("/dev/zero", O_RDONLY);  // not close-on-exec
  SpawnOptions o = shell("pwd; echo \"$1\"; env | sort; ls /proc/self/fd | tr '\\n' ' '; cat /proc/self/fd/9");
  o.arguments.insert(o.arguments.end(), {"sh", "a b$c"});
  o.environment = {"PATH=/usr/bin:/bin", "B=1"};
  o.directory = "/usr";
  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  REQUIRE(::write(ends[1], "through nine", 12) == 12);
  ::close(ends[1]);
  o.descriptors = {{ends[0], 9}};
  // 3 is the listed folder itself
  CHECK(output(o) == "/usr\na b$c\nB=1\nPATH=/usr/bin:/bin\nPWD=/usr\n0 1 2 3 9 through nine");
  ::close(ends[0]);
  ::close(leaked);
  ::unsetenv("KEVIN_TEST_SECRET");
}

TEST_CASE("descriptors may be exchanged: a target that is also a source is not lost") {
  int a[2], b[2];
  REQUIRE(::pipe2(a, O_CLOEXEC) == 0);
  REQUIRE(::pipe2(b, O_CLOEXEC) == 0);
  SpawnOptions o = shell("echo first >&" + std::to_string(b[1]) + "; echo second >&" + std::to_string(a[1]));
  o.descriptors = {{a[1], b[1]}, {b[1], a[1]}};
  CHECK(spawn(o).wait() == ExitStatus{false, 0});
  char text[16] = {};
  CHECK(::read(a[0], text, 6) == 6);
  CHECK(std::string(text) == "first\n");
  for (const int fd : {a[0], a[1], b[0], b[1]}) ::close(fd);
}

TEST_CASE("descriptors 0, 1 and 2 are /dev/null where nothing else is named") {
  SpawnOptions o = shell("exec 7>&1; ls -l /proc/self/fd/0 /proc/self/fd/1 >&2");
  const CommandResult r = run_command(o, Clock::now() + 20s, Capture::errors);
  CHECK(r.output.find("0 -> /dev/null") != std::string::npos);
}

TEST_CASE("what cannot be started is an error that names program, step and cause") {
  SpawnOptions o;
  o.program = "/no/such/program";
  CHECK_THROWS_WITH_AS(static_cast<void>(spawn(o)), doctest::Contains("/no/such/program: execve: No such file"),
                       kevin::Error);
  o.program = "/etc/passwd";
  CHECK_THROWS_WITH_AS(static_cast<void>(spawn(o)), doctest::Contains("Permission denied"), kevin::Error);
  o.program = "/bin/true";
  o.directory = "/no/such/folder";
  CHECK_THROWS_WITH_AS(static_cast<void>(spawn(o)), doctest::Contains("/no/such/folder"), kevin::Error);
  o.directory.clear();
  o.cpus = {CPU_SETSIZE - 1};
  try {
    static_cast<void>(spawn(o));
    FAIL("a processor that does not exist was accepted");
  } catch (const kevin::Error& e) {
    CHECK(e.code() == kevin::ErrorCode::resource);
    CHECK(std::string(e.what()).find("setting processors: Invalid argument") != std::string::npos);
  }
  CHECK(::waitpid(-1, nullptr, WNOHANG) == -1);  // no zombie of the failed ones
  CHECK(errno == ECHILD);
}

TEST_CASE("limits hold in the child and not here") {
  SpawnOptions o = shell("ulimit -t; ulimit -f; ulimit -v; ulimit -s; ulimit -n; ulimit -c");
  o.limits = {.address_space = 1ULL << 30,
              .file_size = 512 * 1024,
              .cpu_seconds = 3,
              .stack = 1 << 20,
              .open_files = 64,
              .core_dumps = false};
  CHECK(output(o) == "3\n1024\n1048576\n1024\n64\n0\n");
  SpawnOptions busy = shell("while :; do :; done");
  busy.limits.cpu_seconds = 1;
  CHECK(spawn(busy).wait() == ExitStatus{true, SIGXCPU});
}

TEST_CASE("a child can be confined before it runs") {
  const std::vector<std::filesystem::path> readable{"/usr", "/bin", "/lib", "/lib64"};
  const LandlockRuleset rules = landlock(readable, {});
  const auto filter = compiler_seccomp();
  SpawnOptions o =
      shell("cat /etc/passwd || echo hidden; grep -E 'NoNewPrivs|Seccomp:' /proc/self/status || echo no proc");
  o.landlock_ruleset = rules.fd();
  o.seccomp = filter;
  const std::string text = output(o);
  CHECK(text.find("root:") == std::string::npos);
  CHECK(text.find("hidden") != std::string::npos);
  CHECK(text.find("no proc") != std::string::npos);
}

TEST_CASE("destroying a Child ends all of its process group") {
  pid_t pid = -1;
  pid_t grandchild = -1;
  {
    int ends[2];
    REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
    SpawnOptions o = shell("trap '' TERM INT HUP; sleep 1000 & echo $!; wait");
    o.descriptors = {{ends[1], 1}};
    const Child child = spawn(o);
    pid = child.pid();
    ::close(ends[1]);
    char text[32] = {};
    REQUIRE(::read(ends[0], text, sizeof text - 1) > 0);
    grandchild = static_cast<pid_t>(std::stol(text));
    ::close(ends[0]);
    CHECK(alive(grandchild));
  }
  CHECK_FALSE(alive(pid));
  CHECK(gone_soon(grandchild));
}

TEST_CASE("what outlives the leader of the group is killed when the leader is waited for") {
  const CommandResult r = run_command(shell("sleep 1000 & echo $!"), Clock::now() + 20s, Capture::output);
  REQUIRE(r.ok());
  CHECK(gone_soon(static_cast<pid_t>(std::stol(r.output))));
}

TEST_CASE("a child does not outlive the thread that spawned it") {
  Child child;
  std::thread([&] { child = spawn(shell("exec sleep 1000")); }).join();
  CHECK(child.wait() == ExitStatus{true, SIGKILL});
}

TEST_CASE("a child does not outlive a parent that is killed") {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const pid_t parent = ::fork();
  REQUIRE(parent >= 0);
  if (parent == 0) {
    const Child child = spawn(shell("exec sleep 1000"));
    const pid_t pid = child.pid();
    if (::write(ends[1], &pid, sizeof pid) < 0) ::_exit(1);
    ::pause();
    ::_exit(0);
  }
  pid_t pid = -1;
  REQUIRE(::read(ends[0], &pid, sizeof pid) == sizeof pid);
  CHECK(alive(pid));
  ::kill(parent, SIGKILL);
  ::waitpid(parent, nullptr, 0);
  CHECK(gone_soon(pid));
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_CASE("a child starts with standard signals whatever this process ignores or blocks") {
  const auto old = ::signal(SIGPIPE, SIG_IGN);
  sigset_t blocked, before;
  ::sigemptyset(&blocked);
  ::sigaddset(&blocked, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &blocked, &before);
  CHECK(spawn(shell("kill -TERM $$; exit 0")).wait() == ExitStatus{true, SIGTERM});
  CHECK(spawn(shell("kill -PIPE $$; exit 0")).wait() == ExitStatus{true, SIGPIPE});
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ::signal(SIGPIPE, old);
}

TEST_CASE("a child reaped behind the library's back is an error, not a made-up status") {
  Child child = spawn(shell("exit 0"));
  REQUIRE(::waitpid(child.pid(), nullptr, 0) == child.pid());
  CHECK_THROWS_WITH_AS(static_cast<void>(child.wait()), doctest::Contains("reaped by another part"), kevin::Error);
}

TEST_CASE("many threads spawn at once and each waits for its own") {
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 25; ++i)
        wrong += spawn(shell("exit " + std::to_string(10 * t + i % 10))).wait() != ExitStatus{false, 10 * t + i % 10};
    });
  }
  for (auto& t : threads) t.join();
  CHECK(wrong == 0);
}

TEST_CASE("a command's output is captured up to its limit and its time is bounded") {
  const CommandResult flood = run_command(shell("yes"), Clock::now() + 200ms, Capture::output, 1000);
  CHECK_FALSE(flood.status);
  CHECK(flood.output.size() == 1000);
  const CommandResult silent = run_command(shell("exec >&- 2>&-; sleep 1000"), Clock::now() + 100ms, Capture::both);
  CHECK_FALSE(silent.status);
  const CommandResult large =
      run_command(shell("head -c 300000 /dev/zero"), Clock::now() + 20s, Capture::output, 1 << 20);
  CHECK(large.ok());
  CHECK(large.output.size() == 300000);
  const CommandResult background =
      run_command(shell("(sleep 1000; echo late) & echo early"), Clock::now() + 20s, Capture::output);
  CHECK(background.ok());
  CHECK(background.output == "early\n");
}

TEST_CASE("a scratch folder goes with its owner, and those of the dead are swept") {
  namespace fs = std::filesystem;
  const std::string prefix = "kevin-sweep-" + std::to_string(::getpid()) + "-";
  fs::path folder;
  {
    Scratch scratch(prefix);
    folder = scratch.folder();
    const auto part = scratch.part();
    CHECK(fs::is_directory(part.path()));
    const pid_t fork = ::fork();
    if (fork == 0) {
      scratch.~Scratch();
      ::_exit(0);
    }
    ::waitpid(fork, nullptr, 0);
    CHECK(fs::is_directory(folder));
  }
  CHECK_FALSE(fs::exists(folder));
  const fs::path dead = fs::temp_directory_path() / (prefix + "dead"),
                 young = fs::temp_directory_path() / (prefix + "young");
  fs::create_directories(dead / "inside");
  fs::create_directories(young);
  const Scratch living(prefix);
  for (const fs::path& path : {dead, living.folder()}) fs::last_write_time(path, fs::file_time_type::clock::now() - 1h);
  const Scratch sweeper(prefix);
  CHECK_FALSE(fs::exists(dead));
  CHECK(fs::exists(young));            // its owner may be about to lock it
  CHECK(fs::exists(living.folder()));  // as old as the dead one, but locked
  fs::remove_all(young);
}

TEST_CASE("a TMPDIR that names no folder is passed over") {
  const char* before = std::getenv("TMPDIR");
  const std::string kept = before != nullptr ? before : "";
  ::setenv("TMPDIR", "/nope", 1);
  CHECK(temporary_folder() == "/tmp");
  CHECK(Scratch("kevin-nowhere-").folder().parent_path() == "/tmp");
  before != nullptr ? ::setenv("TMPDIR", kept.c_str(), 1) : ::unsetenv("TMPDIR");
}
