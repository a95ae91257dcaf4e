#include "kevin/eval/cuda/compiler.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "eval/cuda/nvrtc_here.hpp"
#include "kevin/eval/cuda/judge_source.hpp"

namespace {

using namespace kevin;
using namespace kevin::cuda;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

const std::string prelude =
    "#pragma once\n__device__ void kevin_plan(const float* x, float* out);\n"
    "extern \"C\" __global__ void kevin_entry(const float* x, float* out) { kevin_plan(x, out); }\n";
const std::string plan = "void kevin_plan(const float* x, float* out) { out[0] = x[0]; }\n";

/// A kernel unlike all others, so that no cache has it.
std::string honest() {
  static std::atomic<int> number{0};
  return "__global__ void scale(const float* x, float* out) { out[threadIdx.x] = x[threadIdx.x] * " +
         std::to_string(++number) + "; }\n" + plan;
}

/// One for all tests of this file: the worker program is compiled once.
const fs::path& folder() {
  struct Folder {
    fs::path path = fs::temp_directory_path() / ("kevin-test-cuda-" + std::to_string(::getpid()));
    ~Folder() { fs::remove_all(path); }
  };
  static const Folder f;
  return f.path;
}

CompilerOptions options() {
  CompilerOptions o;
  o.cache_directory = folder();
  o.workers = 2;
  return o;
}

bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

/// Without the lines that show the candidate's own source.
std::string unquoted(std::string_view text) {
  std::string out;
  eval::detail::for_each_line(text, [&](std::string_view line) {
    const bool quote = line.size() > 8 && line.substr(line.find_first_not_of(" 0123456789")).starts_with("| ");
    if (!quote) out += std::string(line) + '\n';
  });
  return out;
}

std::vector<pid_t> children() {
  std::vector<pid_t> all;
  for (const auto& task : fs::directory_iterator("/proc/self/task")) {
    std::ifstream in(task.path() / "children");
    for (pid_t pid = 0; in >> pid;) all.push_back(pid);
  }
  return all;
}

bool eventually(auto condition) {
  for (int i = 0; i < 500; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(10ms);
  }
  return false;
}

/// A compiler with narrow limits for hostile sources; after each, an honest one must compile.
struct Hostile {
  CompilerOptions o = [] {
    CompilerOptions all = options();
    all.workers = 1;
    all.time_limit = 3000ms;
    all.memory_limit = std::uint64_t{2} << 30;
    return all;
  }();
  Compiler compiler{o};

  Compiled operator()(const std::string& source) {
    const auto start = std::chrono::steady_clock::now();
    Compiled c = compiler.compile(source, prelude);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    CAPTURE(source.substr(0, 200));
    CAPTURE(c.reason);
    CAPTURE(c.diagnostics);
    CHECK(seconds < 20);  // bounded: twice the limit of 3 s, and the time a loaded machine takes to end things
    CHECK(c.diagnostics.size() <= o.diagnostics_limit);
    for (const char* secret : {"root:", "/etc/", "/tmp/", "/home", "/usr", "kevin-nvrtc"}) {
      CAPTURE(secret);
      CHECK_FALSE(has(unquoted(c.diagnostics), secret));
    }
    const Compiled next = compiler.compile(honest(), prelude);
    CHECK(next.reason == "");
    CHECK(next.diagnostics == "");
    return c;
  }
};

}  // namespace

TEST_CASE("cuda Compiler: the judge's own kernels compile, and keep what they compare in registers") {
  if (!nvrtc_here()) return;
  Compiler compiler(options());
  const Compiled c = compiler.compile(judge_source, "");
  CAPTURE(c.diagnostics);
  REQUIRE(c.reason == "");
  for (const std::string name : {"kevin_draw", "kevin_moments", "kevin_spread", "kevin_compare"}) {
    const auto k = std::find_if(c.kernels.begin(), c.kernels.end(), [&](const auto& x) { return x.name == name; });
    CAPTURE(name);
    REQUIRE((k != c.kernels.end()));
    CHECK(k->spill_store_bytes == 0);
    CHECK(k->registers <= 128);
  }
}

