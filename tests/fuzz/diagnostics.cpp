// libFuzzer target: whatever a compiler or linker prints, what an agent is told is short, valid UTF-8 and visible.
#include "kevin/eval/cpu/diagnostics.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "kevin/eval/cpu/elf_symbols.hpp"
#include "kevin/eval/cpu/leading_headers.hpp"

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

  const std::string compiler = kevin::cpu::compiler_diagnostics(raw, source, limit);
  check_text(compiler, limit);
  check_paths(compiler, source);
  const std::string linker = kevin::cpu::linker_diagnostics(raw, limit);
  check_text(linker, limit);
  check_paths(linker, {});

  const auto headers = kevin::cpu::leading_headers(source);
  for (const auto& header : headers)
    require(header.find_first_of("/\"<> \n") == std::string::npos, "a header's name that is none\n");
  // The ELF reader looks at what an assembler made of hostile text.
  for (const bool dynamic : {false, true}) {
    if (const auto symbols = kevin::cpu::elf_symbols(input, dynamic)) {
      for (const auto& s : *symbols)
        require(s.name.data() >= input.data() && s.name.data() + s.name.size() <= input.data() + input.size(),
                "a name outside\n");
    }
  }
  static_cast<void>(kevin::cpu::exports_function(input, "kernel"));
  return 0;
}
