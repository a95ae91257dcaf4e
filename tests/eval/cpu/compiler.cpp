#include "kevin/eval/cpu/compiler.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <dlfcn.h>
#include <doctest/doctest.h>
#include <sys/mman.h>
#include <unistd.h>

namespace {

using namespace kevin::cpu;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

constexpr std::string_view signature = "extern \"C\" void kernel(const float* x, float* out)";
const std::string honest =
    "#include <cmath>\nextern \"C\" void kernel(const float* x, float* out) { for (int i = 0; i < 8; ++i) out[i] = "
    "std::sqrt(x[i]); }\n";

struct Folder {
  fs::path path = fs::temp_directory_path() / ("kevin-test-compiler-" + std::to_string(::getpid()));
  Folder() { fs::remove_all(path); }
  ~Folder() { fs::remove_all(path); }
};

CompilerOptions options(const Folder& folder) {
  CompilerOptions o;
  o.flags = {"-std=c++20", "-O1"};
  o.cache_directory = folder.path;
  return o;
}

bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

/// Without the lines that show the candidate's own source.
std::string unquoted(std::string_view text) {
  std::string out;
  kevin::eval::detail::for_each_line(text, [&](std::string_view line) {
    const bool quote = line.size() > 8 && line.substr(line.find_first_not_of(" 0123456789")).starts_with("| ");
    if (!quote) out += std::string(line) + '\n';
  });
  return out;
}

/// Loads an object and lets it run here: only for sources written in this file.
std::vector<float> run(const std::string& object, std::vector<float> x) {
  const int fd = static_cast<int>(::memfd_create("kernel", MFD_CLOEXEC));
  REQUIRE(::write(fd, object.data(), object.size()) == static_cast<ssize_t>(object.size()));
  void* handle = ::dlopen(("/proc/self/fd/" + std::to_string(fd)).c_str(), RTLD_NOW | RTLD_LOCAL);
  INFO((handle ? "" : ::dlerror()));
  REQUIRE((handle != nullptr));
  auto* kernel = reinterpret_cast<void (*)(const float*, float*)>(::dlsym(handle, "kernel"));
  REQUIRE((kernel != nullptr));
  x.resize(8);
  std::vector<float> out(8);
  kernel(x.data(), out.data());
  ::dlclose(handle);
  ::close(fd);
  return out;
}

std::size_t files_below(const fs::path& folder) {
  std::size_t n = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) n += entry.is_regular_file();
  return n;
}

/// Processes below this one.
std::size_t children() {
  std::size_t n = 0;
  for (const auto& task : fs::directory_iterator("/proc/self/task")) {
    std::ifstream in(task.path() / "children");
    for (pid_t pid = 0; in >> pid;) ++n;
  }
  return n;
}

/// One compiler for the hostile cases; checks after each that nothing is left and that honest work goes on.
struct Hostile {
  Folder folder;
  CompilerOptions o = [this] {
    CompilerOptions all = options(folder);
    all.time_limit = 3000ms;
    all.memory_limit = std::uint64_t{1} << 30;
    return all;
  }();
  Compiler compiler{o};
  int number = 0;

  Compiled operator()(const std::string& source) {
    const auto start = std::chrono::steady_clock::now();
    Compiled c = compiler.compile(source, signature);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    CAPTURE(c.reason);
    CAPTURE(c.diagnostics);
    CHECK(seconds < 20);  // bounded: the limit of 3 s, and the time a loaded machine takes to end things
    CHECK(c.diagnostics.size() <= o.diagnostics_limit);
    for (const char* secret : {"root:", "/etc/", "/tmp/", "kevin-compile", "/home", "/usr", "secret_marker\n"}) {
      CAPTURE(secret);
      CHECK_FALSE(has(unquoted(c.diagnostics), secret));
    }
    CHECK(children() == 0);
    CHECK(files_below(compiler.scratch_folder()) == 1);  // the blindfold
    const Compiled next = compiler.compile(
        "extern \"C\" void kernel(const float* x, float* out) { out[0] = x[0] + " + std::to_string(++number) + "; }",
        signature);
    CHECK(next.reason == "");
    return c;
  }
};

}  // namespace