TEST_CASE(
    "cuda Compiler: an honest kernel compiles to machine code and PTX, and comes from the cache the second time") {
  if (!nvrtc_here()) return;
  const std::string source = honest();
  Compiled first;
  {
    Compiler compiler(options());
    CHECK(compiler.version().find('.') != std::string::npos);
    const std::vector<int> known = compiler.architectures();
    CHECK(std::count(known.begin(), known.end(), 90) == 1);
    CHECK(compiler.architecture() == "sm_90a");
    first = compiler.compile(source, prelude);
    CHECK(first.reason == "");
    CHECK(first.diagnostics == "");
    CHECK_FALSE(first.cached);
    CHECK(first.milliseconds > 0);
    CHECK(
        first.cubin.starts_with("\x7f"
                                "ELF"));
    CHECK(has(first.ptx, ".target sm_90a"));
    REQUIRE(first.kernels.size() == 2);
    CHECK(std::any_of(first.kernels.begin(), first.kernels.end(),
                      [](const auto& k) { return k.name == "_Z5scalePKfPf" && k.registers > 0; }));
  }
  Compiler again(options());
  const Compiled second = again.compile(source, prelude);
  CHECK(second.cached);
  CHECK(second.milliseconds == 0);
  CHECK(second.cubin == first.cubin);
  CHECK(second.ptx == first.ptx);
  CHECK(second.kernels == first.kernels);
  CHECK_FALSE(again.compile(source, prelude + "// other\n").cached);
  CompilerOptions other = options();
  other.flags = {"-lineinfo"};
  CHECK_FALSE(Compiler(other).compile(source, prelude).cached);
}

TEST_CASE("cuda Compiler: precompiled headers change nothing but the time") {
  if (!nvrtc_here()) return;
  CompilerOptions with = options(), without = options();
  with.workers = without.workers = 1;
  without.precompiled_headers = false;
  with.cache_directory = folder() / "with";
  without.cache_directory = folder() / "without";
  Compiler fast(with), plain(without);
  if (fast.nvrtc().include.empty()) return;  // the library without headers
  for (int i = 0; i < 4; ++i) {
    const std::string source = "#include <cuda_fp16.h>\n#define N " + std::to_string(i) +
                               "\n__global__ void k(__half* x) { x[N] = __hadd(x[0], x[1]); }\n" + plan;
    const Compiled a = fast.compile(source, prelude), b = plain.compile(source, prelude);
    CHECK(a.reason == "");
    CHECK(a.ptx == b.ptx);
    CHECK(a.kernels == b.kernels);
    CHECK_FALSE(a.cached);
    // lines are counted alike
    const std::string wrong = source + "int x = undeclared" + std::to_string(i) + ";\n";
    const Compiled c = fast.compile(wrong, prelude), d = plain.compile(wrong, prelude);
    CHECK(c.reason == "syntax");
    CHECK(c.diagnostics == d.diagnostics);
    INFO(c.diagnostics);
    CHECK(has(c.diagnostics, "kernel.cu:5:9: error: identifier \"undeclared"));
  }
}

TEST_CASE("cuda Compiler: precompiled headers above their limit are removed, and compiling goes on") {
  if (!nvrtc_here()) return;
  CompilerOptions o = options();
  o.workers = 1;
  o.headers_limit = 1;
  Compiler compiler(o);
  if (compiler.nvrtc().include.empty()) return;
  for (int i = 0; i < 4; ++i) CHECK(compiler.compile("#include <cuda_fp16.h>\n" + honest(), prelude).reason == "");
  std::size_t files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(compiler.pool().folder())) files += entry.is_regular_file();
  CHECK(files == 0);
}

