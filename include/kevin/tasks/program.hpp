#ifndef KEVIN_TASKS_PROGRAM_HPP
#define KEVIN_TASKS_PROGRAM_HPP

#include <cstddef>
#include <cstdint>
#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kevin/core/error.hpp"
#include "kevin/refine/task.hpp"
#include "kevin/tasks/operation.hpp"
#include "kevin/tasks/torch.hpp"

namespace kevin::tasks {

/// A reference that is no op graph and can be run: a TorchScript module (module_program.hpp), a function
/// (function_task.hpp), or what a user derives from this.
class Program : public ExternalReference {
 public:
  /// The outputs, in order; shapes may be any layout. Both operand lists are as the task lists them, all on one device,
  /// where the outputs belong too. Must not change its operands, must give the same result for the same operands, and
  /// must be safe to call from several threads at once. Gradients are switched off.
  [[nodiscard]] virtual std::vector<torch::Tensor> forward(const std::vector<torch::Tensor>& inputs,
                                                           const std::vector<torch::Tensor>& parameters) const = 0;

 protected:
  using ExternalReference::ExternalReference;
};

namespace detail {

/// What matters of an exception's text, on one line: TorchScript puts a traceback before it.
[[nodiscard]] inline std::string short_text(const std::exception& e) {
  std::string_view text = e.what();
  for (const std::string_view mark : {"RuntimeError: ", "torch.jit.Error: "}) {
    if (const std::size_t at = text.rfind(mark); at != std::string_view::npos) text.remove_prefix(at + mark.size());
  }
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  text.remove_prefix(begin == std::string_view::npos ? text.size() : begin);
  std::string line(text.substr(0, text.find('\n')).substr(0, 300));
  for (char& c : line) c = static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
  return line;
}

[[nodiscard]] inline bool says_out_of_memory(const std::exception& e) {
  const std::string_view text = e.what();
  return dynamic_cast<const std::bad_alloc*>(&e) != nullptr ||
         text.find("not enough memory") != std::string_view::npos ||
         text.find("out of memory") != std::string_view::npos;
}

/// How often the tensor was written to, as far as LibTorch knows.
[[nodiscard]] inline std::uint32_t write_count(const torch::Tensor& t) {
  return t.is_inference() ? 0 : static_cast<std::uint32_t>(t._version());
}

}  // namespace detail

/// The task's program; null for a graph. Error(unsupported) for a reference that only its maker can run.
[[nodiscard]] inline const Program* program_of(const Task& task) {
  if (task.external == nullptr) return nullptr;
  const auto* program = dynamic_cast<const Program*>(task.external.get());
  if (program == nullptr)
    throw Error(ErrorCode::unsupported,
                "task " + detail::quote(task.id) + ": its reference is no kevin::tasks::Program, so it cannot be run");
  return program;
}

namespace detail {

[[noreturn]] inline void program_fails(const Task& task, ErrorCode code, const std::string& text) {
  throw Error(code, "task " + quote(task.id) + ": the reference " + text);
}

/// The outputs as they come; Error for a program that throws or writes to its operands.
[[nodiscard]] inline std::vector<torch::Tensor> raw_outputs(const Program& program, const Task& task,
                                                            const std::vector<torch::Tensor>& inputs,
                                                            const std::vector<torch::Tensor>& parameters) {
  std::vector<std::uint32_t> written;
  for (const auto* list : {&inputs, &parameters}) {
    for (const torch::Tensor& t : *list) written.push_back(write_count(t));
  }
  std::vector<torch::Tensor> outputs;
  try {
    outputs = program.forward(inputs, parameters);
  } catch (const Error&) {
    throw;
  } catch (const std::exception& e) {
    program_fails(task, says_out_of_memory(e) ? ErrorCode::resource : ErrorCode::unsupported,
                  "failed: " + short_text(e));
  }
  std::size_t k = 0;
  const auto check_unwritten = [&](const std::vector<torch::Tensor>& list, const std::vector<TensorSpec>& specs) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (write_count(list[i]) != written[k++])
        program_fails(task, ErrorCode::bad_input, "changes " + quote(specs[i].name) + " in place; a reference may not");
    }
  };
  check_unwritten(inputs, task.inputs);
  check_unwritten(parameters, task.parameters);
  return outputs;
}

}  // namespace detail

/// Runs a program and holds it to its promises: contiguous outputs in memory of their own, as many as the task has and
/// of its shapes. Error(bad_input) for another number or shape, and for a program that writes to its operands;
/// Error(unsupported) with what LibTorch says when it throws; Error(resource) when memory runs out.
[[nodiscard]] inline std::vector<torch::Tensor> run_program(const Program& program, const Task& task,
                                                            const std::vector<torch::Tensor>& inputs,
                                                            const std::vector<torch::Tensor>& parameters) {
  std::vector<torch::Tensor> outputs = detail::raw_outputs(program, task, inputs, parameters);
  if (outputs.size() != task.outputs.size())
    detail::program_fails(task, ErrorCode::bad_input,
                          "gives " + std::to_string(outputs.size()) + " output(s), the task lists " +
                              std::to_string(task.outputs.size()));
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    torch::Tensor& t = outputs[i];
    const TensorSpec& spec = task.outputs[i];
    if (!t.defined() || t.sizes() != at::IntArrayRef(spec.shape)) {
      detail::program_fails(task, ErrorCode::bad_input,
                            "gives output " + detail::quote(spec.name) + " of shape " +
                                (t.defined() ? detail::shape_text(t.sizes().vec()) : "none") + ", the task lists " +
                                detail::shape_text(spec.shape));
    }
    t = t.detach().contiguous();
    // a candidate can read its operands, but never what is expected of it
    for (const auto* list : {&inputs, &parameters}) {
      for (const torch::Tensor& operand : *list) {
        if (t.is_alias_of(operand)) t = t.clone();
      }
    }
  }
  return outputs;
}

}  // namespace kevin::tasks

#endif  // KEVIN_TASKS_PROGRAM_HPP
