#ifndef KEVIN_TASKS_PEAKS_JSON_HPP
#define KEVIN_TASKS_PEAKS_JSON_HPP

#include <cmath>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "kevin/core/error.hpp"
#include "kevin/tasks/json_fields.hpp"
#include "kevin/tasks/peaks.hpp"

namespace kevin::tasks {

/// Reads {"schema": "kevin.peaks/1", "device": ..., "measured": ..., "bytes_per_s": ..., ...}, all keys needed and no
/// others, all figures above 0. Error(bad_input) names the place after `where`.
[[nodiscard]] inline MeasuredPeaks parse_peaks(std::string_view text, const std::string& where) {
  try {
    const nlohmann::json json = detail::parse_strictly(text);
    const detail::Field file(json, "");
    file.object({"schema", "device", "measured", "bytes_per_s", "cache_bytes", "float32_per_s", "matrix_per_s",
                 "transcendental_per_s"});
    if (file["schema"].text() != "kevin.peaks/1") file["schema"].fail("must be \"kevin.peaks/1\"");
    const auto positive = [&](std::string_view key) {
      const detail::Field field = file[key];
      const double x = field.number();
      if (!(x > 0) || !std::isfinite(x)) field.fail("must be above 0");
      return x;
    };
    return {.device = file["device"].text(),
            .measured = file["measured"].text(),
            .bytes_per_s = positive("bytes_per_s"),
            .cache_bytes = positive("cache_bytes"),
            .float32_per_s = positive("float32_per_s"),
            .matrix_per_s = positive("matrix_per_s"),
            .transcendental_per_s = positive("transcendental_per_s")};
  } catch (const detail::Complaint& c) {
    throw Error(ErrorCode::bad_input, where + ": " + (c.place().empty() ? "" : c.place() + ": ") + c.what());
  }
}

/// The JSON that parse_peaks reads, on one line.
[[nodiscard]] inline std::string write_peaks(const MeasuredPeaks& p) {
  const nlohmann::ordered_json json{{"schema", "kevin.peaks/1"},      {"device", p.device},
                                    {"measured", p.measured},         {"bytes_per_s", p.bytes_per_s},
                                    {"cache_bytes", p.cache_bytes},   {"float32_per_s", p.float32_per_s},
                                    {"matrix_per_s", p.matrix_per_s}, {"transcendental_per_s", p.transcendental_per_s}};
  return json.dump();
}

/// Error(not_found) when the file cannot be read.
[[nodiscard]] inline MeasuredPeaks load_peaks(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file || file.peek() == std::ifstream::traits_type::eof())
    throw Error(ErrorCode::not_found, "cannot read " + path + "; benchmarks/cuda_peaks writes such a file");
  return parse_peaks(std::string{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()}, path);
}

}  // namespace kevin::tasks

#endif  // KEVIN_TASKS_PEAKS_JSON_HPP
