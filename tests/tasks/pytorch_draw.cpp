#include "kevin/tasks/pytorch_draw.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "kevin/core/error.hpp"
#include "kevin/tasks/suite.hpp"

using kevin::Distribution;
using kevin::DType;
using kevin::Shape;
using kevin::TensorSpec;
using kevin::tasks::pytorch_draw;
using kevin::tasks::pytorch_generator;
using Kind = Distribution::Kind;
using Structure = Distribution::Structure;

namespace {

TensorSpec spec(Shape shape, Distribution d, DType dtype = DType::float32) {
  return {.name = "x", .shape = std::move(shape), .dtype = dtype, .distribution = d};
}

std::vector<double> values(const torch::Tensor& t) {
  const torch::Tensor wide = t.to(torch::kFloat64).contiguous().flatten();
  return {wide.data_ptr<double>(), wide.data_ptr<double>() + wide.numel()};
}

void check_values(const torch::Tensor& t, const std::vector<double>& expected, double relative = 1e-8) {
  const std::vector<double> got = values(t);
  REQUIRE(got.size() == expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    CAPTURE(i);
    CHECK(std::abs(got[i] - expected[i]) <= relative * std::abs(expected[i]));
  }
}

Distribution bound(double fan_in) {
  return {.kind = Kind::uniform, .a = -1 / std::sqrt(fan_in), .b = 1 / std::sqrt(fan_in)};
}

}  // namespace

// The figures are what PyTorch 1.13's Python interface printed (cpu) for the program in the comment; 9 digits.
TEST_CASE("a module's parameters are those that PyTorch draws while it builds the module") {
  // torch.manual_seed(1234); nn.ConvTranspose2d(6, 4, 3); torch.randn(4, 1, 1); nn.Linear(20, 3)
  const std::vector<torch::Tensor> drawn = pytorch_draw(
      {spec({6, 4, 3, 3}, bound(36)), spec({4}, bound(36)), spec({4, 1, 1}, {.kind = Kind::normal, .a = 0, .b = 1}),
       spec({3, 20}, bound(20)), spec({3}, bound(20))},
      1234, torch::kCPU);
  REQUIRE(drawn.size() == 5);
  CHECK(drawn[0].sizes() == at::IntArrayRef({6, 4, 3, 3}));
  check_values(drawn[0].flatten().slice(0, 0, 3), {-0.157006919, -0.032700479, -0.0800519437});
  check_values(drawn[0].flatten().slice(0, -2), {-0.154422134, -0.151700377});
  check_values(drawn[1], {-0.0997272581, 0.0203309264, -0.0308929887, 0.0359153375});
  check_values(drawn[2], {1.17332196, 0.371432662, -2.35311222, -1.67054534});
  check_values(drawn[3].flatten().slice(0, 0, 3), {-0.204955354, -0.214038894, 0.0758617446});
  check_values(drawn[4], {0.0903837755, -0.011547436, -0.112415738});
}

TEST_CASE("inputs are those of KernelBench's get_inputs, whatever their form") {
  // torch.manual_seed(1235), then one after another
  const std::vector<torch::Tensor> drawn = pytorch_draw(
      {// scale = torch.rand(()); torch.rand(5, 7) * scale
       spec({5, 7}, {.random_scale = true}),
       // scale = torch.rand(()); (torch.rand(3, 4) * scale).softmax(dim=-1)
       spec({3, 4}, {.random_scale = true, .structure = Structure::softmax}),
       // torch.randint(0, 4096, (9,))
       spec({9}, {.kind = Kind::integer, .a = 0, .b = 4096}, DType::int64),
       // torch.randint(0, 2, (9,)).float() * 2 - 1
       spec({9}, {.kind = Kind::sign}),
       // torch.randint(0, 2, (3, 4)).bool()
       spec({3, 4}, {.kind = Kind::integer, .a = 0, .b = 2}, DType::boolean),
       // R = torch.rand(3, 3); (R + R.T) / 2
       spec({3, 3}, {.structure = Structure::symmetric}),
       // torch.triu(torch.rand(3, 3)), torch.tril(torch.rand(3, 3))
       spec({3, 3}, {.structure = Structure::upper}), spec({3, 3}, {.structure = Structure::lower}),
       // torch.randn(3, 7)
       spec({3, 7}, {.kind = Kind::normal, .a = 0, .b = 1}),
       // torch.rand(3, dtype=torch.float64)
       spec({3}, {}, DType::float64)},
      1235, torch::kCPU);
  check_values(drawn[0].flatten().slice(0, 0, 3), {0.0584159754, 0.160669819, 0.0814131349});
  check_values(drawn[0].flatten().slice(0, -2), {0.0314614996, 0.138177142});
  check_values(drawn[1][0], {0.240873635, 0.260025948, 0.243018389, 0.256081969}, 1e-6);
  check_values(drawn[1][2], {0.256528318, 0.251269132, 0.238490865, 0.253711641}, 1e-6);
  check_values(drawn[2], {2147, 941, 348, 2775, 1107, 545, 3060, 810, 917});
  check_values(drawn[3], {1, -1, -1, 1, -1, 1, 1, 1, -1});
  check_values(drawn[4], {0, 0, 0, 0, 1, 1, 1, 0, 1, 0, 0, 1});
  check_values(drawn[5], {0.20849216, 0.326710612, 0.267968684, 0.326710612, 0.167598903, 0.62460041, 0.267968684,
                          0.62460041, 0.194755137});
  check_values(drawn[6], {0.783967912, 0.397080302, 0.0449543595, 0, 0.90333879, 0.363780499, 0, 0, 0.282253206});
  check_values(drawn[7], {0.544098496, 0, 0, 0.333788097, 0.256960154, 0, 0.56171751, 0.332122266, 0.235461593});
  const std::vector<double> normal = values(drawn[8]);
  CHECK(normal[0] == doctest::Approx(0.426425904).epsilon(1e-8));
  CHECK(normal[15] == doctest::Approx(0.756897688).epsilon(1e-8));
  CHECK(normal[20] == doctest::Approx(0.713763535).epsilon(1e-8));
  check_values(drawn[9], {0.055456484270731576, 0.8058668935525714, 0.8823351695825673}, 1e-15);
}

