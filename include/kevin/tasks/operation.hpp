#ifndef KEVIN_TASKS_OPERATION_HPP
#define KEVIN_TASKS_OPERATION_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "kevin/config.hpp"
#include "kevin/refine/task.hpp"
#include "kevin/tasks/torch.hpp"

namespace kevin::tasks {

/// Shape and element type of a value in a task's graph.
struct TensorInfo {
  Shape shape;
  DType dtype = DType::float32;
  friend bool operator==(const TensorInfo&, const TensorInfo&) = default;
};

/// What an argument of an operation may hold.
enum class ArgumentType {
  flag,       ///< true or false
  integer,    ///< an integer
  number,     ///< an integer or a real number, finite
  text,       ///< one of the words that the operation knows
  integers,   ///< a list of integers
  dims,       ///< an integer, a list of integers, or "all"
  parameter,  ///< the name of one of the task's parameters, which becomes a further operand
};

/// One argument that an operation knows.
struct ArgumentRule {
  std::string_view name;
  ArgumentType type;
  bool required = false;
};

namespace detail {

/// What an operation says against a use of it; the graph's check turns it into a kevin::Error that names the task and
/// step.
class Complaint : public std::runtime_error {
 public:
  Complaint(std::string place, const std::string& text) : std::runtime_error(text), place_(std::move(place)) {}
  /// Within the step: "in[0]", "args.dim", or empty for the step itself.
  [[nodiscard]] const std::string& place() const noexcept { return place_; }

 private:
  std::string place_;
};

[[noreturn]] inline void complain(std::string place, const std::string& text) {
  throw Complaint(std::move(place), text);
}

[[nodiscard]] inline std::string shape_text(const Shape& shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  return text + ']';
}

/// Text from outside, fit for an error message: cut, and free of control characters.
[[nodiscard]] inline std::string quote(std::string_view text) {
  constexpr std::size_t longest = 64;
  std::string safe = "'";
  for (char c : text.substr(0, longest)) safe += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
  return safe + (text.size() > longest ? "...'" : "'");
}

}  // namespace detail

/// The arguments of one step, checked against the operation's rules (so a getter finds the right type or nothing).
class Arguments {
 public:
  explicit Arguments(const std::map<std::string, OpArgument>& values) : values_(&values) {}

  [[nodiscard]] bool has(std::string_view name) const { return find(name) != nullptr; }

  [[nodiscard]] bool flag(std::string_view name, bool fallback) const {
    const OpArgument* v = find(name);
    return v == nullptr ? fallback : std::get<bool>(*v);
  }
  [[nodiscard]] std::int64_t integer(std::string_view name, std::int64_t fallback = 0) const {
    const OpArgument* v = find(name);
    return v == nullptr ? fallback : std::get<std::int64_t>(*v);
  }
  [[nodiscard]] double number(std::string_view name, double fallback = 0) const {
    const OpArgument* v = find(name);
    if (v == nullptr) return fallback;
    if (const auto* i = std::get_if<std::int64_t>(v)) return static_cast<double>(*i);
    return std::get<double>(*v);
  }
  [[nodiscard]] std::string text(std::string_view name, std::string_view fallback = {}) const {
    const OpArgument* v = find(name);
    return v == nullptr ? std::string(fallback) : std::get<std::string>(*v);
  }
  [[nodiscard]] std::vector<std::int64_t> integers(std::string_view name,
                                                   std::vector<std::int64_t> fallback = {}) const {
    const OpArgument* v = find(name);
    return v == nullptr ? std::move(fallback) : std::get<std::vector<std::int64_t>>(*v);
  }
  /// The dims of a reduction over a tensor of `rank` dims, each in [0, rank), ascending. "all" and an absent argument
  /// mean all of them. Complains about a dim out of range or listed twice.
  [[nodiscard]] std::vector<std::int64_t> dims(std::string_view name, std::size_t rank) const;
  /// One dim in [0, rank); for tensors without dims there is none to name, which is a complaint.
  [[nodiscard]] std::int64_t dim(std::string_view name, std::size_t rank, std::int64_t fallback = 0) const;

 private:
  [[nodiscard]] const OpArgument* find(std::string_view name) const {
    const auto it = values_->find(std::string(name));
    return it == values_->end() ? nullptr : &it->second;
  }

  const std::map<std::string, OpArgument>* values_;
};

/// The operands of one step for shape inference: the values named by `in`, then one for every rule of type `parameter`,
/// in the order of the rules, null when that argument is absent.
using Infos = std::span<const TensorInfo* const>;
/// The same for execution; an absent one is an undefined tensor.
using Operands = std::span<const torch::Tensor* const>;
/// One step, bound to its arguments and to the shapes of its operands.
using Kernel = std::function<torch::Tensor(Operands)>;

/// One entry of the table: everything that is known about an operation. Adding an operation is adding one of these.
struct Operation {
  std::string_view name;
  std::size_t least = 1;  ///< number of values in `in`: at least
  std::size_t most = 1;   ///< and at most
  std::vector<ArgumentRule> rules;
  /// Shape and type of the result. Checks everything that LibTorch would refuse, and complains.
  TensorInfo (*infer)(const Infos&, const Arguments&) = nullptr;
  /// The LibTorch call. Runs after infer has accepted, so it need not check again; it must not keep references to its
  /// arguments.
  Kernel (*bind)(const Infos&, const Arguments&) = nullptr;

