#include "kevin/refine/fenced_blocks.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace kevin::detail;

namespace {
std::vector<std::string> contents(std::string_view text, bool eager = false) {
  const Scan scan = Scanner(text, eager).run(0);
  std::vector<std::string> all;
  for (const Piece& p : scan.pieces) {
    if (p.kind == Piece::Kind::block) all.emplace_back(p.content.of(text));
  }
  return all;
}
using Texts = std::vector<std::string>;
}  // namespace

TEST_CASE("a fence line is three or more marks with an optional info string") {
  CHECK(fence_line("```").length == 3);
  CHECK(fence_line("  ~~~~ c++ title").info == "c++ title");
  CHECK(fence_line("\t```cpp").info == "cpp");
  CHECK_FALSE(fence_line("``"));
  CHECK_FALSE(fence_line("text ```"));
  CHECK_FALSE(fence_line("```code```"));  // inline code
  CHECK_FALSE(fence_line(""));
  CHECK(fence_line("~~~ a`b").info == "a`b");
}

TEST_CASE("languages go by many names") {
  for (const char* name : {"cpp", "C++", "c", "CUDA", "cu", "cuda-cpp", "c++20", "cpp title=\"x\"", "cpp:kernel.cpp",
                           "{.cpp}", "cxx", "hpp"}) {
    CAPTURE(name);
    CHECK(language_of(name) == Language::cpp);
  }
  for (const char* name : {"python", "text", "csharp", "cmake", "css", "cobol"}) {
    CAPTURE(name);
    CHECK(language_of(name) == Language::other);
  }
  CHECK(language_of("") == Language::none);
}

TEST_CASE("blocks are found with their contents") {
  CHECK(contents("```cpp\na\nb\n```\ntext\n~~~\nc\n~~~") == Texts{"a\nb", "c"});
  CHECK(contents("```cpp\n```") == Texts{""});
  CHECK(contents("```cpp\r\na\r\n```\r\n") == Texts{"a"});
  CHECK(contents("```cpp\na") == Texts{});
}

TEST_CASE("a fence of the other mark or a shorter one does not close a block") {
  CHECK(contents("````cpp\n```\n~~~\n`````x\n````\n") == Texts{"```\n~~~\n`````x"});
  CHECK(contents("~~~cpp\n```\nx\n~~~\n") == Texts{"```\nx"});
  CHECK(contents("```cpp\nx\n`````\n") == Texts{"x"});  // a longer one does
}

TEST_CASE("C++ blocks swallow what is nested in them, other blocks give way to it") {
  CHECK(contents("```cpp\n/*\n```cpp\nexample\n```\n*/\nreal\n```\n") == Texts{"/*\n```cpp\nexample\n```\n*/\nreal"});
  CHECK(contents("```markdown\nLook:\n```cpp\nreal\n```\n```\n") == Texts{"real"});
  CHECK(contents("````markdown\nLook:\n```cpp\nreal\n```\n````\n") == Texts{"real"});
  CHECK(contents("```cpp\nstarted, then again\n```cpp\nreal\n```\n") == Texts{"real"});
}

TEST_CASE("eager scanning takes fences that share their line with text") {
  CHECK(contents("```cpp\nvoid f() {}```\ntext") == Texts{});
  CHECK(contents("```cpp\nvoid f() {}```\ntext", true) == Texts{"void f() {}"});
  CHECK(contents("Here it is: ```cpp\nx\n```\n", true) == Texts{"x"});
  CHECK(contents("```cpp\nx\n``` and that is all\n", true) == Texts{"x"});
}

TEST_CASE("thoughts and summaries are pieces of their own and their fences are not seen") {
  const std::string text =
      "<think>\n```cpp\ndraft\n```\n</think>\n```cpp\nreal\n```\n<summary>\n```\nx\n```\n</summary>\n";
  const Scan scan = Scanner(text, false).run(0);
  REQUIRE(scan.pieces.size() == 3);
  CHECK(scan.pieces[0].kind == Piece::Kind::thought);
  CHECK(scan.pieces[0].content.of(text) == "\n```cpp\ndraft\n```\n");
  CHECK(scan.pieces[1].kind == Piece::Kind::block);
  CHECK(scan.pieces[1].content.of(text) == "real");
  CHECK(scan.pieces[2].kind == Piece::Kind::summary);
  CHECK(scan.pieces[2].content.of(text) == "\n```\nx\n```\n");
}

TEST_CASE("what is never closed is reported with its place") {
  CHECK(Scanner("ab\n```cpp\nx", false).run(0).unclosed_fence == 3);
  CHECK(Scanner("ab\n<think>\nx", false).run(0).unclosed_thought == 3);
  CHECK(Scanner("the `<think>` tag\n", false).run(0).unclosed_thought == std::string::npos);  // only mentioned
}
