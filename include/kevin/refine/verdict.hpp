#ifndef KEVIN_REFINE_VERDICT_HPP
#define KEVIN_REFINE_VERDICT_HPP

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace kevin {

/// A kernel that an agent proposes.
struct Candidate {
  std::string source;
  friend bool operator==(const Candidate&, const Candidate&) = default;
};

/// How far a candidate came. Exactly one of these is fed back (Kevin-32B, arXiv 2507.11948, appendix D).
enum class Stage {
  format,       ///< no kernel could be taken from the answer
  compile,      ///< it does not compile (or link)
  run,          ///< it compiled and then crashed, hung, broke a limit or a rule while running
  correctness,  ///< it ran and its output is wrong
  correct,      ///< its output is right
};

[[nodiscard]] constexpr std::string_view to_string(Stage s) noexcept {
  switch (s) {
    case Stage::format:
      return "format";
    case Stage::compile:
      return "compile";
    case Stage::run:
      return "run";
    case Stage::correctness:
      return "correctness";
    case Stage::correct:
      return "correct";
  }
  return "format";
}

/// How a wrong output differs from the expected one. The expected values themselves are never told.
struct ErrorFigures {
  std::int64_t elements = 0;    ///< compared
  std::int64_t wrong = 0;       ///< outside the tolerance (NaN included)
  std::int64_t unwritten = 0;   ///< still hold the poison that was there before the launch
  std::int64_t not_finite = 0;  ///< NaN or infinity where the expected value is finite
  double max_absolute = 0;      ///< largest |candidate - expected| over finite elements
  double max_relative = 0;      ///< largest |candidate - expected| / |expected|, expected != 0
  /// Elements that KernelBench's own check would not accept, whatever the task's tolerance says; it accepts an output
  /// when there is none. Decides nothing. The rule stands in docs/evaluator.md.
  std::int64_t outside_kernelbench = 0;
  friend bool operator==(const ErrorFigures&, const ErrorFigures&) = default;
};

/// Repeated measurements of one side. Milliseconds.
struct Timing {
  double median_ms = 0;
  double low_ms = 0;   ///< 95 % confidence bound of the median, below
  double high_ms = 0;  ///< and above
  std::int64_t samples = 0;
  friend bool operator==(const Timing&, const Timing&) = default;
};

/// What the evaluator found about one candidate.
struct Verdict {
  Stage stage = Stage::format;
  /// A short, stable word for the cause when stage is not `correct`: "syntax", "timeout", "segmentation_fault",
  /// "unwritten_output", ... Empty when correct.
  std::string reason;
  /// For the agent: what went wrong, short, without paths or other details of the host.
  std::string diagnostics;
  std::optional<ErrorFigures> error;  ///< set when outputs were compared
  std::optional<Timing> candidate;    ///< set when timed
  std::optional<Timing> baseline;     ///< the reference, timed in the same session, interleaved
  std::optional<double> speedup;      ///< baseline time / candidate time; set when both were timed
  /// Below which no kernel for this task can stay on this device (tasks/cost.hpp); set when timed and known.
  std::optional<double> speed_of_light_ms;
  std::vector<std::string> flags;  ///< remarks that do not change the stage
  double compile_ms = 0;           ///< time spent compiling; 0 when compile_cached
  double evaluate_ms = 0;          ///< everything else
  bool compile_cached = false;

  [[nodiscard]] bool correct() const noexcept { return stage == Stage::correct; }
};

/// One line for a person: "correct, 1.83x (0.212 ms, baseline 0.388 ms)", "compile (error): expected ..."
inline std::ostream& operator<<(std::ostream& out, const Verdict& v) {
  if (!v.correct()) {
    out << (v.stage == Stage::correctness ? std::string_view("wrong output") : to_string(v.stage));
    if (!v.reason.empty()) out << " (" << v.reason << ')';
    const std::string_view first = std::string_view(v.diagnostics).substr(0, v.diagnostics.find('\n'));
    if (!first.empty()) out << ": " << first;
    return out;
  }
  out << "correct";
  if (v.speedup && v.candidate && v.baseline) {
    const auto old = out.precision(3);
    out << ", " << *v.speedup << "x (" << v.candidate->median_ms << " ms, baseline " << v.baseline->median_ms << " ms)";
    out.precision(old);
  }
  return out;
}

}  // namespace kevin

#endif  // KEVIN_REFINE_VERDICT_HPP
