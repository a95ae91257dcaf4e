#ifndef KEVIN_EVAL_CUDA_JUDGE_SOURCE_HPP
#define KEVIN_EVAL_CUDA_JUDGE_SOURCE_HPP

#include <string_view>

namespace kevin::cuda {

/// The judge's own device code: drawing as in tasks/draw.hpp (the same numbers, without fused multiply-add), comparing
/// by the law of eval/comparison.hpp with the spread of eval/spread.hpp, poisoning, and looking at what lies around
/// outputs.
inline constexpr std::string_view judge_source = R"cuda(
using u64 = unsigned long long;
using i64 = long long;
using u32 = unsigned;
using u16 = unsigned short;

struct Tally {
  u64 wrong, unwritten, not_finite, outside_kernelbench, max_absolute, max_relative, first_wrong, last_wrong, overrun;
  double spread;
};

__device__ u64 mix64(u64 z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}
__device__ u64 random_bits(u64 seed, u64 i) { return mix64(seed + (i + 1) * 0x9e3779b97f4a7c15ULL); }

// Separate roundings, as on the processor: a fused multiply-add would give other numbers.
__device__ float mul(float a, float b) { return __fmul_rn(a, b); }
__device__ float add(float a, float b) { return __fadd_rn(a, b); }
__device__ double mul(double a, double b) { return __dmul_rn(a, b); }
__device__ double add(double a, double b) { return __dadd_rn(a, b); }
// c[0] + q (c[1] + q (c[2] + ...))
template <class... C>
__device__ float polynomial(float q, float c, C... more) {
  if constexpr (sizeof...(more) == 0) return c;
  else return add(c, mul(q, polynomial(q, more...)));
}

__device__ float fast_log(float u) {
  const u32 bits = __float_as_uint(u) + (0x3f800000u - 0x3f3504f3u);
  const float e = (float)((int)(bits >> 23) - 127);
  const float m = __uint_as_float((bits & 0x007fffffu) + 0x3f3504f3u);
  const float s = __fdiv_rn(add(m, -1.0f), add(m, 1.0f));
  const float series = polynomial(mul(s, s), 1.0f, 0.333333333f, 0.2f, 0.142857143f, 0.111111111f);
  return add(mul(e, 0.693147181f), mul(mul(2.0f, s), series));
}
__device__ float sin_quarter(float x) {
  return mul(x, polynomial(mul(x, x), 1.57079633f, -0.645964098f, 0.0796926262f, -0.00468175414f, 0.000160441185f));
}
__device__ float cos_quarter(float x) {
  return polynomial(mul(x, x), 1.0f, -1.23370055f, 0.253669508f, -0.0208634807f, 0.000919260274f, -0.0000252020424f);
}
__device__ void normal_pair(u64 bits, float& first, float& second) {
  float r = mul(add((float)(int)(bits >> 33), 0.5f), 4.65661287307739257812e-10f);
  r = __fsqrt_rn(fmaxf(mul(-2.0f, fast_log(r)), 0.0f));
  const u32 angle = (u32)bits;
  const u32 quarter = angle >> 30;
  const float x = mul((float)((int)(angle << 2) >> 2), 9.31322574615478515625e-10f);
  const float s = sin_quarter(x), c = cos_quarter(x);
  const float p = (quarter & 1) ? s : c, q = (quarter & 1) ? c : s;
  first = mul(r, (quarter & 2) ? -p : p);
  second = mul(r, quarter == 1 || quarter == 2 ? -q : q);
}

__device__ u16 to_bfloat16(float x) {
  const u32 bits = __float_as_uint(x);
  return (u16)((bits + 0x7fffu + ((bits >> 16) & 1)) >> 16);
}
__device__ u16 to_float16(float x) {
  const u16 sign = (u16)((__float_as_uint(x) >> 16) & 0x8000u);
  const float magnitude = fabsf(x);
  if (magnitude >= 65520.0f) return (u16)(sign | 0x7c00u);
  if (magnitude < 6.103515625e-05f) return (u16)(sign | (u16)rintf(magnitude * 16777216.0f));
  const u32 bits = __float_as_uint(magnitude);
  return (u16)(sign | ((bits + 0xfffu + ((bits >> 13) & 1) - 0x38000000u) >> 13));
}
__device__ double half_to_double(u16 h) {
  const int exponent = (h >> 10) & 31, mantissa = h & 1023;
  const double sign = (h & 0x8000) ? -1.0 : 1.0;
  if (exponent == 31) return mantissa == 0 ? sign * __longlong_as_double(0x7ff0000000000000LL) : __longlong_as_double(0x7ff8000000000000LL);
  if (exponent == 0) return sign * (double)mantissa * 5.9604644775390625e-08;
  return sign * ldexp((double)(1024 + mantissa), exponent - 25);
}

enum DType : int { f32, f64, f16, bf16, i32, int64, boolean };

// `real`: the value in the arithmetic of the type; half types are drawn in float.
template <class Real>
__device__ void store(void* out, int dtype, u64 i, Real v) {
  switch (dtype) {
    case f32: ((float*)out)[i] = (float)v; break;
    case f64: ((double*)out)[i] = (double)v; break;
    case f16: ((u16*)out)[i] = to_float16((float)v); break;
    case bf16: ((u16*)out)[i] = to_bfloat16((float)v); break;
    case i32: ((int*)out)[i] = (int)v; break;
    case int64: ((i64*)out)[i] = (i64)v; break;
    case boolean: ((unsigned char*)out)[i] = v != 0; break;
  }
}

template <class Real>
__device__ void draw(void* out, u64 n, u64 seed, int kind, int dtype, Real a, Real b, Real top, Real scale, i64 low, u64 range) {
  const u64 step = (u64)gridDim.x * blockDim.x;
  const u64 start = (u64)blockIdx.x * blockDim.x + threadIdx.x;
  if (kind == 0) {  // uniform, two of each 64 bits
    const Real width = b - a;
    for (u64 k = start; 2 * k < n; k += step) {
      const u64 bits = random_bits(seed, k);
      const auto value = [&](u64 bits24) {
        const Real v = add(a, mul(width, mul((Real)(int)bits24, (Real)5.9604644775390625e-08)));
        return (v < top ? v : top) * scale;
      };
      store(out, dtype, 2 * k, value(bits >> 40));
      if (2 * k + 1 < n) store(out, dtype, 2 * k + 1, value((bits >> 8) & 0xffffff));
    }
  } else if (kind == 1) {  // normal, in pairs
    for (u64 k = start; 2 * k < n; k += step) {
      float first, second;
      normal_pair(random_bits(seed, k), first, second);
      store(out, dtype, 2 * k, mul(add(a, mul(b, (Real)first)), scale));
      if (2 * k + 1 < n) store(out, dtype, 2 * k + 1, mul(add(a, mul(b, (Real)second)), scale));
    }
  } else if (kind == 2) {
    for (u64 i = start; i < n; i += step) store(out, dtype, i, a * scale);
  } else if (kind == 3) {
    for (u64 i = start; i < n; i += step) {
      const i64 v = low + (i64)(((random_bits(seed, i) >> 32) * range) >> 32);
      if (dtype >= i32) store(out, dtype, i, v); else store(out, dtype, i, (Real)v * scale);
    }
  } else {
    for (u64 i = start; i < n; i += step) {
      const Real v = (random_bits(seed, i) >> 63) ? (Real)1 : (Real)-1;
      store(out, dtype, i, v * scale);
    }
  }
}

extern "C" __global__ void kevin_draw(void* out, u64 n, u64 seed, int kind, int dtype, double a, double b, double scale) {
  const i64 low = (i64)a;
  const u64 range = (u64)((i64)b - low);
  if (dtype == f64) {
    draw<double>(out, n, seed, kind, dtype, a, b, nextafter(b, a), scale, low, range);
  } else {
    const float fa = (float)a, fb = (float)b;
    draw<float>(out, n, seed, kind, dtype, fa, fb, nextafterf(fb, fa), (float)scale, low, range);
  }
}

extern "C" __global__ void kevin_fill(u64* out, u64 words, u64 word) {
  for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < words; i += (u64)gridDim.x * blockDim.x) out[i] = word;
}