TEST_CASE("an honest kernel compiles, runs and comes from the cache the second time, also for another Compiler") {
  const Folder folder;
  Compiled first;
  {
    Compiler compiler(options(folder));
    first = compiler.compile(honest, signature);
    CHECK(first.reason == "");
    CHECK(first.diagnostics == "");
    CHECK_FALSE(first.cached);
    CHECK(first.milliseconds > 0);
    CHECK(run(first.object, {0, 1, 4, 9, 16, 25, 36, 49}) == std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7});
    CHECK(compiler.compile(honest, signature).cached);
  }
  Compiler again(options(folder));
  const Compiled second = again.compile(honest, signature);
  CHECK(second.cached);
  CHECK(second.milliseconds == 0);
  CHECK(second.object == first.object);
}

TEST_CASE("everything a result depends on is part of the cache's key") {
  const Folder folder;
  Compiler compiler(options(folder));
  CHECK_FALSE(compiler.compile(honest, signature).cached);
  CHECK_FALSE(compiler.compile(honest + " ", signature).cached);
  CHECK_FALSE(compiler.compile(honest, "extern \"C\" void kernel(const float* y, float* out)").cached);
  CompilerOptions other = options(folder);
  other.flags = {"-std=c++20", "-O2"};
  CHECK_FALSE(Compiler(other).compile(honest, signature).cached);
  // moving a character between source and signature must not make the same key
  const Compiled a = compiler.compile("1;", "extern int x");
  const Compiled b = compiler.compile(";", "extern int x1");
  CHECK_FALSE(a.cached);
  CHECK_FALSE(b.cached);
}

TEST_CASE("exceptions, static objects, thread-local data, threads and vector mathematics link and run") {
  const Folder folder;
  CompilerOptions o = options(folder);
  o.flags = {"-std=c++20", "-O3"};
  Compiler compiler(o);
  const Compiled c = compiler.compile(R"(
#include <cmath>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>
static std::vector<float> table(8, 2.0f);
thread_local float local = 1;
struct Last { ~Last() { table.clear(); } } last;
extern "C" void kernel(const float* x, float* out) {
  try {
    if (x[0] > 0) throw std::runtime_error("positive");
  } catch (const std::exception& e) {
    std::thread([&] { for (int i = 0; i < 8; ++i) out[i] = std::exp(x[i]) * table[i] * local + float(std::string(e.what()).size()); }).join();
  }
}
)",
                                      signature);
  REQUIRE(c.diagnostics == "");
  const auto out = run(c.object, {1, 1, 1, 1, 1, 1, 1, 1});
  for (const float v : out) CHECK(v == doctest::Approx(2 * 2.7182818 + 8));
}

TEST_CASE("a syntax error is told with place, line and caret, and remembered") {
  const Folder folder;
  Compiler compiler(options(folder));
  const std::string source = "extern \"C\" void kernel(const float* x, float* out) {\n  out[0] = y[0];\n}\n";
  const Compiled c = compiler.compile(source, signature);
  CHECK(c.object.empty());
  CHECK(c.reason == "syntax");
  CHECK(has(c.diagnostics, "kernel.cpp:2:12: error: "));
  CHECK(has(c.diagnostics, "    2 |   out[0] = y[0];\n      |            ^"));
  const Compiled again = compiler.compile(source, signature);
  CHECK(again.cached);
  CHECK(again.reason == c.reason);
  CHECK(again.diagnostics == c.diagnostics);
}