TEST_CASE("cuda leading_includes: only plain lines at the very beginning, of headers that exist") {
  const fs::path headers = folder() / "headers";
  fs::create_directories(headers / "cub");
  for (const char* name : {"a.h", "cub/b.cuh", "c"}) std::ofstream(headers / name) << "";
  const std::vector<fs::path> folders{folder(), headers};
  const auto leading = [&](std::string_view source) { return leading_includes(source, folders); };
  CHECK(leading(
            "// x\n#pragma once\n#include <a.h>  // why\n/* y\n */ # include \"cub/b.cuh\"\r\n#include \"kevin.cuh\"\n"
            "#include <c>\nint x;\n#include <a.h>\n") == "#include <a.h>\n#include <cub/b.cuh>\n#include <c>\n");
  for (const char* source :
       {"", "int x;\n#include <a.h>\n", "#define X\n#include <a.h>\n", "#include <none.h>\n#include <a.h>\n",
        "#include <../headers/a.h>\n", "#include <a.h> int x;\n", "#include <a.h> // \\\nint x;\n", "#include MACRO\n",
        "#include <a.h", "#include <cub>\n", "#include \"/etc/passwd\"\n", "#include_next <a.h>\n",
        "?\?=include <a.h>\n"}) {
    CAPTURE(std::string(source));
    CHECK(leading(source) == "");
  }
}

TEST_CASE("cuda Compiler: a header that the prelude needs and that is not there is this machine's failure") {
  if (!nvrtc_here()) return;
  Compiler compiler(options());
  CHECK_THROWS_WITH_AS(static_cast<void>(compiler.compile(honest(), "#include <no_such_header.h>\n" + prelude)),
                       doctest::Contains("no_such_header.h"), Error);
  if (compiler.nvrtc().include.empty()) return;
  const std::string half = "#include <cuda_fp16.h>\n" + prelude;
  for (int i = 0; i < 3; ++i) CHECK(compiler.compile("__device__ __half h;\n" + honest(), half).reason == "");
}

TEST_CASE("cuda CompileWorker: whatever the other side says, the judge gets an outcome in bounded time") {
  using Outcome = CompileWorker::Outcome;
  struct Peer {
    eval::Descriptor end;
    std::unique_ptr<CompileWorker> worker;
    Peer() {
      int pair[2];
      REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
      end.reset(pair[0]);
      eval::Descriptor control(pair[1]);
      REQUIRE(::fcntl(control.get(), F_SETFL, O_NONBLOCK) == 0);
      eval::SpawnOptions sleep;
      sleep.program = "/bin/sleep";
      sleep.arguments = {"60"};
      worker = std::make_unique<CompileWorker>(eval::spawn(sleep), std::move(control), nullptr, fs::path());
    }
    void say(std::vector<std::uint64_t> sizes, std::uint32_t magic, std::string_view text) {
      const std::uint32_t head[2] = {magic, static_cast<std::uint32_t>(sizes.size())};
      CHECK(::write(end.get(), head, sizeof head) == sizeof head);
      static_cast<void>(!::write(end.get(), sizes.data(), sizes.size() * sizeof sizes[0]));
      static_cast<void>(!::write(end.get(), text.data(), text.size()));
    }
    Outcome ask() {
      const std::vector<std::string_view> request{"main", "kernel", "prelude"};
      return worker->compile(request, CompileWorker::Clock::now() + 300ms).outcome;
    }
  };
  constexpr std::uint32_t magic = 0x6b63756b;
  const std::uint64_t huge = ~std::uint64_t{0};
  {
    Peer p;
    CHECK(p.ask() == Outcome::timeout);
    CHECK(p.worker->idle());
    p.say({1}, magic, "x");
    CHECK_FALSE(p.worker->idle());  // unasked
  }
  {
    Peer p;
    p.say({1, 2, 3, 4}, magic, "0aabbbcccc");
    const std::vector<std::string_view> request{"main", "kernel", "prelude"};
    const auto reply = p.worker->compile(request, CompileWorker::Clock::now() + 5s);
    CHECK(reply.outcome == Outcome::answered);
    CHECK(reply.fields == std::vector<std::string>{"0", "aa", "bbb", "cccc"});
  }
  for (const auto& [sizes, outcome] : std::vector<std::pair<std::vector<std::uint64_t>, Outcome>>{
           {{1, 2, 3}, Outcome::crashed},
           {{1, 2, 3, 4, 5}, Outcome::crashed},
           {{1, 2, huge, 4}, Outcome::crashed},
           {{huge, huge, huge, huge}, Outcome::crashed},
           {{1, 2, CompileWorker::code_limit + 1, 4}, Outcome::too_large},
           {{1, 2, CompileWorker::code_limit, 4}, Outcome::timeout},  // announced, and never sent
           {{1, 2, 3, 400}, Outcome::timeout}}) {
    Peer p;
    p.say(sizes, magic, "0aabbbcccc");
    CHECK(p.ask() == outcome);
  }
  {
    Peer p;
    p.say({1, 2, 3, 4}, 7, "0aabbbcccc");
    CHECK(p.ask() == Outcome::crashed);
  }
  {
    Peer p;
    p.end.reset();
    CHECK(p.ask() == Outcome::crashed);  // gone away, though the process lives
    CHECK_THROWS_AS(static_cast<void>(p.worker->greet()), Error);
  }
}

