#ifndef KEVIN_TASKS_MODULE_PARTS_HPP
#define KEVIN_TASKS_MODULE_PARTS_HPP

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "kevin/tasks/torch.hpp"

/// The inside of a TorchScript module: a tree of objects whose slots hold tensors, plain values and further modules.
namespace kevin::tasks::detail {

using ModuleObject = c10::intrusive_ptr<c10::ivalue::Object>;

[[nodiscard]] inline bool is_module(const c10::IValue& value) {
  return value.isObject() && value.toObject()->type()->is_module();
}

/// Calls visit(object, path) for every module, each once, a module before its children; the path of the root is empty.
template <class Visit>
void for_each_module(const ModuleObject& object, const Visit& visit, const std::string& path,
                     std::set<const void*>& seen) {
  if (!seen.insert(object.get()).second) return;
  visit(object, path);
  for (std::size_t i = 0; i < object->slots().size(); ++i) {
    const c10::IValue& value = object->slots()[i];
    if (!is_module(value)) continue;
    const std::string& name = object->type()->getAttributeName(i);
    for_each_module(value.toObject(), visit, path.empty() ? name : path + '.' + name, seen);
  }
}
template <class Visit>
void for_each_module(const ModuleObject& root, const Visit& visit) {
  std::set<const void*> seen;
  for_each_module(root, visit, {}, seen);
}

/// A tensor that a module keeps: a parameter, or a buffer (any other attribute that is a tensor).
struct ModuleTensor {
  struct Slot {
    std::size_t module;  ///< number in the order of for_each_module
    std::size_t slot;
  };
  std::string path;  ///< "layer1.0.conv.weight"
  bool buffer = false;
  torch::Tensor value;
  std::vector<Slot> slots;  ///< several where weights are tied
};

/// A BatchNorm's count of its batches: nothing that an output could depend on unless momentum is None in training mode,
/// which TorchScript computes from it.
[[nodiscard]] inline bool is_batch_count(const std::string& name, const torch::Tensor& value) {
  return name == "num_batches_tracked" && value.dim() == 0;
}

/// All parameters, then all buffers; within each a module's own before its children's, as PyTorch's named_parameters()
/// and named_buffers(). Counts of batches are left out.
[[nodiscard]] inline std::vector<ModuleTensor> module_tensors(const ModuleObject& root) {
  std::vector<ModuleTensor> lists[2];
  std::size_t number = 0;
  for_each_module(root, [&](const ModuleObject& object, const std::string& path) {
    for (std::size_t i = 0; i < object->slots().size(); ++i) {
      const c10::IValue& value = object->slots()[i];
      const std::string& name = object->type()->getAttributeName(i);
      if (!value.isTensor() || !value.toTensor().defined() || is_batch_count(name, value.toTensor())) continue;
      const bool buffer = !object->type()->is_parameter(i);
      const torch::Tensor tensor = value.toTensor().detach();
      std::vector<ModuleTensor>& list = lists[buffer ? 1 : 0];
      const auto tied = std::find_if(list.begin(), list.end(), [&](const ModuleTensor& t) {
        return t.value.is_alias_of(tensor) && t.value.data_ptr() == tensor.data_ptr() &&
               t.value.sizes().equals(tensor.sizes()) && t.value.strides().equals(tensor.strides());
      });
      if (tied != list.end())
        tied->slots.push_back({number, i});
      else
        list.push_back({path.empty() ? name : path + '.' + name, buffer, tensor, {{number, i}}});
    }
    ++number;
  });
  lists[0].insert(lists[0].end(), lists[1].begin(), lists[1].end());
  return std::move(lists[0]);
}

/// A module that shares code, plain values and children's types with `object` but has slots of its own, its children
/// too; `modules` receives its parts in the order of for_each_module. Tensors are shared, but for counts of batches.
[[nodiscard]] inline ModuleObject module_copy(const ModuleObject& object, std::vector<ModuleObject>& modules,
                                              std::map<const void*, ModuleObject>& done) {
  if (const auto found = done.find(object.get()); found != done.end()) return found->second;
  ModuleObject copy = object->copy();
  done.emplace(object.get(), copy);
  modules.push_back(copy);
  for (std::size_t i = 0; i < object->slots().size(); ++i) {
    const c10::IValue& value = object->slots()[i];
    if (is_module(value))
      copy->setSlot(i, module_copy(value.toObject(), modules, done));
    else if (value.isTensor() && value.toTensor().defined() &&
             is_batch_count(object->type()->getAttributeName(i), value.toTensor()))
      copy->setSlot(i, value.toTensor().clone());
  }
  return copy;
}
[[nodiscard]] inline ModuleObject module_copy(const ModuleObject& root, std::vector<ModuleObject>& modules) {
  std::map<const void*, ModuleObject> done;
  return module_copy(root, modules, done);
}

}  // namespace kevin::tasks::detail

#endif  // KEVIN_TASKS_MODULE_PARTS_HPP
