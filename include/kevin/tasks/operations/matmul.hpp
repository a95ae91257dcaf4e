#ifndef KEVIN_TASKS_OPERATIONS_MATMUL_HPP
#define KEVIN_TASKS_OPERATIONS_MATMUL_HPP

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "kevin/tasks/operation.hpp"

/// Matrix products: matmul, bmm, einsum, linear, attention.
namespace kevin::tasks {

namespace detail {

/// Rows, inner extent, columns and batch of a product, checked.
[[nodiscard]] inline TensorInfo infer_product(const Infos& in, const Arguments& a, bool transpose_a, bool transpose_b) {
  const auto matrix = [](const TensorInfo& x, bool transposed) {
    const std::size_t rank = x.shape.size();
    std::pair<std::int64_t, std::int64_t> extents{x.shape[rank - 2], x.shape[rank - 1]};
    if (transposed) std::swap(extents.first, extents.second);
    return extents;
  };
  require_real(*in[0]);
  require_real(*in[1], "in[1]");
  const DType dtype = arithmetic_type(*in[0], *in[1]);
  const auto [m, k] = matrix(*in[0], transpose_a);
  const auto [inner, n] = matrix(*in[1], transpose_b);
  if (k != inner) {
    complain({}, "cannot multiply " + shape_text(in[0]->shape) + " by " + shape_text(in[1]->shape) +
                     ": inner extents " + std::to_string(k) + " and " + std::to_string(inner));
  }
  require_declared(a, "m", m);
  require_declared(a, "k", k);
  require_declared(a, "n", n);
  Shape out = broadcast({in[0]->shape.begin(), in[0]->shape.end() - 2}, {in[1]->shape.begin(), in[1]->shape.end() - 2});
  out.push_back(m);
  out.push_back(n);
  return {out, dtype};
}

[[nodiscard]] inline Operation matmul() {
  return {.name = "matmul",
          .least = 2,
          .most = 2,
          .rules = {{"transpose_a", ArgumentType::flag},
                    {"transpose_b", ArgumentType::flag},
                    {"m", ArgumentType::integer},
                    {"k", ArgumentType::integer},
                    {"n", ArgumentType::integer}},
          .infer = [](const Infos& in, const Arguments& a) -> TensorInfo {
            require_rank(*in[0], 2, 8);
            require_rank(*in[1], 2, 8, "in[1]");
            return infer_product(in, a, a.flag("transpose_a", false), a.flag("transpose_b", false));
          },
          .bind = [](const Infos&, const Arguments& a) -> Kernel {
            return [ta = a.flag("transpose_a", false), tb = a.flag("transpose_b", false)](Operands x) {
              return torch::matmul(ta ? x[0]->transpose(-2, -1) : *x[0], tb ? x[1]->transpose(-2, -1) : *x[1]);
            };
          }};
}

[[nodiscard]] inline Operation bmm() {
  return {.name = "bmm",
          .least = 2,
          .most = 2,
          .rules = {{"batch", ArgumentType::integer},
                    {"m", ArgumentType::integer},
                    {"k", ArgumentType::integer},
                    {"n", ArgumentType::integer}},
          .infer = [](const Infos& in, const Arguments& a) -> TensorInfo {
            require_rank(*in[0], 3, 3);
            require_rank(*in[1], 3, 3, "in[1]");
            if (in[0]->shape[0] != in[1]->shape[0]) complain({}, "the two batches differ");
            require_declared(a, "batch", in[0]->shape[0]);
            return infer_product(in, a, false, false);
          },
          .bind = [](const Infos&, const Arguments&) -> Kernel {
            return [](Operands x) { return torch::bmm(*x[0], *x[1]); };
          }};
}

/// Einsum with an explicit result ("ij,jk->ik"): letters only, none twice within one operand.
[[nodiscard]] inline TensorInfo infer_einsum(const Infos& in, const Arguments& a) {
  const std::string equation = a.text("equation");
  const auto fail = [&](const std::string& why) { complain("args.equation", quote(equation) + ' ' + why); };
  std::map<char, std::int64_t> extents;
  std::size_t operand = 0;
  std::size_t letters = 0;
  std::string seen;
  Shape out;
  bool result = false;
  const auto end_operand = [&] {
    if (operand >= in.size()) fail("has more operands than in");
    if (letters != in[operand]->shape.size()) fail("does not name every dim of in[" + std::to_string(operand) + "]");
    ++operand;
    letters = 0;
    seen.clear();
  };
  for (std::size_t i = 0; i < equation.size(); ++i) {
    const char c = equation[i];
    if (!result && c == ',') {
      end_operand();
    } else if (!result && c == '-' && i + 1 < equation.size() && equation[i + 1] == '>') {
      end_operand();
      result = true;
      ++i;
    } else if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
      if (seen.find(c) != std::string::npos) fail(std::string("names ") + c + " twice in one operand");
      seen += c;
      if (result) {
        if (!extents.contains(c)) fail(std::string("has ") + c + " in the result only");
        out.push_back(extents[c]);
      } else {
        if (operand >= in.size()) fail("has more operands than in");
        if (letters >= in[operand]->shape.size()) fail("has too many letters for in[" + std::to_string(operand) + "]");
        const std::int64_t extent = in[operand]->shape[letters++];
        if (const auto [it, fresh] = extents.emplace(c, extent); !fresh && it->second != extent) {
          fail(std::string("gives ") + c + " two extents, " + std::to_string(it->second) + " and " +
               std::to_string(extent));
        }
      }
    } else {
      fail("has a character other than letters, ',' and one '->'");
    }
  }
  if (!result) fail("lacks '->'");
  if (operand != in.size()) fail("has fewer operands than in");
  for (std::size_t i = 0; i < in.size(); ++i) {
    require_real(*in[i], "in[" + std::to_string(i) + "]");
    if (in[i]->dtype != in[0]->dtype) complain("in[" + std::to_string(i) + "]", "has another type than in[0]");
  }
  return {out, in[0]->dtype};
}

[[nodiscard]] inline Operation einsum() {
  return {.name = "einsum",
          .least = 1,
          .most = 4,
          .rules = {{"equation", ArgumentType::text, true}},
          .infer = infer_einsum,
          .bind = [](const Infos&, const Arguments& a) -> Kernel {
            return [equation = a.text("equation")](Operands x) {
              std::vector<torch::Tensor> operands;
              operands.reserve(x.size());
              for (const torch::Tensor* o : x) operands.push_back(*o);
              return torch::einsum(equation, operands);
            };
          }};
}

[[nodiscard]] inline Operation linear() {
  return {.name = "linear",
          .rules = {{"weight", ArgumentType::parameter, true},
                    {"bias", ArgumentType::parameter},
                    {"in_features", ArgumentType::integer},
                    {"out_features", ArgumentType::integer}},
          .infer = [](const Infos& in, const Arguments& a) -> TensorInfo {
            const TensorInfo& x = *in[0];
            const TensorInfo& weight = *in[1];
            require_real(x);
            require_rank(x, 1, 8);
            require_rank(weight, 2, 2, "args.weight");
            require_shape(weight, {weight.shape[0], x.shape.back()}, "args.weight");
            if (in[2] != nullptr) require_shape(*in[2], {weight.shape[0]}, "args.bias");
            (void)arithmetic_type(x, weight);
            if (weight.dtype != x.dtype || (in[2] != nullptr && in[2]->dtype != x.dtype))
              complain({}, "has operands of different types");
            require_declared(a, "in_features", x.shape.back());
            require_declared(a, "out_features", weight.shape[0]);
            TensorInfo out = x;
            out.shape.back() = weight.shape[0];
            return out;
          },
          .bind = [](const Infos&, const Arguments&) -> Kernel {
            return [](Operands x) { return torch::linear(*x[0], *x[1], *x[2]); };
          }};
}

[[nodiscard]] inline Operation attention() {
  return {.name = "scaled_dot_product_attention",
          .least = 3,
          .most = 3,
          .rules = {{"is_causal", ArgumentType::flag},
                    {"scale", ArgumentType::number},
                    {"head_dim", ArgumentType::integer}},
          .infer = [](const Infos& in, const Arguments& a) -> TensorInfo {
            for (std::size_t i = 0; i < 3; ++i) {
              const std::string place = "in[" + std::to_string(i) + "]";
              require_real(*in[i], place);
              require_rank(*in[i], 3, 8, place);
              if (in[i]->dtype != in[0]->dtype) complain(place, "has another type than in[0]");
            }
            Shape key = in[0]->shape;  // [..., S, E]
            const std::size_t rank = key.size();
            if (in[1]->shape.size() == rank) key[rank - 2] = in[1]->shape[rank - 2];
            require_shape(*in[1], key, "in[1]");
            Shape value = key;  // [..., S, Ev]
            if (in[2]->shape.size() == rank) value[rank - 1] = in[2]->shape[rank - 1];
            require_shape(*in[2], value, "in[2]");
            require_declared(a, "head_dim", key.back());
            TensorInfo out = *in[0];
            out.shape.back() = value.back();
            return out;
          },
          .bind = [](const Infos& in, const Arguments& a) -> Kernel {
            const double scale = a.number("scale", 1.0 / std::sqrt(static_cast<double>(in[0]->shape.back())));
            return [scale, causal = a.flag("is_causal", false)](Operands x) {
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 1)
              return at::scaled_dot_product_attention(*x[0], *x[1], *x[2], {}, 0.0, causal, scale);
#else
              torch::Tensor scores = torch::matmul(*x[0] * scale, x[1]->transpose(-2, -1));
              if (causal) {
                const auto future = torch::ones({scores.size(-2), scores.size(-1)}, torch::kBool).triu(1);
                scores.masked_fill_(future, -std::numeric_limits<double>::infinity());
              }
              return torch::matmul(torch::softmax(scores, -1), *x[2]);
#endif
            };
          }};
}

}  // namespace detail

[[nodiscard]] inline std::vector<Operation> matmul_operations() {
  using namespace detail;
  return {matmul(), bmm(), einsum(), linear(), attention()};
}

}  // namespace kevin::tasks

#endif  // KEVIN_TASKS_OPERATIONS_MATMUL_HPP
