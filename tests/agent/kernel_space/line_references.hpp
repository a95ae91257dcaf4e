#ifndef KEVIN_TESTS_AGENT_KERNEL_SPACE_LINE_REFERENCES_HPP
#define KEVIN_TESTS_AGENT_KERNEL_SPACE_LINE_REFERENCES_HPP

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "agent/kernel_space/try_kernel.hpp"

namespace kevin_test {

/// What `op` makes of one line, in double. `rest` holds the operands that lie along it.
inline Numbers line_result(const std::string& op, const Numbers& x, const std::vector<Numbers>& rest) {
  const double greatest = *std::max_element(x.begin(), x.end());
  const double least = *std::min_element(x.begin(), x.end());
  const double n = static_cast<double>(x.size());
  double sum = 0;
  double exponentials = 0;
  double squares = 0;
  double absolutes = 0;
  for (const double v : x) {
    sum += v;
    exponentials += std::exp(v - greatest);
    squares += v * v;
    absolutes += std::abs(v);
  }
  double deviation = 0;
  for (const double v : x) deviation += (v - sum / n) * (v - sum / n);
  if (op == "sum") return {sum};
  if (op == "mean") return {sum / n};
  if (op == "max_reduce") return {greatest};
  if (op == "min_reduce") return {least};
  if (op == "logsumexp") return {greatest + std::log(exponentials)};
  if (op == "norm2") return {std::sqrt(squares)};
  if (op == "dot") {
    double s = 0;
    for (std::size_t i = 0; i < x.size(); ++i) s += x[i] * rest[0][i];
    return {s};
  }
  Numbers y = x;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (op == "softmax") y[i] = std::exp(x[i] - greatest) / exponentials;
    if (op == "log_softmax") y[i] = x[i] - greatest - std::log(exponentials);
    if (op == "rms_norm") y[i] = x[i] / std::sqrt(squares / n + 1e-5);
    if (op == "divide_by_norm1") y[i] = x[i] / absolutes;
    if (op == "divide_by_norm2") y[i] = x[i] / std::sqrt(squares);
    if (op == "layer_norm") y[i] = (x[i] - sum / n) / std::sqrt(deviation / n + 1e-5) * rest[0][i] + rest[1][i];
  }
  return y;
}

/// `op` along the middle of [outer, length, inner].
inline Reference line_reference(std::string op, std::size_t outer, std::size_t length, std::size_t inner) {
  return [=](const std::vector<Numbers>& arguments) {
    const std::vector<Numbers> rest(arguments.begin() + 1, arguments.end());
    Numbers out;
    for (std::size_t a = 0; a < outer; ++a) {
      for (std::size_t c = 0; c < inner; ++c) {
        Numbers line;
        for (std::size_t r = 0; r < length; ++r) line.push_back(arguments[0][(a * length + r) * inner + c]);
        const Numbers result = line_result(op, line, rest);
        out.resize(outer * result.size() * inner);
        for (std::size_t r = 0; r < result.size(); ++r) out[(a * result.size() + r) * inner + c] = result[r];
      }
    }
    return out;
  };
}

}  // namespace kevin_test

#endif  // KEVIN_TESTS_AGENT_KERNEL_SPACE_LINE_REFERENCES_HPP
