#ifndef KEVIN_TASKS_DRAW_HPP
#define KEVIN_TASKS_DRAW_HPP

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numbers>
#include <span>
#include <utility>
#include <vector>

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

#include "kevin/config.hpp"
#include "kevin/core/error.hpp"
#include "kevin/core/random.hpp"
#include "kevin/refine/task.hpp"

/// Drawing of inputs and parameters. Element i is a function of (seed, i) alone: SplitMix64 in counter mode, so nothing
/// depends on the number of threads, on the order of calls or on the release of LibTorch.
namespace kevin::tasks {

namespace detail {

/// The i-th 64 random bits of `seed`: what the i-th call of kevin::Rng{seed} returns.
[[nodiscard]] constexpr std::uint64_t random_bits(std::uint64_t seed, std::uint64_t i) noexcept {
  return kevin::detail::mix64(seed + (i + 1) * 0x9e3779b97f4a7c15ULL);
}

/// log(u) for a normal, positive float. u = m 2^e with m in [sqrt(1/2), sqrt(2)), and
/// log m = 2 atanh(s) = 2 (s + s^3/3 + s^5/5 + ...), s = (m - 1) / (m + 1). Error below 3e-7 relative.
[[nodiscard]] inline float fast_log(float u) noexcept {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(u) + (0x3f800000U - 0x3f3504f3U);
  const auto e = static_cast<float>(static_cast<std::int32_t>(bits >> 23U) - 127);
  const float m = std::bit_cast<float>((bits & 0x007fffffU) + 0x3f3504f3U);
  const float s = (m - 1.0F) / (m + 1.0F);
  const float q = s * s;
  return e * 0.693147181F + 2.0F * s * (1.0F + q * (0.333333333F + q * (0.2F + q * (0.142857143F + q * 0.111111111F))));
}

/// sin(pi x / 2) and cos(pi x / 2) for x in [-1/2, 1/2], by their Taylor series up to x^9 and x^10.
[[nodiscard]] inline float sin_quarter(float x) noexcept {
  const float q = x * x;
  return x * (1.57079633F + q * (-0.645964098F + q * (0.0796926262F + q * (-0.00468175414F + q * 0.000160441185F))));
}
[[nodiscard]] inline float cos_quarter(float x) noexcept {
  const float q = x * x;
  return 1.0F +
         q * (-1.23370055F + q * (0.253669508F + q * (-0.0208634807F + q * (0.000919260274F + q * -0.0000252020424F))));
}

/// Standard normal numbers that are computed together; a fixed count lets the compiler use vector instructions.
struct NormalBlock {
  static constexpr std::size_t pairs = 128;
  std::array<float, 2 * pairs> values;

  /// Pairs `start`, `start` + 1, ... of `seed`, by the method of Box and Muller (1958), each from 64 random bits: the
  /// upper half gives the radius (32 bits, so up to 6.66 deviations), the lower half the angle. The same numbers with
  /// every set of vector instructions, since none of them fuses multiplication and addition.
  void fill(std::uint64_t seed, std::size_t start) noexcept {
#if defined(__x86_64__) && defined(__GNUC__)
    if (__builtin_cpu_supports("avx2")) return fill_avx2(seed, start);
#endif
    compute(seed, start);
  }

 private:
#if defined(__x86_64__) && defined(__GNUC__)
  [[gnu::target("avx2")]] void fill_avx2(std::uint64_t seed, std::size_t start) noexcept { compute(seed, start); }
#endif

  /// In place. std::sqrt must look after errno, which keeps compilers from using vector instructions.
  [[gnu::always_inline]] static void square_roots(std::array<float, pairs>& x) noexcept {
#if defined(__SSE__)
    for (std::size_t k = 0; k < pairs; k += 4) _mm_storeu_ps(&x[k], _mm_sqrt_ps(_mm_loadu_ps(&x[k])));
#else
    for (float& v : x) v = std::sqrt(v);
#endif
  }

  /// values = {a[0], b[0], a[1], b[1], ...}
  [[gnu::always_inline]] void interleave(const std::array<float, pairs>& a,
                                         const std::array<float, pairs>& b) noexcept {
#if defined(__SSE__)
    for (std::size_t k = 0; k < pairs; k += 4) {
      const __m128 p = _mm_loadu_ps(&a[k]);
      const __m128 q = _mm_loadu_ps(&b[k]);
      _mm_storeu_ps(&values[2 * k], _mm_unpacklo_ps(p, q));
      _mm_storeu_ps(&values[2 * k + 4], _mm_unpackhi_ps(p, q));
    }
#else
    for (std::size_t k = 0; k < pairs; ++k) {
      values[2 * k] = a[k];
      values[2 * k + 1] = b[k];
    }
#endif
  }

