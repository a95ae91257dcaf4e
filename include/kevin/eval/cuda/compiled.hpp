#ifndef KEVIN_EVAL_CUDA_COMPILED_HPP
#define KEVIN_EVAL_CUDA_COMPILED_HPP

#include <array>
#include <cstddef>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "kevin/eval/cuda/kernel_resources.hpp"

namespace kevin::cuda {

/// What became of one source.
struct Compiled {
  std::string cubin;  ///< machine code; empty when it failed or the architecture is a virtual one ("compute_90")
  std::string ptx;    ///< empty when it failed
  /// "" or why it failed: "syntax", "missing_plan", "timeout", "memory", "too_large", "compiler_crash".
  std::string reason;
  std::string diagnostics;               ///< for the agent, when it failed; see compiler_findings()
  std::string remarks;                   ///< the assembler's advice, when it did not fail; mostly empty
  std::vector<KernelResources> kernels;  ///< informative; empty for virtual architectures
  double milliseconds = 0;               ///< spent compiling; 0 when cached
  bool cached = false;                   ///< found in the cache, or another thread was compiling the very same
};

/// A Compiled as one string: the sizes of its parts, then the parts. Without time and `cached`.
[[nodiscard]] inline std::string encode_compiled(const Compiled& c) {
  std::string kernels;
  for (const KernelResources& k : c.kernels) {
    kernels += k.name;
    for (const int n : {k.registers, k.spill_store_bytes, k.spill_load_bytes, k.stack_bytes, k.shared_bytes})
      kernels += ' ' + std::to_string(n);
    kernels += '\n';
  }
  const std::array<const std::string*, 6> parts{&c.reason, &c.diagnostics, &c.remarks, &kernels, &c.cubin, &c.ptx};
  std::string out;
  for (const std::string* part : parts) out += std::to_string(part->size()) + ' ';
  out += '\n';
  for (const std::string* part : parts) out += *part;
  return out;
}

/// The way back; nullopt for what encode_compiled() did not make.
[[nodiscard]] inline std::optional<Compiled> decode_compiled(const std::string& text) {
  const auto end = text.find('\n');
  if (end == std::string::npos) return std::nullopt;
  std::istringstream numbers(text.substr(0, end));
  std::array<std::string, 6> parts;
  std::size_t at = end + 1;
  for (std::string& part : parts) {
    std::size_t size = 0;
    if (!(numbers >> size) || size > text.size() - at) return std::nullopt;
    part = text.substr(at, size);
    at += size;
  }
  if (at != text.size()) return std::nullopt;
  Compiled c;
  std::istringstream kernels(parts[3]);
  for (KernelResources k; kernels >> k.name >> k.registers >> k.spill_store_bytes >> k.spill_load_bytes >>
                          k.stack_bytes >> k.shared_bytes;)
    c.kernels.push_back(k);
  c.reason = std::move(parts[0]);
  c.diagnostics = std::move(parts[1]);
  c.remarks = std::move(parts[2]);
  c.cubin = std::move(parts[4]);
  c.ptx = std::move(parts[5]);
  c.cached = true;
  return c;
}

}  // namespace kevin::cuda

#endif  // KEVIN_EVAL_CUDA_COMPILED_HPP