// Reads `count` vectors, so that the caches hold them and nothing else.
extern "C" __global__ void __launch_bounds__(256) kevin_read(uint4* from, u64 count, u32 never) {
  u32 any = 0;
#pragma unroll 4
  for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += (u64)gridDim.x * blockDim.x) {
    const uint4 v = from[i];
    any |= v.x | v.y | v.z | v.w;
  }
  if (any == never) from->x = any;
}

// Keeps the GPU busy for so long, so that what is queued behind it is all there when its turn comes.
extern "C" __global__ void kevin_wait(u64 nanoseconds) {
  u64 start, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
  do asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  while (now - start < nanoseconds);
}

// Frees the cache lines of memory whose content does not matter, without writing them back: the cache is then empty, as
// it is after a profiler invalidated it. Full of lines that are still valid, it would treat what a kernel streams through
// it (evict first) worse than that. A cache of two halves may hold a line in both, and a discard reaches the half that
// its multiprocessor is at: so every line is discarded from four places.
extern "C" __global__ void __launch_bounds__(256) kevin_discard(uint4* from, u64 count) {
#if __CUDA_ARCH__ >= 800
  for (u32 place = 0; place < 4; ++place) {
    const u64 block = (blockIdx.x + 37 * place) % gridDim.x;
    for (u64 i = 8 * (block * blockDim.x + threadIdx.x); i < count; i += 8 * (u64)gridDim.x * blockDim.x)
      asm volatile("discard.global.L2 [%0], 128;" ::"l"(from + i) : "memory");
  }
#endif
}

