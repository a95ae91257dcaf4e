#include "kevin/eval/cuda/judge_kernels.hpp"
#include "kevin/eval/cuda/judge_source.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>
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
  Rng rng(4);
  for (int round = 0; round < 20; ++round) {
    const Tolerance tolerance{1e-3, 1e-2, round % 2 == 0 ? 0 : 1e-3};
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
    cuda::SharedMemory work(s.gpu, s.kernels.workspace());
    REQUIRE(s.gpu.api().copy_to_device(a.address(), actual.data(), actual.size() * 4) == 0);
    REQUIRE(s.gpu.api().copy_to_device(e.address(), expected.data(), expected.size() * 4) == 0);
    s.kernels.clear(t.address());
    s.kernels.compare(DType::float32, a.address(), e.address(), n, tolerance, poison.bits(), t.address(),
                      work.address());
    cuda::JudgeKernels::Tally tally{};
    REQUIRE(s.gpu.api().copy_to_host(&tally, t.address(), sizeof tally) == 0);
    const eval::Difference device = cuda::JudgeKernels::difference(tally, n);
    const eval::Difference host = eval::compare(DType::float32, actual.data(), expected.data(), n, tolerance, poison);
    CHECK(device.figures.wrong == host.figures.wrong);
    CHECK(device.figures.unwritten == host.figures.unwritten);
    CHECK(device.figures.not_finite == host.figures.not_finite);
    CHECK(device.figures.outside_kernelbench == host.figures.outside_kernelbench);
    CHECK(device.first_wrong == host.first_wrong);
    CHECK(device.last_wrong == host.last_wrong);
    CHECK(device.figures.max_absolute == doctest::Approx(host.figures.max_absolute));
    CHECK(device.figures.max_relative == doctest::Approx(host.figures.max_relative));
  }
}

TEST_CASE(
    "judge kernels: the GPU's spread of every real type is the processor's, also beside a large mean and infinities") {
  if (gpu_test::evaluator() == nullptr) return;
  const Station s;
  cuda::SharedMemory t(s.gpu, 4096), work(s.gpu, s.kernels.workspace());
  const auto spread = [&](DType type, const std::vector<unsigned char>& bytes, std::int64_t n) {
    cuda::SharedMemory e(s.gpu, bytes.size());
    REQUIRE(s.gpu.api().copy_to_device(e.address(), bytes.data(), bytes.size()) == 0);
    s.kernels.clear(t.address());
    s.kernels.compare(type, e.address(), e.address(), n, {0, 0, 1}, eval::Poison(type, 1).bits(), t.address(),
                      work.address());
    cuda::JudgeKernels::Tally tally{};
    REQUIRE(s.gpu.api().copy_to_host(&tally, t.address(), sizeof tally) == 0);
    CHECK(tally.wrong == 0);
    return tally.spread;
  };
  for (const std::int64_t n : {1, 2, 255, 257, 100001, 1000003}) {
    for (const DType type : {DType::float32, DType::float64, DType::float16, DType::bfloat16}) {
      for (const double mean : {0.0, 100.0}) {
        std::vector<unsigned char> bytes(static_cast<std::size_t>(n * size_of(type)));
        tasks::draw_into({"x", {n}, type, {Kind::normal, mean, 2}}, 7, bytes.data());
        const double host = eval::spread_of(type, bytes.data(), n);
        CAPTURE(std::string(to_string(type)));
        CAPTURE(n);
        CHECK(spread(type, bytes, n) == doctest::Approx(host).epsilon(1e-9));
        if (n > 1000) CHECK(host == doctest::Approx(2).epsilon(0.02));
      }
    }
  }
  std::vector<float> odd(5000, 3.0F);
  for (std::size_t i = 0; i < odd.size(); i += 2) odd[i] = 1.0F;
  odd[17] = std::numeric_limits<float>::infinity();
  odd[18] = std::numeric_limits<float>::quiet_NaN();
  std::vector<unsigned char> bytes(odd.size() * 4);
  std::memcpy(bytes.data(), odd.data(), bytes.size());
  CHECK(spread(DType::float32, bytes, 5000) == doctest::Approx(1).epsilon(1e-9));
  CHECK(spread(DType::int32, bytes, 5000) == 0);
}

TEST_CASE("judge kernels: KernelBench's rule and integers are counted as the processor does") {
  if (gpu_test::evaluator() == nullptr) return;
  const Station s;
  const auto same = [&](DType type, const auto& actual, const auto& expected) {
    using T = typename std::decay_t<decltype(actual)>::value_type;
    const std::size_t bytes = actual.size() * sizeof(T);
    const auto n = static_cast<std::int64_t>(actual.size());
    cuda::SharedMemory a(s.gpu, bytes), e(s.gpu, bytes), t(s.gpu, 4096), work(s.gpu, s.kernels.workspace());
    REQUIRE(s.gpu.api().copy_to_device(a.address(), actual.data(), bytes) == 0);
    REQUIRE(s.gpu.api().copy_to_device(e.address(), expected.data(), bytes) == 0);
    const eval::Poison poison(type, 12345);
    s.kernels.clear(t.address());
    s.kernels.compare(type, a.address(), e.address(), n, {0, 0}, poison.bits(), t.address(), work.address());
    cuda::JudgeKernels::Tally tally{};
    REQUIRE(s.gpu.api().copy_to_host(&tally, t.address(), sizeof tally) == 0);
    const eval::Difference device = cuda::JudgeKernels::difference(tally, n);
    const eval::Difference host = eval::compare(type, actual.data(), expected.data(), n, {0, 0}, poison);
    CHECK(device.figures == host.figures);
    CHECK(host.figures.outside_kernelbench > 0);
  };
  Rng rng(11);
  std::vector<double> e64(3000), a64(3000);
  std::vector<std::int64_t> ei(3000), ai(3000);
  std::vector<std::uint16_t> eh(3000), ah(3000);
  for (std::size_t i = 0; i < e64.size(); ++i) {
    e64[i] = rng.normal();
    a64[i] = e64[i] * (1 + rng.uniform(-3e-4, 3e-4)) + rng.uniform(-1e-4, 1e-4);
    ei[i] = static_cast<std::int64_t>(rng.below(30000));
    ai[i] = ei[i] + static_cast<std::int64_t>(rng.below(4));
    eh[i] = static_cast<std::uint16_t>(0x3c00 + rng.below(1024));  // float16 from 1 to 2
    ah[i] = static_cast<std::uint16_t>(eh[i] + rng.below(40));
  }
  same(DType::float64, a64, e64);
  same(DType::int64, ai, ei);
  same(DType::float16, ah, eh);
  same(DType::bfloat16, ah, eh);
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
