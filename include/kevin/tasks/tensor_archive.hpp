#ifndef KEVIN_TASKS_TENSOR_ARCHIVE_HPP
#define KEVIN_TASKS_TENSOR_ARCHIVE_HPP

#include <algorithm>
#include <exception>
#include <fstream>
#include <ios>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kevin/core/error.hpp"
#include "kevin/refine/task.hpp"
#include "kevin/tasks/archive_check.hpp"
#include "kevin/tasks/nearest.hpp"
#include "kevin/tasks/operation.hpp"
#include "kevin/tasks/program.hpp"
#include "kevin/tasks/reference.hpp"
#include "kevin/tasks/torch.hpp"

/// Tensors by name in a file, as Python's torch.save({"x": x, ...}) writes and torch.load reads them.
namespace kevin::tasks {

using NamedTensors = std::map<std::string, torch::Tensor>;

/// The tensors of a file that torch.save made of a dict of two or more tensors (LibTorch does not know how Python
/// writes a dict of one), on the cpu. Error(not_found) when it cannot be read; Error(bad_input) when it is another kind
/// of file or holds anything else, such as nn.Parameters (`t.detach()` is a plain tensor).
[[nodiscard]] inline NamedTensors load_tensors(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file || file.peek() == std::ifstream::traits_type::eof())
    throw Error(ErrorCode::not_found, "cannot read " + path);
  const auto fail = [&](const std::string& what) {
    throw Error(ErrorCode::bad_input,
                path + ' ' + what + "; it has to be what torch.save({\"x\": x, ...}) writes of plain tensors");
  };
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (bytes.size() < 4 || std::string_view(bytes.data(), 2) != "PK") fail("is no archive of PyTorch 1.6 or later");
  if (const std::string damage = detail::zip_damage({bytes.data(), bytes.size()}); !damage.empty())
    fail("is damaged: " + damage);
  NamedTensors tensors;
  try {
    const torch::IValue value = torch::pickle_load(bytes);
    if (!value.isGenericDict()) fail("holds a " + value.tagKind() + " instead of a dict");
    for (const auto& entry : value.toGenericDict()) {
      if (!entry.key().isString()) fail("has a key that is no text");
      const std::string name = entry.key().toStringRef();
      if (!entry.value().isTensor())
        fail("has a " + entry.value().tagKind() + " instead of a tensor as " + detail::quote(name));
      tensors[name] = entry.value().toTensor().detach().to(torch::kCPU).contiguous();
    }
  } catch (const Error&) {
    throw;
  } catch (const std::exception& e) {
    if (detail::says_out_of_memory(e)) throw Error(ErrorCode::resource, "no memory for the tensors of " + path);
    const std::string text = detail::short_text(e);
    if (text.find("Unknown opcode") != std::string::npos)
      fail("cannot be loaded: LibTorch reads dicts of two or more tensors (save the outputs, too), and no lists");
    fail("cannot be loaded (" + text + ')');
  }
  return tensors;
}

/// Writes tensors for load_tensors and for Python's torch.load. Error(resource) when the file cannot be written.
inline void save_tensors(const std::string& path, const NamedTensors& tensors) {
  c10::Dict<std::string, torch::Tensor> dict;
  // clone: of a view, only what it shows
  for (const auto& [name, t] : tensors) dict.insert(name, t.detach().to(torch::kCPU).contiguous().clone());
  std::vector<char> bytes;
  try {
    bytes = torch::pickle_save(dict);
  } catch (const std::exception& e) {
    throw Error(ErrorCode::resource, "cannot write " + path + ": " + detail::short_text(e));
  }
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (!file) throw Error(ErrorCode::resource, "cannot write " + path);
}

/// The tensors called for by `specs`, in their order, as they are named in `tensors`. Error(bad_input) for one that is
/// missing or of another shape or type.
[[nodiscard]] inline std::vector<torch::Tensor> named(const std::vector<TensorSpec>& specs,
                                                      const NamedTensors& tensors) {
  std::vector<torch::Tensor> list;
  for (const TensorSpec& s : specs) {
    const auto found = tensors.find(s.name);
    const auto fail = [&](const std::string& what) {
      throw Error(ErrorCode::bad_input, "the tensor " + detail::quote(s.name) + ' ' + what + ", the task needs " +
                                            std::string(to_string(s.dtype)) + ' ' + detail::shape_text(s.shape));
    };
    if (found == tensors.end()) fail("is missing");
    const torch::Tensor& t = found->second;
    if (t.sizes() != at::IntArrayRef(s.shape)) fail("has shape " + detail::shape_text(t.sizes().vec()));
    if (t.scalar_type() != scalar_type(s.dtype)) fail(std::string("has type ") + c10::toString(t.scalar_type()));
    list.push_back(t);
  }
  return list;
}

/// Error(bad_input) for a tensor that is neither an input nor a parameter nor an output of the task: a misspelt name
/// would otherwise be told as another one's absence, or not at all.
inline void require_known(const Task& task, const NamedTensors& tensors) {
  std::vector<std::string> known;
  for (const auto* specs : {&task.inputs, &task.parameters, &task.outputs}) {
    for (const TensorSpec& s : *specs) known.push_back(s.name);
  }
  for (const auto& [name, t] : tensors) {
    if (std::find(known.begin(), known.end(), name) == known.end())
      throw Error(ErrorCode::bad_input, "task " + detail::quote(task.id) + " has no tensor " + detail::quote(name) +
                                            detail::nearest_text(name, known));
  }
}

}  // namespace kevin::tasks

#endif  // KEVIN_TASKS_TENSOR_ARCHIVE_HPP
