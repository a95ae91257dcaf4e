#ifndef KEVIN_EVAL_CUDA_BASELINE_HPP
#define KEVIN_EVAL_CUDA_BASELINE_HPP

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <c10/core/Stream.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "kevin/core/error.hpp"
#include "kevin/eval/cuda/judge_options.hpp"
#include "kevin/eval/cuda/runner_protocol.hpp"
#include "kevin/eval/cuda/station.hpp"
#include "kevin/eval/cuda/task_buffers.hpp"
#include "kevin/eval/memory_file.hpp"
#include "kevin/tasks/tf32_guard.hpp"

namespace kevin::cuda {

/// The reference as it is timed: LibTorch's eager forward pass, or that pass captured in a CUDA graph and replayed,
/// which spares the processor's share of it and is the stronger opponent for small tasks.
class Baseline {
 public:
  /// Keeps references. The GPU's context must be current. Throws Error(unsupported) for a graph with a LibTorch that
  /// does not tell its streams' handles (can_capture).
  Baseline(const Station& station, const TaskBuffers& buffers, BaselineKind kind, tasks::Tf32 tf32)
      : station_(station),
        buffers_(buffers),
        kind_(kind),
        tf32_(tf32),
        graphs_(kind == BaselineKind::eager ? 0 : buffers.sets()) {
    if (kind == BaselineKind::eager) return;
    if (!can_capture()) throw Error(ErrorCode::unsupported, "a captured baseline needs LibTorch 2.4 or later");
    const c10::impl::VirtualGuardImpl guard(c10::DeviceType::CUDA);
    stream_ = guard.getStreamFromGlobalPool(c10::Device(c10::DeviceType::CUDA, index()), false);
  }
  Baseline(const Baseline&) = delete;
  Baseline& operator=(const Baseline&) = delete;
  ~Baseline() {
    for (Graph& g : graphs_) {
      if (g.executable != nullptr) static_cast<void>(station_.gpu.api().graph_exec_destroy(g.executable));
    }
  }

  /// Whether this LibTorch tells the handle of a stream.
  [[nodiscard]] static constexpr bool can_capture() noexcept { return has_handle<c10::Stream>(); }

  struct Run {
    double milliseconds;  ///< between the GPU's events around it
    bool late;            ///< as CallResult::late
  };

  /// One run on a set of buffers. `flags`: one of protocol::Run's cold, dirty, warm; and nothing. `head_start`:
  /// microseconds for which the GPU is kept busy while the launches are queued. `expected` receives the outputs.
  [[nodiscard]] Run run(std::size_t set, std::uint64_t flags, std::uint32_t head_start,
                        std::vector<torch::Tensor>& expected) {
    const tasks::Tf32Guard guard(tf32_);
    const DriverApi& api = station_.gpu.api();
    expected.clear();
    if (kind_ == BaselineKind::eager_graph) capture(set);
    const driver::Stream stream = kind_ == BaselineKind::eager ? nullptr : handle(*stream_);
    const SharedMemory& other = *station_.flush;
    if (head_start != 0) station_.kernels.wait(head_start, stream);
    if ((flags & protocol::Run::cold) != 0) station_.kernels.evict(other.address(), other.bytes(), stream);
    if ((flags & protocol::Run::dirty) != 0)
      api.check(api.fill8(other.address(), 0, other.bytes(), stream), "evicting the L2 cache");
    if ((flags & protocol::Run::warm) != 0) forward(set, stream, expected);
    api.check(api.event_record(station_.events[0], stream), "cuEventRecord");
    if ((flags & protocol::Run::nothing) == 0) forward(set, stream, expected);
    api.check(api.event_record(station_.events[1], stream), "cuEventRecord");
    const bool late = api.event_query(station_.events[0]) == driver::success;
    api.check(api.event_synchronize(station_.events[1]), "the reference");
    float ms = 0;
    api.check(api.event_elapsed(&ms, station_.events[0], station_.events[1]), "cuEventElapsedTime");
    return {static_cast<double>(ms), late};
  }

 private:
  struct Graph {
    driver::GraphExecutable executable = nullptr;
    std::vector<torch::Tensor> outputs;
  };

  template <class S>
  [[nodiscard]] static constexpr bool has_handle() noexcept {
    return requires(const S& s) { s.native_handle(); };
  }
  template <class S>
  [[nodiscard]] static driver::Stream handle(const S& s) {
    if constexpr (has_handle<S>())
      return static_cast<driver::Stream>(s.native_handle());
    else
      return nullptr;
  }

  [[nodiscard]] c10::DeviceIndex index() const { return static_cast<c10::DeviceIndex>(station_.gpu.index()); }

  void forward(std::size_t set, driver::Stream stream, std::vector<torch::Tensor>& expected) {
    if (kind_ == BaselineKind::eager) {
      expected = buffers_.forward(set);
      return;
    }
    const DriverApi& api = station_.gpu.api();
    api.check(api.graph_launch(graphs_[set].executable, stream), "cuGraphLaunch");
    expected = graphs_[set].outputs;
  }

  /// Captures the pass over a set, once. Passes before it leave LibTorch's allocator with all the blocks that it needs
  /// on this stream, which nothing else uses, so the graph's memory stays its own.
  void capture(std::size_t set) {
    Graph& g = graphs_[set];
    if (g.executable != nullptr) return;
    const DriverApi& api = station_.gpu.api();
    const c10::impl::VirtualGuardImpl guard(c10::DeviceType::CUDA);
    const c10::Stream before = guard.exchangeStream(*stream_);
    driver::Graph graph = nullptr;
    try {
      for (int i = 0; i < 2; ++i) g.outputs = buffers_.forward(set);
      g.outputs.clear();
      api.check(api.synchronize(), "the reference");
      const driver::Stream stream = handle(*stream_);
      api.check(api.begin_capture(stream, 2), "cuStreamBeginCapture");
      g.outputs = buffers_.forward(set);
      api.check(api.end_capture(stream, &graph), "cuStreamEndCapture");
    } catch (...) {
      static_cast<void>(api.end_capture(handle(*stream_), &graph));
      static_cast<void>(guard.exchangeStream(before));
      throw;
    }
    static_cast<void>(guard.exchangeStream(before));
    api.check(api.graph_instantiate(&g.executable, graph, 0), "cuGraphInstantiate");
    static_cast<void>(api.graph_destroy(graph));
  }

  const Station& station_;
  const TaskBuffers& buffers_;
  BaselineKind kind_;
  tasks::Tf32 tf32_;
  std::optional<c10::Stream> stream_;
  std::vector<Graph> graphs_;
};

}  // namespace kevin::cuda

#endif  // KEVIN_EVAL_CUDA_BASELINE_HPP
