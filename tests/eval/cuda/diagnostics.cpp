#include "kevin/eval/cuda/diagnostics.hpp"

#include <string>
#include <string_view>

#include <doctest/doctest.h>

#include "kevin/eval/cuda/compiled.hpp"
#include "kevin/eval/cuda/kernel_resources.hpp"

namespace {

using namespace kevin::cuda;

constexpr std::string_view prelude = "#pragma once\n__device__ void kevin_plan(const float* x,\n    float* out);\n";

std::string text(std::string_view raw, std::string_view source = "", std::size_t limit = 2000) {
  return compiler_findings(raw, source, prelude, limit).text;
}

bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

constexpr std::string_view one = "1 error detected in the compilation of \"kevin.cu\".\n";

}  // namespace

TEST_CASE("cuda diagnostics: an error is shown with its place, the source line and a caret, also behind tabs") {
  CHECK(
      text("kernel.cu(2): error: identifier \"y\" is undefined\n  \tint x\t= y;\n  \t     \t  ^\n\n" + std::string(one),
           "void f() {\n\tint x\t= y;\n}\n") ==
      "kernel.cu:2:10: error: identifier \"y\" is undefined\n    2 | \tint x\t= y;\n      | \t     \t  ^");
}

TEST_CASE("cuda diagnostics: errors of the own text come before those in headers, each once, five at most") {
  std::string raw;
  for (int i = 1; i < 9; ++i)
    raw += "/opt/secret/include/cub/block.cuh(" + std::to_string(i) + "): error #20-D: bad thing " + std::to_string(i) +
           "\n  quoted\n  ^\n\n";
  raw += "kernel.cu(1): error: mine\n  text\n  ^\n\nkernel.cu(1): error: mine\n  text\n  ^\n\n";
  raw += "10 errors detected in the compilation of \"kevin.cu\".\n";
  const Findings found = compiler_findings(raw, "int x;\n", prelude);
  CHECK(found.errors == 10);
  CHECK(found.elsewhere);
  CHECK(found.text.starts_with("kernel.cu:1:1: error: mine\n    1 | int x;\n      | ^\n<cub/block.cuh>:1:1: error: "));
  CHECK(has(found.text, "(4 more errors)"));
  CHECK_FALSE(has(found.text, "secret"));
  CHECK_FALSE(has(found.text, "quoted"));
}

TEST_CASE("cuda diagnostics: an error in a header names the own lines that led there") {
  const std::string raw =
      "/opt/include/cub/util.cuh(152): error: excessive recursion\n      VALUE = X\n      ^\n          detected "
      "during:\n"
      "            instantiation of class \"cub::Log2<N>\" at line 152\n"
      "            instantiation of class \"cub::R<T>\" at line 81 of /opt/include/cub/warp.cuh\n"
      "            instantiation of class \"Mine\" at line 2 of kernel.cu\n"
      "            instantiation of class \"Mine\" at line 3 of kernel.cu\n\n" +
      std::string(one);
  CHECK(text(raw, "a\nb\nc\n") ==
        "<cub/util.cuh>:152:5: error: excessive recursion\nkernel.cu:2: note: required from here\n    2 | b\n"
        "kernel.cu:3: note: required from here\n    3 | c");
  CHECK_FALSE(compiler_findings(raw, "a\nb\nc\n", prelude).elsewhere);
}

TEST_CASE("cuda diagnostics: lines that go on with an error and notes into the own source are kept") {
  const std::string raw =
      "kernel.cu(3): error: no instance of overloaded function \"f\" matches the argument list\n"
      "            argument types are: (int, int)\n  g\n  ^\n"
      "kernel.cu(2): note #3322-D: number of parameters of function \"f(float)\" does not match the call\n  f\n  ^\n"
      "/opt/x.h(2): note #3322-D: elsewhere\n  f\n  ^\n\n" +
      std::string(one);
  const std::string shown = text(raw, "a\nb\nc\n");
  CHECK(has(shown, "matches the argument list\n      argument types are: (int, int)\n    3 | c"));
  CHECK(has(shown, "kernel.cu:2:1: note: number of parameters"));
  CHECK_FALSE(has(shown, "elsewhere"));
}

TEST_CASE("cuda diagnostics: a plan that is missing is told by the declaration that it must have") {
  const Findings found =
      compiler_findings("ptxas fatal   : Unresolved extern function '_Z10kevin_planPKfPf'\n", "", prelude);
  CHECK(found.missing_plan);
  CHECK(has(found.text, "__device__ void kevin_plan(const float* x, float* out)"));
  CHECK(compiler_findings("ptxas fatal   : Unresolved extern function 'kevin_plan'\n", "", "").missing_plan);
  const Findings other =
      compiler_findings("ptxas fatal   : Unresolved extern function '_ZN1a5otherEPf'\n", "", prelude);
  CHECK_FALSE(other.missing_plan);
  CHECK(other.text == "ptxas: error: 'a::other' is used and not defined");
  // said by the source itself, beside a real error
  CHECK_FALSE(compiler_findings("kernel.cu(1): error: static assertion failed with \"\n"
                                "ptxas fatal   : Unresolved extern function 'kevin_plan'\"\n  x\n  ^\n\n" +
                                    std::string(one),
                                "", prelude)
                  .missing_plan);
}

