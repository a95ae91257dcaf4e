#ifndef KEVIN_EXAMPLES_TERMINAL_HPP
#define KEVIN_EXAMPLES_TERMINAL_HPP

// What a person sees: a progress bar with the time left and a learning curve. Debian packages no C++ library for
// either.

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iomanip>
#include <iostream>
#include <limits>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace terminal {

/// "1:05" or "2:03:20".
inline std::string duration(double seconds) {
  const long s = static_cast<long>(seconds + 0.5);
  std::ostringstream out;
  if (s >= 3600) out << s / 3600 << ':' << std::setw(2) << std::setfill('0');
  out << s % 3600 / 60 << ':' << std::setw(2) << std::setfill('0') << s % 60;
  return out.str();
}

/// A bar on the last line of the terminal; prints nothing when stderr is not a terminal.
class ProgressBar {
 public:
  ProgressBar(std::string what, std::size_t total, bool enabled)
      : what_(std::move(what)), total_(total), enabled_(enabled && ::isatty(STDERR_FILENO) == 1) {
    draw();
  }
  ~ProgressBar() { clear(); }
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  void set(std::size_t done) {
    done_ = std::min(done, total_);
    draw();
  }
  /// Removes the bar so that a line can be printed; draw() brings it back.
  void clear() const {
    if (enabled_) std::cerr << "\r\x1b[K" << std::flush;
  }
  void draw() const {
    if (!enabled_) return;
    const double share = total_ == 0 ? 1.0 : static_cast<double>(done_) / static_cast<double>(total_);
    const auto filled = static_cast<std::size_t>(share * width);
    const double elapsed = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    std::cerr << "\r\x1b[K" << what_ << " [" << std::string(filled, '#') << std::string(width - filled, '.') << "] "
              << done_ << '/' << total_;
    if (done_ > 0 && done_ < total_) std::cerr << "  " << duration(elapsed * (1 - share) / share) << " left";
    std::cerr << std::flush;
  }

 private:
  static constexpr std::size_t width = 30;
  std::string what_;
  std::size_t total_;
  std::size_t done_ = 0;
  bool enabled_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// A curve of `values` over their index, `rows` high, at most `columns` wide (neighbours are averaged), with its axis.
inline std::string curve(const std::vector<double>& values, const std::string& label, std::size_t rows = 8,
                         std::size_t columns = 60) {
  if (values.empty()) return "";
  const std::size_t n = std::min(columns, values.size());
  std::vector<double> points(n, 0.0);
  for (std::size_t c = 0; c < n; ++c) {
    const std::size_t from = c * values.size() / n;
    const std::size_t to = std::max(from + 1, (c + 1) * values.size() / n);
    for (std::size_t i = from; i < to; ++i) points[c] += values[i] / static_cast<double>(to - from);
  }
  const double low = std::min(0.0, *std::min_element(points.begin(), points.end()));
  double high = *std::max_element(points.begin(), points.end());
  if (high <= low) high = low + 1;
  std::ostringstream out;
  out << label << '\n';
  for (std::size_t r = rows; r-- > 0;) {
    const double bottom = low + (high - low) * static_cast<double>(r) / static_cast<double>(rows);
    out << std::setw(8) << std::fixed << std::setprecision(2)
        << low + (high - low) * static_cast<double>(r + 1) / static_cast<double>(rows) << " |";
    for (double p : points) {
      const double fill = (p - bottom) / ((high - low) / static_cast<double>(rows));
      out << (fill >= 0.75 ? "##" : fill >= 0.25 ? "--" : "  ");
    }
    out << '\n';
  }
  out << std::string(9, ' ') << '+' << std::string(2 * n, '-') << "\n          update 1 to " << values.size() << '\n';
  return out.str();
}

}  // namespace terminal

#endif  // KEVIN_EXAMPLES_TERMINAL_HPP
