#ifndef KEVIN_EVAL_CUDA_PLAN_HEADER_HPP
#define KEVIN_EVAL_CUDA_PLAN_HEADER_HPP

#include <string>
#include <string_view>

#include "kevin/refine/signature.hpp"
#include "kevin/refine/task.hpp"

namespace kevin::cuda {

/// What is included before every candidate: the means by which its kevin_plan says what to launch.
///
///     __device__ void kevin_plan(const float* x, float* out) {
///       kevin::launch<relu>(4096, 256)(x, out, 1 << 20);
///     }
///
/// reads like a launch in host code, and is checked by the compiler against the kernel's own signature. It is run once,
/// by one device thread, on addresses that stand for the buffers and cannot be read or written, so that all work is
/// done where the clock sees it. Kernels are named by `tag`: a constant for each launched kernel, initialised with the
/// kernel's address, so that the PTX tells which kernel belongs to which tag, template instances included; the runner
/// overwrites it with a number before the plan runs. Structures and limits are those of plan.hpp.
inline constexpr std::string_view plan_header = R"cuda(#ifndef KEVIN_CUH
#define KEVIN_CUH
namespace kevin {

enum class type : unsigned { u8 = 0, u16 = 1, u32 = 2, i32 = 3, u64 = 4, i64 = 5, f16 = 6, f32 = 7, f64 = 8, bf16 = 9 };
enum class swizzle : unsigned { none = 0, b32 = 1, b64 = 2, b128 = 3 };

// A TMA descriptor; pass it to a kernel by value as `const __grid_constant__ kevin::tensor_map m` and use its address.
struct alignas(64) tensor_map {
  unsigned long long opaque[16];
};

namespace detail {
struct Launch {
  unsigned kernel;
  unsigned grid[3];
  unsigned block[3];
  unsigned cluster[3];
  unsigned shared;
  unsigned cooperative;
  unsigned offset;
  unsigned bytes;
  unsigned arguments;
  unsigned short at[64];
};
struct Map {
  unsigned long long address;
  unsigned type, rank, swizzle, unused;
  unsigned long long size[5];
  unsigned long long stride[5];
  unsigned box[5];
  unsigned element_stride[5];
};
struct Book {
  unsigned long long tag;
  unsigned launches, scratches, maps, used;
  unsigned buffers, overflow;
  unsigned long long scratch[16];
  Launch launch[64];
  Map map[32];
  alignas(128) unsigned char bytes[32768];
};
inline __device__ Book*& book() {
  static __shared__ Book* here;
  return here;
}
template <auto K>
__constant__ decltype(K) tag = K;

inline __device__ __noinline__ Launch* record(unsigned kernel, dim3 grid, dim3 block, unsigned shared, unsigned bytes,
                                              unsigned arguments) {
  Book& b = *book();
  if (b.launches == 64 || b.used + bytes > sizeof b.bytes || arguments > 64) {
    b.overflow = 1;
    return nullptr;
  }
  Launch& l = b.launch[b.launches++];
  l.kernel = kernel;
  l.grid[0] = grid.x, l.grid[1] = grid.y, l.grid[2] = grid.z;
  l.block[0] = block.x, l.block[1] = block.y, l.block[2] = block.z;
  l.cluster[0] = l.cluster[1] = l.cluster[2] = 1;
  l.shared = shared;
  l.cooperative = 0;
  l.offset = b.used;
  l.bytes = bytes;
  l.arguments = arguments;
  b.used += (bytes + 127) / 128 * 128;
  return &l;
}
inline __device__ __noinline__ unsigned long long take_scratch(unsigned long long bytes) {
  Book& b = *book();
  if (b.scratches == 16) {
    b.overflow = 2;
    return 0;
  }
  b.scratch[b.scratches] = bytes;
  return b.tag + ((unsigned long long)(b.buffers + b.scratches++) << 40);
}
template <class... P>
constexpr unsigned packed_size() {
  unsigned at = 0;
  ((at = (at + unsigned(alignof(P)) - 1) / unsigned(alignof(P)) * unsigned(alignof(P)) + unsigned(sizeof(P))), ...);
  return at;
}
template <auto K>
struct Launcher;
}  // namespace detail

// Memory for intermediate results, the same for all launches; its content is garbage before each run of the plan.
template <class T>
inline __device__ T* scratch(unsigned long long count) {
  return reinterpret_cast<T*>(detail::take_scratch(count * sizeof(T)));
}

// What a launch may be told besides grid, block and shared memory.
struct options {
  unsigned shared = 0;  // bytes of dynamic shared memory
  dim3 cluster = dim3(1, 1, 1);
  bool cooperative = false;
};

template <auto K>
inline __device__ detail::Launcher<K> launch(dim3 grid, dim3 block, unsigned shared = 0) {
  options o;
  o.shared = shared;
  return {grid, block, o};
}
template <auto K>
inline __device__ detail::Launcher<K> launch(dim3 grid, dim3 block, options o) {
  return {grid, block, o};
}

namespace detail {
template <class... P, void (*K)(P...)>
struct Launcher<K> {
  dim3 grid, block;
  options o;
  __device__ void operator()(P... p) const {
    Launch* l = record(unsigned(*reinterpret_cast<const volatile unsigned long long*>(&tag<K>)), grid, block, o.shared,
                       packed_size<P...>(), sizeof...(P));
    if (l == nullptr) return;
    l->cluster[0] = o.cluster.x, l->cluster[1] = o.cluster.y, l->cluster[2] = o.cluster.z;
    l->cooperative = o.cooperative;
    unsigned char* to = book()->bytes + l->offset;
    unsigned at = 0, i = 0;
    ((at = (at + unsigned(alignof(P)) - 1) / unsigned(alignof(P)) * unsigned(alignof(P)), *reinterpret_cast<P*>(to + at) = p,
      l->at[i++] = (unsigned short)at, at += unsigned(sizeof(P))),
     ...);
  }
};
}  // namespace detail

// A descriptor for the copy engine (TMA) over `rank` extents, innermost first; strides in bytes, of extents 1 .. rank-1.
template <int rank>
inline __device__ tensor_map make_tensor_map(const void* address, type t, const unsigned long long (&size)[rank],
                                             const unsigned long long (&stride)[rank], const unsigned (&box)[rank],
                                             swizzle s = swizzle::none) {
  detail::Book& b = *detail::book();
  tensor_map m = {};
  if (b.maps == 32) {
    b.overflow = 3;
    return m;
  }
  detail::Map& r = b.map[b.maps];
  r.address = reinterpret_cast<unsigned long long>(address);
  r.type = unsigned(t), r.rank = rank, r.swizzle = unsigned(s);
  for (int i = 0; i < rank; ++i) r.size[i] = size[i], r.stride[i] = stride[i], r.box[i] = box[i], r.element_stride[i] = 1;
  m.opaque[0] = b.tag + (0xffULL << 40) + b.maps++;
  m.opaque[1] = ~b.tag;
  return m;
}

}  // namespace kevin
)cuda";

