#ifndef KEVIN_EVAL_CUDA_TASK_BUFFERS_HPP
#define KEVIN_EVAL_CUDA_TASK_BUFFERS_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kevin/core/error.hpp"
#include "kevin/core/random.hpp"
#include "kevin/eval/comparison.hpp"
#include "kevin/eval/cuda/device_memory.hpp"
#include "kevin/eval/cuda/judge_kernels.hpp"
#include "kevin/eval/cuda/runner_protocol.hpp"
#include "kevin/eval/memory_file.hpp"
#include "kevin/refine/signature.hpp"
#include "kevin/refine/task.hpp"
#include "kevin/tasks/reference.hpp"
#include "kevin/tasks/tf32_guard.hpp"

namespace kevin::cuda {

/// The GPU memory of one evaluation: several sets of every input, parameter and output of a task, each in pages of its
/// own, shared with one runner (inputs and parameters for reading only). A tensor lies at the end of its pages, on a
/// 256-byte boundary; what lies before and behind an output holds the output's poison and is looked at after each run,
/// and beyond that nothing is mapped. What is expected never lies here.
class TaskBuffers {
 public:
  TaskBuffers(const tasks::Reference& reference, const Gpu& gpu, const JudgeKernels& kernels, MemoryPool& pool,
              std::size_t sets)
      : reference_(reference), gpu_(gpu), kernels_(kernels), pool_(pool), sets_(sets) {
    const Task& task = reference.task();
    for (const auto* specs : {&task.inputs, &task.parameters, &task.outputs}) {
      for (const TensorSpec& s : *specs) specs_.push_back(&s);
    }
    if (sets * specs_.size() > protocol::max_buffers) {
      throw Error(ErrorCode::bad_input, "task " + task.id + ": a kernel for it has " + std::to_string(specs_.size()) +
                                            " arguments; the CUDA evaluator passes at most " +
                                            std::to_string(protocol::max_buffers));
    }
    first_output_ = task.inputs.size() + task.parameters.size();
    tally_ = pool_.take(task.outputs.size() * sizeof(JudgeKernels::Tally) + kernels.workspace());
    for (std::size_t i = 0; i < sets * specs_.size(); ++i) {
      const TensorSpec& s = *specs_[i % specs_.size()];
      const std::size_t bytes = static_cast<std::size_t>(element_count(s.shape) * size_of(s.dtype));
      if (bytes == 0 && i % specs_.size() >= first_output_) {
        throw Error(ErrorCode::bad_input,
                    "task " + task.id + ": output " + s.name + " has no elements, so that nothing could be checked");
      }
      Buffer b{pool_.take(std::max<std::size_t>(bytes, 1)), bytes, 0, {}};
      b.offset = (b.memory->bytes() - bytes) / 256 * 256;
      b.tensor = torch::from_blob(reinterpret_cast<void*>(b.start()), s.shape,
                                  torch::TensorOptions()
                                      .dtype(tasks::scalar_type(s.dtype))
                                      .device(torch::kCUDA, static_cast<c10::DeviceIndex>(gpu.index())));
      // once: nobody writes to them
      if (s.distribution.kind == Distribution::Kind::given)
        b.tensor.copy_(torch::from_blob(const_cast<std::byte*>(s.values->data()), s.shape,
                                        torch::dtype(tasks::scalar_type(s.dtype))));
      buffers_.push_back(std::move(b));
    }
    poison_.assign(sets, {});
  }
  ~TaskBuffers() {
    for (Buffer& b : buffers_) pool_.give(std::move(b.memory));
    pool_.give(std::move(tally_));
  }
  TaskBuffers(const TaskBuffers&) = delete;
  TaskBuffers& operator=(const TaskBuffers&) = delete;

