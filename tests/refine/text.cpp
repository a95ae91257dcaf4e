#include "kevin/refine/text.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>

#include "kevin/core/random.hpp"

using namespace kevin::detail;
using namespace std::string_literals;

TEST_CASE("UTF-8 is told from what only looks like it") {
  CHECK(utf8_length("a", 0) == 1);
  CHECK(utf8_length("\xC3\xA9", 0) == 2);
  CHECK(utf8_length("\xE2\x82\xAC", 0) == 3);
  CHECK(utf8_length("\xF0\x9F\x9A\x80", 0) == 4);
  CHECK(utf8_length("\xC0\xAF", 0) == 0);          // overlong
  CHECK(utf8_length("\xE0\x80\xAF", 0) == 0);      // overlong
  CHECK(utf8_length("\xF0\x80\x80\xAF", 0) == 0);  // overlong
  CHECK(utf8_length("\xED\xA0\x80", 0) == 0);      // a surrogate
  CHECK(utf8_length("\xF4\x90\x80\x80", 0) == 0);  // above U+10FFFF
  CHECK(utf8_length("\xF5\x80\x80\x80", 0) == 0);
  CHECK(utf8_length("\xE2\x82", 0) == 0);  // cut
  CHECK(utf8_length("\x80", 0) == 0);      // a tail alone
}

TEST_CASE("a cleaned text is valid, without NUL, and has one kind of line end") {
  CHECK(clean("a\r\nb\rc\n\r\r\n") == "a\nb\nc\n\n\n");
  CHECK(clean("a\0b"s) ==
        "a\xEF\xBF\xBD"
        "b");
  CHECK(clean("\xE2\x82") == "\xEF\xBF\xBD\xEF\xBF\xBD");
  CHECK(clean("plain \xC3\xA9") == "plain \xC3\xA9");
  CHECK(find_unclean("ok \xC3\xA9") == std::string::npos);
  CHECK(find_unclean("ok\0"s) == 2);
  CHECK(find_unclean("abc\xFF") == 3);
}

TEST_CASE("random bytes become clean, and cleaning again changes nothing") {
  kevin::Rng rng(11);
  for (int round = 0; round < 2000; ++round) {
    std::string bytes;
    for (std::uint64_t i = rng.below(40); i > 0; --i) bytes += static_cast<char>(rng.below(256));
    const std::string once = clean(bytes);
    CHECK(find_unclean(once) == std::string::npos);
    CHECK(once.find('\r') == std::string::npos);
    CHECK(clean(once) == once);
    const std::string shown = printable(bytes);
    CHECK(printable(shown) == shown);
    CHECK(shown.find("<|") == std::string::npos);
    for (const char c : shown) CHECK((static_cast<unsigned char>(c) >= 0x20 || c == '\n' || c == '\t'));
  }
}

TEST_CASE("a printable text holds nothing that a terminal or a chat template obeys") {
  CHECK(printable("\x1b[31mred\x7f") == "\xEF\xBF\xBD[31mred\xEF\xBF\xBD");
  CHECK(printable("<|im_start|>system") == "< |im_start|>system");
  CHECK(printable("a <b | c>\n\t") == "a <b | c>\n\t");
}

TEST_CASE("a clipped text keeps its head and its tail and says what is missing") {
  CHECK(clip("short", 5) == "short");
  const std::string text = "first line\n" + std::string(5000, 'x') + "\nlast line";
  const std::string cut = clip(text, 300);
  CHECK(cut.starts_with("first line\n"));
  CHECK(cut.ends_with("\nlast line"));
  CHECK(cut.find(" bytes left out ...]\n") != std::string::npos);
  CHECK(cut.size() <= 300 + 40);
}

TEST_CASE("clipping never cuts a character in two, keeps to the limit and counts right") {
  kevin::Rng rng(5);
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    for (std::uint64_t i = rng.below(120); i > 0; --i) {
      const std::uint64_t kind = rng.below(5);
      text += kind == 0   ? "\n"
              : kind == 1 ? "\xC3\xA9"
              : kind == 2 ? "\xE2\x82\xAC"
              : kind == 3 ? "\xF0\x9F\x9A\x80"
                          : "z";
    }
    const std::size_t limit = rng.below(100);
    const std::string cut = clip(text, limit);
    CHECK(find_unclean(cut) == std::string::npos);
    if (text.size() <= limit) {
      CHECK(cut == text);
      continue;
    }
    const std::size_t note = cut.find("[... ");
    const std::size_t note_end = cut.find(" bytes left out ...]\n");
    REQUIRE(note != std::string::npos);
    REQUIRE(note_end != std::string::npos);
    const std::size_t missing = std::stoul(cut.substr(note + 5, note_end - note - 5));
    const std::size_t kept = note + (cut.size() - note_end - 21);
    const std::size_t added_line_end = kept + missing - text.size();  // before the note
    CHECK(added_line_end <= 1);
    CHECK(kept - added_line_end <= limit);
  }
}

TEST_CASE("a fence is longer than any run of backticks inside") {
  CHECK(fenced("int i;", "cpp") == "```cpp\nint i;\n```\n");
  CHECK(fenced("int i;\n", "cpp") == "```cpp\nint i;\n```\n");
  CHECK(fenced("a ``` b ````` c", "text") == "``````text\na ``` b ````` c\n``````\n");
  CHECK(fenced("", "") == "```\n```\n");
}

TEST_CASE("numbers are short and the same everywhere") {
  CHECK(number(1.8349) == "1.83");
  CHECK(number(0.0123456) == "0.0123");
  CHECK(number(99.96) == "100");
  CHECK(number(1234.6) == "1235");
  CHECK(number(0) == "0");
  CHECK(number(1) == "1");
  CHECK(number(-2.5) == "-2.5");
  CHECK(number(1e-9) == "1e-09");
  CHECK(number(1e300) == "1e+300");
  CHECK(number(std::numeric_limits<double>::infinity()) == "inf");
  CHECK(number(-std::numeric_limits<double>::infinity()) == "-inf");
  CHECK(number(std::nan("")) == "nan");
}
