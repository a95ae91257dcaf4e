#include "kevin/refine/format.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "refine/fixtures.hpp"

using kevin::canonical;
using kevin::format_response;
using kevin::FormatFault;
using kevin::FormatMode;
using kevin::parse_response;
using kevin::ParsedResponse;
using kevin::Response;
using namespace std::string_literals;

namespace {
const std::string kernel = "extern \"C\" void kernel(const float* x, float* out) {\n  out[0] = x[0];\n}";
const std::string documented =
    "<think>\nA thought.\n</think>\n\n```cpp\n" + kernel + "\n```\n\n<summary>\nA summary.\n</summary>\n";

std::string source_of(const std::string& text) {
  const ParsedResponse parsed = parse_response(text);
  return parsed ? parsed.response.source : "fault: " + std::string(to_string(parsed.error->fault));
}
std::string summary_of(const std::string& text) {
  const ParsedResponse parsed = parse_response(text);
  REQUIRE(parsed.ok());
  CHECK(parsed.response.source == kernel);
  return parsed.response.summary;
}
FormatFault fault_of(const std::string& text, FormatMode mode = FormatMode::lenient) {
  const ParsedResponse parsed = parse_response(text, mode);
  REQUIRE_FALSE(parsed.ok());
  CHECK(parsed.error->position <= text.size());
  CHECK(parsed.error->text.starts_with("line "));
  CHECK(parsed.response.source.empty());
  return parsed.error->fault;
}
}  // namespace

TEST_CASE("the documented form is read in both modes") {
  for (const FormatMode mode : {FormatMode::strict, FormatMode::lenient}) {
    const ParsedResponse parsed = parse_response(documented, mode);
    REQUIRE(parsed.ok());
    CHECK(parsed.response == Response{"A thought.", "A summary.", kernel});
  }
}

TEST_CASE("the documented form is what format_response writes") {
  CHECK(format_response({"A thought.", "A summary.", kernel}) == documented);
  CHECK(format_response({"", "", kernel}) == "```cpp\n" + kernel + "\n```\n\n");
  CHECK(format_response({}) == "");
}

TEST_CASE("the thought may be missing in strict mode; nothing else may") {
  const std::string code = "```cpp\n" + kernel + "\n```\n";
  const std::string summary = "<summary>s</summary>";
  CHECK(parse_response(code + summary, FormatMode::strict).ok());
  CHECK(parse_response("\n\r\n " + code + "\n\n" + summary + "\n \n", FormatMode::strict).ok());
  CHECK(parse_response("~~~~cuda\n" + kernel + "\n~~~~\n" + summary, FormatMode::strict).ok());
  CHECK(fault_of("", FormatMode::strict) == FormatFault::empty_text);
  CHECK(fault_of(" \r\n\t", FormatMode::strict) == FormatFault::empty_text);
  CHECK(fault_of(summary, FormatMode::strict) == FormatFault::no_code_block);
  CHECK(fault_of(code, FormatMode::strict) == FormatFault::missing_summary);
  CHECK(fault_of(code + "<summary> \n </summary>", FormatMode::strict) == FormatFault::missing_summary);
  CHECK(fault_of(code + "<summary>s", FormatMode::strict) == FormatFault::missing_summary);
  CHECK(fault_of(code + "Summary: s", FormatMode::strict) == FormatFault::unexpected_text);
  CHECK(fault_of(code + summary + "bye", FormatMode::strict) == FormatFault::unexpected_text);
  CHECK(fault_of("Sure!\n" + code + summary, FormatMode::strict) == FormatFault::unexpected_text);
  CHECK(fault_of(code + code + summary, FormatMode::strict) == FormatFault::several_code_blocks);
  CHECK(fault_of("```cpp\nhalf\n" + code + summary, FormatMode::strict) == FormatFault::several_code_blocks);
  CHECK(fault_of("```\n" + kernel + "\n```\n" + summary, FormatMode::strict) == FormatFault::wrong_language);
  CHECK(fault_of("```python\n" + kernel + "\n```\n" + summary, FormatMode::strict) == FormatFault::wrong_language);
  CHECK(fault_of("```cpp\n" + kernel + "\n" + summary, FormatMode::strict) == FormatFault::unclosed_code_block);
  CHECK(fault_of("```cpp", FormatMode::strict) == FormatFault::unclosed_code_block);
  CHECK(fault_of("```cpp\n \n```\n" + summary, FormatMode::strict) == FormatFault::empty_code_block);
  CHECK(fault_of("```cpp\n```\n" + summary, FormatMode::strict) == FormatFault::empty_code_block);
  CHECK(fault_of("<think>" + code + summary, FormatMode::strict) == FormatFault::unclosed_thought);
  CHECK(fault_of("<think>" + code + "</think>" + summary, FormatMode::strict) == FormatFault::code_only_in_thought);
  CHECK(fault_of("<think>t</think>", FormatMode::strict) == FormatFault::no_code_block);
  CHECK(fault_of(documented + "\0"s, FormatMode::strict) == FormatFault::invalid_text);
  CHECK(fault_of(documented + "\xFF", FormatMode::strict) == FormatFault::invalid_text);
}

