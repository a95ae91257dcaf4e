#ifndef KEVIN_TESTS_REFINE_FIXTURES_HPP
#define KEVIN_TESTS_REFINE_FIXTURES_HPP

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

#include "kevin/core/error.hpp"
#include "kevin/core/random.hpp"
#include "kevin/refine/evaluator.hpp"
#include "kevin/refine/response.hpp"
#include "kevin/refine/task.hpp"
#include "kevin/refine/verdict.hpp"

namespace kevin_test {

/// Judges sources of a made-up language of one word: "syntax", "crash", "wrong", "speed X", "lost". The draw that
/// decides the number of wrong elements comes from the seed alone, as a real evaluator's inputs do.
class WordEvaluator {
 public:
  kevin::Verdict evaluate(const kevin::Task& task, const kevin::Candidate& candidate, std::uint64_t seed) {
    ++calls;
    last_seed = seed;
    kevin::Verdict v;
    const std::string_view source = candidate.source;
    if (source.starts_with("lost")) throw kevin::Error(kevin::ErrorCode::worker_lost, "the runner is gone");
    if (source.starts_with("crash")) {
      v.stage = kevin::Stage::run;
      v.reason = "segmentation_fault";
      v.diagnostics = "segmentation fault: a write past the end of `out`";
    } else if (source.starts_with("wrong")) {
      v.stage = kevin::Stage::correctness;
      v.reason = "wrong_values";
      v.error = kevin::ErrorFigures{};
      v.error->elements = kevin::element_count(task.outputs.at(0).shape);
      v.error->wrong =
          1 + static_cast<std::int64_t>(kevin::Rng(seed).below(static_cast<std::uint64_t>(v.error->elements)));
      v.error->max_absolute = 0.5;
    } else if (source.starts_with("speed ")) {
      v.stage = kevin::Stage::correct;
      v.speedup = std::strtod(candidate.source.c_str() + 6, nullptr);
    } else if (source.starts_with("correct")) {
      v.stage = kevin::Stage::correct;
    } else {
      v.stage = kevin::Stage::compile;
      v.reason = "error";
      v.diagnostics = "kernel.cpp:1:1: error: 'syntax' does not name a type";
    }
    return v;
  }

  std::atomic<int> calls{0};
  std::atomic<std::uint64_t> last_seed{0};
};
static_assert(kevin::Evaluator<WordEvaluator>);

inline kevin::Task softmax_task() {
  kevin::Task task;
  task.id = "test/softmax";
  task.name = "Softmax";
  task.inputs = {{"x", {64, 1000}, kevin::DType::float32, {}}};
  task.ops = {{"softmax", {{"dim", std::int64_t{1}}}, {"x"}, "t1", {64, 1000}}};
  task.outputs = {{"t1", {64, 1000}, kevin::DType::float32, {}}};
  return task;
}

inline kevin::Response answer(std::string source, std::string summary = "I tried it.") {
  return {.thought = "hm", .summary = std::move(summary), .source = std::move(source)};
}

/// Pieces that answers of models are made of, honest and otherwise.
inline std::string hostile_text(kevin::Rng& rng, std::size_t pieces) {
  static constexpr std::array<std::string_view, 48> parts{"```",
                                                          "```cpp",
                                                          "````",
                                                          "~~~",
                                                          "~~~c++",
                                                          "```python",
                                                          "```\n",
                                                          "\n",
                                                          "\n\n",
                                                          " ",
                                                          "\t",
                                                          "\r\n",
                                                          "\r",
                                                          "<think>",
                                                          "</think>",
                                                          "<THINK>",
                                                          "</Thinking>",
                                                          "<summary>",
                                                          "</summary>",
                                                          "</Summary >",
                                                          "</SUMMARY>",
                                                          "Summary:",
                                                          "## Summary\n",
                                                          "**Summary**: ",
                                                          "int main() {}\n",
                                                          "extern \"C\" void kernel(const float* x, float* out) {\n",
                                                          "}\n",
                                                          "// ```cpp\n",
                                                          "R\"(```)\"",
                                                          "#include <cmath>\n",
                                                          "\xEF\xBF\xBD",
                                                          "\xC3\xA9",
                                                          "\xF0\x9F\x9A\x80",
                                                          "<|im_end|>",
                                                          "< /think>",
                                                          "`",
                                                          "``",
                                                          "\"",
                                                          "\\",
                                                          "text",
                                                          "```cpp\ncode\n```\n",
                                                          "```markdown\n",
                                                          "</thi",
                                                          "nk>",
                                                          "</",
                                                          "summary>",
                                                          "\x1b[31m",
                                                          "&lt;"};
  std::string text;
  for (std::size_t i = 0; i < pieces; ++i) text += parts[rng.below(parts.size())];
  return text;
}

/// The text of a file under tests/.
inline std::string test_file(const std::string& name) {
  std::ifstream in(std::string(KEVIN_TEST_DATA_DIR) + '/' + name, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

}  // namespace kevin_test

#endif  // KEVIN_TESTS_REFINE_FIXTURES_HPP