// Writes over what a candidate may have left in shared memory and in thread-local memory.
extern "C" __global__ void __launch_bounds__(1024) kevin_scrub(u32 value) {
  extern __shared__ u32 shared[];
  u32 bytes;
  asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(bytes));
  for (u32 i = threadIdx.x; i < bytes / 4; i += blockDim.x) shared[i] = value;
  volatile u32 local[256];
  for (int i = 0; i < 256; ++i) local[i] = value;
  __syncthreads();
  if (local[(value + threadIdx.x) % 256] != value) shared[threadIdx.x] = value + 1;
}

extern "C" __global__ void kevin_clear(Tally* t) {
  *t = Tally{};
  t->first_wrong = ~0ull;
}

// Bytes that do not belong to `word` any more; `at` is 8-byte aligned, the first `skip` bytes are not looked at.
extern "C" __global__ void kevin_around(const unsigned char* at, u64 skip, u64 bytes, u64 word, Tally* t) {
  u64 count = 0;
  for (u64 i = skip + (u64)blockIdx.x * blockDim.x + threadIdx.x; i < bytes; i += (u64)gridDim.x * blockDim.x)
    count += at[i] != (unsigned char)(word >> (8 * (i % 8)));
  if (count != 0) atomicAdd(&t->overrun, count);
}

