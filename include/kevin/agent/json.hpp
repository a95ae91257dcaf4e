#ifndef KEVIN_AGENT_JSON_HPP
#define KEVIN_AGENT_JSON_HPP

#include <cmath>
#include <optional>

#include <nlohmann/json.hpp>

#include "kevin/core/policy.hpp"
#include "kevin/core/reward.hpp"
#include "kevin/core/step.hpp"
#include "kevin/refine/response.hpp"
#include "kevin/refine/verdict.hpp"

/// How the library's types are written as JSON (found by nlohmann-json through their namespace). A user's own action or
/// info type appears in the log when it has a to_json of its own.
namespace kevin {

/// A number as JSON knows it: NaN and infinity, which strict JSON lacks, become null.
[[nodiscard]] inline nlohmann::json json_number(double x) {
  return std::isfinite(x) ? nlohmann::json(x) : nlohmann::json();
}

/// One line, strict JSON; bytes that are not UTF-8 are replaced.
[[nodiscard]] inline std::string json_line(const nlohmann::json& j) {
  return j.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

inline void to_json(nlohmann::json& j, const NoInfo&) { j = nullptr; }

inline void to_json(nlohmann::json& j, const Score& s) {
  j = {{"value", json_number(s.value)}, {"parts", nlohmann::json::object()}};
  for (const Score::Part& p : s.parts) j["parts"][p.name] = json_number(p.value);
}

inline void to_json(nlohmann::json& j, const Response& r) {
  j = {{"thought", r.thought}, {"summary", r.summary}, {"source", r.source}};
}

inline void to_json(nlohmann::json& j, const Timing& t) {
  j = {{"median_ms", json_number(t.median_ms)},
       {"low_ms", json_number(t.low_ms)},
       {"high_ms", json_number(t.high_ms)},
       {"samples", t.samples}};
}

inline void to_json(nlohmann::json& j, const ErrorFigures& e) {
  j = {{"elements", e.elements},
       {"wrong", e.wrong},
       {"unwritten", e.unwritten},
       {"not_finite", e.not_finite},
       {"max_absolute", json_number(e.max_absolute)},
       {"max_relative", json_number(e.max_relative)},
       {"outside_kernelbench", e.outside_kernelbench}};
}

inline void to_json(nlohmann::json& j, const Verdict& v) {
  const auto optional = [](const auto& x) { return x ? nlohmann::json(*x) : nlohmann::json(); };
  j = {{"stage", to_string(v.stage)},
       {"correct", v.correct()},
       {"reason", v.reason},
       {"diagnostics", v.diagnostics},
       {"error", optional(v.error)},
       {"candidate", optional(v.candidate)},
       {"baseline", optional(v.baseline)},
       {"speedup", v.speedup ? json_number(*v.speedup) : nlohmann::json()},
       {"speed_of_light_ms", v.speed_of_light_ms ? json_number(*v.speed_of_light_ms) : nlohmann::json()},
       {"flags", v.flags},
       {"compile_ms", json_number(v.compile_ms)},
       {"evaluate_ms", json_number(v.evaluate_ms)},
       {"compile_cached", v.compile_cached}};
}

}  // namespace kevin

#endif  // KEVIN_AGENT_JSON_HPP
