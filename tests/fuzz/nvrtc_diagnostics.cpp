// libFuzzer target: whatever NVRTC prints, what an agent is told is short, valid UTF-8 and visible; what is read of
// kernels and caches is bounded.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "kevin/eval/cuda/compiled.hpp"
#include "kevin/eval/cuda/diagnostics.hpp"
#include "kevin/eval/cuda/kernel_resources.hpp"
#include "kevin/eval/cuda/leading_includes.hpp"

namespace {

void require(bool condition, const char* what) {
  if (condition) return;
  std::fputs(what, stderr);
  std::abort();
}

void check_text(std::string_view text, std::size_t limit) {
  require(text.size() <= limit, "longer than its limit\n");
  while (!text.empty()) {
    const auto unit = kevin::eval::detail::first_utf8(text);
    require(unit.valid, "not UTF-8\n");
    require(unit.point == '\n' || !kevin::cpu::detail::invisible(unit.point), "an invisible character\n");
    text.remove_prefix(unit.length);
  }
}

/// A marker with a path in front may appear in what is quoted from the source, never in a message.
void check_paths(std::string_view text, std::string_view source) {
  constexpr std::string_view secret = "/secret/folder/";
  if (source.find(secret) == std::string_view::npos)
    require(text.find(secret) == std::string_view::npos, "a path of the host\n");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  if (input.size() < 2) return 0;
  const std::size_t limit = 8 * static_cast<unsigned char>(input[0]);
  const std::size_t half = input.find('\0', 1);
  const std::string_view raw = input.substr(1, half == std::string_view::npos ? input.size() : half - 1);
  const std::string_view source = half == std::string_view::npos ? std::string_view() : input.substr(half + 1);

  const auto findings = kevin::cuda::compiler_findings(raw, source, "__device__ void kevin_plan(float* x);\n", limit);
  check_text(findings.text, limit);
  check_paths(findings.text, source);
  require(!findings.missing_plan || raw.find("kevin_plan") != std::string_view::npos, "a plan that nobody misses\n");
  static_cast<void>(kevin::cuda::detail::plan_declaration(source));

  const std::string remarks = kevin::cuda::assembler_remarks(raw, limit);
  check_text(remarks, limit);
  check_paths(remarks, {});

  kevin::cuda::Compiled compiled;
  compiled.kernels = kevin::cuda::kernel_resources(raw);
  require(compiled.kernels.size() <= 256, "too many kernels\n");
  compiled.cubin = source;
  compiled.diagnostics = findings.text;
  const auto back = kevin::cuda::decode_compiled(kevin::cuda::encode_compiled(compiled));
  require(back && back->kernels == compiled.kernels && back->cubin == compiled.cubin, "not the same after the cache\n");
  static_cast<void>(kevin::cuda::decode_compiled(std::string(input)));

  const std::string includes = kevin::cuda::leading_includes(source, {});
  require(includes.empty(), "a header that does not exist\n");
  return 0;
}
