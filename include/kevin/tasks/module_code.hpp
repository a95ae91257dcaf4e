#ifndef KEVIN_TASKS_MODULE_CODE_HPP
#define KEVIN_TASKS_MODULE_CODE_HPP

#include <cstddef>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kevin/tasks/module_parts.hpp"
#include "kevin/tasks/operation.hpp"
#include "kevin/tasks/torch.hpp"

#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/passes/constant_propagation.h>
#include <torch/csrc/jit/passes/dead_code_elimination.h>
#include <torch/csrc/jit/passes/inliner.h>
#include <torch/csrc/jit/passes/remove_exceptions.h>
#include <torch/csrc/jit/serialization/python_print.h>

/// What a TorchScript module computes, as one flat function of its inputs, parameters and buffers. Only for reading and
/// checking: what runs is the module itself.
namespace kevin::tasks::detail {

/// forward with all that it calls written out, with graph inputs in place of the module's tensors and constants in
/// place of its plain attributes, and without the branches that are then never taken or only throw.
class FlatGraph {
 public:
  /// `names` of the inputs, then of `tensors`. Arguments of forward that get no input have their default values. With
  /// `fold`, what is computed from constants alone is computed, which shortens the code and may put tensors into it.
  FlatGraph(const torch::jit::Module& module, const std::vector<ModuleTensor>& tensors, std::size_t inputs,
            const std::vector<std::string>& names, bool fold)
      : graph_(module.get_method("forward").graph()->copy()) {
    torch::jit::Inline(*graph_);
    const auto& arguments = module.get_method("forward").function().getSchema().arguments();
    while (graph_->inputs().size() > inputs + 1) {  // the first is the module
      const std::size_t last = graph_->inputs().size() - 1;
      const torch::jit::WithInsertPoint start(graph_->block()->nodes().front());
      graph_->inputs()[last]->replaceAllUsesWith(graph_->insertConstant(arguments.at(last).default_value().value()));
      graph_->eraseInput(last);
    }
    find_written(graph_->block());
    std::vector<ModuleObject> modules;
    for_each_module(module._ivalue(), [&](const ModuleObject& m, const std::string&) { modules.push_back(m); });
    for (const ModuleTensor& t : tensors) {
      torch::jit::Value* value = graph_->addInput();
      for (const auto& at : t.slots) tensors_[{modules[at.module].get(), at.slot}] = value;
    }
    objects_[graph_->inputs()[0]] = module._ivalue();
    resolve(graph_->block());
    torch::jit::EliminateDeadCode(graph_);
    if (fold) {
      torch::jit::ConstantPropagationImmutableTypes(graph_);
      torch::jit::EliminateExceptions(graph_);  // checks of shapes, which are fixed here; folds by itself
      torch::jit::ConstantPropagationImmutableTypes(graph_);
    }
    torch::jit::EliminateDeadCode(graph_);
    if (graph_->inputs()[0]->uses().empty()) graph_->eraseInput(0);
    const std::size_t first = graph_->inputs().size() - names.size();
    for (std::size_t i = 0; i < names.size(); ++i) graph_->inputs()[first + i]->setDebugName(names[i]);
  }

  /// The name of an operation that gives random numbers; empty: there is none.
  [[nodiscard]] std::string random_operation() const {
    std::string found;
    for_each_node(graph_->block(), [&](const torch::jit::Node& n) {
      if (n.isNondeterministic()) found = n.kind().toQualString();
    });
    return found;
  }

  /// Elements of the largest tensor that stands in the code as a constant.
  [[nodiscard]] std::int64_t largest_constant() const {
    std::int64_t most = 0;
    for_each_node(graph_->block(), [&](const torch::jit::Node& n) {
      if (n.kind() == c10::prim::Constant && n.hasAttribute(c10::attr::value) &&
          n.kindOf(c10::attr::value) == torch::jit::AttributeKind::t)
        most = std::max(most, n.t(c10::attr::value).numel());
    });
    return most;
  }