TEST_CASE("cuda Compiler: the plan must be defined as declared") {
  if (!nvrtc_here()) return;
  Compiler compiler(options());
  const std::string kernel = "__global__ void k(float* o) { o[0] = 1; }\n";
  for (const std::string& source : {kernel, kernel + "void kevin_plan(float* x, float* out) {}\n"}) {
    const Compiled c = compiler.compile(source, prelude);
    CHECK(c.reason == "missing_plan");
    CHECK(c.cubin == "");
    CHECK(has(c.diagnostics, "__device__ void kevin_plan(const float* x, float* out)"));
  }
  const Compiled c = compiler.compile(kernel + "int kevin_plan(const float* x, float* out) { return 1; }\n", prelude);
  CHECK(c.reason == "syntax");
  CHECK(has(c.diagnostics, "kernel.cu:2:5: error: "));
}

TEST_CASE("cuda Compiler: errors of the assembler are told, also those that it hides beside its figures") {
  if (!nvrtc_here()) return;
  Compiler compiler(options());
  const Compiled assembler =
      compiler.compile("__global__ void k(float* o) { asm(\"foo.bar %0;\" ::\"f\"(o[0])); }\n" + plan, prelude);
  CHECK(assembler.reason == "syntax");
  CHECK(has(assembler.diagnostics, "ptxas: error: "));
  const Compiled shared = compiler.compile(
      "__global__ void k(float* o) { __shared__ float s[100000]; s[threadIdx.x] = o[0]; __syncthreads();\n"
      "o[0] = s[threadIdx.x + 1]; }\n" +
          plan,
      prelude);
  CHECK(shared.reason == "syntax");
  CHECK(has(shared.diagnostics, "too much shared data"));
}

TEST_CASE("cuda Compiler: an architecture that is virtual gives PTX alone; unknown ones and bad flags are errors") {
  if (!nvrtc_here()) return;
  CompilerOptions o = options();
  o.architecture = "compute_90";
  const Compiled c = Compiler(o).compile(honest(), prelude);
  CHECK(c.reason == "");
  CHECK(c.cubin == "");
  CHECK(has(c.ptx, ".target sm_90"));
  for (const char* bad : {"sm_10", "nonsense"}) {
    o.architecture = bad;
    try {
      Compiler compiler(o);
      FAIL("an architecture that does not exist");
    } catch (const Error& e) {
      CHECK(e.code() == ErrorCode::bad_input);
      CHECK(has(e.what(), bad));
    }
  }
  o = options();
  o.flags = {"--no-such-flag"};
  CHECK_THROWS_WITH_AS(Compiler{o}, doctest::Contains("--no-such-flag"), Error);
  o = options();
  o.include = {"/no/such/folder"};
  CHECK_THROWS_WITH_AS(Compiler{o}, doctest::Contains("/no/such/folder"), Error);
}