  [[nodiscard]] const ArgumentRule* rule(std::string_view argument) const {
    for (const ArgumentRule& r : rules) {
      if (r.name == argument) return &r;
    }
    return nullptr;
  }
};

namespace detail {

/// `dim` counted from the front; negative ones count from the back, as in PyTorch.
[[nodiscard]] inline std::int64_t wrap_dim(std::string_view argument, std::int64_t dim, std::size_t rank) {
  const auto r = static_cast<std::int64_t>(rank);
  if (dim < -r || dim >= r) {
    complain("args." + std::string(argument),
             std::to_string(dim) + " is not a dim of a tensor with " + std::to_string(r) + " dims");
  }
  return dim < 0 ? dim + r : dim;
}

/// The element count, or a complaint when it exceeds what any machine holds (2^40) so that no later product overflows.
inline std::int64_t checked_count(const Shape& shape, std::string_view place = {}) {
  constexpr std::int64_t most = std::int64_t{1} << 40;
  std::int64_t n = 1;
  for (std::int64_t d : shape) {
    if (d < 1) complain(std::string(place), "extent " + std::to_string(d) + " is not positive");
    if (d > most || n > most / d)
      complain(std::string(place), "shape " + shape_text(shape) + " has more than 2^40 elements");
    n *= d;
  }
  return n;
}

[[nodiscard]] constexpr bool is_real(DType t) noexcept {
  return t == DType::float32 || t == DType::float64 || t == DType::float16 || t == DType::bfloat16;
}

inline void require_real(const TensorInfo& x, std::string_view place = "in[0]") {
  if (!is_real(x.dtype))
    complain(std::string(place), "has type " + std::string(to_string(x.dtype)) + ", needs a real type");
}

inline void require_rank(const TensorInfo& x, std::size_t least, std::size_t most, std::string_view place = "in[0]") {
  if (x.shape.size() < least || x.shape.size() > most) {
    complain(std::string(place), "has shape " + shape_text(x.shape) + ", needs " + std::to_string(least) +
                                     (most == least ? "" : " to " + std::to_string(most)) + " dims");
  }
}

/// A declared size (redundant in the graph, listed for readers) must agree with the shapes.
inline void require_declared(const Arguments& a, std::string_view name, std::int64_t actual) {
  if (a.has(name) && a.integer(name) != actual) {
    complain("args." + std::string(name),
             "says " + std::to_string(a.integer(name)) + ", the operands have " + std::to_string(actual));
  }
}

inline void require_shape(const TensorInfo& x, const Shape& shape, const std::string& place) {
  if (x.shape != shape) complain(place, "has shape " + shape_text(x.shape) + ", needs " + shape_text(shape));
}

/// The common shape of two broadcast operands (PyTorch's rule: aligned at the last dim, extents equal or one of them
/// 1).
[[nodiscard]] inline Shape broadcast(const Shape& a, const Shape& b) {
  Shape out(std::max(a.size(), b.size()), 1);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1;
    const std::int64_t y = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1)
      complain({}, "shapes " + shape_text(a) + " and " + shape_text(b) + " do not broadcast");
    out[out.size() - 1 - i] = std::max(x, y);
  }
  return out;
}

/// The element type of arithmetic on two values: the real one. Two different real types in one step are refused, and so
/// is arithmetic without a real operand: no task needs either, and PyTorch's rules for them surprise.
[[nodiscard]] inline DType arithmetic_type(const TensorInfo& a, const TensorInfo& b) {
  if (is_real(a.dtype) && is_real(b.dtype) && a.dtype != b.dtype) {
    complain({}, "mixes " + std::string(to_string(a.dtype)) + " and " + std::string(to_string(b.dtype)));
  }
  if (!is_real(a.dtype) && !is_real(b.dtype)) complain({}, "has no operand of a real type");
  return is_real(a.dtype) ? a.dtype : b.dtype;
}

/// Inference of an operation whose result looks like its first operand.
[[nodiscard]] inline TensorInfo infer_same(const Infos& in, const Arguments& /*args*/) {
  require_real(*in[0]);
  return *in[0];
}

}  // namespace detail

inline std::vector<std::int64_t> Arguments::dims(std::string_view name, std::size_t rank) const {
  std::vector<bool> chosen(rank, false);
  const auto choose = [&](std::int64_t d) {
    const auto i = static_cast<std::size_t>(detail::wrap_dim(name, d, rank));
    if (chosen[i]) detail::complain("args." + std::string(name), "names dim " + std::to_string(i) + " twice");
    chosen[i] = true;
  };
  const OpArgument* v = find(name);
  if (v == nullptr || std::holds_alternative<std::string>(*v)) {
    chosen.assign(rank, true);
  } else if (const auto* one = std::get_if<std::int64_t>(v)) {
    choose(*one);
  } else {
    for (std::int64_t d : std::get<std::vector<std::int64_t>>(*v)) choose(d);
  }
  std::vector<std::int64_t> result;
  for (std::size_t i = 0; i < rank; ++i) {
    if (chosen[i]) result.push_back(static_cast<std::int64_t>(i));
  }
  return result;
}

inline std::int64_t Arguments::dim(std::string_view name, std::size_t rank, std::int64_t fallback) const {
  return detail::wrap_dim(name, integer(name, fallback), rank);
}

}  // namespace kevin::tasks

#endif  // KEVIN_TASKS_OPERATION_HPP