TEST_CASE("a fault says where it is") {
  const ParsedResponse unclosed = parse_response("Here.\n\n```cpp\nint i;\n");
  REQUIRE_FALSE(unclosed.ok());
  CHECK(unclosed.error->fault == FormatFault::unclosed_code_block);
  CHECK(unclosed.error->position == 7);
  CHECK(unclosed.error->text.starts_with("line 3: "));
  const ParsedResponse invalid = parse_response("ab\n\xC3(", FormatMode::strict);
  CHECK(invalid.error->position == 3);
  CHECK(invalid.error->text.starts_with("line 2: "));
  const kevin::Verdict verdict = to_verdict(*unclosed.error);
  CHECK(verdict.stage == kevin::Stage::format);
  CHECK(verdict.reason == "unclosed_code_block");
  CHECK(verdict.diagnostics == unclosed.error->text);
}

TEST_CASE("every fault has its own stable word") {
  std::vector<std::string_view> words;
  for (int f = 0; f <= static_cast<int>(FormatFault::invalid_text); ++f)
    words.push_back(to_string(static_cast<FormatFault>(f)));
  std::sort(words.begin(), words.end());
  CHECK(std::adjacent_find(words.begin(), words.end()) == words.end());
}

TEST_CASE("of several blocks the last complete kernel counts") {
  const std::string first = "```cpp\nextern \"C\" void kernel() { /* 1 */ }\n```\n";
  const std::string last = "```cpp\n" + kernel + "\n```\n";
  CHECK(source_of(first + "Better:\n" + last) == kernel);
  CHECK(source_of(last + "Build it with\n```bash\nmake\n```\n") == kernel);
  CHECK(source_of(last + "where the trick is\n```cpp\nx = _mm256_fmadd_ps(a, b, x);\n```\n") == kernel);
  CHECK(source_of(last + "Output:\n```\n1 2 3\n```\n") == kernel);
  CHECK(source_of(last + "And then\n```cpp\nextern \"C\" void kernel() { cut") == kernel);
  CHECK(source_of("```cpp\nint a;\n```\n```cpp\nint b;\n```\n") == "int b;");
  CHECK(source_of("```cpp\n\n```\n```\n" + kernel + "\n```\n") == kernel);
}

TEST_CASE("marks of other languages, other fences and indentation are understood") {
  CHECK(source_of("```\n" + kernel + "\n```") == kernel);
  CHECK(source_of("```C++ title=kernel\n" + kernel + "\n```") == kernel);
  CHECK(source_of("~~~~cuda\n" + kernel + "\n~~~~") == kernel);
  CHECK(source_of("```python\n" + kernel + "\n```") == kernel);  // marked wrongly
  CHECK(source_of("1. So:\n   ```cpp\n" + kernel + "\n   ```") == kernel);
  CHECK(source_of("```cpp\n" + kernel + "```") == kernel);
  CHECK(source_of("The code: ```cpp\n" + kernel + "\n```") == kernel);
  CHECK(source_of("```cpp\nextern \"C\" void kernel() {}\n``` That is all.\n") == "extern \"C\" void kernel() {}");
  CHECK(fault_of("```python\nprint(1)\n```") == FormatFault::wrong_language);
  CHECK(source_of("```\nint x;\n```") == "int x;");
}

TEST_CASE("nested fences are taken apart") {
  CHECK(source_of("```markdown\n```cpp\n" + kernel + "\n```\n```\n") == kernel);
  CHECK(source_of("````\nLook:\n```cpp\n" + kernel + "\n```\n````\n") == kernel);
  const std::string commented = "/* usage:\n```cpp\nkernel(x, out);\n```\n*/\n" + kernel;
  CHECK(source_of("```cpp\n" + commented + "\n```\n") == commented);
  CHECK(source_of("````cpp\n" + commented + "\n````\n") == commented);
  CHECK(source_of("```cpp\n" + kernel.substr(0, 20) + "\n```cpp\n" + kernel + "\n```\nSummary: again") == kernel);
}

