#ifndef KEVIN_AGENT_KERNEL_SPACE_CUDA_MULTIPLY_CODE_HPP
#define KEVIN_AGENT_KERNEL_SPACE_CUDA_MULTIPLY_CODE_HPP

#include <algorithm>
#include <functional>
#include <string>

#include "kevin/agent/kernel_space/vector_code.hpp"

namespace kevin::agent::detail::cuda {

/// What multiplies two panels in shared memory, s[BK][LDA] (left) and t[BK][LDB] (right), into a block's tile of BM x
/// BN sums, and what each thread has of them. Engines: "fma" (floating-point units, TM x TN sums for each thread) and
/// tensor cores: "tf32" and "half" (about 11 bits of each factor), "tf32x3" and "bf16x3" (each factor as a sum of two
/// of such numbers, three products: 21 and 16 bits).
struct MultiplyCode {
  int rows = 64, columns = 64;            ///< of the block's tile
  int micro_rows = 4, micro_columns = 4;  ///< sums of a thread, which decide how many threads there are
  std::string engine = "fma";

  [[nodiscard]] bool tensor() const { return engine != "fma"; }
  [[nodiscard]] bool sixteen() const { return engine == "half" || engine == "bf16x3"; }
  /// Steps of k that one instruction takes.
  [[nodiscard]] int step() const { return !tensor() ? 1 : sixteen() ? 16 : 8; }

  /// Threads of a block; more than can be launched where the tile is large and each thread's share small.
  [[nodiscard]] int threads() const {
    const int wanted = std::max(1, rows * columns / (micro_rows * micro_columns));
    return tensor() ? 32 * std::clamp(wanted / 32, 1, (rows / 16) * (columns / 8)) : wanted;
  }

  /// The type Sums, and multiply(s, t, sums).
  [[nodiscard]] std::string text() const { return tensor() ? tensor_text() : fma_text(); }

