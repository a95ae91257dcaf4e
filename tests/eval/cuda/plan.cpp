#include "kevin/eval/cuda/plan.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "kevin/core/random.hpp"
#include "kevin/eval/cuda/runner.hpp"

using namespace kevin::cuda;

namespace {

constexpr std::uint64_t tag = std::uint64_t{0x7ff5} << 48U;

struct Fixture {
  std::unique_ptr<Book> book = std::make_unique<Book>();
  std::vector<std::string> kernels{"first", "second"};
  std::vector<std::uint64_t> bytes{1024, 4096};
  std::vector<std::string> names{"x", "out"};
  DeviceLimits limits;

  Fixture() {
    std::memset(static_cast<void*>(book.get()), 0, sizeof *book);
    book->tag = tag;
    book->buffers = 2;
    limits.scratch = 1 << 20;
  }

  /// A launch of `kernel` with these 8-byte arguments.
  Book::Launch& launch(std::uint32_t kernel, const std::vector<std::uint64_t>& arguments) {
    Book::Launch& l = book->launch[book->launches++];
    l = {kernel,
         {4, 1, 1},
         {256, 1, 1},
         {1, 1, 1},
         0,
         0,
         book->used,
         static_cast<std::uint32_t>(8 * arguments.size()),
         static_cast<std::uint32_t>(arguments.size()),
         {}};
    for (std::size_t i = 0; i < arguments.size() && i < 64; ++i) l.at[i] = static_cast<std::uint16_t>(8 * i);
    std::memcpy(book->bytes.data() + book->used, arguments.data(), 8 * arguments.size());
    book->used += 128;
    return l;
  }

  [[nodiscard]] std::variant<LaunchPlan, PlanFault> read() const {
    return read_book(*book, tag, kernels, bytes, names, limits);
  }
  [[nodiscard]] LaunchPlan plan() const {
    auto result = read();
    if (const auto* fault = std::get_if<PlanFault>(&result)) FAIL(fault->text);
    return std::get<LaunchPlan>(result);
  }
  [[nodiscard]] std::string fault() const {
    auto result = read();
    const auto* fault = std::get_if<PlanFault>(&result);
    return fault == nullptr ? "(none)" : fault->text;
  }
};

}  // namespace

TEST_CASE("read_book: addresses become relocations, all else is copied") {
  Fixture f;
  f.launch(2, {stand_in(tag, 0, 16), 42, stand_in(tag, 1)});
  const LaunchPlan plan = f.plan();
  REQUIRE(plan.launches.size() == 1);
  const PlannedLaunch& l = plan.launches[0];
  CHECK(l.kernel == "second");
  CHECK(l.grid == std::array<std::uint32_t, 3>{4, 1, 1});
  CHECK(l.arguments.size() == 24);
  CHECK(l.starts == std::vector<std::uint32_t>{0, 8, 16});
  REQUIRE(l.relocations.size() == 2);
  CHECK(l.relocations[0].at == 0);
  CHECK(l.relocations[0].buffer == 0);
  CHECK(l.relocations[0].offset == 16);
  CHECK(l.relocations[1].at == 16);
  CHECK(l.relocations[1].buffer == 1);
  std::uint64_t scalar = 0;
  std::memcpy(&scalar, l.arguments.data() + 8, 8);
  CHECK(scalar == 42);
}

TEST_CASE("read_book: scratch memory is a buffer after the arguments; tensor maps are found in arguments") {
  Fixture f;
  f.book->scratches = 1;
  f.book->scratch[0] = 512;
  f.book->maps = 1;
  f.book->map[0].address = stand_in(tag, 2);
  f.book->map[0].rank = 2;
  std::vector<std::uint64_t> arguments(18, 0);
  arguments[0] = tag + (0xffULL << 40U);  // the map, 128 bytes
  arguments[16] = stand_in(tag, 2, 512);
  f.launch(1, arguments);
  const LaunchPlan plan = f.plan();
  CHECK(plan.scratch == std::vector<std::uint64_t>{512});
  REQUIRE(plan.launches[0].maps.size() == 1);
  CHECK(plan.launches[0].maps[0].at == 0);
  REQUIRE(plan.launches[0].relocations.size() == 1);
  CHECK(plan.launches[0].relocations[0].at == 128);
  CHECK(plan.launches[0].relocations[0].buffer == 2);
  CHECK(plan.maps[0].buffer == 2);
}

