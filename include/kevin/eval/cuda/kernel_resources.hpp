#ifndef KEVIN_EVAL_CUDA_KERNEL_RESOURCES_HPP
#define KEVIN_EVAL_CUDA_KERNEL_RESOURCES_HPP

#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kevin/eval/cuda/diagnostics.hpp"

namespace kevin::cuda {

/// What the assembler says that a kernel needs.
struct KernelResources {
  std::string name;           ///< as in the module, mangled
  int registers = 0;          ///< of each thread
  int spill_store_bytes = 0;  ///< of each thread, to local memory
  int spill_load_bytes = 0;
  int stack_bytes = 0;   ///< of each thread
  int shared_bytes = 0;  ///< static shared memory of each block
  friend bool operator==(const KernelResources&, const KernelResources&) = default;
};

namespace detail {

[[nodiscard]] inline int bounded_int(std::size_t n) {
  return static_cast<int>(std::min<std::size_t>(n, std::numeric_limits<int>::max()));
}

}  // namespace detail

/// Reads what `-Xptxas=-v` adds to NVRTC's log. Informative only: a source that tries hard can put such lines there.
[[nodiscard]] inline std::vector<KernelResources> kernel_resources(std::string_view log) {
  constexpr std::size_t max_kernels = 256, max_name = 1024;
  std::vector<KernelResources> all;
  bool entry = false, properties = false;  // whether the lines that follow are of the last entry
  eval::detail::for_each_line(log, [&](std::string_view line) {
    using detail::take;
    if (!take(line, "ptxas")) return;
    if (line.starts_with(" info ")) {
      line.remove_prefix(std::min(line.size(), line.find(": ")));
      if (!take(line, ": ")) return;
      if (take(line, "Compiling entry function '")) {
        const auto name = line.substr(0, line.find('\''));
        const bool plain = !name.empty() && name.size() <= max_name &&
                           std::all_of(name.begin(), name.end(), [](char c) { return c > ' ' && c < 0x7F; });
        entry = plain && all.size() < max_kernels;
        properties = false;
        if (entry) all.push_back({std::string(name), 0, 0, 0, 0, 0});
      } else if (take(line, "Function properties for ")) {
        properties = entry && line == all.back().name;
      } else if (entry && take(line, "Used ")) {
        while (!line.empty()) {
          std::string_view part = line.substr(0, line.find(", "));
          line.remove_prefix(std::min(line.size(), part.size() + 2));
          const auto number = detail::take_number(part);
          if (!number) continue;
          if (part == " registers") all.back().registers = detail::bounded_int(*number);
          if (part == " bytes smem") all.back().shared_bytes = detail::bounded_int(*number);
        }
        entry = false;  // whatever follows belongs to functions that it calls, or to the next
      }
      return;
    }
    if (!properties) return;
    // "ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads"
    line.remove_prefix(std::min(line.size(), line.find_first_not_of(" .")));
    const auto field = [&](std::string_view words) -> std::optional<std::size_t> {
      const auto number = detail::take_number(line);
      return number && take(line, words) ? number : std::nullopt;
    };
    const auto stack = field(" bytes stack frame, ");
    const auto stores = stack ? field(" bytes spill stores, ") : std::nullopt;
    const auto loads = stores ? field(" bytes spill loads") : std::nullopt;
    if (!loads) return;
    all.back().stack_bytes = detail::bounded_int(*stack);
    all.back().spill_store_bytes = detail::bounded_int(*stores);
    all.back().spill_load_bytes = detail::bounded_int(*loads);
    properties = false;
  });
  return all;
}

/// Advice of the assembler ("Potential Performance Loss: ..."), a line each, at most `limit` bytes.
[[nodiscard]] inline std::string assembler_remarks(std::string_view log, std::size_t limit) {
  std::vector<std::string> lines;
  eval::detail::for_each_line(log, [&](std::string_view line) {
    using detail::take;
    if (lines.size() >= 8 || !take(line, "ptxas ")) return;
    const bool info = line.starts_with("info ");
    if (!info && !line.starts_with("warning ")) return;
    line.remove_prefix(std::min(line.size(), line.find(": ")));
    if (!take(line, ": ") || (info && !line.starts_with("(C"))) return;
    std::string text = "ptxas: " + eval::detail::message_text(line) + '\n';
    if (std::find(lines.begin(), lines.end(), text) == lines.end()) lines.push_back(std::move(text));
  });
  return eval::detail::join(lines, limit);
}

}  // namespace kevin::cuda

#endif  // KEVIN_EVAL_CUDA_KERNEL_RESOURCES_HPP
