#ifndef KEVIN_TASKS_GENERATOR_DRAFT_HPP
#define KEVIN_TASKS_GENERATOR_DRAFT_HPP

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kevin/refine/task.hpp"
#include "kevin/tasks/generator/marginal.hpp"
#include "kevin/tasks/graph.hpp"
#include "kevin/tasks/operations.hpp"

namespace kevin::tasks::detail {

/// Something at full shape, [0], and in the preset "small", [1].
template <class T>
using Both = std::array<T, 2>;
inline constexpr std::array<std::size_t, 2> both_sizes = {0, 1};

/// A step that may be added to a draft.
struct DraftStep {
  /// A learned parameter, called "<owner>.<leaf>", or "<owner>" when leaf is empty.
  struct Parameter {
    std::string argument;
    std::string leaf;
    Both<Shape> shape;
    Both<Distribution> distribution;
  };
  /// A new input of the task as a further operand.
  struct Input {
    std::string name;
    Both<Shape> shape;
    Both<Distribution> distribution;
    bool batched;  ///< its first extent is the batch
  };
  std::string op, title;
  Both<std::map<std::string, OpArgument>> args{};
  std::string owner{};
  std::vector<Parameter> parameters{};
  std::vector<Input> inputs{};
  bool with_heavy = false;  ///< the heavy operator's result is a further operand
  Both<Marginal> after{};
};

/// A task in the making, in both sizes at once, with what the rules of the generator need to know of its last result.
class Draft {
 public:
  explicit Draft(const DraftStep::Input& x) : current_shape_(x.shape) {
    add_input(x);
    for (std::size_t s : both_sizes) marginal[s] = Marginal::normal(0, 1);
    current_ = x.name;
  }

  // Of the last result; the moves keep them up to date.
  Both<Marginal> marginal;
  std::size_t spatial = 0;     ///< number of trailing dims that are positions
  int channel = 1;             ///< the dim that counts channels; -1: none
  bool nonlinear = false;      ///< something between it and the last heavy operator or norm is not affine
  bool saturated = false;      ///< the last step was bounded or cut
  bool bounded_above = false;  ///< many elements may lie at one upper bound
  bool bounded_below = false;
  bool altered_low = false;  ///< the last steps changed only the low values, or only the high ones
  bool altered_high = false;
  bool bounded_by_parameter = false;
  bool reduced = false, pooled = false, softmaxed = false, heavy_bias = false;
  std::size_t norms = 0;

  // What was added to the result and multiplied with it and would still come out of it again, each as the set of dims
  // (bit d: dim d) along which it varies.
  std::vector<unsigned> offsets, factors;

  [[nodiscard]] unsigned channel_dim() const { return 1U << static_cast<unsigned>(channel); }
  void add_offset(unsigned dims) {
    offsets.push_back(dims);
    factors.clear();
  }
  void multiply_by(unsigned dims) {
    for (unsigned& o : offsets) o |= dims;
    factors.push_back(dims);
  }
  void forget_terms() {
    offsets.clear();
    factors.clear();
  }
  /// Whether taking the mean, or a maximum, along `dims` from the result would cancel an earlier step: it added
  /// something that does not vary along them.
  [[nodiscard]] bool cancels_offset(unsigned dims) const { return constant_along(offsets, dims); }
  /// The same for dividing by a size along `dims`.
  [[nodiscard]] bool cancels_factor(unsigned dims) const { return constant_along(factors, dims); }

  [[nodiscard]] const Shape& shape(std::size_t size) const { return current_shape_[size]; }
  [[nodiscard]] std::size_t rank() const { return current_shape_[0].size(); }
  [[nodiscard]] std::size_t steps() const { return task_[0].ops.size(); }
  [[nodiscard]] std::string_view last() const { return task_[0].ops.back().op; }
  [[nodiscard]] const Task& task(std::size_t size) const { return task_[size]; }
  [[nodiscard]] bool has(std::string_view op) const { return used_.contains(op); }
  [[nodiscard]] const Marginal& heavy(std::size_t size) const { return heavy_marginal_[size]; }
  [[nodiscard]] bool shaped_like_heavy() const { return current_shape_ == heavy_shape_; }
  [[nodiscard]] bool last_is(std::initializer_list<std::string_view> ops) const {
    return std::find(ops.begin(), ops.end(), last()) != ops.end();
  }
  /// The extent of a dim, in the smaller and the larger of both sizes.
  [[nodiscard]] std::int64_t least_extent(std::size_t dim) const {
    return std::min(current_shape_[0][dim], current_shape_[1][dim]);
  }
  /// One number for each channel, shaped to broadcast against the last result.
  [[nodiscard]] Both<Shape> channel_shape() const {
    Both<Shape> result;
    for (std::size_t s : both_sizes) {
      const auto axis = static_cast<std::size_t>(channel);
      result[s].assign(rank() - axis, 1);
      result[s][0] = current_shape_[s][axis];
    }
    return result;
  }

