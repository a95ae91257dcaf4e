#ifndef KEVIN_EVAL_CUDA_RUNNER_PROGRAM_SOURCE_HPP
#define KEVIN_EVAL_CUDA_RUNNER_PROGRAM_SOURCE_HPP

#include <string_view>

namespace kevin::cuda::detail {

/// The part of the runner's program (runner_source.hpp) that takes a launch plan, as encode_program() wrote it, and
/// readies it: scratch memory, tensor maps, arguments for every set of buffers, kernels and their attributes.
inline constexpr std::string_view runner_program_source = R"runner(
struct Reader {
  const unsigned char* at;
  std::size_t left;
  void take(void* to, std::size_t n) {
    if (n > left) fail(EINVAL, at_function, 0, failed);
    std::memcpy(to, at, n);
    at += n;
    left -= n;
  }
  template <class T>
  T get() {
    T value;
    take(&value, sizeof value);
    return value;
  }
};

struct MapSpec { u32 type, rank, swizzle, buffer; std::int64_t offset; u64 size[5], stride[5]; u32 box[5], element_stride[5]; };

u64 address_of(std::size_t set, u32 buffer, std::int64_t offset) {
  if (buffer < arguments) return mapped.at(set * arguments + buffer).start + static_cast<u64>(offset);
  return scratch.at(buffer - arguments).start + static_cast<u64>(offset);
}

// Layout: {launches, scratches, maps, 0}, scratch sizes, maps, then each launch.
void take_program() {
  forget_program();
  Reader in{mailbox, mailbox_bytes};
  const u32 count = in.get<u32>(), scratches = in.get<u32>(), maps = in.get<u32>();
  in.get<u32>();
  if (module == nullptr || count == 0 || count > 64 || scratches > 16 || maps > 32) fail(EINVAL, at_function, 0, failed);
  for (u32 i = 0; i < scratches; ++i) {
    const u64 bytes = in.get<u64>();
    // At the end of pages of its own, so that nothing of a neighbour is in reach; the driver gives clean pages.
    const u64 pages = (bytes + guard - 1) / guard * guard;
    const AllocationProperties properties{1, 0, {1, device}, nullptr, {}};
    u64 handle = 0;
    if (const int r = cuMemCreate(&handle, pages, &properties, 0)) fail(r, at_scratch, i);
    scratch.push_back(map(handle, pages, (pages - bytes) / 256 * 256, true, at_scratch, i));
  }
  std::vector<MapSpec> specs;
  for (u32 i = 0; i < maps; ++i) specs.push_back(in.get<MapSpec>());
  std::vector<std::vector<TensorMapBytes>> encoded(sets, std::vector<TensorMapBytes>(maps));
  for (std::size_t s = 0; s < sets; ++s) {
    for (u32 i = 0; i < maps; ++i) {
      const MapSpec& m = specs[i];
      if (cuTensorMapEncodeTiled == nullptr) fail(801, at_tensor_map, i);
      const int r = cuTensorMapEncodeTiled(&encoded[s][i], static_cast<int>(m.type), m.rank,
                                           reinterpret_cast<void*>(address_of(s, m.buffer, m.offset)), m.size, m.stride + 1,
                                           m.box, m.element_stride, 0, static_cast<int>(m.swizzle), 0, 0);
      if (r != 0) fail(r, at_tensor_map, i);
    }
  }
  std::vector<Figures> figures;
  for (u32 i = 0; i < count; ++i) {
    Launch l{};
    in.take(l.config.grid, 12);
    in.take(l.config.block, 12);
    u32 cluster[3];
    in.take(cluster, 12);
    l.config.shared = in.get<u32>();
    const u32 cooperative = in.get<u32>();
    l.bytes = in.get<u32>();
    const u32 relocations = in.get<u32>(), map_relocations = in.get<u32>(), name_bytes = in.get<u32>(), starts = in.get<u32>();
    if (l.bytes > 65536 || relocations > 8192 || map_relocations > 1024 || name_bytes > 4096 || starts > 64) fail(EINVAL, at_function, i, failed);
    std::string name(name_bytes, '\0');
    in.take(name.data(), name_bytes);
    std::vector<TensorMapBytes> plain(l.bytes / sizeof(TensorMapBytes) + 33);  // room behind, should a size be wrong
    in.take(plain.data(), l.bytes);
    l.arguments.assign(sets, plain);
    l.pointers.resize(sets);
    std::vector<u32> at(starts);
    for (u32& a : at) a = in.get<u32>();
    for (u32 k = 0; k < relocations; ++k) {
      const u32 at = in.get<u32>(), buffer = in.get<u32>();
      const auto offset = in.get<std::int64_t>();
      if (at + 8 > l.bytes) fail(EINVAL, at_function, i, failed);
      for (std::size_t s = 0; s < sets; ++s) {
        const u64 address = address_of(s, buffer, offset);
        std::memcpy(reinterpret_cast<unsigned char*>(l.arguments[s].data()) + at, &address, 8);
      }
    }
    for (u32 k = 0; k < map_relocations; ++k) {
      const u32 at = in.get<u32>(), map = in.get<u32>();
      if (at + 128 > l.bytes || map >= maps) fail(EINVAL, at_function, i, failed);
      for (std::size_t s = 0; s < sets; ++s)
        std::memcpy(reinterpret_cast<unsigned char*>(l.arguments[s].data()) + at, &encoded[s][map], 128);
    }
    if (const int r = cuModuleGetFunction(&l.function, module, name.c_str())) fail(r, at_function, i);
    if (l.config.shared > 48 * 1024) {
      if (const int r = cuFuncSetAttribute(l.function, 8, static_cast<int>(l.config.shared))) fail(r, at_function, i);
    }
    // The driver knows the sizes; what was written down must be what the kernel takes.
    for (u32 k = 0; cuFuncGetParamInfo != nullptr && k <= starts; ++k) {
      std::size_t offset = 0, size = 0;
      const bool has = cuFuncGetParamInfo(l.function, k, &offset, &size) == 0;
      if (has != (k < starts) || (has && at[k] + size > l.bytes)) fail(1, at_function, i);
    }
    for (std::size_t s = 0; s < sets; ++s)
      for (const u32 a : at) l.pointers[s].push_back(reinterpret_cast<unsigned char*>(l.arguments[s].data()) + a);
    l.config.stream = stream;
    if (cluster[0] * cluster[1] * cluster[2] > 1) {
      l.attributes[l.config.count].id = 4;
      std::memcpy(l.attributes[l.config.count++].value.cluster, cluster, 12);
    }
    if (cooperative != 0) {
      l.attributes[l.config.count].id = 2;
      l.attributes[l.config.count++].value.cooperative = 1;
    }
    Figures f{};
    cuFuncGetAttribute(&f.registers, 4, l.function);
    cuFuncGetAttribute(&f.local_bytes, 3, l.function);
    cuFuncGetAttribute(&f.static_shared, 1, l.function);
    cuOccupancy(&f.blocks, l.function, static_cast<int>(l.config.block[0] * l.config.block[1] * l.config.block[2]), l.config.shared);
    figures.push_back(f);
    launches.push_back(std::move(l));
  }
  for (Launch& l : launches) l.config.attributes = l.attributes;
  graphs.assign(sets, nullptr);
  std::memcpy(mailbox, figures.data(), figures.size() * sizeof(Figures));
}

)runner";

}  // namespace kevin::cuda::detail

#endif  // KEVIN_EVAL_CUDA_RUNNER_PROGRAM_SOURCE_HPP