TEST_CASE("read_book: what cannot be launched is told in words") {
  Fixture f;
  SUBCASE("nothing") { CHECK(f.fault().find("launches nothing") != std::string::npos); }
  SUBCASE("unknown kernel") {
    f.launch(3, {});
    CHECK(f.fault().find("launch 1 of kevin_plan: its kernel is not known") == 0);
  }
  SUBCASE("too many threads") {
    f.launch(1, {}).block = {1024, 2, 1};
    CHECK(f.fault().find("a block of 2048 threads") != std::string::npos);
  }
  SUBCASE("block too deep") {
    f.launch(1, {}).block = {1, 1, 65};
    CHECK(f.fault().find("(1, 1, 65)") != std::string::npos);
  }
  SUBCASE("empty grid") {
    f.launch(1, {}).grid = {0, 1, 1};
    CHECK(f.fault().find("the grid (0, 1, 1)") != std::string::npos);
  }
  SUBCASE("grid too high") {
    f.launch(1, {}).grid = {1, 70000, 1};
    CHECK(f.fault().find("the grid (1, 70000, 1)") != std::string::npos);
  }
  SUBCASE("shared memory") {
    f.launch(1, {}).shared = 300000;
    CHECK(f.fault().find("300000 bytes of dynamic shared memory") != std::string::npos);
  }
  SUBCASE("cluster") {
    f.launch(1, {}).cluster = {3, 1, 1};
    CHECK(f.fault().find("clusters of (3, 1, 1)") != std::string::npos);
    f.book->launch[0].grid = {16, 1, 1};
    f.book->launch[0].cluster = {16, 1, 1};
    CHECK(f.fault() != "(none)");
  }
  SUBCASE("past the end of a buffer") {
    f.launch(1, {stand_in(tag, 1, 4097)});
    CHECK(f.fault().find("past the end of `out`") != std::string::npos);
  }
  SUBCASE("before the start of a buffer") {
    f.launch(1, {stand_in(tag, 0, -4)});
    CHECK(f.fault().find("before the start of `x`") != std::string::npos);
  }
  SUBCASE("no such buffer") {
    f.launch(1, {stand_in(tag, 9)});
    CHECK(f.fault().find("no buffer") != std::string::npos);
  }
  SUBCASE("too much scratch") {
    f.launch(1, {});
    f.book->scratches = 2;
    f.book->scratch[0] = 1 << 19;
    f.book->scratch[1] = (1 << 19) + 1;
    CHECK(f.fault().find("1 MiB") != std::string::npos);
    f.book->scratch[1] = ~std::uint64_t{0};
    CHECK(f.fault().find("1 MiB") != std::string::npos);
  }
  SUBCASE("more launches than there is room for") {
    f.launch(1, {});
    f.book->overflow = 1;
    CHECK(f.fault().find("more than 64 launches") != std::string::npos);
  }
  SUBCASE("a tensor map that was not made") {
    std::vector<std::uint64_t> arguments(16, 0);
    arguments[0] = tag + (0xffULL << 40U) + 3;
    f.launch(1, arguments);
    CHECK(f.fault().find("tensor map") != std::string::npos);
  }
  SUBCASE("a book that was written over") {
    f.launch(1, {});
    f.book->launches = 1000;
    CHECK(f.fault().find("memory that is not its own") != std::string::npos);
    f.book->launches = 1;
    f.book->launch[0].offset = 0xfffffff0U;
    f.book->launch[0].bytes = 64;
    CHECK(f.fault().find("memory that is not its own") != std::string::npos);
  }
}

TEST_CASE("read_book: any bytes at all give a plan within the limits or a fault") {
  kevin::Rng rng(3);
  for (int round = 0; round < 2000; ++round) {
    Fixture f;
    auto* bytes = reinterpret_cast<unsigned char*>(f.book.get());
    const bool wild = round % 2 == 0;
    f.launch(1, {stand_in(tag, 0), 7, stand_in(tag, 1)});
    const std::size_t changes = wild ? sizeof(Book) : 1 + rng.below(8);
    for (std::size_t i = 0; i < changes; ++i)
      bytes[wild ? i : rng.below(4000)] = static_cast<unsigned char>(rng.below(256));
    if (round % 4 == 0) {
      f.book->tag = tag;
      f.book->buffers = 2;
      f.book->overflow = 0;
      f.book->launches %= 65;
      f.book->scratches %= 17;
      f.book->maps %= 33;
    }
    const auto result = f.read();
    if (const auto* plan = std::get_if<LaunchPlan>(&result)) {
      for (const PlannedLaunch& l : plan->launches) {
        CHECK(l.arguments.size() <= Book::max_launch_bytes);
        for (const Relocation& r : l.relocations) CHECK(r.at + 8 <= l.arguments.size());
        for (const MapRelocation& m : l.maps) CHECK(m.at + 128 <= l.arguments.size());
      }
      CHECK(!encode_program(*plan).empty());
    } else {
      CHECK(!std::get<PlanFault>(result).text.empty());
    }
  }
}

TEST_CASE("tagged_kernels: the constants that carry kernels are found in the PTX, and nothing else") {
  const TaggedKernels t = tagged_kernels(
      ".version 8.0\n"
      ".const .align 8 .u64 _ZN5kevin6detail3tagIXadL_Z4reluPKfPfiEEEE = _Z4reluPKfPfi;\n"
      ".const .align 8 .u64 other = _Z4relu;\n"
      ".const .align 8 .u64 _ZN5kevin6detail3tagIXadL_Z1kEEEE = no/name;\n"
      "\t.const .align 8 .u64 _ZN5kevin6detail3tagIXadL_Z1kEEEE = k;\n"
      ".const .align 8 .u64 _ZN5kevin6detail3tagIXadL_Z1kEEEE = k;");
  REQUIRE(t.tags.size() == 2);
  CHECK(t.kernels == std::vector<std::string>{"_Z4reluPKfPfi", "k"});
}
