#ifndef KEVIN_TASKS_MODULE_TASK_HPP
#define KEVIN_TASKS_MODULE_TASK_HPP

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kevin/core/error.hpp"
#include "kevin/refine/signature.hpp"
#include "kevin/refine/task.hpp"
#include "kevin/tasks/function_task.hpp"
#include "kevin/tasks/inferred_outputs.hpp"
#include "kevin/tasks/loaded_module.hpp"
#include "kevin/tasks/module_code.hpp"
#include "kevin/tasks/nearest.hpp"
#include "kevin/tasks/program.hpp"
#include "kevin/tasks/spec_check.hpp"

namespace kevin::tasks {

/// The reference of a task whose file names a TorchScript archive.
class ModuleProgram final : public Program {
 public:
  ModuleProgram(std::shared_ptr<const LoadedModule> module, std::string file, std::string description, std::string text)
      : Program(std::move(text)),
        module_(std::move(module)),
        file_(std::move(file)),
        description_(std::move(description)) {}

  [[nodiscard]] std::vector<torch::Tensor> forward(const std::vector<torch::Tensor>& inputs,
                                                   const std::vector<torch::Tensor>& parameters) const override {
    return module_->forward(inputs, parameters);
  }

  [[nodiscard]] const LoadedModule& module() const noexcept { return *module_; }
  /// Path of the archive, as it was loaded.
  [[nodiscard]] const std::string& file() const noexcept { return file_; }
  /// The user's text; empty: the module's own code is shown.
  [[nodiscard]] const std::string& description() const noexcept { return description_; }

 private:
  std::shared_ptr<const LoadedModule> module_;
  std::string file_;
  std::string description_;
};

/// Where a task file's modules are found, and those that were loaded already: presets share one.
class ModuleFolder {
 public:
  /// Relative paths count from `folder`; "" = the current one.
  explicit ModuleFolder(std::string folder = {}) : folder_(std::move(folder)) {}

  [[nodiscard]] std::string path(const std::string& file) const {
    return folder_.empty() || file.starts_with('/') ? file : folder_ + '/' + file;
  }
  /// Throws as LoadedModule does.
  [[nodiscard]] std::shared_ptr<const LoadedModule> load(const std::string& file, bool training) {
    std::shared_ptr<const LoadedModule>& module = loaded_[{path(file), training}];
    if (module == nullptr) module = std::make_shared<const LoadedModule>(path(file), training);
    return module;
  }

