#include "golden/golden.hpp"

#include <doctest/doctest.h>

#include <limits>
#include <string>
#include <vector>

namespace {

golden::Tensor drawn() {
  return {.name = {}, .shape = {2, 3}, .dtype = {}, .mean = 0.5, .rms = 0.6, .values = {0.25, 0.5, 0.75}};
}

golden::Tensor output() {
  return {
      .name = {}, .shape = {4}, .dtype = "float32", .mean = 1, .rms = 2, .least = -3, .most = 40, .values = {1, -3}};
}

std::size_t faults_of_drawn(const golden::Tensor& got) {
  std::vector<std::string> faults;
  golden::compare_drawn(faults, "x", got, drawn());
  return faults.size();
}

std::size_t faults_of_output(const golden::Tensor& got, double absolute = 0) {
  std::vector<std::string> faults;
  golden::compare_output(faults, got, output(), 1e-4, absolute);
  return faults.size();
}

}  // namespace

TEST_CASE("the file holds PyTorch's figures of all 200 tasks of levels 1 and 2") {
  const std::vector<golden::Line> lines = golden::read(KEVIN_TEST_DATA_DIR "/golden/kernelbench.jsonl");
  REQUIRE(lines.size() == 200);
  CHECK(lines[0].id == "l1/1");
  CHECK(lines[199].id == "l2/100");
  for (const golden::Line& l : lines) {
    CAPTURE(l.id);
    CHECK(l.output.values.size() == golden::samples);
    CHECK(l.output.least <= l.output.mean + 1e-6 * l.output.rms);
    CHECK(l.output.mean <= l.output.most + 1e-6 * l.output.rms);
    CHECK(!l.inputs.empty());
  }
  const golden::Line& gemm = lines[111];  // l2/12
  REQUIRE(gemm.parameters.size() == 2);
  CHECK(gemm.parameters[0].name == "gemm.weight");
  CHECK(gemm.parameters[0].shape == std::vector<std::int64_t>{8192, 8192});
  REQUIRE(gemm.parameters[0].values.size() == 2);
  CHECK(gemm.parameters[0].values[0] == doctest::Approx(-0.008237618021667004).epsilon(1e-7));
}

TEST_CASE("samples lie at (i * 2654435761) mod n") {
  CHECK(golden::sample_index(0, 100) == 0);
  CHECK(golden::sample_index(1, 100) == 61);
  CHECK(golden::sample_index(1, std::int64_t{1} << 33) == 2654435761);
  CHECK(golden::sample_index(7, 1) == 0);
}

TEST_CASE("draws may differ in the last digits that were written down, and not more") {
  CHECK(faults_of_drawn(drawn()) == 0);
  golden::Tensor got = drawn();
  got.values[1] *= 1 + 5e-7;
  CHECK(faults_of_drawn(got) == 0);
  got.values[1] *= 1 + 2e-6;
  CHECK(faults_of_drawn(got) == 1);
  got = drawn();
  got.mean += 2e-6;
  CHECK(faults_of_drawn(got) == 1);
  got = drawn();
  got.shape = {3, 2};
  CHECK(faults_of_drawn(got) == 1);
}

TEST_CASE("where only the shape is known, only the shape counts") {
  golden::Tensor known = drawn();
  known.has_values = false;
  known.values.clear();
  std::vector<std::string> faults;
  golden::Tensor got = drawn();
  got.mean = 100;
  golden::compare_drawn(faults, "x", got, known);
  CHECK(faults.empty());
  got.shape = {6};
  golden::compare_drawn(faults, "x", got, known);
  CHECK(faults.size() == 1);
}

TEST_CASE("outputs agree within a share of their root mean square") {
  CHECK(faults_of_output(output()) == 0);
  golden::Tensor got = output();
  got.values[0] += 1.9e-4;
  got.mean -= 1.9e-4;
  CHECK(faults_of_output(got) == 0);
  got.values[0] += 0.2e-4;
  CHECK(faults_of_output(got) == 1);
  CHECK(faults_of_output(got, 1e-3) == 0);
  got = output();
  got.most += 3e-3;  // of 40
  CHECK(faults_of_output(got) == 0);
  got.most += 2e-3;
  CHECK(faults_of_output(got) == 1);
}

TEST_CASE("each figure counts, and a NaN never agrees") {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  for (double golden::Tensor::*figure :
       {&golden::Tensor::mean, &golden::Tensor::rms, &golden::Tensor::least, &golden::Tensor::most}) {
    golden::Tensor got = output();
    got.*figure *= 1.01;
    CHECK(faults_of_output(got) == 1);
    got.*figure = nan;
    CHECK(faults_of_output(got) == 1);
  }
  golden::Tensor got = output();
  got.values[1] = nan;
  CHECK(faults_of_output(got) == 1);
  got = output();
  got.dtype = "int64";
  CHECK(faults_of_output(got) == 1);
}

TEST_CASE("the largest deviation is told as a share of the root mean square") {
  golden::Tensor got = output();
  got.values[1] = -3.5;
  CHECK(golden::worst_sample(got, output()) == doctest::Approx(0.25));
  CHECK(golden::worst_sample(output(), output()) == 0);
}

TEST_CASE("a file that is not there or not right is an error that names it") {
  CHECK_THROWS_WITH_AS(golden::read("/no/such/file"), doctest::Contains("/no/such/file"), kevin::Error);
  CHECK_THROWS_WITH_AS(golden::read(KEVIN_TEST_DATA_DIR "/golden/prompt_turn1.txt"), doctest::Contains("line 1"),
                       kevin::Error);
}