TEST_CASE("a wrong signature is a compile error that shows the right one; a missing kernel says what is called") {
  const Folder folder;
  Compiler compiler(options(folder));
  const Compiled wrong = compiler.compile("extern \"C\" void kernel(float* out, int n) { out[0] = n; }", signature);
  CHECK(wrong.reason == "syntax");
  CHECK(has(wrong.diagnostics, "kernel.cpp:1:"));
  CHECK(has(wrong.diagnostics, "<signature>: note: "));
  CHECK(has(wrong.diagnostics, "const float"));
  const Compiled without_c = compiler.compile("void kernel(const float* x, float* out) { out[0] = x[0]; }", signature);
  CHECK(without_c.reason == "");  // the declaration already made it extern "C"
  for (const char* source : {"", "int other() { return 1; }", "void kernel(int) {}",
                             "#define kernel other\nextern \"C\" void kernel(const float*, float*) {}",
                             "#pragma GCC visibility push(hidden)\nextern \"C\" "
                             "__attribute__((visibility(\"hidden\"))) void kernel(const float*, float*) {}"}) {
    CAPTURE(source);
    const Compiled c = compiler.compile(source, signature);
    CHECK((c.reason == "missing_kernel" || c.reason == "link"));
    CHECK(c.object.empty());
    if (c.reason == "missing_kernel") CHECK(has(c.diagnostics, signature));
  }
}

TEST_CASE("a symbol that nothing defines is a link error that names it") {
  const Folder folder;
  Compiler compiler(options(folder));
  const Compiled cpp = compiler.compile(
      "void helper(int); extern \"C\" void kernel(const float* x, float* out) { helper(3); out[0] = x[0]; }",
      signature);
  CHECK(cpp.reason == "link");
  CHECK(has(cpp.diagnostics, "undefined reference to 'helper(int)'"));
  const Compiled c = compiler.compile(
      "extern \"C\" void helper(int); extern \"C\" void kernel(const float* x, float* out) { helper(3); out[0] = x[0]; "
      "}",
      signature);
  CHECK(c.reason == "link");
  CHECK(has(c.diagnostics, "undefined reference to 'helper'"));
}

TEST_CASE("threads that ask for the same source wait for one compilation") {
  const Folder folder;
  Compiler compiler(options(folder));
  std::vector<Compiled> results(6);
  std::vector<std::thread> threads;
  for (Compiled& r : results) threads.emplace_back([&] { r = compiler.compile(honest, signature); });
  for (auto& t : threads) t.join();
  CHECK(std::count_if(results.begin(), results.end(), [](const Compiled& c) { return !c.cached; }) == 1);
  for (const Compiled& c : results) CHECK(c.object == results[0].object);
  CHECK_FALSE(results[0].object.empty());
}

TEST_CASE("different sources compile at the same time, each in a cell of its own") {
  const Folder folder;
  Compiler compiler(options(folder));
  std::vector<std::thread> threads;
  std::vector<std::string> wrong(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 3; ++i) {
        const std::string source = "extern \"C\" void kernel(const float* x, float* out) { out[0] = x[0] + " +
                                   std::to_string(10 * t + i) + "; }";
        const Compiled c = compiler.compile(source, signature);
        if (c.object.empty()) wrong[static_cast<std::size_t>(t)] += c.diagnostics;
      }
    });
  }
  for (auto& t : threads) t.join();
  for (const auto& w : wrong) CHECK(w == "");
}

TEST_CASE("headers that sources begin with again and again are prepared, with the same result") {
  const Folder folder;
  Compiler compiler(options(folder));
  const auto sets = [&] {
    const fs::path headers = folder.path / "headers";
    return fs::exists(headers) ? std::distance(fs::directory_iterator(headers), fs::directory_iterator()) : 0;
  };
  const std::string source =
      "// fast\n#include <cmath>\n#include <algorithm> // max\n\nextern \"C\" void kernel(const float* x, float* out) "
      "{ out[0] = std::max(x[0], std::sqrt(x[1])); }\n";
  const Compiled first = compiler.compile(source, signature);
  CHECK(sets() == 0);
  const Compiled second = compiler.compile(source + "// 2", signature);
  CHECK(sets() == 1);
  const Compiled third = compiler.compile(source + "// 3", signature);
  CHECK(sets() == 1);
  CHECK_FALSE(third.cached);
  CHECK(first.object == second.object);
  CHECK(first.object == third.object);
  // what the set does not hold is not declared
  CHECK(compiler.compile(source + "std::vector<int> v;", signature).reason == "syntax");
  CHECK(has(compiler.compile(source + "int i = nothing;", signature).diagnostics,
            "kernel.cpp:6:9: error: 'nothing' was not declared"));
  // a damaged set does not fail a candidate
  for (const auto& set : fs::directory_iterator(folder.path / "headers"))
    fs::resize_file(set.path() / "headers.hpp.gch", 1000);
  CHECK(compiler.compile(source + "// 4", signature).reason == "");
  CHECK(sets() == 0);
  CHECK(compiler.compile(source + "// 5", signature).reason == "");
}

