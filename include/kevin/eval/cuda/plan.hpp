#ifndef KEVIN_EVAL_CUDA_PLAN_HPP
#define KEVIN_EVAL_CUDA_PLAN_HPP

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace kevin::cuda {

/// What a candidate's kevin_plan wrote down (plan_header's structures, seen from the host). Everything in it is
/// hostile.
struct Book {
  static constexpr std::size_t max_launches = 64;
  static constexpr std::size_t max_scratches = 16;
  static constexpr std::size_t max_maps = 32;
  static constexpr std::size_t max_bytes = 32768;
  static constexpr std::size_t max_launch_bytes = 4096;  ///< of one launch's arguments

  struct Launch {
    std::uint32_t kernel;  ///< number of its tag, from 1
    std::array<std::uint32_t, 3> grid, block, cluster;
    std::uint32_t shared, cooperative, offset, bytes, arguments;
    std::array<std::uint16_t, 64> at;  ///< where each argument lies, from `offset`
  };
  struct Map {
    std::uint64_t address;
    std::uint32_t type, rank, swizzle, unused;
    std::array<std::uint64_t, 5> size, stride;
    std::array<std::uint32_t, 5> box, element_stride;
  };

  std::uint64_t tag;  ///< upper 16 bits of every stand-in address of this plan
  std::uint32_t launches, scratches, maps, used, buffers, overflow;
  std::array<std::uint64_t, max_scratches> scratch;  ///< bytes
  std::array<Launch, max_launches> launch;
  std::array<Map, max_maps> map;
  alignas(128) std::array<std::byte, max_bytes> bytes;
};

/// The address that stands for byte `offset` of buffer `index` while the plan runs. Nothing is mapped there. Buffers
/// are the task's arguments, then scratch memory in the order of asking. The middle of the low 40 bits is the buffer's
/// start, so that addresses before it are told from addresses past the end of another.
[[nodiscard]] constexpr std::uint64_t stand_in(std::uint64_t tag, std::size_t index, std::int64_t offset = 0) noexcept {
  return tag + (static_cast<std::uint64_t>(index) << 40U) + static_cast<std::uint64_t>(offset);
}

/// A place in a launch's arguments that receives an address once buffers are known.
struct Relocation {
  std::uint32_t at = 0;      ///< byte in PlannedLaunch::arguments
  std::uint32_t buffer = 0;  ///< argument of the task, then scratch
  std::int64_t offset = 0;   ///< bytes from the buffer's start
};

/// A TMA descriptor to be made once buffers are known (cuTensorMapEncodeTiled's arguments).
struct TensorMap {
  std::uint32_t type = 0, rank = 0, swizzle = 0;
  std::uint32_t buffer = 0;
  std::int64_t offset = 0;
  std::array<std::uint64_t, 5> size{}, stride{};  ///< stride[i]: bytes between neighbours along extent i, i >= 1
  std::array<std::uint32_t, 5> box{}, element_stride{};
};

/// A place in a launch's arguments that receives a TMA descriptor (128 bytes).
struct MapRelocation {
  std::uint32_t at = 0;
  std::uint32_t map = 0;  ///< index into LaunchPlan::maps
};

/// One launch, checked against what the device can do.
struct PlannedLaunch {
  std::string kernel;  ///< name of the entry function in the compiled module
  std::array<std::uint32_t, 3> grid{}, block{}, cluster{};
  std::uint32_t shared = 0;  ///< bytes of dynamic shared memory
  bool cooperative = false;
  std::vector<std::byte> arguments;
  std::vector<std::uint32_t> starts;  ///< where each argument lies in `arguments`
  std::vector<Relocation> relocations;
  std::vector<MapRelocation> maps;
};

/// What is launched for one run of a candidate, in order.
struct LaunchPlan {
  std::vector<PlannedLaunch> launches;
  std::vector<std::uint64_t> scratch;  ///< bytes of each
  std::vector<TensorMap> maps;
};

/// What a device can do, as far as a plan is concerned.
struct DeviceLimits {
  std::uint32_t block_threads = 1024;
  std::array<std::uint32_t, 3> block{1024, 1024, 64};
  std::array<std::uint32_t, 3> grid{2147483647, 65535, 65535};
  std::uint32_t shared = 232448;     ///< dynamic shared memory a block can opt in to, bytes
  std::uint32_t cluster_blocks = 8;  ///< portable cluster size; 1 = no clusters
  std::uint64_t scratch = 0;         ///< bytes that a plan may ask for in all
};

/// Why a plan cannot be launched, for the agent.
struct PlanFault {
  std::string text;
};

namespace detail {

[[nodiscard]] inline std::string extents(const std::array<std::uint32_t, 3>& v) {
  return '(' + std::to_string(v[0]) + ", " + std::to_string(v[1]) + ", " + std::to_string(v[2]) + ')';
}

/// Buffer and offset that a word stands for; nullopt: it is no stand-in address of this plan.
struct Place {
  std::size_t buffer;
  std::int64_t offset;
};
[[nodiscard]] inline std::optional<Place> place_of(std::uint64_t word, std::uint64_t tag) noexcept {
  constexpr std::uint64_t half = std::uint64_t{1} << 39U;
  const std::uint64_t relative = word - tag + half;  // wraps around for words before the tag
  if (relative >= std::uint64_t{256} << 40U) return std::nullopt;
  return Place{static_cast<std::size_t>(relative >> 40U),
               static_cast<std::int64_t>(relative & ((half << 1U) - 1)) - static_cast<std::int64_t>(half)};
}

}  // namespace detail

/// The kernels that a candidate launches, by the number of their tag (from 1): read from the PTX, where each tag is a
/// constant that is initialised with its kernel. `tags`: names of the constants.
struct TaggedKernels {
  std::vector<std::string> tags;
  std::vector<std::string> kernels;
  bool runtime = false;  ///< calls what the driver brings: malloc, printf, assert
};

/// Finds lines `.const .align 8 .u64 <tag> = <kernel>;` whose tag is an instance of kevin::detail::tag. Names are cut
/// from hostile text: only [A-Za-z0-9_$.] of at most 4096 characters, at most 256 of them.
[[nodiscard]] inline TaggedKernels tagged_kernels(std::string_view ptx) {
  TaggedKernels found;
  found.runtime = ptx.find(".extern .func") != std::string_view::npos;
  constexpr std::string_view begin = ".const .align 8 .u64 ";
  const auto plain = [](std::string_view name) {
    return !name.empty() && name.size() <= 4096 &&
           name.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_$.") ==
               std::string_view::npos;
  };
  for (std::size_t at = 0; at < ptx.size() && found.tags.size() < 256;) {
    std::size_t end = ptx.find('\n', at);
    if (end == std::string_view::npos) end = ptx.size();
    std::string_view line = ptx.substr(at, end - at);
    at = end + 1;
    if (!line.starts_with(begin) || !line.ends_with(';')) continue;
    line = line.substr(begin.size(), line.size() - begin.size() - 1);
    const auto equals = line.find(" = ");
    if (equals == std::string_view::npos) continue;
    const std::string_view tag = line.substr(0, equals);
    const std::string_view kernel = line.substr(equals + 3);
    if (tag.find("5kevin6detail3tagI") == std::string_view::npos || !plain(tag) || !plain(kernel)) continue;
    found.tags.emplace_back(tag);
    found.kernels.emplace_back(kernel);
  }
  return found;
}

/// Turns a book into a plan. `buffer_bytes` and `names`: of the task's arguments, in order. Every number is checked.
[[nodiscard]] inline std::variant<LaunchPlan, PlanFault> read_book(const Book& book, std::uint64_t tag,
                                                                   const std::vector<std::string>& kernels,
                                                                   std::span<const std::uint64_t> buffer_bytes,
                                                                   std::span<const std::string> names,
                                                                   const DeviceLimits& limits) {
  LaunchPlan plan;
  const auto fault = [](std::string text) { return PlanFault{std::move(text)}; };
  if (book.overflow == 2)
    return fault("kevin_plan asks for more than " + std::to_string(Book::max_scratches) + " scratch buffers");
  if (book.overflow == 3) return fault("kevin_plan makes more than " + std::to_string(Book::max_maps) + " tensor maps");
  if (book.overflow != 0)
    return fault("kevin_plan makes more than " + std::to_string(Book::max_launches) +
                 " launches, passes more than 64 arguments to one, or more than " + std::to_string(Book::max_bytes) +
                 " bytes of arguments in all");
  if (book.tag != tag || book.buffers != buffer_bytes.size() || book.launches > Book::max_launches ||
      book.scratches > Book::max_scratches || book.maps > Book::max_maps) {
    return fault("kevin_plan wrote to memory that is not its own");
  }
  if (book.launches == 0)
    return fault("kevin_plan launches nothing: call kevin::launch<kernel>(grid, block)(arguments...)");

  std::vector<std::uint64_t> bytes(buffer_bytes.begin(), buffer_bytes.end());
  const auto name_of = [&](std::size_t buffer) {
    return buffer < names.size() ? '`' + names[buffer] + '`'
                                 : "scratch buffer " + std::to_string(buffer - names.size());
  };
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < book.scratches; ++i) {
    const std::uint64_t size = book.scratch[i];
    if (size == 0) return fault("scratch buffer " + std::to_string(i) + " has size 0");
    if (size > limits.scratch || total > limits.scratch - size) {
      return fault("the scratch buffers need more than the " + std::to_string(limits.scratch >> 20U) +
                   " MiB that are allowed");
    }
    total += size;
    plan.scratch.push_back(size);
    bytes.push_back(size);
  }
  const auto inside = [&](const detail::Place& p) {
    return p.buffer < bytes.size() && p.offset >= 0 && static_cast<std::uint64_t>(p.offset) <= bytes[p.buffer];
  };

  for (std::size_t i = 0; i < book.maps; ++i) {
    const Book::Map& m = book.map[i];
    const std::string what = "tensor map " + std::to_string(i) + ": ";
    const auto place = detail::place_of(m.address, tag);
    if (!place || !inside(*place)) return fault(what + "its address does not lie in an argument or a scratch buffer");
    if (m.rank < 1 || m.rank > 5 || m.type > 9 || m.swizzle > 3)
      return fault(what + "rank, type or swizzle is not one that exists");
    TensorMap map{m.type,   m.rank, m.swizzle,       static_cast<std::uint32_t>(place->buffer), place->offset, m.size,
                  m.stride, m.box,  m.element_stride};
    plan.maps.push_back(map);
  }

  for (std::size_t i = 0; i < book.launches; ++i) {
    const Book::Launch& l = book.launch[i];
    const std::string what = "launch " + std::to_string(i + 1) + " of kevin_plan: ";
    if (l.kernel < 1 || l.kernel > kernels.size()) return fault(what + "its kernel is not known");
    if (l.bytes > Book::max_launch_bytes)
      return fault(what + "its arguments have " + std::to_string(l.bytes) + " bytes, at most " +
                   std::to_string(Book::max_launch_bytes) + " can be passed");
    if (l.offset > book.bytes.size() || book.bytes.size() - l.offset < l.bytes)
      return fault("kevin_plan wrote to memory that is not its own");
    std::uint64_t threads = 1;
    for (std::size_t k = 0; k < 3; ++k) {
      if (l.grid[k] < 1 || l.grid[k] > limits.grid[k])
        return fault(what + "the grid " + detail::extents(l.grid) + " is not between (1, 1, 1) and " +
                     detail::extents(limits.grid));
      if (l.block[k] < 1 || l.block[k] > limits.block[k])
        return fault(what + "the block " + detail::extents(l.block) + " is not between (1, 1, 1) and " +
                     detail::extents(limits.block));
      threads *= l.block[k];
    }
    if (threads > limits.block_threads)
      return fault(what + "a block of " + std::to_string(threads) + " threads; the device allows " +
                   std::to_string(limits.block_threads));
    std::uint64_t cluster = 1;
    for (std::size_t k = 0; k < 3; ++k) {
      if (l.cluster[k] < 1 || l.cluster[k] > limits.cluster_blocks || l.grid[k] % l.cluster[k] != 0)
        return fault(what + "the grid " + detail::extents(l.grid) + " cannot be divided into clusters of " +
                     detail::extents(l.cluster) + " blocks");
      cluster *= l.cluster[k];
    }
    if (cluster > limits.cluster_blocks)
      return fault(what + "a cluster of " + std::to_string(cluster) + " blocks; at most " +
                   std::to_string(limits.cluster_blocks) + " are portable");
    if (l.shared > limits.shared)
      return fault(what + std::to_string(l.shared) + " bytes of dynamic shared memory; the device allows " +
                   std::to_string(limits.shared));

    PlannedLaunch launch{kernels[l.kernel - 1], l.grid, l.block, l.cluster, l.shared,
                         l.cooperative != 0,    {},     {},      {},        {}};
    const std::byte* from = book.bytes.data() + l.offset;
    launch.arguments.assign(from, from + l.bytes);
    if (l.arguments > l.at.size()) return fault("kevin_plan wrote to memory that is not its own");
    for (std::uint32_t k = 0; k < l.arguments; ++k) {
      if (l.at[k] > l.bytes) return fault("kevin_plan wrote to memory that is not its own");
      launch.starts.push_back(l.at[k]);
    }
    for (std::uint32_t at = 0; at + 8 <= l.bytes; at += 8) {
      std::uint64_t word = 0;
      std::memcpy(&word, from + at, 8);
      const auto place = detail::place_of(word, tag);
      if (!place) continue;
      if (place->buffer == 255 && place->offset >= 0 && at % 64 == 0 && at + 128 <= l.bytes) {
        if (static_cast<std::uint64_t>(place->offset) >= plan.maps.size())
          return fault(what + "an argument is a tensor map that was not made");
        launch.maps.push_back({at, static_cast<std::uint32_t>(place->offset)});
        at += 120;
        continue;
      }
      if (!inside(*place)) {
        const bool known = place->buffer < bytes.size();
        return fault(what +
                     (known ? "an address " + std::string(place->offset < 0 ? "before the start" : "past the end") +
                                  " of " + name_of(place->buffer)
                            : std::string("an address that belongs to no buffer")));
      }
      launch.relocations.push_back({at, static_cast<std::uint32_t>(place->buffer), place->offset});
    }
    plan.launches.push_back(std::move(launch));
  }
  return plan;
}

}  // namespace kevin::cuda

#endif  // KEVIN_EVAL_CUDA_PLAN_HPP