  [[gnu::always_inline]] void compute(std::uint64_t seed, std::size_t start) noexcept {
    std::array<float, pairs> first;
    std::array<float, pairs> second;
    std::array<float, pairs> radius;
    std::array<std::uint32_t, pairs> angle;
    for (std::size_t k = 0; k < pairs; ++k) {
      const std::uint64_t bits = random_bits(seed, start + k);
      radius[k] = (static_cast<float>(static_cast<std::int32_t>(bits >> 33U)) + 0.5F) * 0x1.0p-31F;  // in (0, 1]
      angle[k] = static_cast<std::uint32_t>(bits);
    }
    for (std::size_t k = 0; k < pairs; ++k) radius[k] = -2.0F * fast_log(radius[k]);
    for (std::size_t k = 0; k < pairs; ++k) radius[k] = std::max(radius[k], 0.0F);
    square_roots(radius);
    for (std::size_t k = 0; k < pairs; ++k) {
      // the two top bits choose the quarter turn, the rest an angle of -1/8 to 1/8 turn around its middle
      const std::uint32_t quarter = angle[k] >> 30U;
      const float x = static_cast<float>(static_cast<std::int32_t>(angle[k] << 2U) >> 2) * 0x1.0p-30F;
      const float s = sin_quarter(x);
      const float c = cos_quarter(x);
      const float p = (quarter & 1U) != 0 ? s : c;
      const float q = (quarter & 1U) != 0 ? c : s;
      first[k] = radius[k] * ((quarter & 2U) != 0 ? -p : p);
      second[k] = radius[k] * (quarter == 1 || quarter == 2 ? -q : q);
    }
    interleave(first, second);
  }
};

/// Writes `n` normal numbers with the given mean and deviation.
template <class T, class Real>
void fill_normal(std::uint64_t seed, Real mean, Real deviation, T* __restrict out, std::size_t n) {
  NormalBlock block;
  const auto value = [=](float z) { return static_cast<T>(mean + deviation * static_cast<Real>(z)); };
  std::size_t start = 0;
  for (; start + block.values.size() <= n; start += block.values.size()) {
    block.fill(seed, start / 2);
    for (std::size_t k = 0; k < block.values.size(); ++k) out[start + k] = value(block.values[k]);
  }
  if (start < n) block.fill(seed, start / 2);
  for (std::size_t k = 0; start + k < n; ++k) out[start + k] = value(block.values[k]);
}

/// Writes `n` draws. `T` is the type in memory; arithmetic is in float, or in double for a T of double.
template <class T>
void fill_elements(const Distribution& d, std::uint64_t seed, T* out, std::size_t n) {
  using Real = std::conditional_t<std::is_same_v<T, double>, double, float>;
  using Kind = Distribution::Kind;
  const auto a = static_cast<Real>(d.a);
  const auto b = static_cast<Real>(d.b);
  switch (d.kind) {
    case Kind::constant:
      std::fill_n(out, n, static_cast<T>(d.a));
      return;
    case Kind::uniform: {
      const Real width = b - a;
      // Rounding a + width u may give b itself when a is not zero; the largest value below keeps the interval half
      // open.
      const Real top = std::nextafter(b, a);
      const auto value = [=](std::uint64_t bits24) {
        const Real u = static_cast<Real>(static_cast<std::int32_t>(bits24)) * static_cast<Real>(0x1.0p-24);
        return static_cast<T>(std::min(a + width * u, top));
      };
      for (std::size_t k = 0; k < n / 2; ++k) {
        const std::uint64_t bits = random_bits(seed, k);
        out[2 * k] = value(bits >> 40U);
        out[2 * k + 1] = value((bits >> 8U) & 0xffffffU);
      }
      if (n % 2 == 1) out[n - 1] = value(random_bits(seed, n / 2) >> 40U);
      return;
    }
    case Kind::normal:
      fill_normal(seed, a, b, out, n);
      return;
    case Kind::integer: {
      // floor(bits * range / 2^32): the bias is below range / 2^32
      const auto low = static_cast<std::int64_t>(d.a);
      const auto range = static_cast<std::uint64_t>(static_cast<std::int64_t>(d.b) - low);
      for (std::size_t i = 0; i < n; ++i) {
        out[i] = static_cast<T>(low + static_cast<std::int64_t>(((random_bits(seed, i) >> 32U) * range) >> 32U));
      }
      return;
    }
    case Kind::sign:
      for (std::size_t i = 0; i < n; ++i) out[i] = static_cast<T>((random_bits(seed, i) >> 63U) != 0 ? 1 : -1);
      return;
    case Kind::given:  // copied by draw_into
      return;
  }
}

/// Scale and structure of a tensor of reals, in place.
template <class T>
void apply_structure(const Distribution& d, std::uint64_t seed, const Shape& shape, T* out, std::size_t n) {
  using Structure = Distribution::Structure;
  if (d.random_scale) {
    const auto scale = static_cast<T>(Rng(seed, "scale").uniform());
    for (std::size_t i = 0; i < n; ++i) out[i] *= scale;
  }
  if (d.structure == Structure::none) return;
  KEVIN_ASSERT(!shape.empty());
  const auto columns = static_cast<std::size_t>(shape.back());
  if (d.structure == Structure::softmax) {
    for (T* row = out; row != out + n; row += columns) {
      const T top = *std::max_element(row, row + columns);
      double sum = 0;
      for (std::size_t j = 0; j < columns; ++j) sum += static_cast<double>(row[j] = std::exp(row[j] - top));
      for (std::size_t j = 0; j < columns; ++j) row[j] = static_cast<T>(static_cast<double>(row[j]) / sum);
    }
    return;
  }
  KEVIN_ASSERT(shape.size() >= 2);
  const auto rows = static_cast<std::size_t>(shape[shape.size() - 2]);
  for (T* matrix = out; matrix != out + n; matrix += rows * columns) {
    for (std::size_t i = 0; i < rows; ++i) {
      for (std::size_t j = 0; j < columns; ++j) {
        T& x = matrix[i * columns + j];
        if (d.structure == Structure::upper && j < i) x = 0;
        if (d.structure == Structure::lower && j > i) x = 0;
        if (d.structure == Structure::symmetric && j > i) {
          T& mirror = matrix[j * columns + i];
          x = mirror = (x + mirror) / 2;
        }
      }
    }
  }
}

/// The 16 bits of the nearest bfloat16 or float16; ties to even.
[[nodiscard]] inline std::uint16_t to_bfloat16(float x) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  return static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16U) & 1U)) >> 16U);
}
[[nodiscard]] inline std::uint16_t to_float16(float x) noexcept {
  const auto sign = static_cast<std::uint16_t>((std::bit_cast<std::uint32_t>(x) >> 16U) & 0x8000U);
  const float magnitude = std::fabs(x);
  if (magnitude >= 65520.0F) return static_cast<std::uint16_t>(sign | 0x7c00U);
  if (magnitude < 0x1.0p-14F)
    return static_cast<std::uint16_t>(sign | static_cast<std::uint16_t>(std::nearbyint(magnitude * 0x1.0p24F)));
  const auto bits = std::bit_cast<std::uint32_t>(magnitude);
  const std::uint32_t rounded = bits + 0xfffU + ((bits >> 13U) & 1U);
  return static_cast<std::uint16_t>(sign | ((rounded - 0x38000000U) >> 13U));
}

}  // namespace detail

