// needs: torch
// libFuzzer target: no bytes make the loading of a TorchScript archive crash, hang, or throw anything but kevin::Error;
// one that loads and is small is shown and run, or refused with a kevin::Error. The input is the archive itself; seeds
// are written at the start, since archives of one release need not load in another.
//
// LibTorch itself is not instrumented, and an archive is a program: what this finds is how its errors are handled.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <unistd.h>

#include "kevin/core/error.hpp"
#include "kevin/refine/describe.hpp"
#include "kevin/tasks/reference.hpp"
#include "kevin/tasks/task_file.hpp"

namespace {

const std::string& folder() {
  static const std::string path = [] {
    std::string p = (std::filesystem::temp_directory_path() / "kevin_fuzz_XXXXXX").string();
    if (::mkdtemp(p.data()) == nullptr) std::abort();
    std::ofstream(p + "/m.json") << R"({"schema": "kevin.task/1", "id": "m", "name": "m", "module": "m.pt",
      "inputs": [{"name": "x", "shape": [2, 4]}]})";
    return p;
  }();
  return path;
}

}  // namespace

/// LibTorch 1.13 loses a few hundred bytes for each broken zip.
extern "C" const char* __lsan_default_suppressions() { return "leak:libtorch_cpu"; }

/// Without a corpus an archive is made by mutation of this one.
extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned int) {
  static const std::string whole = [] {
    torch::jit::Module m("Model");
    m.register_parameter("w", torch::ones({4}), false);
    m.define("def forward(self, x):\n    return torch.relu(x * self.w)\n");
    m.save(folder() + "/seed.pt");
    std::ifstream stream(folder() + "/seed.pt", std::ios::binary);
    return std::string{std::istreambuf_iterator<char>(stream), {}};
  }();
  if (size < 4 && whole.size() <= most) {
    whole.copy(reinterpret_cast<char*>(data), whole.size());
    size = whole.size();
  }
  return LLVMFuzzerMutate(data, size, most);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::ofstream(folder() + "/m.pt", std::ios::binary)
      .write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  try {
    const kevin::Task task = kevin::tasks::find_in_file(folder() + "/m.json", "");
    if (kevin::describe(task).empty()) std::abort();
    const kevin::tasks::Reference reference(task);
    const auto out = reference.forward(reference.draw_inputs(1), reference.draw_parameters(1));
    if (out.size() != task.outputs.size()) std::abort();
  } catch (const kevin::Error&) {
  }
  return 0;
}
