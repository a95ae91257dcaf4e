#ifndef KEVIN_TASKS_OPERATIONS_SHAPE_HPP
#define KEVIN_TASKS_OPERATIONS_SHAPE_HPP

#include <cstdint>
#include <string>
#include <vector>

#include "kevin/tasks/operation.hpp"

/// Operations that move, cut, join or mask elements.
namespace kevin::tasks {

namespace detail {

[[nodiscard]] inline Operation reshape() {
  return {.name = "reshape",
          .rules = {{"shape", ArgumentType::integers, true}},
          .infer = [](const Infos& in, const Arguments& a) -> TensorInfo {
            const Shape shape = a.integers("shape");
            if (checked_count(shape, "args.shape") != element_count(in[0]->shape)) {
              complain("args.shape", shape_text(shape) + " does not hold the elements of " + shape_text(in[0]->shape));
            }
            return {shape, in[0]->dtype};
          },
          .bind = [](const Infos&, const Arguments& a) -> Kernel {
            return [shape = a.integers("shape")](Operands x) { return torch::reshape(*x[0], shape); };
          }};
}

[[nodiscard]] inline Operation squeeze() {
  return {.name = "squeeze",
          .rules = {{"dim", ArgumentType::integer, true}},
          .infer = [](const Infos& in, const Arguments& a) -> TensorInfo {
            TensorInfo out = *in[0];
            const std::int64_t d = a.dim("dim", out.shape.size());
            // PyTorch leaves an extent above 1 alone and says nothing; in a task that is a mistake
            if (out.shape[static_cast<std::size_t>(d)] != 1) complain("args.dim", "names an extent that is not 1");
            out.shape.erase(out.shape.begin() + d);
            return out;
          },
          .bind = [](const Infos&, const Arguments& a) -> Kernel {
            return [dim = a.integer("dim")](Operands x) { return torch::squeeze(*x[0], dim); };
          }};
}

[[nodiscard]] inline Operation unsqueeze() {
  return {.name = "unsqueeze",
          .rules = {{"dim", ArgumentType::integer, true}},
          .infer = [](const Infos& in, const Arguments& a) -> TensorInfo {
            TensorInfo out = *in[0];
            out.shape.insert(out.shape.begin() + a.dim("dim", out.shape.size() + 1), 1);
            return out;
          },
          .bind = [](const Infos&, const Arguments& a) -> Kernel {
            return [dim = a.integer("dim")](Operands x) { return torch::unsqueeze(*x[0], dim); };
          }};
}

[[nodiscard]] inline Operation permute() {
  return {.name = "permute",
          .rules = {{"dims", ArgumentType::integers, true}},
          .infer = [](const Infos& in, const Arguments& a) -> TensorInfo {
            const std::size_t rank = in[0]->shape.size();
            const std::vector<std::int64_t> order = a.integers("dims");
            if (order.size() != rank || a.dims("dims", rank).size() != rank)
              complain("args.dims", "does not name every dim once");
            TensorInfo out{{}, in[0]->dtype};
            for (std::int64_t d : order)
              out.shape.push_back(in[0]->shape[static_cast<std::size_t>(wrap_dim("dims", d, rank))]);
            return out;
          },
          .bind = [](const Infos&, const Arguments& a) -> Kernel {
            return [order = a.integers("dims")](Operands x) { return x[0]->permute(order); };
          }};
}

[[nodiscard]] inline Operation flip() {
  return {.name = "flip",
          .rules = {{"dims", ArgumentType::dims, true}},
          .infer = [](const Infos& in, const Arguments& a) -> TensorInfo {
            (void)a.dims("dims", in[0]->shape.size());
            return *in[0];
          },
          .bind = [](const Infos& in, const Arguments& a) -> Kernel {
            return [dims = a.dims("dims", in[0]->shape.size())](Operands x) { return torch::flip(*x[0], dims); };
          }};
}

[[nodiscard]] inline Operation narrow() {
  return {.name = "narrow",
          .rules = {{"dim", ArgumentType::integer, true},
                    {"start", ArgumentType::integer, true},
                    {"length", ArgumentType::integer, true}},
          .infer = [](const Infos& in, const Arguments& a) -> TensorInfo {
            TensorInfo out = *in[0];
            std::int64_t& extent = out.shape[static_cast<std::size_t>(a.dim("dim", out.shape.size()))];
            const std::int64_t start = a.integer("start");
            const std::int64_t length = a.integer("length");
            if (start < 0 || length < 1 || start > extent || length > extent - start) {
              complain("args.start", "and length reach outside an extent of " + std::to_string(extent));
            }
            extent = length;
            return out;
          },
          .bind = [](const Infos&, const Arguments& a) -> Kernel {
            return [dim = a.integer("dim"), start = a.integer("start"), length = a.integer("length")](Operands x) {
              return torch::narrow(*x[0], dim, start, length);
            };
          }};
}

[[nodiscard]] inline Operation concat() {
  return {.name = "concat",
          .least = 1,
          .most = 16,
          .rules = {{"dim", ArgumentType::integer, true}},
          .infer = [](const Infos& in, const Arguments& a) -> TensorInfo {
            TensorInfo out = *in[0];
            const auto d = static_cast<std::size_t>(a.dim("dim", out.shape.size()));
            for (std::size_t i = 1; i < in.size(); ++i) {
              const std::string place = "in[" + std::to_string(i) + "]";
              Shape fits = out.shape;
              if (in[i]->shape.size() == fits.size()) fits[d] = in[i]->shape[d];
              require_shape(*in[i], fits, place);
              if (in[i]->dtype != out.dtype) complain(place, "has another type than in[0]");
              out.shape[d] += in[i]->shape[d];
            }
            return out;
          },
          .bind = [](const Infos&, const Arguments& a) -> Kernel {
            return [dim = a.integer("dim")](Operands x) {
              std::vector<torch::Tensor> parts;
              parts.reserve(x.size());
              for (const torch::Tensor* part : x) parts.push_back(*part);
              return torch::cat(parts, dim);
            };
          }};
}

[[nodiscard]] inline Operation zeros() {
  return {.name = "zeros",
          .least = 0,
          .most = 0,
          .rules = {{"shape", ArgumentType::integers, true}},
          .infer = [](const Infos&, const Arguments& a) -> TensorInfo {
            return {a.integers("shape"), DType::float32};
          },
          .bind = [](const Infos&, const Arguments& a) -> Kernel {
            return [shape = a.integers("shape")](Operands in) {  // of which the first only says on which device
              torch::TensorOptions options(torch::kFloat32);
              if (!in.empty()) options = options.device(in[0]->device());
              return torch::zeros(shape, options);
            };
          }};
}

template <bool Upper>
[[nodiscard]] Operation triangle(std::string_view name) {
  return {.name = name,
          .rules = {{"diagonal", ArgumentType::integer}},
          .infer = [](const Infos& in, const Arguments& a) -> TensorInfo {
            require_rank(*in[0], 2, 8);
            const std::int64_t d = a.integer("diagonal");
            if (d < -(std::int64_t{1} << 40) || d > (std::int64_t{1} << 40))
              complain("args.diagonal", "is out of range");
            return *in[0];
          },
          .bind = [](const Infos&, const Arguments& a) -> Kernel {
            return [d = a.integer("diagonal")](Operands x) {
              return Upper ? torch::triu(*x[0], d) : torch::tril(*x[0], d);
            };
          }};
}

}  // namespace detail

[[nodiscard]] inline std::vector<Operation> shape_operations() {
  using namespace detail;
  return {reshape(),
          squeeze(),
          unsqueeze(),
          permute(),
          flip(),
          narrow(),
          concat(),
          zeros(),
          triangle<true>("triu"),
          triangle<false>("tril")};
}

}  // namespace kevin::tasks

#endif  // KEVIN_TASKS_OPERATIONS_SHAPE_HPP
