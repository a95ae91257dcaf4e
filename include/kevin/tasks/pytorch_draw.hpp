#ifndef KEVIN_TASKS_PYTORCH_DRAW_HPP
#define KEVIN_TASKS_PYTORCH_DRAW_HPP

#include <cstdint>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "kevin/core/error.hpp"
#include "kevin/refine/task.hpp"
#include "kevin/tasks/draw.hpp"
#include "kevin/tasks/program.hpp"
#include "kevin/tasks/reference.hpp"
#include "kevin/tasks/torch.hpp"

/// Draws as a PyTorch program makes them, so that a task can be held against PyTorch. The values are those of the same
/// LibTorch release on the same kind of device: PyTorch's generators differ between cpu and CUDA, and on CUDA their
/// values depend on the number of elements and on the number of multiprocessors. Kevin's own draws (draw.hpp) depend on
/// none of these and are what evaluators use.
namespace kevin::tasks {

/// A generator of `device` in the state that torch.manual_seed(seed) leaves the device's default generator in. It is a
/// generator of its own: the default one is left alone. Error(unsupported) when this LibTorch or machine has no such
/// device.
[[nodiscard]] inline torch::Generator pytorch_generator(std::uint64_t seed, torch::Device device) {
  try {
    torch::Generator generator = at::globalContext().defaultGenerator(device).clone();
    generator.set_current_seed(seed);
    return generator;
  } catch (const std::exception& e) {
    throw Error(ErrorCode::unsupported,
                "LibTorch has no random numbers for device " + device.str() + " here: " + detail::short_text(e));
  }
}

/// One tensor by PyTorch's calls:
///
///   uniform       torch.rand(shape), or t.uniform_(low, high), which is what kaiming_uniform_ and the initialiser of
///                 biases come to
///   normal        torch.randn(shape), or t.normal_(mean, std)
///   constant      torch.full: no draw
///   given         torch.tensor(values): no draw
///   integer       torch.randint(low, high, shape), then the tensor's type
///   sign          torch.randint(0, 2, shape).float() * 2 - 1
///   random_scale  torch.rand(()) before the tensor that it multiplies
///   structure     (t + t.T) / 2, torch.triu, torch.tril, torch.softmax(t, -1)
///
/// float16 and bfloat16 are drawn as float32 and rounded, as KernelBench's evaluator does; float64 is drawn as such.
/// Error(unsupported) when LibTorch refuses, Error(resource) when memory runs out.
[[nodiscard]] inline torch::Tensor pytorch_draw(const TensorSpec& spec, torch::Generator& generator) {
  using Kind = Distribution::Kind;
  using Structure = Distribution::Structure;
  const torch::NoGradGuard no_grad;
  const Distribution& d = spec.distribution;
  if (d.kind == Kind::given) {
    const torch::Tensor t = torch::empty(spec.shape, scalar_type(spec.dtype));
    draw_into(spec, 0, t.data_ptr());
    return t.to(generator.device());
  }
  const bool half = spec.dtype == DType::float16 || spec.dtype == DType::bfloat16;
  const torch::TensorOptions device = torch::TensorOptions().device(generator.device());
  const torch::TensorOptions drawn = device.dtype(half ? torch::kFloat32 : scalar_type(spec.dtype));
  try {
    torch::Tensor scale;
    if (d.random_scale) scale = torch::empty({}, drawn).uniform_(0, 1, generator);
    torch::Tensor t;
    switch (d.kind) {
      case Kind::uniform:
        t = torch::empty(spec.shape, drawn).uniform_(d.a, d.b, generator);
        break;
      case Kind::normal:
        t = torch::empty(spec.shape, drawn).normal_(d.a, d.b, generator);
        break;
      case Kind::constant:
        t = torch::full(spec.shape, d.a, drawn);
        break;
      case Kind::integer:
        t = torch::empty(spec.shape, device.dtype(torch::kInt64))
                .random_(static_cast<std::int64_t>(d.a), static_cast<std::int64_t>(d.b), generator)
                .to(drawn.dtype());
        break;
      case Kind::sign:
        t = torch::empty(spec.shape, device.dtype(torch::kInt64)).random_(0, 2, generator).to(drawn.dtype());
        t.mul_(2).sub_(1);
        break;
      case Kind::given:
        break;
    }
    if (d.random_scale) t.mul_(scale);
    switch (d.structure) {
      case Structure::none:
        break;
      case Structure::symmetric:
        t = (t + t.transpose(-2, -1)).div_(2);
        break;
      case Structure::upper:
        t.triu_();
        break;
      case Structure::lower:
        t.tril_();
        break;
      case Structure::softmax:
        t = torch::softmax(t, -1);
        break;
    }
    return t.to(scalar_type(spec.dtype));
  } catch (const std::exception& e) {
    throw Error(detail::says_out_of_memory(e) ? ErrorCode::resource : ErrorCode::unsupported,
                "cannot draw " + detail::quote(spec.name) + ' ' + detail::shape_text(spec.shape) +
                    ": LibTorch says: " + detail::short_text(e));
  }
}

/// What a PyTorch program draws that calls torch.manual_seed(seed) and then makes these tensors, in this order, on
/// `device`. With a task's parameters: the module built after that call; with its inputs: KernelBench's get_inputs()
/// after it. KernelBench's evaluator draws on the cpu and moves the tensors.
[[nodiscard]] inline std::vector<torch::Tensor> pytorch_draw(const std::vector<TensorSpec>& specs, std::uint64_t seed,
                                                             torch::Device device) {
  torch::Generator generator = pytorch_generator(seed, device);
  std::vector<torch::Tensor> tensors;
  tensors.reserve(specs.size());
  for (const TensorSpec& s : specs) tensors.push_back(pytorch_draw(s, generator));
  return tensors;
}

}  // namespace kevin::tasks

#endif  // KEVIN_TASKS_PYTORCH_DRAW_HPP