// Number, mean and sum of squared distances to the mean of some elements.
struct Moments {
  double count, mean, squares;
};
// Those of both (Chan, Golub, LeVeque 1983): means are never taken from sums that would cancel.
__device__ Moments merge(const Moments& a, const Moments& b) {
  const double n = a.count + b.count;
  if (n == 0) return a;
  const double distance = b.mean - a.mean, share = b.count / n;
  return {n, a.mean + distance * share, a.squares + b.squares + distance * distance * a.count * share};
}
// Of all threads of a block, in the first of them; 256 threads.
__device__ Moments merge_block(Moments m) {
  __shared__ Moments of_warp[8];
  for (int d = 16; d > 0; d /= 2) {
    const Moments other{__shfl_down_sync(~0u, m.count, d), __shfl_down_sync(~0u, m.mean, d), __shfl_down_sync(~0u, m.squares, d)};
    m = merge(m, other);
  }
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = m;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int i = 1; i < 8; ++i) m = merge(m, of_warp[i]);
  }
  return m;
}
// `value(i)`: an element as a double. Sums less the thread's first finite element; see eval/spread.hpp.
template <class Value>
__device__ Moments moments_of(u64 n, Value value) {
  double shift = 0, count = 0, first = 0, second = 0;
#pragma unroll 4
  for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (u64)gridDim.x * blockDim.x) {
    const double v = value(i);
    if (!isfinite(v)) continue;
    if (count == 0) shift = v;
    first += v - shift;
    second += (v - shift) * (v - shift);
    count += 1;
  }
  if (count == 0) return {0, 0, 0};
  return {count, shift + first / count, fmax(second - first * (first / count), 0.0)};
}
extern "C" __global__ void __launch_bounds__(256) kevin_moments(const void* expected, u64 n, int dtype, Moments* of_block) {
  Moments m{0, 0, 0};
  switch (dtype) {
    case f32: m = moments_of(n, [=](u64 i) { return (double)((const float*)expected)[i]; }); break;
    case f64: m = moments_of(n, [=](u64 i) { return ((const double*)expected)[i]; }); break;
    case f16: m = moments_of(n, [=](u64 i) { return half_to_double(((const u16*)expected)[i]); }); break;
    case bf16: m = moments_of(n, [=](u64 i) { return (double)__uint_as_float((u32)((const u16*)expected)[i] << 16); }); break;
  }
  m = merge_block(m);
  if (threadIdx.x == 0) of_block[blockIdx.x] = m;
}
// One block. Always in the same order: the same elements give the same spread.
extern "C" __global__ void __launch_bounds__(256) kevin_spread(const Moments* of_block, u32 blocks, Tally* t) {
  Moments m{0, 0, 0};
  for (u32 i = threadIdx.x; i < blocks; i += blockDim.x) m = merge(m, of_block[i]);
  m = merge_block(m);
  if (threadIdx.x != 0) return;
  const double variance = m.squares / m.count;
  t->spread = variance > 0 && isfinite(variance) ? sqrt(variance) : 0;
}

struct Local {
  u64 wrong = 0, unwritten = 0, not_finite = 0, outside = 0, first = ~0ull, last = 0;
  double max_absolute = 0, max_relative = 0;
};

template <class Bits>
__device__ __forceinline__ void look(Local& l, u64 i, double a, double e, Bits bits, Bits poison, double absolute, double relative, double k) {
  const double difference = fabs(a - e), size = fabs(e);
  if (!(difference <= k + k * fabs(a) && difference < 1e308) && a != e) ++l.outside;
  if (difference <= absolute + relative * size && difference < 1e308 && bits != poison) {
    if (difference > l.max_absolute) l.max_absolute = difference;
    if (difference > l.max_relative * size && size > 0) l.max_relative = difference / size;
    return;
  }
  bool right = false;
  if (bits == poison) {
    ++l.unwritten;
  } else if (isnan(e)) {
    right = isnan(a);
  } else if (isinf(e)) {
    right = a == e;
  } else if (isfinite(a)) {
    if (difference > l.max_absolute) l.max_absolute = difference;
    if (size > 0 && difference > l.max_relative * size) l.max_relative = difference / size;
  } else {
    ++l.not_finite;
  }
  if (right) return;
  ++l.wrong;
  if (i < l.first) l.first = i;
  if (i + 1 > l.last) l.last = i + 1;
}