TEST_CASE("only standard headers at the very beginning count as leading") {
  using Names = std::vector<std::string>;
  CHECK(leading_headers("#include <cmath>\n") == Names{"cmath"});
  CHECK(leading_headers("/* a\nb */ // c\n# include <vector>\n\n#include <cstdint> // x\n#include <vector>\nint "
                        "x;\n#include <map>\n") == Names{"cstdint", "vector"});
  CHECK(leading_headers("#include <cstdint>\n") == Names{});  // not worth it
  CHECK(leading_headers("#include <cmath>\n#include <evil/../x.h>\n#include <vector>\n") == Names{"cmath"});
  for (const char* source : {"", "#", "#include", "#include <", "#include <cmath", "#define A\n#include <cmath>\n",
                             "#include \"cmath\"\n", "#include <cmath> int x;\n", "/* #include <cmath>\n",
                             "#pragma once\n#include <cmath>\n", "//", "int x;\n#include <cmath>\n"}) {
    CAPTURE(source);
    CHECK(leading_headers(source) == Names{});
  }
}

TEST_CASE("no way of including reaches a file outside, and existing looks like missing") {
  Hostile hostile;
  const std::string rest = "\nextern \"C\" void kernel(const float* x, float* out) { out[0] = x[0]; }\n";
  for (const char* include :
       {"#include \"/etc/passwd\"", "%:include \"/etc/passwd\"", "#inc\\\nlude \"/etc/passwd\"",
        "#/**/include \"/etc/passwd\"", "#define H \"/etc/passwd\"\n#include H", "#include </etc/passwd>",
        "#include \"../../../../../../etc/passwd\"", "#import \"/etc/passwd\"", "#include_next \"/etc/passwd\"",
        "#include \"/proc/self/environ\"", "#include \"/proc/self/maps\"", "#include \"/dev/stdin\"",
        "#include \"/etc\"", "#pragma GCC dependency \"/etc/passwd\"\n#error end", "#line 1 \"/etc/passwd\"\nroot",
        "#line 1 \"../../../../etc/passwd\"\n#error x"}) {
    CAPTURE(include);
    const Compiled c = hostile(include + rest);
    CHECK(c.reason == "syntax");
  }
  const auto oracle = [&](const std::string& path) {
    return hostile("#if __has_include(\"" + path + "\")\n#error yes\n#else\n#error no\n#endif\n").diagnostics;
  };
  for (const char* path : {"/etc/passwd", "/proc/self/environ", "/root", "/etc/shadow", "/usr/bin/env"}) {
    CAPTURE(path);
    CHECK(has(oracle(path), "#error no"));
    CHECK(has(oracle(std::string(path) + "-that-does-not-exist"), "#error no"));
  }
  CHECK(has(oracle("cmath"), "#error yes"));
  CHECK(unquoted(hostile("#include \"/etc/passwd\"").diagnostics) ==
        unquoted(hostile("#include \"/no/such/passwd\"").diagnostics));
}

TEST_CASE("files of the evaluator, of other candidates and of the cache cannot be included") {
  Hostile hostile;
  const fs::path own = fs::absolute(__FILE__);
  const fs::path marker = hostile.folder.path / "secret_marker.hpp";
  std::ofstream(marker) << "secret_marker\n";
  REQUIRE(fs::exists(marker));
  for (const fs::path& path : {own, marker, hostile.compiler.scratch_folder() / "cell-1" / "kernel.cpp",
                               fs::path("kevin/kevin.hpp"), fs::path("../cell-1/kernel.cpp")}) {
    CAPTURE(path);
    const Compiled c = hostile("#include \"" + path.string() + "\"\n");
    CHECK(c.reason == "syntax");
    CHECK(has(c.diagnostics, "cannot be included"));
  }
}

