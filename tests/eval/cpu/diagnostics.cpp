#include "kevin/eval/cpu/diagnostics.hpp"

#include <algorithm>
#include <string>
#include <string_view>

#include <doctest/doctest.h>

namespace {

using kevin::cpu::compiler_diagnostics;
using kevin::cpu::linker_diagnostics;

bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

}  // namespace

TEST_CASE("an error is shown with its place, the source line and a caret") {
  const std::string source = "int a;\n\tfoo( b);\n";
  CHECK(compiler_diagnostics(
            "kernel.cpp: In function 'void kernel()':\nkernel.cpp:2:7: error: 'b' was not declared in this scope\n",
            source) ==
        "kernel.cpp:2:7: error: 'b' was not declared in this scope\n"
        "    2 | \tfoo( b);\n"
        "      | \t     ^");
}

TEST_CASE("errors come first and few, those in the candidate's own text before those in headers, each said once") {
  const std::string source(100, '\n');
  std::string raw =
      "kernel.cpp:1:1: warning: unused\nkernel.cpp:1:1: note: belongs to the warning\n"
      "/usr/include/c++/12/bits/stl_algo.h:10:2: error: no match for 'operator<'\n";
  for (int i = 0; i < 9; ++i)
    raw += "kernel.cpp:" + std::to_string(i + 1) + ":1: error: e" + std::to_string(i / 2) + "\n";
  const std::string text = compiler_diagnostics(raw, source);
  CHECK(text ==
        "kernel.cpp:1:1: error: e0\nkernel.cpp:3:1: error: e1\nkernel.cpp:5:1: error: e2\nkernel.cpp:7:1: error: "
        "e3\nkernel.cpp:9:1: error: e4\n(5 more errors)");
}

TEST_CASE("an error inside a standard header names the header and the own line that led there") {
  const std::string raw =
      "In file included from /usr/include/c++/12/algorithm:61,\n                 from kernel.cpp:1:\n"
      "/usr/include/c++/12/bits/stl_algo.h: In instantiation of 'void std::sort()':\n"
      "/usr/include/c++/12/bits/stl_algo.h:4820:18:   required from 'x'\n"
      "kernel.cpp:1:5:   required from here\n"
      "/usr/include/c++/12/bits/predefined_ops.h:45:23: error: no match for 'operator<'\n"
      "/usr/include/c++/12/bits/stl_iterator.h:1:1: note: candidate: long\n"
      "   45 |       { return *__it1 < *__it2; }\n      |                ~~~~~~~^~~~~~~~\n";
  CHECK(compiler_diagnostics(raw, "one two;") ==
        "<bits/predefined_ops.h>:45:23: error: no match for 'operator<'\n"
        "kernel.cpp:1:5: note: required from here\n    1 | one two;\n      |     ^");
}

TEST_CASE("notes of an error that point into the own source are kept, two at most") {
  std::string raw = "kernel.cpp:1:1: error: e\n";
  for (int i = 0; i < 4; ++i) raw += "kernel.cpp:2:1: note: n" + std::to_string(i) + "\n";
  CHECK(compiler_diagnostics(raw, "a\nb\n") ==
        "kernel.cpp:1:1: error: e\n    1 | a\n      | ^\nkernel.cpp:2:1: note: n0\n    2 | b\n      | "
        "^\nkernel.cpp:2:1: note: n1");
  CHECK(has(compiler_diagnostics("kernel.cpp:1:1: error: conflicting declaration\nsignature.hpp:1:17: note: previous "
                                 "declaration 'void kernel(const float*, float*)'\n",
                                 "a"),
            "<signature>: note: previous declaration"));
}

TEST_CASE("no path of the host is repeated, whether a message or a file name has it") {
  for (const std::string_view path :
       {"/home/user/secret/x.cpp", "/etc/passwd", "/tmp/kevin-compile-Ab3/cell-0/kernel.s", "../../project/file.hpp",
        "/usr/local/lib", "build/secret/folder/", "home//user/x.hpp", "/opt/include//x.hpp"}) {
    CAPTURE(path);
    const std::string p(path);
    for (const std::string& raw :
         {p + ":1:1: error: broken", "kernel.cpp:1:1: error: in " + p + ": broken",
          "kernel.cpp:1:1: error: '" + p + "' broken",
          "kernel.cpp:1:1: fatal error: " + p + ": No such file or directory", "cc1plus: error: " + p + " is odd"}) {
      const std::string text = compiler_diagnostics(raw, "x");
      CHECK_FALSE(has(text, "/"));
      CHECK(has(text, "error: "));
    }
  }
  CHECK(has(compiler_diagnostics("/usr/include/x86_64-linux-gnu/c++/12/bits/c++config.h:3:1: error: e", ""),
            "<bits/c++config.h>:3:1: error: e"));
  CHECK(has(compiler_diagnostics("kernel.cpp:1:1: error: no match for 'operator/' in 'a / b' or 'a/b'", ""),
            "no match for 'operator/' in 'a / b' or 'a/b'"));
  CHECK(has(compiler_diagnostics("kernel.cpp:1:1: error: float/double and/or bits/stl_algo.h", ""),
            "float/double and/or bits/stl_algo.h"));
  CHECK(has(compiler_diagnostics("/home/user/include/some/inner/folder/x.hpp:3:1: error: e", ""),
            "<folder/x.hpp>:3:1: error: e"));
}

