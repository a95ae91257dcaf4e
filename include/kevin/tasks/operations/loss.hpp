#ifndef KEVIN_TASKS_OPERATIONS_LOSS_HPP
#define KEVIN_TASKS_OPERATIONS_LOSS_HPP

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kevin/tasks/operation.hpp"

/// Losses: two or three values in, one number out. `reduction` is "mean" or "sum", for kl_div also "batchmean".
namespace kevin::tasks {

namespace detail {

[[nodiscard]] inline std::int64_t reduction_of(const Arguments& a) {
  return a.text("reduction", "mean") == "mean" ? at::Reduction::Mean : at::Reduction::Sum;
}

/// Refuses a reduction other than "mean", "sum" and, where it is given, `further`.
inline void check_reduction(const Arguments& a, std::string_view further = {}) {
  const std::string reduction = a.text("reduction", "mean");
  if (reduction == "mean" || reduction == "sum" || (!further.empty() && reduction == further)) return;
  complain("args.reduction",
           quote(reduction) + " is not one of 'mean', 'sum'" + (further.empty() ? "" : ", " + quote(further)));
}

/// All operands of one shape and type; the result is a scalar.
[[nodiscard]] inline TensorInfo infer_loss(const Infos& in) {
  for (std::size_t i = 0; i < in.size(); ++i) {
    const std::string place = "in[" + std::to_string(i) + "]";
    require_real(*in[i], place);
    require_shape(*in[i], in[0]->shape, place);
    if (in[i]->dtype != in[0]->dtype) complain(place, "has another type than in[0]");
  }
  return {{}, in[0]->dtype};
}

[[nodiscard]] inline Operation mse_loss() {
  return {.name = "mse_loss",
          .least = 2,
          .most = 2,
          .rules = {{"reduction", ArgumentType::text}, {"composed", ArgumentType::flag}},
          .infer = [](const Infos& in, const Arguments& a) -> TensorInfo {
            if (a.flag("composed", false) && a.text("reduction", "mean") != "mean")
              complain("args.composed", "exists for the mean only");
            check_reduction(a);
            return infer_loss(in);
          },
          .bind = [](const Infos&, const Arguments& a) -> Kernel {
            if (a.flag("composed", false)) return [](Operands x) { return torch::mean(torch::pow(*x[0] - *x[1], 2)); };
            return [r = reduction_of(a)](Operands x) { return torch::mse_loss(*x[0], *x[1], r); };
          }};
}

[[nodiscard]] inline Operation smooth_l1_loss() {
  return {.name = "smooth_l1_loss",
          .least = 2,
          .most = 2,
          .rules = {{"reduction", ArgumentType::text}, {"beta", ArgumentType::number}},
          .infer = [](const Infos& in, const Arguments& a) -> TensorInfo {
            if (!(a.number("beta", 1) > 0)) complain("args.beta", "is not positive");
            check_reduction(a);
            return infer_loss(in);
          },
          .bind = [](const Infos&, const Arguments& a) -> Kernel {
            return [r = reduction_of(a), beta = a.number("beta", 1)](Operands x) {
              return torch::smooth_l1_loss(*x[0], *x[1], r, beta);
            };
          }};
}

/// in[0] holds log-probabilities, in[1] probabilities.
[[nodiscard]] inline Operation kl_div() {
  return {.name = "kl_div",
          .least = 2,
          .most = 2,
          .rules = {{"reduction", ArgumentType::text}, {"log_target", ArgumentType::flag}},
          .infer = [](const Infos& in, const Arguments& a) -> TensorInfo {
            require_rank(*in[0], 1, 8);
            check_reduction(a, "batchmean");
            return infer_loss(in);
          },
          .bind = [](const Infos& in, const Arguments& a) -> Kernel {
            const bool log_target = a.flag("log_target", false);
            if (a.text("reduction", "mean") == "batchmean") {
              return [log_target, batch = in[0]->shape[0]](Operands x) {
                return torch::kl_div(*x[0], *x[1], at::Reduction::Sum, log_target) / batch;
              };
            }
            return [r = reduction_of(a), log_target](Operands x) { return torch::kl_div(*x[0], *x[1], r, log_target); };
          }};
}

/// in[0] [N, C, ...] scores, in[1] [N, ...] class numbers (int64).
[[nodiscard]] inline Operation cross_entropy() {
  return {.name = "cross_entropy",
          .least = 2,
          .most = 2,
          .rules = {{"reduction", ArgumentType::text},
                    {"ignore_index", ArgumentType::integer},
                    {"label_smoothing", ArgumentType::number}},
          .infer = [](const Infos& in, const Arguments& a) -> TensorInfo {
            require_rank(*in[0], 2, 5);
            Shape labels = in[0]->shape;
            labels.erase(labels.begin() + 1);
            require_shape(*in[1], labels, "in[1]");
            if (in[1]->dtype != DType::int64)
              complain("in[1]", "has type " + std::string(to_string(in[1]->dtype)) + ", needs int64");
            const double smoothing = a.number("label_smoothing", 0);
            if (!(smoothing >= 0 && smoothing <= 1)) complain("args.label_smoothing", "is outside [0, 1]");
            check_reduction(a);
            return infer_loss(in.first(1));
          },
          .bind = [](const Infos&, const Arguments& a) -> Kernel {
            return [r = reduction_of(a), ignore = a.integer("ignore_index", -100),
                    smoothing = a.number("label_smoothing", 0)](Operands x) {
              return torch::cross_entropy_loss(*x[0], *x[1], {}, r, ignore, smoothing);
            };
          }};
}

/// in[0], in[1], in[2]: anchor, positive, negative.
[[nodiscard]] inline Operation triplet_margin_loss() {
  return {.name = "triplet_margin_loss",
          .least = 3,
          .most = 3,
          .rules = {{"margin", ArgumentType::number},
                    {"p", ArgumentType::number},
                    {"eps", ArgumentType::number},
                    {"swap", ArgumentType::flag},
                    {"reduction", ArgumentType::text}},
          .infer = [](const Infos& in, const Arguments& a) -> TensorInfo {
            require_rank(*in[0], 1, 8);
            if (!(a.number("margin", 1) > 0)) complain("args.margin", "is not positive");
            if (!(a.number("p", 2) > 0)) complain("args.p", "is not positive");
            if (!(a.number("eps", 1e-6) >= 0)) complain("args.eps", "is negative");
            check_reduction(a);
            return infer_loss(in);
          },
          .bind = [](const Infos&, const Arguments& a) -> Kernel {
            return [margin = a.number("margin", 1), p = a.number("p", 2), eps = a.number("eps", 1e-6),
                    swap = a.flag("swap", false), r = reduction_of(a)](Operands x) {
              return torch::triplet_margin_loss(*x[0], *x[1], *x[2], margin, p, eps, swap, r);
            };
          }};
}

}  // namespace detail

[[nodiscard]] inline std::vector<Operation> loss_operations() {
  using namespace detail;
  return {mse_loss(), smooth_l1_loss(), kl_div(), cross_entropy(), triplet_margin_loss()};
}

}  // namespace kevin::tasks

#endif  // KEVIN_TASKS_OPERATIONS_LOSS_HPP