TEST_CASE("the assembler reads no file either") {
  Hostile hostile;
  for (const char* code : {"asm(\".incbin \\\"/etc/passwd\\\"\");", "asm(\".include \\\"/etc/passwd\\\"\");",
                           "asm(\".incbin \\\"../../../../etc/passwd\\\"\");"}) {
    const Compiled c = hostile(code);
    CHECK(c.reason == "syntax");
    CHECK(c.object.empty());
  }
  CHECK(hostile("asm(\".incbin \\\"/etc/passwd\\\"\");").diagnostics ==
        hostile("asm(\".incbin \\\"/no/such\\\"\");").diagnostics);
}

TEST_CASE("a compile bomb of any make ends at a limit") {
  Hostile hostile;
  std::string doubling = "#define A0 1+\n";
  for (int i = 1; i < 40; ++i)
    doubling += "#define A" + std::to_string(i) + " A" + std::to_string(i - 1) + " A" + std::to_string(i - 1) + "\n";
  const std::string bombs[] = {
      "template<int N, int M> struct A { enum { v = A<N - 1, 2 * M>::v + A<N - 1, 2 * M + 1>::v }; };\n"
      "template<int M> struct A<0, M> { enum { v = M & 1 }; };\nint x = A<26, 0>::v;\n",
      doubling + "int x = A39 0;\n",
      "constexpr unsigned long f(unsigned long n) { unsigned long s = 0; for (unsigned long i = 0; i < n; ++i) s += i "
      "^ (s << 1); return s; }\n"
      "constexpr unsigned long g(int d) { return d == 0 ? f(200000) : g(d - 1) + g(d - 1); }\nconstexpr unsigned long "
      "x = g(30);\n",
      "unsigned char x[1ul << 34] = {1};\n",
      "#include __FILE__\n#include __FILE__\n",
      "template<class T> struct B : B<B<T>> {}; B<int> b;\n",
  };
  for (const std::string& bomb : bombs) {
    CAPTURE(bomb.substr(0, 60));
    const Compiled c = hostile(bomb);
    CHECK(c.object.empty());
    const bool known = c.reason == "timeout" || c.reason == "memory" || c.reason == "syntax" ||
                       c.reason == "too_large" || c.reason == "compiler_crash";
    CHECK(known);
  }
  const std::string parentheses = "int x = " + std::string(100000, '(') + '1' + std::string(100000, ')') + ";\n";
  static_cast<void>(hostile(parentheses));
  static_cast<void>(hostile("auto x = " + std::string(60000, '{') + std::string(60000, '}') + ";\n"));
}

TEST_CASE("a timeout is not remembered: the same source may pass on a quieter machine") {
  const Folder folder;
  CompilerOptions o = options(folder);
  o.time_limit = 1ms;
  Compiler compiler(o);
  for (int i = 0; i < 2; ++i) {
    const Compiled c = compiler.compile(honest, signature);
    CHECK(c.reason == "timeout");
    CHECK_FALSE(c.cached);
    CHECK(c.diagnostics == "compiling took longer than 1 ms");
  }
}

TEST_CASE("a source of 50 MB is refused without a compiler") {
  Hostile hostile;
  const Compiled c = hostile(std::string(50 << 20, ' '));
  CHECK(c.reason == "too_large");
  CHECK(c.milliseconds == 0);
  CHECK(has(c.diagnostics, "52428800 bytes"));
}

