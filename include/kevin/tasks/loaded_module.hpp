#ifndef KEVIN_TASKS_LOADED_MODULE_HPP
#define KEVIN_TASKS_LOADED_MODULE_HPP

#include <cstddef>
#include <exception>
#include <fstream>
#include <istream>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "kevin/core/error.hpp"
#include "kevin/tasks/archive_check.hpp"
#include "kevin/tasks/module_parts.hpp"
#include "kevin/tasks/program.hpp"
#include "kevin/tasks/torch.hpp"

#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/csrc/jit/serialization/import.h>

namespace kevin::tasks {

/// A TorchScript module from an archive (torch.jit.save), run with parameters and buffers from outside.
///
/// Const, and safe to call from several threads at once: each call has a copy of the module's objects to itself (their
/// tensors are the operands), taken from a stock and given back. TorchScript's optimiser stays off, so what runs are
/// the operations as written, one after the other, as in eager PyTorch. A call runs where its operands are; for a GPU
/// the archive's other tensors are copied there once.
///
/// An archive is a program that runs in this process: load none that you do not trust. Damage is found by checksums
/// before LibTorch reads it, but an archive made to harm may crash LibTorch or do worse.
class LoadedModule {
 public:
  /// `training`: in training mode instead of evaluation mode. Error(not_found) when the file cannot be read,
  /// Error(bad_input) when it is no TorchScript archive or has no forward.
  LoadedModule(const std::string& file, bool training) : training_(training) {
    std::ifstream stream(file, std::ios::binary);
    if (!stream || stream.peek() == std::ifstream::traits_type::eof()) {
      throw Error(ErrorCode::not_found, "cannot read the module " + detail::quote(file) +
                                            "; its path is taken from the folder of the task file");
    }
    try {
      std::string bytes{std::istreambuf_iterator<char>(stream), {}};
      if (const std::string damage = detail::zip_damage(bytes); !damage.empty())
        throw Error(ErrorCode::bad_input, detail::quote(file) + ' ' + damage + "; write it with torch.jit.save");
      std::istringstream whole(std::move(bytes));
      archive_ = load(whole, c10::Device(c10::kCPU));
      tensors_ = detail::module_tensors(archive_._ivalue());
    } catch (const Error&) {
      throw;
    } catch (const std::exception& e) {
      throw Error(
          detail::says_out_of_memory(e) ? ErrorCode::resource : ErrorCode::bad_input,
          detail::quote(file) +
              " is no TorchScript archive that can be loaded (write it with torch.jit.save): " + detail::short_text(e));
    }
    if (!archive_.find_method("forward"))
      throw Error(ErrorCode::bad_input, detail::quote(file) + ": its module has no method forward");
  }
  LoadedModule(const LoadedModule&) = delete;
  LoadedModule& operator=(const LoadedModule&) = delete;

  [[nodiscard]] const torch::jit::Module& module() const noexcept { return archive_; }
  [[nodiscard]] bool training() const noexcept { return training_; }
  /// What forward expects as `tensors`, with the archive's values.
  [[nodiscard]] const std::vector<detail::ModuleTensor>& tensors() const noexcept { return tensors_; }

  /// Calls forward(inputs...) with `tensors` in place of tensors(). In training mode buffers are copied before, since
  /// modules then write to them. Throws what LibTorch throws, and Error(bad_input) for a result other than a tensor or
  /// a tuple or list of tensors.
  [[nodiscard]] std::vector<torch::Tensor> forward(const std::vector<torch::Tensor>& inputs,
                                                   const std::vector<torch::Tensor>& tensors) const {
    const torch::jit::GraphOptimizerEnabledGuard as_written(false);
    const c10::Device device = inputs.empty() ? c10::Device(c10::kCPU) : inputs.front().device();
    std::unique_ptr<Copy> copy = take(device);
    for (std::size_t k = 0; k < tensors_.size(); ++k) {
      const torch::Tensor tensor = training_ && tensors_[k].buffer ? tensors[k].clone() : tensors[k];
      for (const auto& at : tensors_[k].slots) copy->modules[at.module]->setSlot(at.slot, tensor);
    }
    std::vector<c10::IValue> arguments(inputs.begin(), inputs.end());
    const c10::IValue result = torch::jit::Module(copy->root).forward(std::move(arguments));
    std::vector<torch::Tensor> outputs = listed(result);
    for (const detail::ModuleTensor& t : tensors_) {  // the operands are not kept alive
      for (const auto& at : t.slots) copy->modules[at.module]->setSlot(at.slot, torch::Tensor());
    }
    give(device, std::move(copy));  // one that failed is not used again
    return outputs;
  }

 private:
  struct Copy {
    detail::ModuleObject root;
    std::vector<detail::ModuleObject> modules;
  };
  struct OnDevice {
    torch::jit::Module module;
    std::vector<std::unique_ptr<Copy>> idle;
  };

  [[nodiscard]] torch::jit::Module load(std::istream& stream, c10::Device device) const {
    torch::jit::Module module = torch::jit::load(stream, device);
    module.train(training_);
    return module;
  }

  [[nodiscard]] std::unique_ptr<Copy> take(c10::Device device) const {
    const std::lock_guard lock(mutex_);
    auto found = devices_.find(device.str());
    if (found == devices_.end()) {
      torch::jit::Module module = archive_;
      if (!device.is_cpu()) {  // loading maps the constants of the code too, which Module::to does not
        std::stringstream stream;
        archive_.save(stream);
        module = load(stream, device);
      }
      found = devices_.emplace(device.str(), OnDevice{std::move(module), {}}).first;
    }
    if (std::vector<std::unique_ptr<Copy>>& idle = found->second.idle; !idle.empty()) {
      std::unique_ptr<Copy> copy = std::move(idle.back());
      idle.pop_back();
      return copy;
    }
    auto copy = std::make_unique<Copy>();
    copy->root = detail::module_copy(found->second.module._ivalue(), copy->modules);
    return copy;
  }

  void give(c10::Device device, std::unique_ptr<Copy> copy) const {
    const std::lock_guard lock(mutex_);
    devices_.at(device.str()).idle.push_back(std::move(copy));
  }

  [[nodiscard]] static std::vector<torch::Tensor> listed(const c10::IValue& result) {
    std::vector<torch::Tensor> outputs;
    const auto add = [&](const c10::IValue& value) {
      if (!value.isTensor())
        throw Error(ErrorCode::bad_input,
                    "the module's forward gives a " + value.tagKind() +
                        " where a tensor is needed; it may give a tensor, or a tuple or list of tensors");
      outputs.push_back(value.toTensor());
    };
    if (result.isTuple()) {
      for (const c10::IValue& v : result.toTupleRef().elements()) add(v);
    } else if (result.isList()) {  // of tensors, too
      for (const c10::IValue& v : result.toListRef()) add(v);
    } else {
      add(result);
    }
    return outputs;
  }

  bool training_;
  torch::jit::Module archive_;  ///< on the cpu
  std::vector<detail::ModuleTensor> tensors_;
  mutable std::mutex mutex_;
  mutable std::map<std::string, OnDevice> devices_;
};

}  // namespace kevin::tasks

#endif  // KEVIN_TASKS_LOADED_MODULE_HPP
