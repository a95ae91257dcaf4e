#ifndef KEVIN_EVAL_CUDA_JUDGE_KERNELS_HPP
#define KEVIN_EVAL_CUDA_JUDGE_KERNELS_HPP

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

#include "kevin/core/random.hpp"
#include "kevin/eval/comparison.hpp"
#include "kevin/eval/cuda/driver.hpp"
#include "kevin/refine/task.hpp"
#include "kevin/refine/verdict.hpp"

namespace kevin::cuda {

/// The judge's kernels, loaded on one GPU. All work goes to the default stream, which LibTorch uses too.
class JudgeKernels {
 public:
  /// What kevin_compare and kevin_around count.
  struct Tally {
    std::uint64_t wrong, unwritten, not_finite, outside_kernelbench, max_absolute, max_relative, first_wrong,
        last_wrong, overrun;
    double spread;  ///< of what is expected; 0 where the tolerance does not ask for it
  };

  /// `cubin`: judge_source, compiled for this GPU. Its context must be current.
  JudgeKernels(const Gpu& gpu, std::string_view cubin) : gpu_(gpu) {
    const DriverApi& api = gpu.api();
    api.check(api.module_load(&module_, cubin.data()), "loading the judge's kernels");
    for (auto [function, name] : {std::pair{&draw_, "kevin_draw"},
                                  {&fill_, "kevin_fill"},
                                  {&clear_, "kevin_clear"},
                                  {&around_, "kevin_around"},
                                  {&wait_, "kevin_wait"},
                                  {&read_, "kevin_read"},
                                  {&discard_, "kevin_discard"},
                                  {&moments_, "kevin_moments"},
                                  {&spread_, "kevin_spread"},
                                  {&compare_, "kevin_compare"}}) {
      api.check(api.module_function(function, module_, name), name);
    }
    blocks_ = static_cast<unsigned>(gpu.attribute(driver::multiprocessors)) * 16;
  }
  JudgeKernels(const JudgeKernels&) = delete;
  JudgeKernels& operator=(const JudgeKernels&) = delete;
  ~JudgeKernels() { static_cast<void>(gpu_.api().module_unload(module_)); }

  /// Draws as tasks::draw_into does, all but the distribution's structure (which softmax, triangles, ... add).
  void draw(const TensorSpec& spec, std::uint64_t seed, driver::DevicePointer out) const {
    std::uint64_t n = static_cast<std::uint64_t>(element_count(spec.shape));
    const Distribution& d = spec.distribution;
    int kind = static_cast<int>(d.kind);
    int dtype = static_cast<int>(spec.dtype);
    double a = d.a;
    double b = d.b;
    double scale = d.random_scale ? Rng(seed, "scale").uniform() : 1.0;
    void* arguments[] = {&out, &n, &seed, &kind, &dtype, &a, &b, &scale};
    start(draw_, n / 2 + 1, arguments);
  }

  /// Fills `bytes` (a multiple of 8, 8-byte aligned) with `word`.
  void fill(driver::DevicePointer out, std::uint64_t bytes, std::uint64_t word) const {
    std::uint64_t words = bytes / 8;
    if (words == 0) return;
    void* arguments[] = {&out, &words, &word};
    start(fill_, words, arguments);
  }

  /// Empties the L2 cache by way of `other` memory, `bytes` of it (a multiple of 128, as is the address), whose content
  /// is lost.
  void evict(driver::DevicePointer other, std::uint64_t bytes, driver::Stream stream = nullptr) const {
    std::uint64_t vectors = bytes / 16;
    std::uint32_t never = 1;
    void* arguments[] = {&other, &vectors, &never};
    start(read_, vectors, arguments, 256, stream);
    start(discard_, vectors / 8, arguments, 256, stream);
  }

  /// Keeps the GPU busy.
  void wait(std::uint32_t microseconds, driver::Stream stream) const {
    std::uint64_t nanoseconds = std::uint64_t{1000} * microseconds;
    void* arguments[] = {&nanoseconds};
    start(wait_, 1, arguments, 1, stream);
  }

