#include "kevin/eval/cuda/judge_kernels.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "gpu.hpp"
#include "kevin/eval/cuda/device_memory.hpp"
#include "kevin/tasks/draw.hpp"

using namespace kevin;
using Kind = Distribution::Kind;

namespace {

/// The judge's kernels, as the evaluator loads them.
struct Station {
  cuda::Gpu gpu;
  cuda::JudgeKernels kernels;
  Station() : kernels((gpu.use(), gpu), cubin(gpu)) {}
  static std::string cubin(const cuda::Gpu& gpu) {
    cuda::CompilerOptions o;
    o.architecture = gpu_test::evaluator()->compiler().architecture();
    static_cast<void>(gpu);
    cuda::Compiler compiler(o);
    return compiler.compile(cuda::judge_source, "").cubin;
  }
};

/// Bytes that the GPU and the processor draw for the same seed.
void same_draw(const Station& s, DType type, Distribution d, std::int64_t n) {
  const TensorSpec spec{"x", {n}, type, d};
  const auto bytes = static_cast<std::size_t>(n * size_of(type));
  cuda::SharedMemory memory(s.gpu, bytes);
  std::vector<unsigned char> device(bytes), host(bytes);
  for (const std::uint64_t seed : {1ULL, 99ULL}) {
    s.kernels.draw(spec, seed, memory.address());
    REQUIRE(s.gpu.api().copy_to_host(device.data(), memory.address(), bytes) == 0);
    tasks::draw_into(spec, seed, host.data());
    std::size_t different = 0;
    for (std::size_t i = 0; i < bytes; ++i) different += device[i] != host[i];
    CAPTURE(std::string(to_string(type)));
    CAPTURE(static_cast<int>(d.kind));
    CHECK(different == 0);
  }
}

}  // namespace

TEST_CASE("judge kernels: the GPU draws the numbers that the processor draws") {
  if (gpu_test::evaluator() == nullptr) return;
  const Station s;
  for (const std::int64_t n : {1, 2, 1023, 100001}) {
    for (const DType type : {DType::float32, DType::float64, DType::float16, DType::bfloat16}) {
      same_draw(s, type, {Kind::uniform, -1.5, 2.25}, n);
      same_draw(s, type, {Kind::normal, 0.5, 2}, n);
      same_draw(s, type, {Kind::constant, 0.25, 0}, n);
      same_draw(s, type, {Kind::sign, 0, 0}, n);
    }
    Distribution scaled{Kind::uniform, 0, 1};
    scaled.random_scale = true;
    same_draw(s, DType::float32, scaled, n);
    for (const DType type : {DType::int32, DType::int64}) same_draw(s, type, {Kind::integer, -7, 1000}, n);
    same_draw(s, DType::boolean, {Kind::integer, 0, 2}, n);
  }
}

TEST_CASE("judge kernels: the GPU compares as the processor does") {
  if (gpu_test::evaluator() == nullptr) return;
  const Station s;
  const std::int64_t n = 50021;
  const float infinity = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tolerance tolerance{1e-3, 1e-2};
  Rng rng(4);
  for (int round = 0; round < 20; ++round) {
    const eval::Poison poison(DType::float32, rng());
    std::vector<float> expected(static_cast<std::size_t>(n)), actual(expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      expected[i] = static_cast<float>(rng.uniform(-3, 3));
      actual[i] = expected[i] * static_cast<float>(1 + rng.uniform(-0.009, 0.009));
    }
    for (int k = 0; k < round; ++k) {
      const auto i = static_cast<std::size_t>(rng.below(expected.size()));
      const float values[] = {nan, infinity, -infinity, 0.0F, 1000.0F, expected[i]};
      expected[i] = values[rng.below(6)];
      actual[i] = values[rng.below(6)];
      if (rng.below(5) == 0) {
        const auto bits = static_cast<std::uint32_t>(poison.bits());
        std::memcpy(&actual[i], &bits, 4);
      }
    }
    cuda::SharedMemory a(s.gpu, expected.size() * 4), e(s.gpu, expected.size() * 4), t(s.gpu, 4096);
    REQUIRE(s.gpu.api().copy_to_device(a.address(), actual.data(), actual.size() * 4) == 0);
    REQUIRE(s.gpu.api().copy_to_device(e.address(), expected.data(), expected.size() * 4) == 0);
    s.kernels.clear(t.address());
    s.kernels.compare(DType::float32, a.address(), e.address(), n, tolerance, poison.bits(), t.address());
    cuda::JudgeKernels::Tally tally{};
    REQUIRE(s.gpu.api().copy_to_host(&tally, t.address(), sizeof tally) == 0);
    const eval::Difference device = cuda::JudgeKernels::difference(tally, n);
    const eval::Difference host = eval::compare(DType::float32, actual.data(), expected.data(), n, tolerance, poison);
    CHECK(device.figures.wrong == host.figures.wrong);
    CHECK(device.figures.unwritten == host.figures.unwritten);
    CHECK(device.figures.not_finite == host.figures.not_finite);
    CHECK(device.first_wrong == host.first_wrong);
    CHECK(device.last_wrong == host.last_wrong);
    CHECK(device.figures.max_absolute == doctest::Approx(host.figures.max_absolute));
    CHECK(device.figures.max_relative == doctest::Approx(host.figures.max_relative));
  }
}

TEST_CASE("judge kernels: a single byte beside an output is seen") {
  if (gpu_test::evaluator() == nullptr) return;
  const Station s;
  cuda::SharedMemory memory(s.gpu, 4096), t(s.gpu, 4096);
  const std::uint64_t word = 0x1122334455667788ULL;
  for (const std::uint64_t at : {0ULL, 5ULL, 100ULL, 2047ULL}) {
    s.kernels.fill(memory.address(), 4096, word);
    REQUIRE(s.gpu.api().fill8(memory.address() + at, 0, 1, nullptr) == 0);
    s.kernels.clear(t.address());
    s.kernels.around(memory.address(), at, word, t.address());
    s.kernels.around(memory.address() + at + 1, 4096 - at - 1, word, t.address());
    cuda::JudgeKernels::Tally tally{};
    REQUIRE(s.gpu.api().copy_to_host(&tally, t.address(), sizeof tally) == 0);
    CHECK(tally.overrun == 0);
    s.kernels.around(memory.address() + at, 1, word, t.address());
    REQUIRE(s.gpu.api().copy_to_host(&tally, t.address(), sizeof tally) == 0);
    CHECK(tally.overrun == 1);
  }
}