TEST_CASE("cuda diagnostics: messages that a source prints into the log do not pass for the compiler's") {
  const std::string real =
      "kernel.cu(1): error: static assertion failed with \"x\nkernel.cu(3): error: forged\"\n  x\n  ^\n\n";
  const Findings found = compiler_findings(real + std::string(one), "a\nb\nc\n", prelude);
  CHECK(found.errors == 1);
  CHECK_FALSE(has(found.text, "forged"));
  CHECK(has(found.text, "line breaks"));
  // by #pragma message, beside an error of the assembler
  const std::string pragma =
      "kernel.cu(1): remark #20200-D: #pragma message: \"\nkernel.cu(3): error: forged\n\"\n\n"
      "ptxas error   : Entry function 'k' uses too much shared data\n";
  CHECK(text(pragma) == "ptxas: error: Entry function 'k' uses too much shared data");
}

TEST_CASE("cuda diagnostics: a file that is hidden and one that does not exist read the same; std headers get a hint") {
  const auto open = [](std::string name) {
    return text("kernel.cu(1): catastrophic error: cannot open source file \"" + name + "\"\n  x\n  ^\n\n" +
                "1 catastrophic error detected in the compilation of \"kevin.cu\".\n");
  };
  CHECK(open("/etc/passwd") == "kernel.cu:1:1: error: <passwd> cannot be included: only CUDA's own headers can");
  CHECK(has(open("cstdint"), "<cuda/std/cstdint>"));
  CHECK_FALSE(has(open("a b"), "a b"));
}

TEST_CASE("cuda diagnostics: no path of the host, nothing invisible, never more than the limit") {
  const std::string raw =
      "kernel.cu(1): error: bad \"/opt/secret/x/file.h\" \x1b[31m \xff\n  x\n  ^\n\n"
      "/etc/passwd(5): error: identifier\n  root:x:0:0\n  ^\n\n"
      "foo(3): error: bla(7): error: name of a file\n\n"
      "3 errors detected in the compilation of \"kevin.cu\".\n";
  const std::string shown = text(raw, "x\n");
  for (const char* bad : {"/opt/secret", "/etc/", "root:x", "\x1b"}) CHECK_FALSE(has(shown, bad));
  CHECK(has(shown, "\\u{1b}"));
  CHECK(has(shown, "\\xff"));
  for (std::size_t limit = 0; limit < 400; limit += 7) CHECK(text(raw, "x\n", limit).size() <= limit);
  CHECK(text("") == "the compiler failed and gave no reason");
}

TEST_CASE("cuda diagnostics: what a kernel needs is read from the assembler's lines, entry by entry") {
  const std::string log =
      "ptxas info    : 0 bytes gmem\n"
      "ptxas info    : Compiling entry function '_Z1kPf' for 'sm_90a'\n"
      "ptxas info    : Function properties for _Z1kPf\n"
      "ptxas         .     1168 bytes stack frame, 1356 bytes spill stores, 1648 bytes spill loads\n"
      "ptxas info    : Used 32 registers, used 1 barriers, 1168 bytes cumulative stack size, 400 bytes smem\n"
      "ptxas info    : Compile time = 62.146 ms\n"
      "ptxas info    : Function properties for _Z6helperf\n"
      "ptxas         .     8 bytes stack frame, 9 bytes spill stores, 9 bytes spill loads\n"
      "ptxas info    : Used 99 registers\n"
      "ptxas info    : Compiling entry function 'b' for 'sm_90a'\n"
      "ptxas info    : Used 4294967295 registers\n"
      "ptxas info    : Compiling entry function 'c\n"
      "ptxas info    : (C7508) Potential Performance Loss: 'setmaxnreg' ignored.\n"
      "ptxas warning : something\nptxas info    : (C7508) Potential Performance Loss: 'setmaxnreg' ignored.\n";
  const auto kernels = kernel_resources(log);
  REQUIRE(kernels.size() == 3);
  CHECK(kernels[0] == KernelResources{"_Z1kPf", 32, 1356, 1648, 1168, 400});
  CHECK(kernels[1] == KernelResources{"b", 0, 0, 0, 0, 0});
  CHECK(assembler_remarks(log, 500) ==
        "ptxas: (C7508) Potential Performance Loss: 'setmaxnreg' ignored.\nptxas: something");

  Compiled c;
  c.cubin = std::string("a\0b", 3);
  c.ptx = "ptx";
  c.remarks = "r";
  c.kernels = kernels;
  const auto back = decode_compiled(encode_compiled(c));
  REQUIRE(back.has_value());
  CHECK(back->cubin == c.cubin);
  CHECK(back->ptx == c.ptx);
  CHECK(back->remarks == "r");
  CHECK(back->kernels == kernels);
  CHECK_FALSE(decode_compiled("").has_value());
  CHECK_FALSE(decode_compiled("9 9 9 9 9 9 \nx").has_value());
}