 private:
  std::string folder_;
  std::map<std::pair<std::string, bool>, std::shared_ptr<const LoadedModule>> loaded_;
};

namespace detail {

inline constexpr std::int64_t largest_shown_constant = 16;  // elements
inline constexpr std::size_t longest_code = std::size_t{64} << 10U;
inline constexpr std::size_t longest_description = std::size_t{16} << 10U;

/// What a task file says of its module.
struct ModuleFields {
  std::string file;
  bool training = false;
  std::string description;
  /// Of each parameter that the file lists: whether it says how to draw it, and its shape and type.
  struct Listed {
    bool init = false;
    bool shape = false;
    bool dtype = false;
  };
  std::vector<Listed> listed;
};

/// A path within a module as the name of a parameter: names begin with a letter and are no keyword.
[[nodiscard]] inline std::string parameter_name(std::string name) {
  const char c = name.empty() ? '_' : name[0];
  const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  if (!letter || std::find(cpp_keywords.begin(), cpp_keywords.end(), name) != cpp_keywords.end()) name.insert(0, "p_");
  return name;
}

/// The module's tensors as parameters with the values that they have in the archive.
[[nodiscard]] inline std::vector<TensorSpec> module_parameters(const LoadedModule& module) {
  std::vector<TensorSpec> specs;
  for (const ModuleTensor& t : module.tensors()) {
    const std::optional<DType> type = dtype_of(t.value.scalar_type());
    if (!type)
      complain("module",
               "has " + quote(t.path) + " of type " + c10::toString(t.value.scalar_type()) + ", which no task has");
    const torch::Tensor value = t.value.contiguous();
    auto bytes = std::make_shared<std::vector<std::byte>>(static_cast<std::size_t>(value.nbytes()));
    if (!bytes->empty()) std::memcpy(bytes->data(), value.data_ptr(), bytes->size());
    specs.push_back({.name = parameter_name(t.path),
                     .shape = t.value.sizes().vec(),
                     .dtype = *type,
                     .distribution = {.kind = Distribution::Kind::given},
                     .values = std::move(bytes)});
  }
  return specs;
}

/// Puts the module's tensors in place of `task.parameters`, which so far holds what the file says of some of them;
/// `fan_in` (of each input, then of each parameter) follows.
inline void merge_parameters(Task& task, std::vector<std::string>& fan_in, const ModuleFields& fields,
                             std::vector<TensorSpec> found) {
  std::vector<std::string> own(task.inputs.size() + found.size());
  std::copy_n(fan_in.begin(), task.inputs.size(), own.begin());
  std::vector<std::string> names;
  for (const TensorSpec& t : found) names.push_back(t.name);
  for (std::size_t i = 0; i < task.parameters.size(); ++i) {
    const TensorSpec& said = task.parameters[i];
    const std::string place = "parameters[" + std::to_string(i) + "]";
    const auto at = std::find(names.begin(), names.end(), said.name);
    if (at == names.end())
      complain(place + ".name",
               "the module has no parameter and no buffer " + quote(said.name) + nearest_text(said.name, names));
    const auto k = static_cast<std::size_t>(at - names.begin());
    if (std::count_if(task.parameters.begin(), task.parameters.end(),
                      [&](const TensorSpec& t) { return t.name == said.name; }) > 1)
      complain(place + ".name", quote(said.name) + " is taken");
    if (fields.listed[i].shape && said.shape != found[k].shape)
      complain(place + ".shape", "lists " + shape_text(said.shape) + ", the module has " + shape_text(found[k].shape));
    if (fields.listed[i].dtype && said.dtype != found[k].dtype)
      complain(place + ".dtype", "lists " + std::string(to_string(said.dtype)) + ", the module has " +
                                     std::string(to_string(found[k].dtype)));
    if (!fields.listed[i].init) continue;
    found[k].distribution = said.distribution;
    found[k].values.reset();
    own[task.inputs.size() + k] = fan_in[task.inputs.size() + i];
  }
  task.parameters = std::move(found);
  fan_in = std::move(own);
}

/// Whether forward can be called with the task's inputs.
inline void check_call(const torch::jit::Module& module, const Task& task) {
  const auto& arguments = module.get_method("forward").function().getSchema().arguments();
  std::size_t needed = 0;
  for (std::size_t i = 1; i < arguments.size(); ++i) needed += arguments[i].default_value() ? 0U : 1U;
  if (task.inputs.size() < needed || task.inputs.size() + 1 > arguments.size()) {
    complain("inputs", "are " + std::to_string(task.inputs.size()) + ", the module's forward takes " +
                           std::to_string(needed) +
                           (needed + 1 == arguments.size() ? "" : " to " + std::to_string(arguments.size() - 1)));
  }
  for (std::size_t i = 0; i < task.inputs.size(); ++i) {
    const c10::Argument& a = arguments[i + 1];
    if (!c10::TensorType::get()->isSubtypeOf(*a.type()))
      complain("inputs[" + std::to_string(i) + "]",
               "is a tensor, the module's forward takes " + quote(a.name()) + " as " + a.type()->repr_str());
  }
}

/// What is shown of the module; complains about what no candidate could reproduce.
[[nodiscard]] inline std::string module_text(const LoadedModule& module, const Task& task,
                                             const std::string& description) {
  std::vector<std::string> names;
  for (const KernelArgument& a : kernel_arguments(task)) names.push_back(a.name);
  names.resize(task.inputs.size() + task.parameters.size());
  constexpr std::string_view advice = "; give the task a \"description\" that says what it computes";
  try {
    const auto flat = [&](bool fold) {
      return FlatGraph(module.module(), module.tensors(), task.inputs.size(), names, fold);
    };
    FlatGraph graph = flat(true);
    if (const std::string random = graph.random_operation(); !random.empty())
      complain("module", "is random (" + random + "): no candidate could be held against it");
    if (!description.empty()) return comment_lines(description);
    if (graph.largest_constant() > largest_shown_constant) graph = flat(false);
    if (graph.largest_constant() > largest_shown_constant) {
      complain("module", "has a constant of " + std::to_string(graph.largest_constant()) +
                             " elements in its code, which no candidate can see: make it a buffer of the module");
    }
    const std::string text = graph.body();
    if (text.size() > longest_code)
      complain("module",
               "is " + std::to_string(text.size()) + " bytes of code, too much for a prompt" + std::string(advice));
    return text;
  } catch (const Complaint&) {
    throw;
  } catch (const std::exception& e) {  // a form of code that the passes above do not know
    if (description.empty())
      complain("module", "cannot be shown as code (" + short_text(e) + ')' + std::string(advice));
    return comment_lines(description);
  }
}

/// Loads the module and makes it the task's reference; the parameters become the module's, drawn as the file says or as
/// they are. The outputs are left to
/// infer_outputs.
inline void attach_module(Task& task, std::vector<std::string>& fan_in, const ModuleFields& fields,
                          ModuleFolder& folder) {
  if (fields.description.size() > longest_description)
    complain("description", "must be at most " + std::to_string(longest_description) + " bytes");
  const std::shared_ptr<const LoadedModule> module = folder.load(fields.file, fields.training);
  merge_parameters(task, fan_in, fields, module_parameters(*module));
  check_call(module->module(), task);
  task.external = std::make_shared<const ModuleProgram>(module, folder.path(fields.file), fields.description,
                                                        module_text(*module, task, fields.description));
}

}  // namespace detail

}  // namespace kevin::tasks

#endif  // KEVIN_TASKS_MODULE_TASK_HPP