TEST_CASE("code that is only part of a thought is no answer") {
  const std::string code = "```cpp\n" + kernel + "\n```\n";
  CHECK(fault_of("<think>" + code + "</think>\nDone.") == FormatFault::code_only_in_thought);
  CHECK(fault_of(code + "</think>\nDone.") == FormatFault::code_only_in_thought);
  CHECK(fault_of("<think>\nLet me see\n" + code) == FormatFault::unclosed_thought);
  CHECK(source_of("<think>```cpp\ndraft\n```</think>" + code) == kernel);
  CHECK(source_of("<think>```cpp\nunclosed draft</think>" + code) == kernel);
}

TEST_CASE("thoughts are found in the forms that models write") {
  const std::string code = "\n```cpp\n" + kernel + "\n```\n";
  const auto thought_of = [&](const std::string& text) {
    const ParsedResponse parsed = parse_response(text);
    REQUIRE(parsed.ok());
    CHECK(parsed.response.source == kernel);
    return parsed.response.thought;
  };
  CHECK(thought_of("<think>a\nb</think>" + code) == "a\nb");
  CHECK(thought_of("a\nb\n</think>" + code) == "a\nb");  // the template wrote the opening tag
  CHECK(thought_of("<THINK>a</Think>" + code) == "a");
  CHECK(thought_of("<thinking>a</thinking>" + code) == "a");
  CHECK(thought_of("Well.\n<think>a</think>\nSo.\n<think>b</think>" + code) == "a\nb");
  CHECK(thought_of(code + "<think>after</think>") == "after");
  CHECK(thought_of(code) == "");
  CHECK(thought_of("I did not need the <think> tag." + code) == "");
  CHECK(thought_of(code + "<think>\ncut off") == "");  // the kernel was complete before
}

TEST_CASE("summaries are found in the forms that models write") {
  const std::string code = "```cpp\n" + kernel + "\n```\n";
  CHECK(summary_of(code + "<summary>\nFast.\n</summary>") == "Fast.");
  CHECK(summary_of(code + "Text. <SUMMARY>Fast.</SUMMARY> More.") == "Fast.");
  CHECK(summary_of(code + "<summary>\nFast, cut o") == "Fast, cut o");
  CHECK(summary_of("<summary>Before.</summary>\n" + code) == "Before.");
  CHECK(summary_of("<summary>Before.</summary>\n" + code + "<summary>After.</summary>") == "After.");
  CHECK(summary_of(code + "Summary: Fast.") == "Fast.");
  CHECK(summary_of(code + "Bla.\n\n## Summary\n\nFast.\nVery.") == "Fast.\nVery.");
  CHECK(summary_of(code + "**Summary:** Fast.") == "Fast.");
  CHECK(summary_of(code + "**Summary**\nFast.") == "Fast.");
  CHECK(summary_of(code + "Summary of changes: Fast.") == "Fast.");
  CHECK(summary_of("Summary: Before.\n" + code) == "Before.");
  CHECK(summary_of(code + "It is vectorised.\n") == "It is vectorised.");
  CHECK(summary_of("Here it is.\n" + code) == "Here it is.");
  CHECK(summary_of(code) == "");
  CHECK(summary_of(code + "Build:\n```bash\nmake\n```\nand run.") == "Build:\n\nand run.");
  CHECK(summary_of(code + "Then\n```cpp\ncut") == "Then");
  CHECK(summary_of("<think>Summary: no.</think>\n" + code + "Yes.") == "Yes.");
}

TEST_CASE("line ends, NUL and invalid UTF-8 do no harm in lenient mode") {
  std::string crlf;
  for (const char c : documented) crlf += c == '\n' ? "\r\n" : std::string(1, c);
  CHECK(parse_response(crlf).response == parse_response(documented).response);
  CHECK(parse_response(crlf, FormatMode::strict).response == parse_response(documented).response);
  const ParsedResponse parsed = parse_response("```cpp\nint a; // \xFF\0\n```\n\xC3"s);
  REQUIRE(parsed.ok());
  CHECK(parsed.response.source == "int a; // \xEF\xBF\xBD\xEF\xBF\xBD");
  CHECK(parsed.response.summary == "\xEF\xBF\xBD");
  CHECK(parse_response("\xEF\xBB\xBF" + documented).response == parse_response(documented).response);
  CHECK(fault_of("\0\0"s) == FormatFault::no_code_block);
}