TEST_CASE("what a source says about itself stays its own words") {
  Hostile hostile;
  const Compiled c =
      hostile("#line 1 \"RESULT: correct speedup=99\"\n#error {\"stage\": \"correct\", \"speedup\": 99}\n");
  CHECK(c.reason == "syntax");
  CHECK(c.diagnostics == "<another file>:1:2: error: #error {\"stage\": \"correct\", \"speedup\": 99}");
  CHECK(hostile("#pragma message \"RESULT correct\"\nint x = y;\n").diagnostics.find("RESULT") == std::string::npos);
  const Compiled forged = hostile("static_assert(false, \"x\\ncc1plus: out of memory allocating\");");
  CHECK((forged.reason == "syntax" || forged.reason == "memory"));
  CHECK(forged.object.empty());
  using namespace std::string_literals;
  CHECK(hostile("int x\0y = 1; \xff\xfe\x1b[31m bad"s).reason == "syntax");
}

TEST_CASE("pragmas cannot hand options to the compiler that open doors") {
  Hostile hostile;
  const std::string rest = "\nextern \"C\" void kernel(const float* x, float* out) { out[0] = x[0]; }\n";
  for (const char* line :
       {"#pragma GCC optimize(\"fplugin=/tmp/x.so\")", "#pragma GCC optimize(\"-wrapper,/bin/sh\")",
        "#pragma GCC target(\"arch=native,-fdump-tree-all\")", "#pragma GCC pch_preprocess \"/etc/passwd\"",
        "#pragma GCC poison kernel\nint kernel2;", "#pragma comment(lib, \"/etc/passwd\")",
        "__attribute__((optimize(\"-fdump-rtl-all=/tmp/kevin-dump\"))) int f() { return 1; }"}) {
    CAPTURE(line);
    static_cast<void>(hostile(line + rest));
    CHECK_FALSE(fs::exists("/tmp/kevin-dump"));
  }
}

TEST_CASE("sections and symbols meant for the linker change nothing but the candidate's own object") {
  Hostile hostile;
  const std::string rest = "\nextern \"C\" void kernel(const float* x, float* out) { out[0] = x[0]; }\n";
  for (const char* line :
       {"asm(\".section .deplibs,\\\"MS\\\",@llvm_dependent_libraries,1\\n.asciz \\\"/etc/passwd\\\"\\n.previous\");",
        "asm(\".section .note.GNU-stack,\\\"x\\\",@progbits\\n.previous\");",
        "asm(\".section .interp,\\\"a\\\"\\n.asciz \\\"/bin/sh\\\"\\n.previous\");",
        "extern \"C\" void* malloc(unsigned long) { return nullptr; }",
        "extern \"C\" int _init() { return 0; }\nextern \"C\" int _fini() { return 0; }",
        "asm(\".symver kernel,kernel@@V1\");", "asm(\".weak nothing\\n.quad nothing\");"}) {
    CAPTURE(line);
    static_cast<void>(hostile(line + rest));
  }
  const Compiled stack = hostile("asm(\".section .note.GNU-stack,\\\"x\\\",@progbits\\n.previous\");" + rest);
  if (stack.reason.empty()) CHECK(run(stack.object, {3}).at(0) == 3);
}

TEST_CASE("a missing or unusable compiler is an error that says what to do") {
  const Folder folder;
  CompilerOptions o = options(folder);
  o.compiler = "no-such-compiler-anywhere";
  CHECK_THROWS_WITH_AS(Compiler{o}, doctest::Contains("no-such-compiler-anywhere"), kevin::Error);
  CHECK_THROWS_WITH_AS(Compiler{o}, doctest::Contains("apt install g++"), kevin::Error);
  fs::create_directories(folder.path);
  std::ofstream(folder.path / "cxx-script") << "#!/bin/sh\nexec c++ \"$@\"\n";
  fs::permissions(folder.path / "cxx-script", fs::perms::owner_all);
  o.compiler = (folder.path / "cxx-script").string();
  CHECK_THROWS_WITH_AS(Compiler{o}, doctest::Contains("is a script"), kevin::Error);
  o.compiler.clear();
  const char* before = std::getenv("CXX");
  const std::string kept = before == nullptr ? "" : before;
  ::setenv("CXX", (folder.path / "cxx-script").c_str(), 1);
  CHECK(Compiler(o).program().filename() != "cxx-script");  // $CXX is passed over
  if (before == nullptr)
    ::unsetenv("CXX");
  else
    ::setenv("CXX", kept.c_str(), 1);
  o.compiler = "/bin/true";
  CHECK_THROWS_WITH_AS(Compiler{o}, doctest::Contains("/bin/true is no C++ compiler"), kevin::Error);
  o = options(folder);
  o.flags = {"-std=c++20", "--no-such-flag"};
  CHECK_THROWS_WITH_AS(Compiler{o}, doctest::Contains("no-such-flag"), kevin::Error);
}