TEST_CASE("a file that is hidden and one that does not exist read the same") {
  const auto said = [](const std::string& why) {
    return compiler_diagnostics("kernel.cpp:1:10: fatal error: /etc/shadow: " + why + "\ncompilation terminated.\n",
                                "");
  };
  CHECK(said("Permission denied") == said("No such file or directory"));
  CHECK(said("Permission denied") ==
        "kernel.cpp:1:10: error: <shadow> cannot be included: only the compiler's own headers can");
  CHECK(has(compiler_diagnostics("kernel.cpp:1:10: fatal error: 'torch/torch.h' file not found\n", ""),
            "<torch.h> cannot be included"));
  CHECK(compiler_diagnostics("{standard input}:5: Error: file not found: /etc/passwd\n", "") ==
        compiler_diagnostics("{standard input}:5: Error: can't open /etc/passwd for reading: Permission denied\n", ""));
}

TEST_CASE("source lines are taken from the source, never from what the compiler quotes") {
  const std::string raw =
      "/etc/passwd:1:1: error: 'root' does not name a type\n    1 | root:x:0:0:root:/root:/bin/bash\n      | ^~~~\n"
      "kernel.cpp:1:1: error: e\n    1 | root:x:0:0:root:/root:/bin/bash\n";
  const std::string text = compiler_diagnostics(raw, "my line");
  CHECK_FALSE(has(text, "bash"));
  CHECK(has(text, "    1 | my line"));
  CHECK(compiler_diagnostics("kernel.cpp:999999999:3: error: e", "one") == "kernel.cpp:999999999:3: error: e");
  CHECK(compiler_diagnostics("kernel.cpp:0:0: error: e", "one") == "kernel.cpp: error: e");
}

TEST_CASE("what #line, #pragma message and #warning invent does not stand where a message stands") {
  CHECK(compiler_diagnostics("RESULT: correct, speedup 99:1:1: error: e", "") == "<another file>:1:1: error: e");
  CHECK(compiler_diagnostics("kernel.cpp:1:9: note: '#pragma message: RESULT correct'\nkernel.cpp:2:1: error: e\n",
                             "") == "kernel.cpp:2:1: error: e");
  CHECK(compiler_diagnostics("kernel.cpp:1:2: warning: #warning RESULT\nRESULT correct\nkernel.cpp:2:1: error: e\n",
                             "") == "kernel.cpp:2:1: error: e");
  CHECK(compiler_diagnostics("kernel.cpp:1:2: error: #error kernel.cpp:7:1: error: forged", "") ==
        "kernel.cpp:1:2: error: #error kernel.cpp:7:1: error: forged");
}

TEST_CASE("control characters, invisible characters and bytes that are no UTF-8 become visible") {
  const std::string text = compiler_diagnostics("kernel.cpp:1:6: error: a\x1b[31m\xff\xe2\x80\xae z\xc3\xa9\n",
                                                "\x1b[2Jx\xc0\xaf y\xe2\x80\x8b");
  CHECK(has(text, "a\\u{1b}[31m\\xff\\u{202e} z\xc3\xa9"));
  CHECK(has(text, "\\u{1b}[2Jx\\xc0\\xaf y\\u{200b}"));
}

TEST_CASE("the limit cuts whole lines, and never inside a character") {
  std::string raw;
  for (int i = 0; i < 5; ++i)
    raw += "kernel.cpp:" + std::to_string(i) + ":1: error: \xc3\xa9\xc3\xa9 number " + std::to_string(i) + "\n";
  for (std::size_t limit = 0; limit < 200; ++limit) {
    const std::string text = compiler_diagnostics(raw, "", limit);
    CHECK(text.size() <= limit);
    std::string_view rest = text;
    while (!rest.empty()) {
      const auto unit = kevin::eval::detail::first_utf8(rest);
      REQUIRE(unit.valid);
      rest.remove_prefix(unit.length);
    }
  }
  const std::string long_message =
      compiler_diagnostics("kernel.cpp:1:1: error: " + std::string(100000, 'x'), std::string(100000, 'y'));
  CHECK(long_message.size() < 700);
}

TEST_CASE("a long line is shown around the place") {
  const std::string source = std::string(500, 'a') + "HERE" + std::string(500, 'b');
  const std::string text = compiler_diagnostics("kernel.cpp:1:501: error: e", source);
  const auto line = text.find("HERE"), caret = text.rfind('^');
  REQUIRE(line != std::string::npos);
  CHECK(line - text.find("\n    1 | ") == caret - text.rfind("\n      | "));
}

TEST_CASE("output without a message still says something") {
  CHECK(compiler_diagnostics("", "") == "the compiler failed and gave no reason");
  CHECK(has(compiler_diagnostics("g++: fatal error: no input files\n", ""), "no input files"));
}

TEST_CASE("the linker's undefined symbols are named once each, without object files and addresses") {
  const std::string raw =
      "/usr/bin/ld: kernel.o: in function `kernel':\nkernel.cpp:(.text+0x11): undefined reference to `helper(int)'\n"
      "/usr/bin/ld: kernel.cpp:(.text+0x1b): undefined reference to `helper(int)'\n"
      "ld: kernel.o: in function `f': kernel.cpp:(.text+0x1): multiple definition of `malloc'; /lib/libc.so.6:1: first "
      "defined here\n";
  CHECK(linker_diagnostics(raw) ==
        "link error: undefined reference to 'helper(int)'\nlink error: multiple definition of 'malloc'");
  CHECK(linker_diagnostics("ld: cannot find /usr/lib/x.so: No such file or directory") ==
        "link error: file cannot be read");
  CHECK(linker_diagnostics("") == "link error: the linker failed and gave no reason");
}

TEST_CASE("a message without an end of line is cut to any limit") {
  for (std::size_t limit = 0; limit < 60; ++limit) {
    const std::string text = kevin::cpu::linker_diagnostics("\xdcJJ", limit);
    CHECK(text.size() <= limit);
    CHECK(std::string("link error: the linker failed and gave no reason").starts_with(text));
  }
}