/// Fills `memory` (element_count(spec.shape) elements of spec.dtype, contiguous) with the draw of `seed`.
/// The spec must be valid as the task reader checks it. Costs about 1 ns a uniform and 2 ns a normal element at -O2.
inline void draw_into(const TensorSpec& spec, std::uint64_t seed, void* memory) {
  const auto n = static_cast<std::size_t>(element_count(spec.shape));
  const Distribution& d = spec.distribution;
  if (d.kind == Distribution::Kind::given) {
    std::copy(spec.values->begin(), spec.values->end(), static_cast<std::byte*>(memory));
    return;
  }
  const auto real = [&](auto* out) {
    detail::fill_elements(d, seed, out, n);
    detail::apply_structure(d, seed, spec.shape, out, n);
  };
  switch (spec.dtype) {
    case DType::float32:
      real(static_cast<float*>(memory));
      return;
    case DType::float64:
      real(static_cast<double*>(memory));
      return;
    case DType::float16:
    case DType::bfloat16: {
      std::vector<float> wide(n);
      real(wide.data());
      auto* out = static_cast<std::uint16_t*>(memory);
      const bool half = spec.dtype == DType::float16;
      for (std::size_t i = 0; i < n; ++i) out[i] = half ? detail::to_float16(wide[i]) : detail::to_bfloat16(wide[i]);
      return;
    }
    case DType::int32:
      detail::fill_elements(d, seed, static_cast<std::int32_t*>(memory), n);
      return;
    case DType::int64:
      detail::fill_elements(d, seed, static_cast<std::int64_t*>(memory), n);
      return;
    case DType::boolean:
      detail::fill_elements(d, seed, static_cast<bool*>(memory), n);
      return;
  }
}

}  // namespace kevin::tasks

#endif  // KEVIN_TASKS_DRAW_HPP