TEST_CASE("every tensor has the type that the task says, and half types are rounded float32 draws") {
  const Distribution uniform{};
  const torch::Tensor wide = pytorch_draw({spec({64}, uniform)}, 5, torch::kCPU)[0];
  for (DType t : {DType::float16, DType::bfloat16}) {
    const torch::Tensor half = pytorch_draw({spec({64}, uniform, t)}, 5, torch::kCPU)[0];
    CHECK((half.scalar_type() == kevin::tasks::scalar_type(t)));
    CHECK(torch::equal(half, wide.to(half.scalar_type())));
  }
  const Distribution die{.kind = Kind::integer, .a = 1, .b = 7};
  const torch::Tensor dice = pytorch_draw({spec({64}, die, DType::int32)}, 5, torch::kCPU)[0];
  CHECK((dice.scalar_type() == torch::kInt32));
  CHECK(torch::equal(dice.to(torch::kInt64), pytorch_draw({spec({64}, die, DType::int64)}, 5, torch::kCPU)[0]));
}

TEST_CASE("a constant takes nothing from the generator") {
  const TensorSpec x = spec({4}, {});
  const TensorSpec one = spec({4}, {.kind = Kind::constant, .a = 3.5});
  const std::vector<torch::Tensor> with = pytorch_draw({one, x}, 3, torch::kCPU);
  CHECK(torch::equal(with[0], torch::full({4}, 3.5)));
  CHECK(torch::equal(with[1], pytorch_draw({x}, 3, torch::kCPU)[0]));
}

TEST_CASE("the program's own generator is neither used nor changed") {
  torch::manual_seed(77);
  const torch::Tensor first = torch::rand({4});
  torch::manual_seed(77);
  const torch::Tensor drawn = pytorch_draw({spec({4}, {})}, 77, torch::kCPU)[0];
  CHECK(torch::equal(drawn, first));
  CHECK(torch::equal(torch::rand({4}), first));
}

TEST_CASE("a generator goes on where it was left") {
  torch::Generator generator = pytorch_generator(9, torch::kCPU);
  const torch::Tensor a = pytorch_draw(spec({8}, {}), generator);
  const torch::Tensor b = pytorch_draw(spec({8}, {}), generator);
  const std::vector<torch::Tensor> both = pytorch_draw({spec({8}, {}), spec({8}, {})}, 9, torch::kCPU);
  CHECK(torch::equal(a, both[0]));
  CHECK(torch::equal(b, both[1]));
}

TEST_CASE("KernelBench tasks can be drawn so and run") {
  for (const char* id : {"kernelbench/l1/93@small", "kernelbench/l1/98@small", "kernelbench/l2/12@small"}) {
    const kevin::tasks::Reference reference(kevin::tasks::find(id));
    const auto parameters = pytorch_draw(reference.task().parameters, 1234, torch::kCPU);
    const auto inputs = pytorch_draw(reference.task().inputs, 1235, torch::kCPU);
    CAPTURE(id);
    CHECK(reference.forward(inputs, parameters)[0].sizes() == at::IntArrayRef(reference.task().outputs[0].shape));
  }
}

TEST_CASE("a device that is not here is an error that names it") {
  if (torch::cuda::is_available()) return;
  CHECK_THROWS_WITH_AS(pytorch_draw({spec({4}, {})}, 1, torch::kCUDA), doctest::Contains("cuda"), kevin::Error);
}