/// The text that stands before a candidate for `task`: plan_header, the headers of half types where the task has them,
/// the declaration of its kevin_plan, and the kernel by which the runner calls it.
[[nodiscard]] inline std::string plan_prelude(const Task& task) {
  std::string text(plan_header);
  std::string list;
  std::string names;
  bool half = false;
  bool bfloat = false;
  for (const KernelArgument& a : kernel_arguments(task, Backend::cuda)) {
    list += ", " + a.type + ' ' + a.name;
    names += (names.empty() ? "" : ", ") + a.name;
    half = half || a.type.find("__half") != std::string::npos;
    bfloat = bfloat || a.type.find("__nv_bfloat16") != std::string::npos;
  }
  if (half) text += "#include <cuda_fp16.h>\n";
  if (bfloat) text += "#include <cuda_bf16.h>\n";
  text += kernel_signature(task, Backend::cuda) + ";\n";
  text += "extern \"C\" __global__ void kevin_entry(kevin::detail::Book* kevin_book" + list + ") {\n" +
          "  kevin::detail::book() = kevin_book;\n  kevin_plan(" + names + ");\n}\n#endif\n";
  return text;
}

}  // namespace kevin::cuda

#endif  // KEVIN_EVAL_CUDA_PLAN_HEADER_HPP
