#include "kevin/tasks/tf32_guard.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <thread>

using kevin::tasks::Tf32;
using kevin::tasks::Tf32Guard;

namespace {

using Settings = kevin::tasks::detail::Tf32Settings<at::Context>;

bool set_to(Tf32 t) { return Settings::now(at::globalContext()) == Settings(t); }

// The contexts of later releases of LibTorch, as far as the guard touches them: settings by name, then by enumeration.
struct NamedContext {
  std::string convolutions = "tf32", recurrent = "tf32", products = "none";
  bool older_products = false;
  void setAllowTF32CuBLAS(bool b) {
    older_products = b;
    products = b ? "tf32" : "ieee";
  }
  void setFloat32Precision(const std::string& backend, const std::string& op, const std::string& precision) {
    CHECK(backend == "cuda");
    of(op) = precision;
  }
  std::string float32Precision(const std::string&, const std::string& op) { return of(op); }
  std::string& of(const std::string& op) {
    REQUIRE((op == "conv" || op == "rnn" || op == "matmul"));
    return op == "conv" ? convolutions : op == "rnn" ? recurrent : products;
  }
};
enum class Backend { GENERIC, CUDA, MKLDNN };
enum class Operation { ALL, CONV, RNN, MATMUL };
enum class Precision { NONE, IEEE, TF32, BF16 };
struct EnumeratedContext {
  Precision settings[4] = {Precision::NONE, Precision::TF32, Precision::TF32, Precision::NONE};
  bool older_products = false;
  void setAllowTF32CuBLAS(bool b) { older_products = b; }
  void setFloat32Precision(Backend backend, Operation op, Precision precision) {
    CHECK(backend == Backend::CUDA);
    settings[static_cast<int>(op)] = precision;
  }
  [[nodiscard]] Precision float32Precision(Backend, Operation op) const { return settings[static_cast<int>(op)]; }
};

}  // namespace

TEST_CASE("a guard sets TF32 for the process and puts back what was there") {
  REQUIRE(set_to(Tf32::convolutions));  // LibTorch's own setting
  for (const Tf32 allowed : {Tf32::none, Tf32::convolutions, Tf32::all}) {
    const Tf32Guard guard(allowed);
    CHECK(set_to(allowed));
  }
  CHECK(set_to(Tf32::convolutions));
  Settings(Tf32::all).apply(at::globalContext());
  { const Tf32Guard guard(Tf32::none); }
  CHECK(set_to(Tf32::all));
  Settings(Tf32::convolutions).apply(at::globalContext());
}

TEST_CASE("several may hold the same, and the last one puts the setting back") {
  std::optional<Tf32Guard> first(Tf32::none);
  {
    const Tf32Guard second(Tf32::none);
    first.reset();
    CHECK(set_to(Tf32::none));
  }
  CHECK(set_to(Tf32::convolutions));
}

TEST_CASE("whoever wants another setting waits until nobody holds this one") {
  std::atomic<bool> released = false;
  std::optional<Tf32Guard> strict(Tf32::none);
  std::thread other([&] {
    const Tf32Guard guard(Tf32::all);
    CHECK(released);
    CHECK(set_to(Tf32::all));
  });
  for (int i = 0; i < 50; ++i) {
    CHECK(set_to(Tf32::none));
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  released = true;
  strict.reset();
  other.join();
  CHECK(set_to(Tf32::convolutions));
}

TEST_CASE("later releases of LibTorch are set through their own functions, beside the older one for products") {
  using kevin::tasks::detail::Tf32Settings;
  NamedContext named;
  const auto before_named = Tf32Settings<NamedContext>::now(named);
  CHECK(before_named == Tf32Settings<NamedContext>(Tf32::convolutions));
  Tf32Settings<NamedContext>(Tf32::none).apply(named);
  CHECK(named.convolutions == "ieee");
  CHECK(named.recurrent == "ieee");
  CHECK(named.products == "ieee");
  Tf32Settings<NamedContext>(Tf32::all).apply(named);
  CHECK(named.products == "tf32");
  CHECK(named.older_products);
  before_named.apply(named);
  CHECK(named.convolutions == "tf32");
  CHECK(named.products == "ieee");
  CHECK_FALSE(named.older_products);

  EnumeratedContext enumerated;
  using Of = Tf32Settings<EnumeratedContext>;
  CHECK(Of::now(enumerated) == Of(Tf32::convolutions));
  Of(Tf32::none).apply(enumerated);
  for (const Operation op : {Operation::CONV, Operation::RNN, Operation::MATMUL})
    CHECK(enumerated.float32Precision(Backend::CUDA, op) == Precision::IEEE);
  Of(Tf32::all).apply(enumerated);
  CHECK(Of::now(enumerated) == Of(Tf32::all));
}
