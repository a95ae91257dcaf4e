#include "kevin/refine/signature.hpp"

#include <doctest/doctest.h>

#include <set>
#include <string>

#include "refine/fixtures.hpp"

using kevin::DType;
using kevin::kernel_arguments;
using kevin::kernel_signature;

TEST_CASE("a kernel takes inputs, then parameters, then outputs") {
  kevin::Task task = kevin_test::softmax_task();
  CHECK(kernel_signature(task) == "extern \"C\" void kernel(const float* x, float* out)");
  task.parameters = {{"gemm.weight", {8, 4}, DType::float64, {}}, {"mask", {4}, DType::boolean, {}}};
  CHECK(kernel_signature(task) ==
        "extern \"C\" void kernel(const float* x, const double* gemm_weight, const bool* mask, float* out)");
  const auto arguments = kernel_arguments(task);
  REQUIRE(arguments.size() == 4);
  CHECK(arguments[1].type == "const double*");
  CHECK(arguments[1].shape == kevin::Shape{8, 4});
}

TEST_CASE("several outputs are numbered") {
  kevin::Task task = kevin_test::softmax_task();
  task.outputs.push_back({"t2", {3}, DType::int64, {}});
  CHECK(kernel_signature(task) == "extern \"C\" void kernel(const float* x, float* out0, long long* out1)");
}

TEST_CASE("names become identifiers of their own") {
  kevin::Task task;
  for (const char* name : {"a.b", "a-b", "a_b", "1st", "", "kernel", "out", "class", "float"})
    task.inputs.push_back({name, {1}, DType::float32, {}});
  task.outputs = {{"t1", {1}, DType::float32, {}}};
  std::set<std::string> names;
  for (const auto& a : kernel_arguments(task)) names.insert(a.name);
  CHECK(names.size() == 10);
  CHECK(names.count("a_b") == 1);
  CHECK(names.count("a_b_") == 1);
  CHECK(names.count("p_1st") == 1);
  CHECK(names.count("kernel_") == 1);
  CHECK(names.count("out_") == 1);  // the output: an input had its name first
  CHECK(names.count("class_") == 1);
  CHECK(names.count("float_") == 1);
}
