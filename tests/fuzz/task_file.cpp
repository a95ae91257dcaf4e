// needs: torch
// libFuzzer target: no text makes the task reader crash, hang, or throw anything but kevin::Error; a task that is
// accepted is written and read back the same, and when it is small its reference runs with the shapes that were
// inferred or fails with a kevin::Error.
//
//   clang++ -std=c++20 -g -O1 -fsanitize=fuzzer,address,undefined -Iinclude <LibTorch flags> tests/fuzz/task_file.cpp
//   ./a.out -max_total_time=60 corpus/

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "kevin/core/error.hpp"
#include "kevin/refine/describe.hpp"
#include "kevin/refine/signature.hpp"
#include "kevin/tasks/reference.hpp"
#include "kevin/tasks/task_file.hpp"

namespace {

/// Whether running the reference costs next to nothing: few elements, and few steps of a window or inner product.
bool is_small(const kevin::Task& task) {
  std::int64_t elements = 0;
  for (const auto& t : task.inputs) elements += kevin::element_count(t.shape);
  for (const auto& t : task.parameters) elements += kevin::element_count(t.shape);
  for (const auto& op : task.ops) {
    elements += kevin::element_count(op.out_shape);
    for (const auto& [name, value] : op.args) {
      const auto* list = std::get_if<std::vector<std::int64_t>>(&value);
      if (list == nullptr) continue;
      for (std::int64_t v : *list) {
        if (v > 64 || v < -64) return false;  // padding and kernel sizes make temporaries of their own
      }
    }
    if (elements > 4096) return false;
  }
  return true;
}

void check(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  std::vector<kevin::Task> tasks;
  try {
    tasks = kevin::tasks::parse_tasks(text);
  } catch (const kevin::Error&) {
    return 0;
  }
  check(!tasks.empty());
  for (const kevin::Task& task : tasks) {
    check(kevin::tasks::read_task(nlohmann::json::parse(kevin::tasks::write_task(task).dump())) == task);
    check(!kevin::describe(task).empty());
    check(!kevin::kernel_signature(task).empty());
    if (!is_small(task)) continue;
    const kevin::tasks::Reference reference(task);
    try {
      const auto out = reference.forward(reference.draw_inputs(1), reference.draw_parameters(1));
      check(out.size() == task.outputs.size());
      for (std::size_t i = 0; i < out.size(); ++i) {
        check(out[i].sizes() == at::IntArrayRef(task.outputs[i].shape));
        check(out[i].scalar_type() == kevin::tasks::scalar_type(task.outputs[i].dtype));
      }
    } catch (const kevin::Error&) {  // a type that LibTorch has no cpu kernel for, a label out of range
    }
  }
  return 0;
}
