#include "kevin/tasks/tensor_archive.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <unistd.h>

#include "kevin/tasks/pytorch_draw.hpp"
#include "kevin/tasks/suite.hpp"

using kevin::Error;
using kevin::tasks::load_tensors;
using kevin::tasks::named;
using kevin::tasks::NamedTensors;
using kevin::tasks::save_tensors;

namespace {

const std::string data = KEVIN_TEST_DATA_DIR "/golden/";

struct File {
  std::string path =
      (std::filesystem::temp_directory_path() / ("kevin-archive-" + std::to_string(::getpid()) + ".pt")).string();
  ~File() { std::filesystem::remove(path); }

  void write(const char* bytes, std::size_t count) const {
    std::ofstream(path, std::ios::binary | std::ios::trunc).write(bytes, static_cast<std::streamsize>(count));
  }
};

}  // namespace

TEST_CASE("a file that PyTorch wrote holds what PyTorch drew and computed, and so does the task") {
  const NamedTensors file = load_tensors(data + "pytorch_gemm.pt");
  REQUIRE(file.size() == 5);
  const kevin::tasks::Reference reference(kevin::tasks::find(data + "pytorch_gemm.json"));
  const kevin::Task& task = reference.task();
  CHECK_NOTHROW(kevin::tasks::require_known(task, file));
  const auto inputs = named(task.inputs, file);
  const auto parameters = named(task.parameters, file);
  CHECK(torch::allclose(reference.forward(inputs, parameters)[0], file.at("t3"), 1e-6, 1e-6));

  const auto drawn = kevin::tasks::pytorch_draw(task.parameters, 1234, torch::kCPU);
  for (std::size_t i = 0; i < drawn.size(); ++i) CHECK(torch::equal(drawn[i], parameters[i]));
  CHECK(torch::equal(kevin::tasks::pytorch_draw(task.inputs, 1235, torch::kCPU)[0], inputs[0]));
}

TEST_CASE("what is written comes back, of every type and layout") {
  const File file;
  const torch::Tensor wide = torch::arange(12, torch::kFloat32).reshape({3, 4});
  const NamedTensors tensors{{"x", wide.t()},
                             {"row", wide[1]},
                             {"scalar", torch::tensor(2.5)},
                             {"labels", torch::arange(5, torch::kInt64)},
                             {"mask", torch::ones({2, 2}, torch::kBool)},
                             {"half", torch::ones({3}, torch::kFloat16)}};
  save_tensors(file.path, tensors);
  const NamedTensors back = load_tensors(file.path);
  REQUIRE(back.size() == tensors.size());
  for (const auto& [name, t] : tensors) {
    CAPTURE(name);
    CHECK((back.at(name).scalar_type() == t.scalar_type()));
    CHECK(torch::equal(back.at(name), t));
    CHECK(back.at(name).is_contiguous());
  }
}

TEST_CASE("of a view only what it shows is written") {
  const File file;
  save_tensors(file.path, {{"x", torch::ones({1000, 1000})[0][0]}, {"y", torch::ones({1})}});
  CHECK(std::filesystem::file_size(file.path) < 6000);
}

TEST_CASE("a file that is none is an error that names it and what it has to be") {
  CHECK_THROWS_WITH_AS(load_tensors("/no/such.pt"), doctest::Contains("not_found: cannot read /no/such.pt"), Error);
  CHECK_THROWS_WITH_AS(load_tensors(data + "pytorch_gemm.json"), doctest::Contains("torch.save"), Error);
  CHECK_THROWS_WITH_AS(load_tensors(data), doctest::Contains("cannot read"), Error);

  const File file;
  std::ifstream whole(data + "pytorch_gemm.pt", std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(whole), std::istreambuf_iterator<char>()};
  for (const std::size_t kept : {bytes.size() - 1, bytes.size() / 2, std::size_t{30}, std::size_t{4}}) {
    CAPTURE(kept);
    file.write(bytes.data(), kept);
    CHECK_THROWS_WITH_AS(load_tensors(file.path), doctest::Contains("bad_input: "), Error);
  }
  const std::vector<char> list = torch::pickle_save(c10::List<torch::Tensor>({torch::ones({2})}));
  file.write(list.data(), list.size());
  CHECK_THROWS_WITH_AS(load_tensors(file.path), doctest::Contains("instead of a dict"), Error);
  c10::Dict<std::string, std::int64_t> numbers;
  numbers.insert("x", 3);
  const std::vector<char> dict = torch::pickle_save(numbers);
  file.write(dict.data(), dict.size());
  CHECK_THROWS_WITH_AS(load_tensors(file.path), doctest::Contains("instead of a tensor as 'x'"), Error);
}

TEST_CASE("Python's dict of one tensor, which LibTorch cannot read, is an error that says what to do") {
  CHECK_THROWS_WITH_AS(load_tensors(data + "pytorch_single.pt"), doctest::Contains("save the outputs, too"), Error);
}

TEST_CASE("a place that cannot be written is an error") {
  CHECK_THROWS_WITH_AS(save_tensors("/no/such/folder/x.pt", {{"x", torch::ones({2})}}), doctest::Contains("resource"),
                       Error);
}

TEST_CASE("tensors that do not fit the task are errors that name them") {
  const kevin::Task task = kevin::tasks::find(data + "pytorch_gemm.json");
  NamedTensors file = load_tensors(data + "pytorch_gemm.pt");
  file["x"] = torch::ones({3, 6});
  CHECK_THROWS_WITH_AS(named(task.inputs, file),
                       doctest::Contains("'x' has shape [3, 6], the task needs float32 [3, 5]"), Error);
  file["x"] = torch::ones({3, 5}, torch::kFloat64);
  CHECK_THROWS_WITH_AS(named(task.inputs, file), doctest::Contains("'x' has type Double"), Error);
  file.erase("fc.bias");
  CHECK_THROWS_WITH_AS(named(task.parameters, file), doctest::Contains("'fc.bias' is missing"), Error);
  file["fc.bais"] = torch::ones({4});
  CHECK_THROWS_WITH_AS(kevin::tasks::require_known(task, file), doctest::Contains("'fc.bais'"), Error);
}
