#ifndef KEVIN_EVAL_CPU_TORCH_THREADS_HPP
#define KEVIN_EVAL_CPU_TORCH_THREADS_HPP

#include <dlfcn.h>

#include "kevin/tasks/torch.hpp"

namespace kevin::cpu {

/// While it lives, LibTorch's operations of the calling thread use `threads` threads; afterwards what was there before.
///
/// Two settings are meant: LibTorch's own (OpenMP's, which holds by thread, beside a process-wide default for threads
/// that have not yet computed anything) and OpenBLAS', which holds for the process, where LibTorch multiplies matrices
/// with it. Both are left alone where they have the wanted value already; so a program that sets both to the
/// evaluator's number at its start never has them changed under its other threads' computations.
class TorchThreads {
 public:
  explicit TorchThreads(int threads) : torch_(at::get_num_threads()), wanted_(threads) {
    if (torch_ != wanted_) at::set_num_threads(wanted_);
    // OpenBLAS is no dependency: only asked when it is in the process
    set_blas_ = reinterpret_cast<void (*)(int)>(::dlsym(RTLD_DEFAULT, "openblas_set_num_threads"));
    const auto get_blas = reinterpret_cast<int (*)()>(::dlsym(RTLD_DEFAULT, "openblas_get_num_threads"));
    if (set_blas_ == nullptr || get_blas == nullptr) {
      set_blas_ = nullptr;
      return;
    }
    blas_ = get_blas();
    if (blas_ != wanted_) set_blas_(wanted_);
  }
  ~TorchThreads() {
    if (torch_ != wanted_) at::set_num_threads(torch_);
    if (set_blas_ != nullptr && blas_ != wanted_) set_blas_(blas_);
  }
  TorchThreads(const TorchThreads&) = delete;
  TorchThreads& operator=(const TorchThreads&) = delete;

 private:
  int torch_;
  int wanted_;
  int blas_ = 0;
  void (*set_blas_)(int) = nullptr;
};

}  // namespace kevin::cpu

#endif  // KEVIN_EVAL_CPU_TORCH_THREADS_HPP