TEST_CASE("cuda architecture_for: the device's own, with what only it has from 9.0 on; else PTX of a lower one") {
  const std::vector<int> known{75, 80, 86, 90, 100, 120};
  CHECK(architecture_for(9, 0, known) == "sm_90a");
  CHECK(architecture_for(10, 0, known) == "sm_100a");
  CHECK(architecture_for(8, 6, known) == "sm_86");
  CHECK(architecture_for(8, 9, known) == "compute_86");
  CHECK(architecture_for(10, 3, known) == "compute_100");
  CHECK(architecture_for(12, 1, known) == "compute_120");
  CHECK_THROWS_AS(static_cast<void>(architecture_for(7, 0, known)), Error);
}

TEST_CASE("cuda find_nvrtc: a name that leads nowhere is an error that says which") {
  CompilerOptions o;
  o.nvrtc = "/no/such/libnvrtc.so.13";
  CHECK_THROWS_WITH_AS(static_cast<void>(find_nvrtc(o)), doctest::Contains("/no/such/libnvrtc.so.13"), Error);
  o.nvrtc = "/proc";
  CHECK_THROWS_WITH_AS(static_cast<void>(find_nvrtc(o)), doctest::Contains("/proc"), Error);
}

TEST_CASE("cuda Compiler: a library that is no NVRTC is an error") {
  const fs::path fake = folder() / "fake" / "libnvrtc.so.13";
  fs::create_directories(fake.parent_path());
  std::ofstream(fake) << "no library";
  CompilerOptions o = options();
  o.nvrtc = fake.parent_path();
  CHECK_THROWS_WITH_AS(Compiler{o}, doctest::Contains("cannot be used"), Error);
}

TEST_CASE("cuda Compiler: threads that ask for the same source wait for one compilation; others run side by side") {
  if (!nvrtc_here()) return;
  Compiler compiler(options());
  const std::string source = honest();
  std::vector<Compiled> results(8), others(8);
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < results.size(); ++i)
      threads.emplace_back([&, i] { results[i] = compiler.compile(source, prelude); });
  }
  CHECK(std::count_if(results.begin(), results.end(), [](const Compiled& c) { return !c.cached; }) == 1);
  for (const Compiled& c : results) CHECK(c.cubin == results[0].cubin);
  {
    std::vector<std::jthread> threads;
    for (auto& other : others) threads.emplace_back([&] { other = compiler.compile(honest(), prelude); });
  }
  for (const Compiled& c : others) CHECK(c.reason == "");
  CHECK(compiler.pool().alive() == 2);
}

TEST_CASE("cuda Compiler: a worker is replaced after its number of compilations, and nothing is left at the end") {
  if (!nvrtc_here()) return;
  fs::path scratch;
  {
    CompilerOptions o = options();
    o.workers = 1;
    o.compiles_per_worker = 3;
    Compiler compiler(o);
    scratch = compiler.pool().folder();
    std::vector<pid_t> seen;
    for (int i = 0; i < 10; ++i) {
      CHECK(compiler.compile(honest(), prelude).reason == "");
      for (const pid_t pid : children())
        if (std::find(seen.begin(), seen.end(), pid) == seen.end()) seen.push_back(pid);
    }
    CHECK(seen.size() >= 3);
    CHECK(compiler.pool().alive() == 1);
    CHECK(fs::exists(scratch));
  }
  CHECK(children().empty());
  CHECK_FALSE(fs::exists(scratch));
}