TEST_CASE("a compiler cache in front of the compiler is passed over, and links to compilers are followed") {
  const Folder folder;
  const fs::path bin = folder.path / "bin";
  fs::create_directories(bin);
  std::ofstream(bin / "ccache") << "#!/bin/sh\nexit 1\n";
  fs::permissions(bin / "ccache", fs::perms::owner_all);
  fs::create_symlink("ccache", bin / "c++");
  fs::create_symlink("ccache", bin / "g++");
  const std::string path = std::getenv("PATH");
  const char* cxx = std::getenv("CXX");
  const std::string old_cxx = cxx ? cxx : "";
  ::setenv("PATH", (bin.string() + ':' + path).c_str(), 1);
  ::unsetenv("CXX");
  fs::path real;
  {
    Compiler compiler(options(folder));
    real = compiler.program();
    CHECK(real.parent_path() != bin);
    CHECK(compiler.compile(honest, signature).reason == "");
  }
  ::setenv("CXX", "ccache c++ -DFROM_CXX=1", 1);
  {
    Compiler compiler(options(folder));
    CHECK(compiler.program() == real);
    CHECK(compiler.compile("static_assert(FROM_CXX == 1);\n" + honest, signature).reason == "");
  }
  ::setenv("PATH", path.c_str(), 1);
  if (cxx)
    ::setenv("CXX", old_cxx.c_str(), 1);
  else
    ::unsetenv("CXX");
  const fs::path link = folder.path / "my-compiler";
  fs::create_symlink(real, link);
  CompilerOptions o = options(folder);
  o.compiler = link.string();
  Compiler compiler(o);
  CHECK(compiler.compile(honest, signature).reason == "");
}

TEST_CASE("without a cache that can be written everything works, only slower") {
  const Folder folder;
  CompilerOptions o = options(folder);
  o.cache_directory = "/proc/no/such/place";
  Compiler compiler(o);
  CHECK(compiler.compile(honest, signature).reason == "");
  CHECK_FALSE(compiler.compile(honest, signature).cached);
}

TEST_CASE("nothing of a compiler is left when it is gone") {
  const Folder folder;
  fs::path scratch;
  {
    Compiler compiler(options(folder));
    scratch = compiler.scratch_folder();
    CHECK(compiler.compile(honest, signature).reason == "");
    CHECK(fs::exists(scratch));
  }
  CHECK_FALSE(fs::exists(scratch));
  CHECK(children() == 0);
}

TEST_CASE("clang compiles candidates as well" * doctest::skip(!fs::exists("/usr/bin/clang++"))) {
  const Folder folder;
  CompilerOptions o = options(folder);
  o.compiler = "clang++";
  Compiler compiler(o);
  const Compiled c = compiler.compile(honest, signature);
  REQUIRE(c.diagnostics == "");
  CHECK(run(c.object, {4, 9}).at(1) == 3);
  CHECK(has(compiler.compile("int x = y;\n" + honest, signature).diagnostics,
            "kernel.cpp:1:9: error: use of undeclared identifier 'y'\n    1 | int x = y;\n      |         ^"));
  const auto oracle = [&](const std::string& path) {
    return compiler.compile("#if __has_include(\"" + path + "\")\n#error yes\n#else\n#error no\n#endif\n", signature)
        .diagnostics;
  };
  CHECK(has(oracle("/etc/passwd"), "#error no") == true);
  CHECK(has(oracle("cmath"), "#error yes") == true);
}