  /// Adds the step when LibTorch would accept it in both sizes and its result is worth something; says whether it did.
  [[nodiscard]] bool add(const DraftStep& step) {
    const Operation* operation = find_operation(step.op);
    Both<Shape> result;
    for (std::size_t s : both_sizes) {
      if (!step.after[s].lively()) return false;
      try {
        result[s] = infer(*operation, step, s);
        (void)checked_count(result[s]);
      } catch (const Complaint&) {
        return false;
      }
    }
    const std::size_t number = ++owners_[step.owner];
    const std::string owner = step.owner + (number > 1 ? std::to_string(number) : "");
    const std::string out = "t" + std::to_string(steps() + 1);
    for (std::size_t s : both_sizes) {
      Op op{step.op, step.args[s], {current_}, out, result[s]};
      for (const DraftStep::Parameter& p : step.parameters) {
        const std::string name = owner + (p.leaf.empty() ? "" : "." + p.leaf);
        task_[s].parameters.push_back({name, p.shape[s], DType::float32, p.distribution[s]});
        op.args[p.argument] = name;
      }
      for (const DraftStep::Input& i : step.inputs) op.in.push_back(i.name);
      if (step.with_heavy) op.in.push_back(task_[s].ops[0].out);
      task_[s].ops.push_back(std::move(op));
      task_[s].name += (task_[s].name.empty() ? "" : "_") + step.title;
    }
    for (const DraftStep::Input& i : step.inputs) add_input(i);
    used_.insert(step.op);
    current_ = out;
    current_shape_ = result;
    marginal = step.after;
    if (steps() == 1) heavy_shape_ = result, heavy_marginal_ = marginal;
    return true;
  }

  /// Whether an input of this name is there.
  [[nodiscard]] bool has_input(std::string_view name) const {
    return std::any_of(task_[0].inputs.begin(), task_[0].inputs.end(),
                       [&](const TensorSpec& t) { return t.name == name; });
  }

  /// The full task with another batch; no shape of a parameter and no argument depends on it.
  [[nodiscard]] Task with_batch(std::int64_t batch) const {
    Task task = task_[0];
    for (std::size_t i = 0; i < task.inputs.size(); ++i) {
      if (batched_[i]) task.inputs[i].shape[0] = batch;
    }
    return completed(std::move(task));
  }
  [[nodiscard]] Task small() const { return completed(task_[1]); }

 private:
  [[nodiscard]] static bool constant_along(const std::vector<unsigned>& terms, unsigned dims) {
    return std::any_of(terms.begin(), terms.end(), [dims](unsigned t) { return (t & dims) == 0; });
  }

  void add_input(const DraftStep::Input& x) {
    for (std::size_t s : both_sizes) task_[s].inputs.push_back({x.name, x.shape[s], DType::float32, x.distribution[s]});
    batched_.push_back(x.batched);
  }

  [[nodiscard]] Shape infer(const Operation& operation, const DraftStep& step, std::size_t size) const {
    std::vector<TensorInfo> infos = {{current_shape_[size], DType::float32}};
    for (const DraftStep::Input& i : step.inputs) infos.push_back({i.shape[size], DType::float32});
    if (step.with_heavy) infos.push_back({heavy_shape_[size], DType::float32});
    const std::size_t operands = infos.size();
    for (const DraftStep::Parameter& p : step.parameters) infos.push_back({p.shape[size], DType::float32});
    std::vector<const TensorInfo*> in;
    for (std::size_t i = 0; i < operands; ++i) in.push_back(&infos[i]);
    for (const ArgumentRule& rule : operation.rules) {
      if (rule.type != ArgumentType::parameter) continue;
      in.push_back(nullptr);
      for (std::size_t i = 0; i < step.parameters.size(); ++i) {
        if (step.parameters[i].argument == rule.name) in.back() = &infos[operands + i];
      }
    }
    return operation.infer(in, Arguments(step.args[size])).shape;
  }

  /// With outputs, and all shapes inferred anew.
  [[nodiscard]] static Task completed(Task task) {
    task.id = "draft";
    task.outputs = {{task.ops.back().out, task.ops.back().out_shape, DType::float32, {}}};
    Gaps gaps;
    for (std::size_t i = 0; i < task.ops.size(); ++i) gaps.op_shapes.insert(i);
    gaps.output_shapes.insert(0);
    const Graph graph(task, gaps);
    return task;
  }

  Both<Task> task_;
  std::vector<bool> batched_;
  std::string current_;
  Both<Shape> current_shape_, heavy_shape_;
  Both<Marginal> heavy_marginal_;
  std::set<std::string, std::less<>> used_;
  std::map<std::string, std::size_t> owners_;
};

}  // namespace kevin::tasks::detail

#endif  // KEVIN_TASKS_GENERATOR_DRAFT_HPP