TEST_CASE("cuda Compiler: a worker that is killed while it waits or works costs nobody a verdict") {
  if (!nvrtc_here()) return;
  CompilerOptions o = options();
  o.workers = 1;
  Compiler compiler(o);
  CHECK(compiler.compile(honest(), prelude).reason == "");
  for (const pid_t pid : children()) ::kill(pid, SIGKILL);
  CHECK(compiler.compile(honest(), prelude).reason == "");

  // a source that keeps it busy; killed once it goes to a second process, killed again it is this machine's failure
  const std::string busy =
      "#define A0 x+x+x+x+x+x+x+x+x+x\n#define A1 A0+A0+A0+A0+A0+A0+A0+A0\n"
      "#define A2 A1+A1+A1+A1+A1+A1+A1+A1\n#define A3 A2+A2+A2+A2+A2+A2+A2+A2\n"
      "#define A4 A3+A3+A3+A3+A3+A3+A3+A3\n#define A5 A4+A4+A4+A4+A4+A4+A4+A4\n"
      "__device__ int f(int x) { return A5; }\n" +
      plan;
  std::atomic<bool> done{false};
  std::jthread killer([&] {
    while (!done) {
      std::this_thread::sleep_for(200ms);
      for (const pid_t pid : children()) ::kill(pid, SIGKILL);
    }
  });
  try {
    static_cast<void>(compiler.compile(busy, prelude));
    FAIL("killed again and again, and still an answer");
  } catch (const Error& e) {
    CHECK(e.code() == ErrorCode::worker_lost);
  }
  done = true;
  killer.join();
  CHECK(compiler.compile(honest(), prelude).reason == "");
}

TEST_CASE("cuda Compiler: no way of including reaches a file outside, and existing looks like missing") {
  if (!nvrtc_here()) return;
  Hostile compile;
  const auto same = [](std::string text, const std::string& name) {
    for (auto at = text.find(name); at != std::string::npos; at = text.find(name)) text.replace(at, name.size(), "X");
    return text;
  };
  for (const char* form :
       {"#include \"@\"\n", "#include <@>\n", "%:include \"@\"\n", "?\?=include \"@\"\n", "#inc\\\nlude \"@\"\n",
        "#/* x */include/* y */\"@\"\n", "#define F \"@\"\n#include F\n", "#include_next \"@\"\n", "#import \"@\"\n"}) {
    const auto with = [&](const std::string& name) {
      std::string text = form;
      text.replace(text.find('@'), 1, name);
      return compile(text + honest());
    };
    const Compiled there = with("/etc/passwd"), absent = with("/etc/nopass");
    CHECK(there.reason == "syntax");
    CHECK(same(unquoted(there.diagnostics), "passwd") == same(unquoted(absent.diagnostics), "nopass"));
    const Compiled up = with("../../../../../../../etc/passwd");
    CHECK(up.reason == "syntax");
  }
  for (const std::string name : {"/etc/passwd", "/etc/nopass", "/etc", "/", "../../../../../../../etc/passwd",
                                 "/dev/null", "/proc/self/maps", "../headers/kevin_0.pch", "../headers", "/bin/sh"}) {
    CAPTURE(name);
    const Compiled c = compile("#if __has_include(\"" + name + "\") || __has_include(<" + name +
                               ">)\n#error found\n#endif\n" + honest());
    CHECK(c.reason == "");
  }
  const std::string secret = (folder() / "secret.h").string();
  std::ofstream(secret) << "int secret_marker = ;\n";
  const Compiled c = compile("#include \"" + secret + "\"\n" + honest());
  CHECK(c.reason == "syntax");
  CHECK_FALSE(has(c.diagnostics, "secret_marker"));
}

