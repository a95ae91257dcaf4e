#ifndef KEVIN_TASKS_TF32_GUARD_HPP
#define KEVIN_TASKS_TF32_GUARD_HPP

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <type_traits>

#include "kevin/tasks/tf32.hpp"
#include "kevin/tasks/torch.hpp"

namespace kevin::tasks {

namespace detail {

/// LibTorch's setting. From 2.9 on there is one for each kind of operation, which names strings at first, enumerations
/// later, and has to agree with the older one for matrix products. (The older one for convolutions prints a warning.)
template <class Context>
class Tf32Settings {
 public:
  Tf32Settings() = default;
  explicit Tf32Settings(Tf32 allowed)
      : convolutions_(allowed != Tf32::none), recurrent_(allowed != Tf32::none), products_(allowed == Tf32::all) {}

  [[nodiscard]] static Tf32Settings now(Context& context) {
    Tf32Settings s;
    if constexpr (requires { &Context::setFloat32Precision; }) {
      read(context, &Context::setFloat32Precision, s);
    } else {
      s.convolutions_ = s.recurrent_ = context.allowTF32CuDNN();
      s.products_ = context.allowTF32CuBLAS();
    }
    return s;
  }

  void apply(Context& context) const {
    context.setAllowTF32CuBLAS(products_);
    if constexpr (requires { &Context::setFloat32Precision; })
      write(context, &Context::setFloat32Precision);
    else
      context.setAllowTF32CuDNN(convolutions_);
  }

  friend bool operator==(const Tf32Settings&, const Tf32Settings&) = default;

 private:
  template <class Backend, class Operation, class Precision>
  static void read(Context& context, void (Context::*)(Backend, Operation, Precision), Tf32Settings& s) {
    if constexpr (std::is_enum_v<Backend>) {
      const auto allowed = [&](Operation o) { return context.float32Precision(Backend::CUDA, o) == Precision::TF32; };
      s.convolutions_ = allowed(Operation::CONV);
      s.recurrent_ = allowed(Operation::RNN);
      s.products_ = allowed(Operation::MATMUL);
    } else {
      const auto allowed = [&](const char* o) { return context.float32Precision("cuda", o) == "tf32"; };
      s.convolutions_ = allowed("conv");
      s.recurrent_ = allowed("rnn");
      s.products_ = allowed("matmul");
    }
  }

  template <class Backend, class Operation, class Precision>
  void write(Context& context, void (Context::*set)(Backend, Operation, Precision)) const {
    if constexpr (std::is_enum_v<Backend>) {
      const auto allow = [&](Operation o, bool yes) {
        (context.*set)(Backend::CUDA, o, yes ? Precision::TF32 : Precision::IEEE);
      };
      allow(Operation::CONV, convolutions_);
      allow(Operation::RNN, recurrent_);
      allow(Operation::MATMUL, products_);
    } else {
      const auto allow = [&](const char* o, bool yes) { (context.*set)("cuda", o, yes ? "tf32" : "ieee"); };
      allow("conv", convolutions_);
      allow("rnn", recurrent_);
      allow("matmul", products_);
    }
  }

  bool convolutions_ = false;
  bool recurrent_ = false;
  bool products_ = false;
};

/// What the guards of a process share.
struct Tf32Gate {
  std::mutex mutex;
  std::condition_variable free;
  std::int64_t holders = 0;
  Tf32 allowed = Tf32::none;
  Tf32Settings<at::Context> before;
};
inline Tf32Gate tf32_gate;

}  // namespace detail

/// While one lives, LibTorch's float32 operations on NVIDIA GPUs are as precise as it says, in the whole process; then
/// what was set before holds again. Several threads may hold the same at once; whoever wants another waits, so one
/// thread must not hold two that differ. LibTorch looks at the setting when an operation is called (or captured in a
/// graph), not when it runs.
class Tf32Guard {
 public:
  explicit Tf32Guard(Tf32 allowed) {
    detail::Tf32Gate& gate = detail::tf32_gate;
    std::unique_lock lock(gate.mutex);
    gate.free.wait(lock, [&] { return gate.holders == 0 || gate.allowed == allowed; });
    if (gate.holders == 0) {
      gate.before = detail::Tf32Settings<at::Context>::now(at::globalContext());
      gate.allowed = allowed;
      detail::Tf32Settings<at::Context>(allowed).apply(at::globalContext());
    }
    ++gate.holders;
  }
  ~Tf32Guard() {
    detail::Tf32Gate& gate = detail::tf32_gate;
    const std::lock_guard lock(gate.mutex);
    if (--gate.holders > 0) return;
    gate.before.apply(at::globalContext());
    gate.free.notify_all();
  }
  Tf32Guard(const Tf32Guard&) = delete;
  Tf32Guard& operator=(const Tf32Guard&) = delete;
};

}  // namespace kevin::tasks

#endif  // KEVIN_TASKS_TF32_GUARD_HPP