  /// The body of the function, as TorchScript prints code; constant tensors stand before it.
  [[nodiscard]] std::string body() const {
    torch::jit::CompilationUnit unit;
    std::vector<c10::IValue> constants;
    torch::jit::PrintDepsTable types;
    torch::jit::PythonPrint printer(constants, types);
    printer.printFunction(*unit.create_function(c10::QualifiedName("reference"), graph_->copy()));
    const std::string code = printer.str();
    const std::size_t arrow = code.find(") -> ");
    const std::size_t begin = code.find('\n', arrow == std::string::npos ? 0 : arrow);
    std::string text;
    for (std::size_t i = 0; i < constants.size(); ++i) {
      if (!constants[i].isTensor()) continue;
      std::ostringstream values;
      const torch::Tensor& t = constants[i].toTensor();
      values << "# CONSTANTS.c" << i << ": " << c10::toString(t.scalar_type()) << ' ' << shape_text(t.sizes().vec())
             << ", values";
      const torch::Tensor flat = t.to(torch::kFloat64).reshape({-1});
      for (std::int64_t k = 0; k < flat.numel(); ++k) values << ' ' << flat[k].item<double>();
      text += values.str() + '\n';
    }
    std::string_view rest = std::string_view(code).substr(begin == std::string::npos ? code.size() : begin + 1);
    while (!rest.empty()) {  // moved out by the two blanks of a function's body
      const std::string_view line = rest.substr(0, rest.find('\n'));
      text += std::string(line.starts_with("  ") ? line.substr(2) : line) + '\n';
      rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    }
    return text;
  }

 private:
  template <class Visit>
  static void for_each_node(const torch::jit::Block* block, const Visit& visit) {
    for (const torch::jit::Node* n : block->nodes()) {
      visit(*n);
      for (const torch::jit::Block* b : n->blocks()) for_each_node(b, visit);
    }
  }

  /// Attributes that the code assigns to have no one value.
  void find_written(const torch::jit::Block* block) {
    for_each_node(block, [&](const torch::jit::Node& n) {
      if (n.kind() == c10::prim::SetAttr) written_.insert(n.s(c10::attr::name));
    });
  }

  void resolve(torch::jit::Block* block) {
    for (torch::jit::Node* n : block->nodes()) {
      for (torch::jit::Block* b : n->blocks()) resolve(b);
      if (n->kind() != c10::prim::GetAttr) continue;
      const auto object = objects_.find(n->input());
      const std::string& name = n->s(c10::attr::name);
      if (object == objects_.end() || written_.contains(name)) continue;
      const c10::IValue value = object->second->getAttr(name);
      const auto tensor = tensors_.find({object->second.get(), object->second->type()->getAttributeSlot(name)});
      if (is_module(value)) {
        objects_[n->output()] = value.toObject();
      } else if (tensor != tensors_.end()) {
        n->output()->replaceAllUsesWith(tensor->second);
      } else if (value.isTensor() && is_batch_count(name, value.toTensor())) {
        drop_counting(n->output());
      } else if (!value.isTensor()) {
        const torch::jit::WithInsertPoint here(n);
        if (const auto constant = torch::jit::tryInsertConstant(*graph_, value))
          n->output()->replaceAllUsesWith(*constant);
      }
    }
  }

  /// A BatchNorm's counting of its batches is nobody's business.
  static void drop_counting(const torch::jit::Value* count) {
    const torch::jit::use_list uses = count->uses();
    for (const torch::jit::Use& use : uses) {
      if (use.user->kind() == c10::aten::add_ && use.user->output()->uses().empty()) use.user->destroy();
    }
  }

  std::shared_ptr<torch::jit::Graph> graph_;
  std::set<std::string> written_;
  std::map<const torch::jit::Value*, ModuleObject> objects_;
  std::map<std::pair<const void*, std::size_t>, torch::jit::Value*> tensors_;
};

}  // namespace kevin::tasks::detail

#endif  // KEVIN_TASKS_MODULE_CODE_HPP
