#ifndef KEVIN_TESTS_TASKS_MODULE_ARCHIVES_HPP
#define KEVIN_TESTS_TASKS_MODULE_ARCHIVES_HPP

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

#include <nlohmann/json.hpp>

#include "kevin/tasks/torch.hpp"

/// TorchScript archives for tests, written by LibTorch itself, in a folder that goes with them.
namespace module_archives {

class Folder {
 public:
  Folder() {
    std::string path = (std::filesystem::temp_directory_path() / "kevin_modules_XXXXXX").string();
    if (::mkdtemp(path.data()) == nullptr) throw std::runtime_error("no folder for tests");
    path_ = path;
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  [[nodiscard]] std::string path(const std::string& name) const { return path_ + '/' + name; }
  std::string write(const std::string& name, const std::string& content) const {
    std::ofstream(path(name), std::ios::binary) << content;
    return path(name);
  }
  std::string write(const std::string& name, const nlohmann::json& content) const {
    return write(name, content.dump(1));
  }

 private:
  std::string path_;
};

/// relu(x w^T + b) * scale: `fc` is a child with two parameters, `scale` a buffer, `alpha` a plain number.
[[nodiscard]] inline torch::jit::Module linear() {
  torch::jit::Module fc("Linear");
  fc.register_parameter("weight", torch::arange(12, torch::kFloat32).reshape({3, 4}) / 8 - 0.5, false);
  fc.register_parameter("bias", torch::tensor({0.5F, -0.25F, 0.125F}), false);
  fc.define("def forward(self, x):\n    return torch.matmul(x, self.weight.t()) + self.bias\n");
  torch::jit::Module m("Model");
  m.register_module("fc", fc);
  m.register_buffer("scale", torch::tensor({1.0F, 2.0F, 3.0F}));
  m.register_attribute("training", c10::BoolType::get(), true);
  m.register_attribute("alpha", c10::FloatType::get(), 2.5);
  m.define(
      "def forward(self, x):\n    if self.training:\n        x = x + 100.0\n    return torch.relu(self.fc.forward(x)) "
      "* "
      "self.scale * self.alpha\n");
  return m;
}

/// A module of one method and no tensors.
[[nodiscard]] inline torch::jit::Module plain(const std::string& forward) {
  torch::jit::Module m("Plain");
  m.define(forward);
  return m;
}

/// The task file of a module that takes x [5, 4].
[[nodiscard]] inline nlohmann::json file(const std::string& archive) {
  return {
      {"schema", "kevin.task/1"},
      {"id", "mine/module"},
      {"name", "A module"},
      {"inputs", {{{"name", "x"}, {"shape", {5, 4}}, {"distribution", {{"kind", "normal"}, {"mean", 0}, {"std", 1}}}}}},
      {"module", archive}};
}

}  // namespace module_archives

#endif  // KEVIN_TESTS_TASKS_MODULE_ARCHIVES_HPP
