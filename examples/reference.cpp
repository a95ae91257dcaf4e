// Runs a task's reference on tensors from a file that Python's torch.save wrote, or on those that PyTorch would draw,
// and writes its outputs for torch.load: anybody can hold a reference against PyTorch so.

#include <kevin/kevin.hpp>
#include <kevin/tasks/pytorch_draw.hpp>
#include <kevin/tasks/reference.hpp>
#include <kevin/tasks/suite.hpp>
#include <kevin/tasks/tensor_archive.hpp>
#include <kevin/tasks/tf32_guard.hpp>

#include <CLI/CLI.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "command_line.hpp"

namespace {

std::vector<torch::Tensor> moved(std::vector<torch::Tensor> tensors, torch::Device device) {
  for (torch::Tensor& t : tensors) t = t.to(device);
  return tensors;
}

void print_tensor(const std::string& name, const torch::Tensor& t) {
  const torch::Tensor wide = t.to(torch::kFloat64).flatten();
  std::cout << name << "  " << c10::toString(t.scalar_type()) << ' ' << t.sizes() << "  mean "
            << wide.mean().item<double>() << "  rms " << wide.square().mean().sqrt().item<double>() << "  min "
            << wide.min().item<double>() << "  max " << wide.max().item<double>() << '\n';
}

void print_difference(const std::string& name, const torch::Tensor& got, const torch::Tensor& expected) {
  const torch::Tensor wide = expected.to(torch::kFloat64);
  const auto difference = (got.to(torch::kCPU).to(torch::kFloat64) - wide).abs().max().item<double>();
  std::cout << name << "  differs from that of the file by at most " << difference << "; its root mean square is "
            << wide.square().mean().sqrt().item<double>() << '\n';
}

torch::Device device_called(const std::string& name) {
  try {
    const torch::Device device(name);
    if (device.is_cpu() || (device.is_cuda() && torch::cuda::is_available())) return device;
  } catch (const c10::Error&) {
    throw kevin::Error(kevin::ErrorCode::bad_input, "--device takes cpu, cuda or cuda:1, not '" + name + "'");
  }
  throw kevin::Error(kevin::ErrorCode::unsupported, "this machine or LibTorch has no device " + name);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Runs a task's reference on tensors of PyTorch");
  std::string id, in, out, device_name = "cpu";
  std::uint64_t seed = 42, parameter_seed = 42;
  app.add_option("--task", id, "Id of a task, or mine.json, mine.json#ID")->required();
  auto* from = app.add_option("--in", in,
                              "Inputs and parameters by name, as torch.save({...}) wrote them; outputs, too, if there "
                              "are any, are compared");
  auto* drawn = app.add_option("--seed", seed, "Instead of --in: inputs as PyTorch draws them after manual_seed(SEED)")
                    ->check(command_line::whole_number)
                    ->excludes(from);
  app.add_option("--parameter-seed", parameter_seed, "Parameters as drawn after manual_seed (default: SEED)")
      ->check(command_line::whole_number)
      ->needs(drawn);
  app.add_option("--out", out, "Where to write outputs (with --seed: inputs and parameters, too) for torch.load");
  app.add_option("--device", device_name, "Where to draw and to compute: cpu, cuda, cuda:1")->capture_default_str();
  if (const auto status = command_line::parse(app, argc, argv)) return *status;
  try {
    if (in.empty() && drawn->count() == 0)
      throw kevin::Error(kevin::ErrorCode::bad_input, "--in FILE.pt or --seed N is needed (--help tells the options)");
    if (app.count("--parameter-seed") == 0) parameter_seed = seed;
    const kevin::tasks::Reference reference(kevin::tasks::find(id));
    const kevin::Task& task = reference.task();
    const torch::Device device = device_called(device_name);
    const kevin::tasks::Tf32Guard strict(kevin::tasks::Tf32::none);

    kevin::tasks::NamedTensors given, written;
    std::vector<torch::Tensor> inputs, parameters;
    if (!in.empty()) {
      given = kevin::tasks::load_tensors(in);
      kevin::tasks::require_known(task, given);
      inputs = moved(kevin::tasks::named(task.inputs, given), device);
      parameters = moved(kevin::tasks::named(task.parameters, given), device);
    } else {
      parameters = kevin::tasks::pytorch_draw(task.parameters, parameter_seed, device);
      inputs = kevin::tasks::pytorch_draw(task.inputs, seed, device);
      for (std::size_t i = 0; i < inputs.size(); ++i) written[task.inputs[i].name] = inputs[i];
      for (std::size_t i = 0; i < parameters.size(); ++i) written[task.parameters[i].name] = parameters[i];
    }
    const std::vector<torch::Tensor> outputs = reference.forward(inputs, parameters);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const std::string& name = task.outputs[i].name;
      print_tensor(name, outputs[i]);
      written[name] = outputs[i];
      if (given.count(name) > 0)
        print_difference(name, outputs[i], kevin::tasks::named({task.outputs[i]}, given).front());
    }
    if (!out.empty()) kevin::tasks::save_tensors(out, written);
    return 0;
  } catch (const std::exception& e) {
    std::cerr << "reference: " << e.what() << '\n';
    return 2;
  }
}
