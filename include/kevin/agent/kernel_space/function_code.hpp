#ifndef KEVIN_AGENT_KERNEL_SPACE_FUNCTION_CODE_HPP
#define KEVIN_AGENT_KERNEL_SPACE_FUNCTION_CODE_HPP

#include <set>
#include <string>
#include <string_view>

#include "kevin/agent/kernel_space/vector_code.hpp"

namespace kevin::agent::detail {

/// The vector functions that a kernel calls, written at one of four levels of accuracy:
/// "libm": the C library, lane by lane; "exact": polynomials good to about 3e-7 relative; "fast": about 1e-5 (cheaper);
/// "coarse": about 2e-3 (cheapest). The polynomials are minimax fits of relative error made for this library (Lawson's
/// iteration on linearised least squares), exp on |r| <= ln(2)/2, log on [sqrt(1/2), sqrt(2)], tanh and erf as odd
/// rational functions. On CUDA "libm" is its own library, "fast" takes the intrinsics (and the same rational
/// functions), "coarse" goes through half precision where an instruction does; "exact" is "libm" there.
class FunctionCode {
 public:
  /// Asks for "exp", "log", "tanh", "erf", "div" or "sqrt", called `exp_`, ... in the source. Whoever has asked for
  /// none of the first five has no use for a choice of level.
  void need(std::string_view function) {
    needed_.insert(std::string(function));
    if (function == "tanh" || function == "erf") needed_.insert("div");
  }

  [[nodiscard]] bool has_levels() const { return needed_.size() > (needed_.contains("sqrt") ? 1U : 0U); }

  /// The definitions for V, and for D where that is another type. On CUDA V is a float.
  [[nodiscard]] std::string text(const std::string& level, const std::string& precision,
                                 Backend backend = Backend::cpu) const {
    std::string code;
    if (backend == Backend::cuda && level == "coarse") code += through_half;
    for (const char* f : {"div", "sqrt", "exp", "log", "tanh", "erf"}) {
      if (!needed_.contains(f)) continue;
      code += backend == Backend::cuda ? device(f, level) : level == "libm" ? from_libm(f) : polynomial(f, level);
      if (precision != "float64") continue;
      const bool two = std::string_view(f) == "div";
      code += two ? "static inline D div_(D a, D b) { return a / b; }\n"
                  : "static inline D " + std::string(f) + "_(D x) { return wide(" + f + "_(narrow(x))); }\n";
    }
    return code;
  }

 private:
  [[nodiscard]] static std::string lanes(const std::string& f) {
    return "static inline V " + f + "_(V x) {\n  for (long k = 0; k < W; ++k) x[k] = __builtin_" + f +
           "f(x[k]);\n  return x;\n}\n";
  }

  [[nodiscard]] static std::string from_libm(const std::string& f) {
    return f == "div" ? "static inline V div_(V a, V b) { return a / b; }\n" : lanes(f);
  }

  [[nodiscard]] static std::string polynomial(const std::string& f, const std::string& level) {
    if (f == "div") return division(level);
    if (f == "exp") return exponential(level);
    if (f == "log") return logarithm(level);
    if (f == "tanh") return tangent(level);
    if (f == "erf") return error_function(level);
    return lanes(f);
  }