  /// The loops over a thread's sums; `use(row, column, sum)` is the statement for each.
  [[nodiscard]] std::string each_sum(
      const std::function<std::string(const std::string&, const std::string&, const std::string&)>& use) const {
    if (!tensor()) {
      return R"(  const int row = m0 + threadIdx.x / (BN / TN) * TM, column = n0 + threadIdx.x % (BN / TN) * TN;
#pragma unroll
  for (int i = 0; i < TM; ++i)
#pragma unroll
    for (int j = 0; j < TN; ++j) )" +
             use("row + i", "column + j", "sums.of[i][j]") + "\n";
    }
    return R"(  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int row = m0 + warp / WN * (16 * MI) + lane / 4, column = n0 + warp % WN * (8 * NI) + lane % 4 * 2;
#pragma unroll
  for (int i = 0; i < MI; ++i)
#pragma unroll
    for (int j = 0; j < NI; ++j)
#pragma unroll
      for (int c = 0; c < 4; ++c) )" +
           use("row + 16 * i + c / 2 * 8", "column + 8 * j + c % 2", "sums.of[i][j][c]") + "\n";
  }

 private:
  [[nodiscard]] std::string fma_text() const {
    return fill(R"(constexpr int TM = $tm, TN = $tn;  // sums of a thread
struct Sums { T of[TM][TN]; };
static inline void multiply(const float* s, const float* t, Sums& sums) {
  s += threadIdx.x / (BN / TN) * TM;
  t += threadIdx.x % (BN / TN) * TN;
#pragma unroll
  for (int k = 0; k < BK; ++k) {
    T u[TM], v[TN];
#pragma unroll
    for (int i = 0; i < TM; ++i) u[i] = wide(s[k * LDA + i]);
#pragma unroll
    for (int j = 0; j < TN; ++j) v[j] = wide(t[k * LDB + j]);
#pragma unroll
    for (int i = 0; i < TM; ++i)
#pragma unroll
      for (int j = 0; j < TN; ++j) sums.of[i][j] += u[i] * v[j];
  }
}
)",
                {{"$tm", std::to_string(micro_rows)}, {"$tn", std::to_string(micro_columns)}});
  }

  /// Warps are laid over the tile so that each has about as many rows as columns.
  [[nodiscard]] std::string tensor_text() const {
    const int warps = threads() / 32;
    int best = 1;
    for (int down = 1; down <= warps; down *= 2) {
      const bool fits = rows % (16 * down) == 0 && columns % (8 * (warps / down)) == 0;
      const auto skew = [&](int d) {
        const int high = rows / d, wide = columns / std::max(1, warps / d);
        return std::max(high, wide) - std::min(high, wide);
      };
      const bool best_fits = rows % (16 * best) == 0 && columns % (8 * (warps / best)) == 0;
      if (fits && (!best_fits || skew(down) < skew(best))) best = down;
    }
    std::string code = fill(
        "constexpr int WM = $wm, WN = $wn, MI = BM / (16 * WM), NI = BN / (8 * WN);  // warps; products of 16 x 8 in "
        "each\n"
        "struct Sums { float of[MI][NI][4]; };\n",
        {{"$wm", std::to_string(best)}, {"$wn", std::to_string(warps / best)}});
    const std::string type = engine == "half" ? "f16" : engine == "bf16x3" ? "bf16" : "tf32";
    code += fill(R"(static inline void mma(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  asm("mma.sync.aligned.m16n8$k.row.col.f32.$t.$t.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
)",
                 {{"$k", sixteen() ? "k16" : "k8"}, {"$t", type}});
    code += sixteen() ? pairs() : singles();
    const bool split = engine.ends_with("x3");
    // An instruction's factors: rows lane / 4 and 8 below; k from lane % 4 on, one register for one or two numbers.
    code += fill(R"(static inline void multiply(const float* s, const float* t, Sums& sums) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  s += warp / WN * (16 * MI) + lane / 4 + lane % 4 * $per * LDA;
  t += warp % WN * (8 * NI) + lane / 4 + lane % 4 * $per * LDB;
#pragma unroll
  for (int k = 0; k < BK; k += $step) {
    unsigned a[$parts][MI][4], b[$parts][NI][2];
#pragma unroll
    for (int i = 0; i < MI; ++i)
#pragma unroll
      for (int r = 0; r < 4; ++r) take<LDA>(s + (k + r / 2 * $half) * LDA + 16 * i + r % 2 * 8, $a);
#pragma unroll
    for (int j = 0; j < NI; ++j)
#pragma unroll
      for (int r = 0; r < 2; ++r) take<LDB>(t + (k + r * $half) * LDB + 8 * j, $b);
#pragma unroll
    for (int i = 0; i < MI; ++i)
#pragma unroll
      for (int j = 0; j < NI; ++j) {
$products      }
  }
}
)",
                 {{"$products", split ? "        mma(sums.of[i][j], a[1][i], b[0][j]);\n"
                                        "        mma(sums.of[i][j], a[0][i], b[1][j]);\n"
                                        "        mma(sums.of[i][j], a[0][i], b[0][j]);\n"
                                      : "        mma(sums.of[i][j], a[0][i], b[0][j]);\n"},
                  {"$parts", split ? "2" : "1"},
                  {"$per", sixteen() ? "2" : "1"},
                  {"$step", std::to_string(step())},
                  {"$half", std::to_string(step() / 2)},
                  {"$a", split ? "a[0][i][r], a[1][i][r]" : "a[0][i][r]"},
                  {"$b", split ? "b[0][j][r], b[1][j][r]" : "b[0][j][r]"}});
    return code;
  }

  /// take<LD>(p, high[, low]): one number of a factor for one register.
  [[nodiscard]] std::string singles() const {
    const std::string round =
        "static inline unsigned rounded(float x) {\n  unsigned u;\n"
        "  asm(\"cvt.rna.tf32.f32 %0, %1;\" : \"=r\"(u) : \"f\"(x));\n  return u;\n}\n";
    if (engine == "tf32")
      return round + "template <int LD> static inline void take(const float* p, unsigned& u) { u = rounded(*p); }\n";
    return round +
           "template <int LD> static inline void take(const float* p, unsigned& high, unsigned& low) {\n"
           "  high = rounded(*p);\n  low = rounded(*p - __uint_as_float(high));\n}\n";
  }

  /// The same for two numbers, one step of k apart.
  [[nodiscard]] std::string pairs() const {
    const std::string round = fill(
        "static inline unsigned rounded(float x, float y) {\n  unsigned u;\n"
        "  asm(\"cvt.rn.$tx2.f32 %0, %1, %2;\" : \"=r\"(u) : \"f\"(y), \"f\"(x));\n  return u;\n}\n",
        {{"$t", engine == "half" ? "f16" : "bf16"}});
    if (engine == "half")
      return round +
             "template <int LD> static inline void take(const float* p, unsigned& u) { u = rounded(p[0], p[LD]); }\n";
    return round +
           "template <int LD> static inline void take(const float* p, unsigned& high, unsigned& low) {\n"
           "  high = rounded(p[0], p[LD]);\n"
           "  low = rounded(p[0] - __uint_as_float(high << 16), p[LD] - __uint_as_float(high & 0xffff0000u));\n}\n";
  }
};

}  // namespace kevin::agent::detail::cuda

#endif  // KEVIN_AGENT_KERNEL_SPACE_CUDA_MULTIPLY_CODE_HPP