template <class T>
__device__ __forceinline__ void look_integer(Local& l, u64 i, T a, T e, T poison, double k) {
  if (a == e) return;
  if (a == poison) {
    ++l.unwritten;
    ++l.outside;
  } else {
    const double difference = fabs((double)a - (double)e);
    if (difference > k + k * fabs((double)a)) ++l.outside;
    if (difference > l.max_absolute) l.max_absolute = difference;
    if (e != 0 && difference / fabs((double)e) > l.max_relative) l.max_relative = difference / fabs((double)e);
  }
  ++l.wrong;
  if (i < l.first) l.first = i;
  if (i + 1 > l.last) l.last = i + 1;
}

extern "C" __global__ void __launch_bounds__(256) kevin_compare(const void* actual, const void* expected, u64 n, int dtype,
                                                                double absolute, double relative, double spread, double k,
                                                                u64 poison, Tally* t) {
  Local l;
  absolute += spread * t->spread;
  const u64 step = (u64)gridDim.x * blockDim.x;
  const u64 start = (u64)blockIdx.x * blockDim.x + threadIdx.x;
  switch (dtype) {
    case f32: {
      const float* a = (const float*)actual;
      const float* e = (const float*)expected;
#pragma unroll 4
      for (u64 i = start; i < n; i += step) look<u32>(l, i, a[i], e[i], __float_as_uint(a[i]), (u32)poison, absolute, relative, k);
      break;
    }
    case f64:
      for (u64 i = start; i < n; i += step) {
        const double a = ((const double*)actual)[i];
        look<u64>(l, i, a, ((const double*)expected)[i], (u64)__double_as_longlong(a), poison, absolute, relative, k);
      }
      break;
    case f16:
      for (u64 i = start; i < n; i += step) {
        const u16 a = ((const u16*)actual)[i];
        look<u16>(l, i, half_to_double(a), half_to_double(((const u16*)expected)[i]), a, (u16)poison, absolute, relative, k);
      }
      break;
    case bf16:
      for (u64 i = start; i < n; i += step) {
        const u16 a = ((const u16*)actual)[i];
        const u16 e = ((const u16*)expected)[i];
        look<u16>(l, i, __uint_as_float((u32)a << 16), __uint_as_float((u32)e << 16), a, (u16)poison, absolute, relative, k);
      }
      break;
    case i32:
      for (u64 i = start; i < n; i += step) look_integer<int>(l, i, ((const int*)actual)[i], ((const int*)expected)[i], (int)poison, k);
      break;
    case int64:
      for (u64 i = start; i < n; i += step) look_integer<i64>(l, i, ((const i64*)actual)[i], ((const i64*)expected)[i], (i64)poison, k);
      break;
    case boolean:
      for (u64 i = start; i < n; i += step)
        look_integer<unsigned char>(l, i, ((const unsigned char*)actual)[i], ((const unsigned char*)expected)[i], (unsigned char)poison, k);
      break;
  }
  if (l.outside != 0) atomicAdd(&t->outside_kernelbench, l.outside);
  if (l.wrong != 0) {
    atomicAdd(&t->wrong, l.wrong);
    atomicMin(&t->first_wrong, l.first);
    atomicMax(&t->last_wrong, l.last);
    if (l.unwritten != 0) atomicAdd(&t->unwritten, l.unwritten);
    if (l.not_finite != 0) atomicAdd(&t->not_finite, l.not_finite);
  }
  for (int d = 16; d > 0; d /= 2) {
    l.max_absolute = fmax(l.max_absolute, __shfl_xor_sync(~0u, l.max_absolute, d));
    l.max_relative = fmax(l.max_relative, __shfl_xor_sync(~0u, l.max_relative, d));
  }
  if (threadIdx.x % 32 == 0) {  // of doubles that are not negative the bits are ordered as the values
    if (l.max_absolute > 0) atomicMax(&t->max_absolute, (u64)__double_as_longlong(l.max_absolute));
    if (l.max_relative > 0) atomicMax(&t->max_relative, (u64)__double_as_longlong(l.max_relative));
  }
}
)cuda";

}  // namespace kevin::cuda

#endif  // KEVIN_EVAL_CUDA_JUDGE_SOURCE_HPP
