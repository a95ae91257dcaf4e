#ifndef KEVIN_TESTS_GOLDEN_GOLDEN_HPP
#define KEVIN_TESTS_GOLDEN_GOLDEN_HPP

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "kevin/core/error.hpp"

/// What PyTorch computed for a task, and how another computation is held against it.
namespace golden {

/// What is known of one tensor.
struct Tensor {
  std::string name;  ///< parameters only
  std::vector<std::int64_t> shape;
  std::string dtype;       ///< output only
  bool has_values = true;  ///< false: nothing but the shape was noted
  double mean = 0;
  double rms = 0;  ///< output only, as are least and most
  double least = 0;
  double most = 0;
  std::vector<double> values;  ///< the first ones; of an output those at sample_index(0), ..., sample_index(15)
};

struct Line {
  std::string id;  ///< "l1/19"
  std::vector<Tensor> inputs;
  std::vector<Tensor> parameters;
  Tensor output;
};

inline constexpr std::size_t samples = 16;

/// The flat index of sample i of n elements.
[[nodiscard]] constexpr std::int64_t sample_index(std::size_t i, std::int64_t n) noexcept {
  return static_cast<std::int64_t>(i * std::uint64_t{2654435761} % static_cast<std::uint64_t>(n));
}

[[nodiscard]] inline std::vector<Line> read(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw kevin::Error(kevin::ErrorCode::not_found, "cannot read " + path);
  std::vector<Line> lines;
  std::size_t number = 0;
  const auto tensor = [](const nlohmann::json& j) {
    Tensor t;
    t.name = j.value("name", "");
    t.dtype = j.value("dtype", "");
    t.shape = j.at("shape").get<std::vector<std::int64_t>>();
    t.has_values = j.contains("mean");
    if (!t.has_values) return t;
    t.mean = j.at("mean").get<double>();
    t.rms = j.value("rms", 0.0);
    t.least = j.value("min", 0.0);
    t.most = j.value("max", 0.0);
    t.values = j.at(j.contains("samples") ? "samples" : "first").get<std::vector<double>>();
    return t;
  };
  for (std::string text; std::getline(file, text);) {
    ++number;
    try {
      const nlohmann::json j = nlohmann::json::parse(text);
      if (j.contains("source")) continue;
      Line line{.id = j.at("id").get<std::string>(), .inputs = {}, .parameters = {}, .output = tensor(j.at("output"))};
      for (const auto& t : j.at("inputs")) line.inputs.push_back(tensor(t));
      for (const auto& t : j.at("parameters")) line.parameters.push_back(tensor(t));
      lines.push_back(std::move(line));
    } catch (const nlohmann::json::exception& e) {
      throw kevin::Error(kevin::ErrorCode::bad_input, path + ": line " + std::to_string(number) + ": " + e.what());
    }
  }
  return lines;
}

namespace detail {

[[nodiscard]] inline std::string number(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", x);
  return text;
}

inline void expect(std::vector<std::string>& faults, const std::string& what, double got, double expected,
                   double allowed) {
  if (std::abs(got - expected) <= allowed) return;  // a NaN is a fault
  faults.push_back(what + " is " + number(got) + ", PyTorch has " + number(expected) + ", allowed " + number(allowed));
}

[[nodiscard]] inline bool expect_shape(std::vector<std::string>& faults, const std::string& what, const Tensor& got,
                                       const Tensor& expected) {
  if (got.shape == expected.shape && got.values.size() == expected.values.size()) return true;
  std::string text = what + " has shape [";
  for (std::int64_t d : got.shape) text += std::to_string(d) + ' ';
  text += "], PyTorch has [";
  for (std::int64_t d : expected.shape) text += std::to_string(d) + ' ';
  faults.push_back(text + ']');
  return false;
}

}  // namespace detail

/// Values that were drawn have to be the same but for the rounding of what was written down: 1e-6 relative. The mean,
/// which says that all elements are the same, has in addition 1e-9 of the root mean square for the order of its
/// summation; another draw of n elements would differ by about rms / sqrt(n), a million times as much.
inline void compare_drawn(std::vector<std::string>& faults, const std::string& what, const Tensor& got,
                          const Tensor& expected) {
  if (!expected.has_values) {
    if (got.shape != expected.shape) faults.push_back(what + " has another shape");
    return;
  }
  if (!detail::expect_shape(faults, what, got, expected)) return;
  for (std::size_t i = 0; i < expected.values.size(); ++i) {
    detail::expect(faults, what + " element " + std::to_string(i), got.values[i], expected.values[i],
                   1e-6 * std::abs(expected.values[i]));
  }
  detail::expect(faults, what + " mean", got.mean, expected.mean, 1e-6 * std::abs(expected.mean) + 1e-9 * got.rms);
}

/// What was computed has to agree within `relative` of the output's root mean square, or `absolute`. Extremes may be
/// far above that square, where one rounding is more: they have `relative` of themselves as well.
inline void compare_output(std::vector<std::string>& faults, const Tensor& got, const Tensor& expected,
                           double relative = 1e-4, double absolute = 0) {
  if (got.dtype != expected.dtype) faults.push_back("output has type " + got.dtype + ", PyTorch has " + expected.dtype);
  if (!detail::expect_shape(faults, "output", got, expected)) return;
  const double allowed = std::max(absolute, relative * expected.rms);
  for (std::size_t i = 0; i < expected.values.size(); ++i)
    detail::expect(faults, "output sample " + std::to_string(i), got.values[i], expected.values[i], allowed);
  detail::expect(faults, "output mean", got.mean, expected.mean, allowed);
  detail::expect(faults, "output rms", got.rms, expected.rms, allowed);
  detail::expect(faults, "output min", got.least, expected.least,
                 std::max(allowed, relative * std::abs(expected.least)));
  detail::expect(faults, "output max", got.most, expected.most, std::max(allowed, relative * std::abs(expected.most)));
}

/// The largest deviation of a sample, as a share of the output's root mean square.
[[nodiscard]] inline double worst_sample(const Tensor& got, const Tensor& expected) {
  double worst = 0;
  for (std::size_t i = 0; i < std::min(got.values.size(), expected.values.size()); ++i)
    worst = std::max(worst, std::abs(got.values[i] - expected.values[i]));
  return worst == 0 ? 0 : worst / expected.rms;
}

}  // namespace golden

#endif  // KEVIN_TESTS_GOLDEN_GOLDEN_HPP