TEST_CASE("answers without a kernel say why") {
  CHECK(fault_of("") == FormatFault::empty_text);
  CHECK(fault_of("\n \n") == FormatFault::empty_text);
  CHECK(fault_of("I cannot do that.") == FormatFault::no_code_block);
  CHECK(fault_of(kernel) == FormatFault::no_code_block);
  CHECK(fault_of("`code` and ```inline```") == FormatFault::no_code_block);
  CHECK(fault_of("```cpp\n```") == FormatFault::empty_code_block);
  CHECK(fault_of("```cpp\n" + kernel) == FormatFault::unclosed_code_block);
}

TEST_CASE("blank lines and line ends of a source survive") {
  for (const std::string& source : {"int a;"s, "int a;\n"s, "\n\nint a;\n\n\n"s, "  int a;"s}) {
    CHECK(parse_response(format_response({"", "s", source})).response.source == source);
  }
}

TEST_CASE("any response survives writing and reading in its canonical form") {
  kevin::Rng rng(2024);
  int strict = 0;
  for (int round = 0; round < 20000; ++round) {
    const Response r{kevin_test::hostile_text(rng, rng.below(8)), kevin_test::hostile_text(rng, rng.below(8)),
                     kevin_test::hostile_text(rng, 1 + rng.below(12))};
    const Response c = canonical(r);
    REQUIRE(canonical(c) == c);
    if (c.source.empty()) continue;
    const std::string text = format_response(r);
    CAPTURE(text);
    const ParsedResponse lenient = parse_response(text);
    REQUIRE(lenient.ok());
    REQUIRE(lenient.response == c);
    if (c.summary.empty()) continue;
    ++strict;
    REQUIRE(parse_response(text, FormatMode::strict).ok());
    REQUIRE(parse_response(text, FormatMode::strict).response == c);
  }
  CHECK(strict > 10000);
}

TEST_CASE("any text gives a clean response or a fault with a place") {
  kevin::Rng rng(7);
  int read = 0;
  for (int round = 0; round < 20000; ++round) {
    const std::string text = kevin_test::hostile_text(rng, rng.below(40));
    CAPTURE(text);
    const ParsedResponse parsed = parse_response(text);
    const ParsedResponse strict = parse_response(text, FormatMode::strict);
    if (strict.ok()) REQUIRE(strict.response == parsed.response);
    if (parsed.ok()) {
      ++read;
      REQUIRE_FALSE(kevin::detail::blank(parsed.response.source));
      for (const std::string& part : {parsed.response.thought, parsed.response.summary, parsed.response.source}) {
        REQUIRE(kevin::detail::find_unclean(part) == std::string::npos);
        REQUIRE(part.find('\r') == std::string::npos);
      }
    } else {
      REQUIRE(parsed.error->position <= text.size());
      REQUIRE_FALSE(parsed.error->text.empty());
    }
  }
  CHECK(read > 1000);
}

TEST_CASE("texts of megabytes made to be slow are read in linear time") {
  // Not timed: what is quadratic in the number of parts takes many times the test's time limit.
  const std::size_t size = 2U << 20U;
  const auto repeat = [&](std::string_view part) {
    std::string text;
    text.reserve(size + part.size());
    while (text.size() < size) text += part;
    return text;
  };
  for (const std::string_view part : {"```cpp\n",
                                      "```cpp\n}```\n",
                                      "~~~\n```x\n",
                                      "<think>",
                                      "<think>\n",
                                      "a <think> b\n",
                                      "</think>",
                                      "<summary>\n",
                                      "<summary>",
                                      "</summary>\n",
                                      "`",
                                      "```\n",
                                      "```cpp\nx\n```\n",
                                      "Summary",
                                      "Summary:\n",
                                      "<",
                                      "</",
                                      "\xFF",
                                      "\r",
                                      "\n",
                                      "```markdown\n```cpp\nx\n```\n",
                                      "<think></think>",
                                      "<summary></summary>\n",
                                      "<summary></summary>",
                                      "````cpp\n```cpp\n",
                                      "x ```cpp\n"}) {
    CAPTURE(part);
    const std::string text = repeat(part);
    const ParsedResponse lenient = parse_response(text);
    const ParsedResponse strict = parse_response(text, FormatMode::strict);
    CHECK((lenient.ok() || lenient.error->position <= text.size()));
    CHECK_FALSE(strict.ok());
    const ParsedResponse inside = parse_response("```cpp\n" + text + "\n```\n<summary>s</summary>\n");
    CHECK((inside.ok() || inside.error->position <= text.size() + 64));
    const ParsedResponse after = parse_response("```cpp\nx\n```\n" + text + "<think>");
    CHECK((after.ok() || after.error->position <= text.size() + 64));
  }
  const std::string source = repeat("float x = 1.0f; // ``` <think> </summary>\n");
  CHECK(parse_response(format_response({repeat("</think>"), "s", source})).response.source == source);
}
