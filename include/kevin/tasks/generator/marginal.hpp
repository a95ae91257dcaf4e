#ifndef KEVIN_TASKS_GENERATOR_MARGINAL_HPP
#define KEVIN_TASKS_GENERATOR_MARGINAL_HPP

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

namespace kevin::tasks::detail {

/// A rough idea of the values of a tensor: 32 equally likely ones, ascending, as if its elements were independent. The
/// generator follows it through a task to choose constants that matter (a clamp that cuts some elements and not all)
/// and to refuse steps that do nothing or leave a constant.
class Marginal {
 public:
  static constexpr std::size_t count = 32;

  [[nodiscard]] static Marginal normal(double mean, double deviation) {
    Marginal m;
    for (std::size_t i = 0; i < count; ++i) m.values_[i] = mean + deviation * normal_values()[i];
    return m;
  }

  [[nodiscard]] double mean() const {
    double sum = 0;
    for (double v : values_) sum += v;
    return sum / count;
  }
  [[nodiscard]] double deviation() const {
    const double m = mean();
    double sum = 0;
    for (double v : values_) sum += (v - m) * (v - m);
    return std::sqrt(sum / count);
  }
  /// The value below which a share `p` in [0, 1) of the elements lies.
  [[nodiscard]] double quantile(double p) const { return values_[static_cast<std::size_t>(p * count)]; }

  /// The values of f(x).
  template <class F>
  [[nodiscard]] Marginal map(F f) const {
    return made([&](std::size_t i) { return f(values_[i]); });
  }
  /// The values of f(x, y), y being independent of x.
  template <class F>
  [[nodiscard]] Marginal with_independent(const Marginal& y, F f) const {
    return made([&](std::size_t i) { return f(values_[i], y.values_[(i * 13 + 5) % count]); });
  }
  /// The values of f(x, y), y growing with x.
  template <class F>
  [[nodiscard]] Marginal with_dependent(const Marginal& y, F f) const {
    return made([&](std::size_t i) { return f(values_[i], y.values_[i]); });
  }

  /// The largest of n elements: by order statistics where n is small, by the normal law's extremes where it is not.
  [[nodiscard]] Marginal largest_of(double n) const {
    if (n <= 8) {
      return made([&](std::size_t i) {
        const double p = std::pow((static_cast<double>(i) + 0.5) / count, 1 / n);
        return quantile(std::min(p, 1 - 0.5 / count));
      });
    }
    const double reach = std::sqrt(2 * std::log(n));
    return normal(mean() + deviation() * (reach - 1 / reach), deviation() / reach);
  }
  [[nodiscard]] Marginal negative() const {
    return map([](double x) { return -x; });
  }

  /// Whether the elements differ by enough to matter, and not many are equal.
  [[nodiscard]] bool lively() const {
    const double spread = deviation();
    if (!std::isfinite(spread) || !(spread > 1e-7) || spread < 0.01 * std::fabs(mean()) || spread > 1e4) return false;
    std::size_t equal = 1;
    std::size_t most = 1;
    for (std::size_t i = 1; i < count; ++i) {
      equal = values_[i] == values_[i - 1] ? equal + 1 : 1;
      most = std::max(most, equal);
    }
    return most <= count * 6 / 10;
  }

  /// How much of f's values a straight line does not explain, in [0, 1]: 0 = f is affine on these elements.
  template <class F>
  [[nodiscard]] double bend(F f) const {
    double sx = 0, sy = 0, sxx = 0, syy = 0, sxy = 0;
    const double m = mean();
    const double fm = f(m);
    for (double v : values_) {
      const double x = v - m;
      const double y = f(v) - fm;
      sx += x, sy += y, sxx += x * x, syy += y * y, sxy += x * y;
    }
    const double vx = sxx - sx * sx / count;
    const double vy = syy - sy * sy / count;
    const double c = sxy - sx * sy / count;
    return vx > 0 && vy > 0 ? 1 - c * c / (vx * vy) : 0;
  }

 private:
  /// Quantiles of the standard normal law at (i + 1/2) / 32.
  [[nodiscard]] static const std::array<double, count>& normal_values() {
    static constexpr std::array<double, count> values = {
        -2.153875, -1.675940, -1.417797, -1.229859, -1.077516, -0.946782, -0.830511, -0.724514,
        -0.626099, -0.533410, -0.445097, -0.360130, -0.277690, -0.197099, -0.117770, -0.039176,
        0.039176,  0.117770,  0.197099,  0.277690,  0.360130,  0.445097,  0.533410,  0.626099,
        0.724514,  0.830511,  0.946782,  1.077516,  1.229859,  1.417797,  1.675940,  2.153875};
    return values;
  }

  template <class F>
  [[nodiscard]] static Marginal made(F value) {
    Marginal m;
    for (std::size_t i = 0; i < count; ++i) m.values_[i] = value(i);
    std::sort(m.values_.begin(), m.values_.end());
    return m;
  }

  std::array<double, count> values_{};
};

}  // namespace kevin::tasks::detail

#endif  // KEVIN_TASKS_GENERATOR_MARGINAL_HPP