  /// How many sets of `task`'s arguments are worth having, so that timed runs meet other addresses: three, two where
  /// they are large, and one where two need more than half of `memory` bytes.
  [[nodiscard]] static std::size_t choose_sets(const Task& task, std::uint64_t memory) {
    std::uint64_t bytes = 0;
    std::size_t arguments = 0;
    for (const auto* specs : {&task.inputs, &task.parameters, &task.outputs}) {
      for (const TensorSpec& s : *specs) {
        bytes += (std::uint64_t{2} << 20U) + static_cast<std::uint64_t>(element_count(s.shape) * size_of(s.dtype));
        ++arguments;
      }
    }
    std::size_t sets = 3 * bytes <= std::uint64_t{8} << 30U ? 3 : 2 * bytes <= memory / 2 ? 2 : 1;
    while (sets > 1 && sets * arguments > protocol::max_buffers) --sets;
    return sets;
  }

  [[nodiscard]] std::size_t sets() const noexcept { return sets_; }
  /// Arguments of the candidate.
  [[nodiscard]] std::size_t arguments() const noexcept { return specs_.size(); }

  [[nodiscard]] std::vector<int> descriptors() const {
    std::vector<int> all;
    for (const Buffer& b : buffers_) all.push_back(b.memory->descriptor());
    return all;
  }
  [[nodiscard]] std::vector<protocol::Buffer> layout() const {
    std::vector<protocol::Buffer> all;
    for (std::size_t i = 0; i < buffers_.size(); ++i)
      all.push_back({buffers_[i].memory->bytes(), buffers_[i].offset, i % specs_.size() >= first_output_ ? 1U : 0U});
    return all;
  }
  /// Bytes of each argument.
  [[nodiscard]] std::vector<std::uint64_t> sizes() const {
    std::vector<std::uint64_t> all;
    for (std::size_t i = 0; i < specs_.size(); ++i) all.push_back(buffers_[i].bytes);
    return all;
  }

  /// Fresh content for every input and parameter of a set, the same as on the cpu for the same seed. Queued.
  void draw(std::size_t set, std::uint64_t seed) const {
    const std::size_t inputs = reference_.task().inputs.size();
    const std::uint64_t input_seed = derive_seed(seed, "inputs");
    const std::uint64_t parameter_seed = derive_seed(seed, "parameters");
    for (std::size_t i = 0; i < first_output_; ++i) {
      const Buffer& b = at(set, i);
      if (specs_[i]->distribution.kind == Distribution::Kind::given) continue;  // there since the beginning
      const std::uint64_t own =
          i < inputs ? derive_seed(input_seed, "input", i) : derive_seed(parameter_seed, "parameter", i - inputs);
      kernels_.draw(*specs_[i], own, b.start());
      apply_structure(specs_[i]->distribution.structure, b.tensor);
    }
  }

  /// Fills the outputs of a set, and what lies around them, with a pattern that nobody can foretell. Queued.
  void poison(std::size_t set) {
    poison_[set].clear();
    for (std::size_t i = first_output_; i < specs_.size(); ++i) {
      poison_[set].emplace_back(specs_[i]->dtype, eval::secret_bits());
      const Buffer& b = at(set, i);
      kernels_.fill(b.memory->address(), b.memory->bytes(), poison_[set].back().word());
    }
  }

  /// The reference's outputs for a set, in strict float32, in memory of the judge's own. Queued.
  [[nodiscard]] std::vector<torch::Tensor> expected(std::size_t set) const {
    const tasks::Tf32Guard strict(tasks::Tf32::none);
    return forward(set);
  }

  /// The same as precise as LibTorch is set to be.
  [[nodiscard]] std::vector<torch::Tensor> forward(std::size_t set) const {
    std::vector<torch::Tensor> inputs;
    std::vector<torch::Tensor> parameters;
    for (std::size_t i = 0; i < first_output_; ++i)
      (i < reference_.task().inputs.size() ? inputs : parameters).push_back(at(set, i).tensor);
    return reference_.forward(inputs, parameters);
  }

  /// What a run left in a set's outputs.
  struct Findings {
    ErrorFigures figures;
    std::ptrdiff_t overrun = -1;  ///< index of the first argument whose surroundings were written to
    std::string text;             ///< one line for each wrong output
  };