TEST_CASE("cuda Compiler: bombs of any make end at a limit, and the next honest source compiles") {
  if (!nvrtc_here()) return;
  Hostile compile;
  std::string macros = "#define A0 x+x+x+x+x+x+x+x+x+x\n";
  for (int i = 1; i < 12; ++i) {
    const std::string before = "A" + std::to_string(i - 1);
    macros += "#define A" + std::to_string(i) + ' ' + before;
    for (int j = 0; j < 9; ++j) macros += '+' + before;
    macros += '\n';
  }
  const std::vector<std::string> bombs{
      macros + "__device__ int f(int x) { return A11; }\n",
      "template <unsigned long A> struct Y { static constexpr unsigned long v = Y<2 * A>::v + Y<2 * A + 1>::v; };\n"
      "int x = Y<1>::v;\n",
      "template <int N> struct A { static constexpr int v = A<N + 1>::v; };\nint x = A<0>::v;\n",
      "constexpr int f(int n) { return f(n + 1); }\nconstexpr int x = f(0);\n",
      "constexpr long f(unsigned n) { long s = 0; for (unsigned i = 0; i < n; ++i) for (unsigned j = 0; j < n; ++j) s "
      "+= i * j;"
      " return s; }\n__device__ int x[f(4000000000u) % 7 + 1];\n",
      "__device__ int big[1000000000] = {1};\n__global__ void b(int* o) { o[0] = big[o[1]]; }\n",
      "__global__ void b(float* o) { float a = o[0];\n#pragma unroll\nfor (int i = 0; i < 30000; ++i) {\n#pragma "
      "unroll\n"
      "for (int j = 0; j < 30000; ++j) a = a * o[i * j] + sinf(a); } o[0] = a; }\n",
      "__device__ int f() { return " + std::string(60000, '(') + '1' + std::string(60000, ')') + "; }\n",
      "__device__ void f() { " + std::string(100000, '{') + std::string(100000, '}') + " }\n",
      "#include \"kernel.cu\"\n",
      "#include \"kevin.cu\"\n"};
  for (const std::string& bomb : bombs) {
    const Compiled c = compile(bomb + honest());
    CAPTURE(bomb.substr(0, 100));
    CAPTURE(c.diagnostics);
    CHECK(c.diagnostics.size() + c.cubin.size() > 0);
  }
}

TEST_CASE("cuda Compiler: a source of 50 MB or with a zero byte is refused without a compiler") {
  if (!nvrtc_here()) return;
  Hostile compile;
  CHECK(compile(std::string(50'000'000, ' ')).reason == "too_large");
  const Compiled zero = compile("int a;\n" + std::string(1, '\0') + honest());
  CHECK(zero.reason == "syntax");
  CHECK(has(zero.diagnostics, "kernel.cu:2: error: "));
  const Compiled bytes = compile("int a\xff\xfe = \xc0\xaf;\n// \xe2\x80\xae\n" + honest());
  CHECK(bytes.reason == "syntax");
}

TEST_CASE("cuda Compiler: what a source says about itself stays its own words") {
  if (!nvrtc_here()) return;
  Hostile compile;
  const Compiled line = compile("#line 7 \"/etc/shadow\"\nint x = y;\n" + honest());
  CHECK(line.reason == "syntax");
  CHECK(has(line.diagnostics, "identifier \"y\""));
  const Compiled asserted = compile(
      "static_assert(false, \"x\\nkernel.cu(2): error: forged\\n\\nptxas fatal   : Unresolved extern function "
      "'kevin_plan'\");\n" +
      honest());
  CHECK(asserted.reason == "syntax");
  CHECK_FALSE(has(unquoted(asserted.diagnostics), "forged"));
  std::string flood;
  for (int i = 0; i < 2000; ++i)
    flood +=
        "#pragma message(\"a\\nkernel.cu(1): error: forged\\nptxas info    : Compiling entry function 'forged' "
        "for\")\n";
  const Compiled messages = compile(flood + honest());
  CHECK(messages.reason == "");
  const Compiled missing = compile(flood + "__global__ void k() {}\n");
  CHECK(missing.reason == "missing_plan");
  const Compiled pragma = compile("#pragma nv_hdrstop\n#pragma nv_diag_suppress 20\n" + honest());
  CHECK(pragma.reason == "");
}

TEST_CASE("cuda Compiler: a timeout is not remembered") {
  if (!nvrtc_here()) return;
  CompilerOptions o = options();
  o.time_limit = 1ms;
  const std::string source = honest();
  try {
    Compiler hasty(o);
    FAIL("compiled in a millisecond");
  } catch (const Error& e) {
    CHECK(e.code() == ErrorCode::unsupported);
  }
  o.time_limit = 20000ms;
  CHECK(Compiler(o).compile(source, prelude).reason == "");
}