  void clear(driver::DevicePointer tally) const {
    void* arguments[] = {&tally};
    start(clear_, 1, arguments, 1);
  }

  /// Counts in tally.overrun the bytes of [from, from + bytes) that are not of the pattern that fill() left.
  void around(driver::DevicePointer from, std::uint64_t bytes, std::uint64_t word, driver::DevicePointer tally) const {
    if (bytes == 0) return;
    driver::DevicePointer at = from & ~std::uint64_t{7};
    std::uint64_t skip = from - at;
    std::uint64_t end = skip + bytes;
    void* arguments[] = {&at, &skip, &end, &word, &tally};
    start(around_, bytes, arguments);
  }

  /// Bytes of memory that compare() works with.
  [[nodiscard]] std::size_t workspace() const noexcept { return blocks_ * 3 * sizeof(double); }

  /// Adds to the tally, which was cleared. `work`: workspace() bytes, 8-byte aligned.
  void compare(DType type, driver::DevicePointer actual, driver::DevicePointer expected, std::int64_t n,
               const Tolerance& tolerance, std::uint64_t poison, driver::DevicePointer tally,
               driver::DevicePointer work) const {
    std::uint64_t count = static_cast<std::uint64_t>(n);
    int dtype = static_cast<int>(type);
    double absolute = tolerance.absolute;
    double relative = tolerance.relative;
    double spread = tolerance.spread;
    double kernelbench = eval::kernelbench_tolerance(type);
    if (spread > 0 && type != DType::int32 && type != DType::int64 && type != DType::boolean) {
      std::uint32_t blocks = blocks_for(count, threads_of_most);
      void* of_elements[] = {&expected, &count, &dtype, &work};
      start(moments_, count, of_elements);
      void* of_blocks[] = {&work, &blocks, &tally};
      start(spread_, 1, of_blocks);
    }
    void* arguments[] = {&actual,   &expected, &count,       &dtype,  &absolute,
                         &relative, &spread,   &kernelbench, &poison, &tally};
    start(compare_, count, arguments);
  }

  /// The figures of `n` compared elements.
  [[nodiscard]] static eval::Difference difference(const Tally& t, std::int64_t n) {
    eval::Difference d;
    d.figures.elements = n;
    d.figures.wrong = static_cast<std::int64_t>(t.wrong);
    d.figures.unwritten = static_cast<std::int64_t>(t.unwritten);
    d.figures.not_finite = static_cast<std::int64_t>(t.not_finite);
    d.figures.outside_kernelbench = static_cast<std::int64_t>(t.outside_kernelbench);
    d.figures.max_absolute = std::bit_cast<double>(t.max_absolute);
    d.figures.max_relative = std::bit_cast<double>(t.max_relative);
    if (t.wrong > 0) {
      d.first_wrong = static_cast<std::int64_t>(t.first_wrong);
      d.last_wrong = static_cast<std::int64_t>(t.last_wrong) - 1;
    }
    return d;
  }

 private:
  static constexpr unsigned threads_of_most = 256;

  [[nodiscard]] unsigned blocks_for(std::uint64_t items, unsigned threads) const noexcept {
    return static_cast<unsigned>(std::min<std::uint64_t>((items + threads - 1) / threads, blocks_));
  }
  void start(driver::Function f, std::uint64_t items, void** arguments, unsigned threads = threads_of_most,
             driver::Stream stream = nullptr) const {
    const unsigned blocks = blocks_for(items, threads);
    const DriverApi& api = gpu_.api();
    api.check(api.launch(f, blocks, 1, 1, threads, 1, 1, 0, stream, arguments, nullptr),
              "launching a kernel of the judge");
  }

  const Gpu& gpu_;
  driver::Module module_ = nullptr;
  driver::Function draw_ = nullptr, fill_ = nullptr, clear_ = nullptr, around_ = nullptr, compare_ = nullptr,
                   wait_ = nullptr, read_ = nullptr, discard_ = nullptr, moments_ = nullptr, spread_ = nullptr;
  unsigned blocks_ = 0;
};

}  // namespace kevin::cuda

#endif  // KEVIN_EVAL_CUDA_JUDGE_KERNELS_HPP