  static constexpr std::string_view through_half = R"(static inline V through_half(V x) {
  unsigned short h;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(x));
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(h));
  return x;
}
)";

  /// One number on CUDA.
  [[nodiscard]] static std::string device(const std::string& f, const std::string& level) {
    const auto one = [&](const std::string& body) { return "static inline V " + f + "_(V x) { " + body + " }\n"; };
    const bool fast = level == "fast";
    if (level == "coarse") {
      if (f == "div") return "static inline V div_(V a, V b) { return a * through_half(1.0f / b); }\n";
      if (f == "log") return one("return __logf(through_half(x));");
      if (f == "tanh") return one("V y; asm(\"tanh.approx.f32 %0, %1;\" : \"=f\"(y) : \"f\"(x)); return y;");
      if (f == "erf") return error_function(level);
      if (f == "exp") {
        return one(
            "unsigned short h; asm(\"cvt.rn.f16.f32 %0, %1;\" : \"=h\"(h) : \"f\"(x * 1.44269504f)); "
            "asm(\"ex2.approx.f16 %0, %0;\" : \"+h\"(h)); asm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(x) : \"h\"(h)); return "
            "x;");
      }
    }
    if (fast && f == "tanh") return tangent(level);
    if (fast && f == "erf") return error_function(level);
    if (f == "div")
      return "static inline V div_(V a, V b) { return " + std::string(fast ? "__fdividef(a, b)" : "a / b") + "; }\n";
    return one("return " + std::string(fast && f != "sqrt" ? "__" + f + "f(x)" : f + "f(x)") + ";");
  }

  /// Below "exact": an estimate from the bits of the divisor, then Newton's iteration r (2 - b r), which squares its
  /// error.
  [[nodiscard]] static std::string division(const std::string& level) {
    if (level == "exact") return from_libm("div");
    const std::string newton = "  r = r * (2.0f - b * r);\n";
    return "static inline V div_(V a, V b) {\n  V r = (V)(0x7ef31000 - (I)b);\n" + newton +
           (level == "fast" ? newton : "") + "  return a * r;\n}\n";
  }

  /// exp(x) = 2^n exp(r); adding 1.5 * 2^23 rounds to an integer, which lands in the low bits.
  [[nodiscard]] static std::string exponential(const std::string& level) {
    const std::string p =
        level == "exact" ? horner({1.0, 1.0, 0.499999911, 0.166664109, 0.0416682884, 0.00837564468, 0.00138358015}, "r")
        : level == "fast" ? horner({0.999999225, 0.999961913, 0.500045359, 0.167933866, 0.0414544344}, "r")
                          : horner({1.00046098, 1.01515651, 0.496183574}, "r");
    return "static inline V exp_(V x) {\n"
           "  x = least(most(x, splat(-87.0f)), splat(88.0f));\n"
           "  const V shifted = x * 1.44269504f + 12582912.0f;\n"
           "  const V n = shifted - 12582912.0f;\n"
           "  const V r = x - n * 0.693145752f - n * 1.42860677e-06f;\n"
           "  const V p = " +
           p +
           ";\n"
           "  return (V)((I)p + ((I)shifted << 23));\n}\n";
  }

  /// log(x) = e log(2) + log(1 + r) with 1 + r in [sqrt(1/2), sqrt(2)].
  [[nodiscard]] static std::string logarithm(const std::string& level) {
    const std::string p =
        level == "exact" ? horner({1.0, -0.499999881, 0.333341867, -0.250020742, 0.199568331, -0.165623933, 0.149522677,
                                   -0.143668398, 0.0872234926},
                                  "r")
        : level == "fast"
            ? horner({1.00000453, -0.499902189, 0.332580239, -0.254032701, 0.220559329, -0.142920583}, "r")
            : horner({1.00102723, -0.52064687, 0.311645418}, "r");
    return "static inline V log_(V x) {\n"
           "  const I bits = (I)x - 0x3f3504f3;\n"
           "  const V e = __builtin_convertvector(bits >> 23, V);\n"
           "  const V r = (V)((bits & 0x7fffff) + 0x3f3504f3) - 1.0f;\n"
           "  const V p = " +
           p +
           ";\n"
           "  return e * 0.693147182f + r * p;\n}\n";
  }

  [[nodiscard]] static std::string rational(const std::string& name, const std::string& limit, const std::string& p,
                                            const std::string& q, const std::string& quotient = "div_(x * p, q)") {
    return "static inline V " + name + "_(V x) {\n  x = least(most(x, splat(-" + limit + ")), splat(" + limit +
           "));\n  const V t = x * x;\n"
           "  const V p = " +
           p + ";\n  const V q = " + q + ";\n  return " + quotient + ";\n}\n";
  }

  [[nodiscard]] static std::string tangent(const std::string& level) {
    if (level == "exact") {
      return rational("tanh", "9.0f", horner({1.0, 0.133810088, 0.00349556818, 2.0608757e-05, 1.33542208e-08}, "t"),
                      horner({1.0, 0.467143238, 0.0258769058, 0.000328560214, 7.77637524e-07}, "t"));
    }
    if (level == "fast") {
      return rational("tanh", "5.5f", horner({0.999995947, 0.115749434, 0.00157599431}, "t"),
                      horner({1.0, 0.449053079, 0.0179639738, 6.02852087e-05}, "t"));
    }
    return rational("tanh", "3.5f", horner({0.995505631, 0.0457696393}, "t"), horner({1.0, 0.361807495}, "t"));
  }

  [[nodiscard]] static std::string error_function(const std::string& level) {
    if (level == "exact") {
      return rational(
          "erf", "4.0f",
          horner({1.12837911, 0.193543643, 0.0531015098, 0.00388326868, 0.000284561975, 1.98676526e-06}, "t"),
          horner({1.0, 0.504856169, 0.115349367, 0.0152071035, 0.00118554861, 3.7419788e-05}, "t"));
    }
    if (level == "fast") {
      // 1 + erf cancels where gelu needs it, so the quotient is not estimated
      return rational("erf", "4.0f",
                      horner({1.12838221, 0.12961936, 0.041181922, -0.000218013156, -2.20159927e-05}, "t"),
                      horner({1.0, 0.448268861, 0.0856861994, 0.00769013353, -0.000243691014}, "t"), "x * p / q");
    }
    return rational("erf", "2.2f", horner({1.1324333, 0.0361293629}, "t"), horner({1.0, 0.3908737}, "t"));
  }

  std::set<std::string> needed_;
};

}  // namespace kevin::agent::detail

#endif  // KEVIN_AGENT_KERNEL_SPACE_FUNCTION_CODE_HPP