  /// All outputs of a set against what is expected, and their surroundings. Waits.
  [[nodiscard]] Findings check(std::size_t set, const std::vector<torch::Tensor>& expected,
                               const std::vector<KernelArgument>& arguments) const {
    const Task& task = reference_.task();
    const std::size_t outputs = specs_.size() - first_output_;
    if (expected.size() != outputs)
      throw Error(ErrorCode::internal, "task " + task.id + ": the reference has another number of outputs");
    const auto tally_at = [&](std::size_t i) { return tally_->address() + i * sizeof(JudgeKernels::Tally); };
    std::vector<torch::Tensor> kept;
    for (std::size_t i = 0; i < outputs; ++i) {
      const TensorSpec& s = *specs_[first_output_ + i];
      const Buffer& b = at(set, first_output_ + i);
      kept.push_back(expected[i].contiguous());
      if (kept.back().scalar_type() != tasks::scalar_type(s.dtype) || kept.back().numel() != element_count(s.shape) ||
          !kept.back().is_cuda()) {
        throw Error(ErrorCode::bad_input,
                    "task " + task.id + ": the reference's output " + s.name + " is not what the task declares");
      }
      const std::uint64_t word = poison_[set][i].word();
      const std::uint64_t end = b.offset + b.bytes;
      kernels_.clear(tally_at(i));
      kernels_.around(b.memory->address(), b.offset, word, tally_at(i));
      kernels_.around(b.memory->address() + end, b.memory->bytes() - end, word, tally_at(i));
      kernels_.compare(s.dtype, b.start(), reinterpret_cast<driver::DevicePointer>(kept.back().data_ptr()),
                       element_count(s.shape), task.tolerance, poison_[set][i].bits(), tally_at(i), tally_at(outputs));
    }
    std::vector<JudgeKernels::Tally> tallies(outputs);
    gpu_.api().check(gpu_.api().copy_to_host(tallies.data(), tally_->address(), outputs * sizeof tallies[0]),
                     "comparing outputs");
    Findings found;
    for (std::size_t i = 0; i < outputs; ++i) {
      const eval::Difference d = JudgeKernels::difference(tallies[i], element_count(specs_[first_output_ + i]->shape));
      if (tallies[i].overrun != 0 && found.overrun < 0) found.overrun = static_cast<std::ptrdiff_t>(first_output_ + i);
      eval::accumulate(found.figures, d.figures);
      if (d.figures.wrong > 0)
        found.text +=
            (found.text.empty() ? "" : "\n") + eval::describe('`' + arguments[first_output_ + i].name + '`', d);
    }
    return found;
  }

 private:
  struct Buffer {
    std::unique_ptr<SharedMemory> memory;
    std::size_t bytes = 0;
    std::size_t offset = 0;
    torch::Tensor tensor;
    [[nodiscard]] driver::DevicePointer start() const noexcept { return memory->address() + offset; }
  };

  [[nodiscard]] const Buffer& at(std::size_t set, std::size_t argument) const {
    return buffers_[set * specs_.size() + argument];
  }

  static void apply_structure(Distribution::Structure structure, const torch::Tensor& t) {
    using Structure = Distribution::Structure;
    if (structure == Structure::none) return;
    const torch::NoGradGuard no_grad;
    const torch::Tensor source = t.clone();
    if (structure == Structure::softmax) t.copy_(torch::softmax(source, -1));
    if (structure == Structure::upper) t.copy_(torch::triu(source));
    if (structure == Structure::lower) t.copy_(torch::tril(source));
    if (structure == Structure::symmetric) t.copy_((source + source.transpose(-2, -1)) / 2);
  }

  const tasks::Reference& reference_;
  const Gpu& gpu_;
  const JudgeKernels& kernels_;
  MemoryPool& pool_;
  std::size_t sets_;
  std::vector<const TensorSpec*> specs_;
  std::size_t first_output_ = 0;
  std::vector<Buffer> buffers_;  // set after set
  std::vector<std::vector<eval::Poison>> poison_;
  std::unique_ptr<SharedMemory> tally_;  // one for each output, then the workspace of comparing
};

}  // namespace kevin::cuda

#endif  // KEVIN_EVAL_CUDA_TASK_BUFFERS_HPP
