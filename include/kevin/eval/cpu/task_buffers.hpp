#ifndef KEVIN_EVAL_CPU_TASK_BUFFERS_HPP
#define KEVIN_EVAL_CPU_TASK_BUFFERS_HPP

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kevin/core/error.hpp"
#include "kevin/core/random.hpp"
#include "kevin/eval/comparison.hpp"
#include "kevin/eval/memory_file.hpp"
#include "kevin/eval/shared_buffer.hpp"
#include "kevin/refine/signature.hpp"
#include "kevin/refine/task.hpp"
#include "kevin/tasks/reference.hpp"

namespace kevin::cpu {

/// The memory of one evaluation: every input, parameter and output of a task, shared with one runner. The tensors that
/// the reference computes on are the judge's own mappings of the same pages, so both sides meet the same data, equally
/// warm in the caches. What is expected never lies here.
class TaskBuffers {
 public:
  explicit TaskBuffers(const tasks::Reference& reference) : reference_(reference) {
    const Task& task = reference.task();
    add(task.inputs, eval::Access::read_only, &inputs_);
    add(task.parameters, eval::Access::read_only, &parameters_);
    first_output_ = buffers_.size();
    add(task.outputs, eval::Access::read_write, nullptr);
    for (const TensorSpec& t : task.outputs) poison_.emplace_back(t.dtype, 0);
  }

  /// In the order of the kernel's arguments.
  [[nodiscard]] std::vector<const eval::SharedBuffer*> in_order() const {
    std::vector<const eval::SharedBuffer*> all;
    for (const eval::SharedBuffer& b : buffers_) all.push_back(&b);
    return all;
  }

  /// Fresh content for every input and parameter. Parameters too: what a kernel derives from them once and keeps
  /// (packed or folded weights) would otherwise be missing from its later, timed calls, and is work that the reference
  /// does every time.
  void draw(std::uint64_t seed) {
    reference_.draw_inputs(derive_seed(seed, "inputs"), inputs_);
    reference_.draw_parameters(derive_seed(seed, "parameters"), parameters_);
  }

  /// Reads every input and parameter once, so that whoever is called next finds them in the caches as far as they fit,
  /// whatever happened before.
  void touch() const noexcept {
    for (std::size_t i = 0; i < first_output_; ++i) {
      const volatile std::byte* p = buffers_[i].data();
      for (std::size_t k = 0; k < buffers_[i].bytes(); k += cache_line) static_cast<void>(p[k]);
    }
  }

  /// Fills every output with a pattern that nobody can foretell.
  void poison() {
    const auto& outputs = reference_.task().outputs;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      poison_[i] = eval::Poison(outputs[i].dtype, eval::secret_bits());
      eval::SharedBuffer& b = buffers_[first_output_ + i];
      poison_[i].fill(b.data(), b.bytes());
    }
  }

  /// The reference's outputs, in memory of the judge's own.
  [[nodiscard]] std::vector<torch::Tensor> expected() const { return reference_.forward(inputs_, parameters_); }

  /// Index of the first argument whose surroundings were written to; -1 = none.
  [[nodiscard]] std::ptrdiff_t overrun() const noexcept {
    for (std::size_t i = first_output_; i < buffers_.size(); ++i) {
      if (!buffers_[i].intact()) return static_cast<std::ptrdiff_t>(i);
    }
    return -1;
  }

  /// All outputs against what is expected. `text` gets one line for each wrong output. Without `figures`, those of
  /// outputs that are right may stay zero, which is quicker.
  [[nodiscard]] ErrorFigures compare(const std::vector<torch::Tensor>& expected,
                                     const std::vector<KernelArgument>& arguments, bool figures,
                                     std::string& text) const {
    const Task& task = reference_.task();
    if (expected.size() != task.outputs.size())
      throw Error(ErrorCode::internal, "task " + task.id + ": the reference has another number of outputs");
    ErrorFigures sum;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const TensorSpec& spec = task.outputs[i];
      const torch::Tensor e = expected[i].contiguous();
      const std::int64_t n = element_count(spec.shape);
      if (e.scalar_type() != tasks::scalar_type(spec.dtype) || e.numel() != n) {
        throw Error(ErrorCode::bad_input,
                    "task " + task.id + ": the reference's output " + spec.name + " is not what the task declares");
      }
      const std::byte* actual = buffers_[first_output_ + i].data();
      const Tolerance tolerance = eval::resolved(task.tolerance, spec.dtype, e.data_ptr(), n);
      if (!figures && eval::certainly_right(spec.dtype, actual, e.data_ptr(), n, tolerance)) continue;
      const eval::Difference d = eval::compare(spec.dtype, actual, e.data_ptr(), n, tolerance, poison_[i]);
      eval::accumulate(sum, d.figures);
      if (d.figures.wrong > 0)
        text += (text.empty() ? "" : "\n") + eval::describe('`' + arguments[first_output_ + i].name + '`', d);
    }
    return sum;
  }

 private:
  void add(const std::vector<TensorSpec>& specs, eval::Access access, std::vector<torch::Tensor>* tensors) {
    for (const TensorSpec& t : specs) {
      const std::int64_t n = element_count(t.shape);
      if (n < 0 || (n == 0 && access == eval::Access::read_write)) {
        throw Error(ErrorCode::bad_input, "task " + reference_.task().id + ": output " + t.name +
                                              " has no elements, so that nothing could be checked");
      }
      buffers_.emplace_back(static_cast<std::size_t>(n * size_of(t.dtype)), access);
      if (tensors)
        tensors->push_back(
            torch::from_blob(buffers_.back().data(), t.shape, torch::dtype(tasks::scalar_type(t.dtype))));
    }
  }

  static constexpr std::size_t cache_line = 64;  // bytes

  const tasks::Reference& reference_;
  std::vector<eval::SharedBuffer> buffers_;
  std::size_t first_output_ = 0;
  std::vector<torch::Tensor> inputs_;  // views of the buffers
  std::vector<torch::Tensor> parameters_;
  std::vector<eval::Poison> poison_;
};

}  // namespace kevin::cpu

#endif  // KEVIN_EVAL_CPU_TASK_BUFFERS_HPP
