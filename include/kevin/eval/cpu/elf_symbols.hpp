#ifndef KEVIN_EVAL_CPU_ELF_SYMBOLS_HPP
#define KEVIN_EVAL_CPU_ELF_SYMBOLS_HPP

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <elf.h>

namespace kevin::cpu {

/// One symbol of an object file.
struct ElfSymbol {
  std::string_view name;
  bool defined;
  bool callable;  ///< a function, or of no stated type
  bool visible;   ///< global or weak, and not hidden
};

namespace detail {

/// Reads a T at `offset` when all of it lies within `bytes`.
template <class T>
[[nodiscard]] std::optional<T> elf_read(std::string_view bytes, std::uint64_t offset) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

}  // namespace detail

/// The symbols of a 64-bit little-endian ELF file: of the dynamic table (`dynamic`) or of the full one. nullopt when
/// the file is malformed: it may come from a hostile source, every offset is checked. Names point into `bytes`.
[[nodiscard]] inline std::optional<std::vector<ElfSymbol>> elf_symbols(std::string_view bytes, bool dynamic) {
  const auto header = detail::elf_read<Elf64_Ehdr>(bytes, 0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_ident[EI_CLASS] != ELFCLASS64 ||
      header->e_ident[EI_DATA] != ELFDATA2LSB || header->e_shentsize != sizeof(Elf64_Shdr)) {
    return std::nullopt;
  }
  const auto section = [&](std::uint64_t index) -> std::optional<Elf64_Shdr> {
    if (header->e_shoff > bytes.size()) return std::nullopt;
    return detail::elf_read<Elf64_Shdr>(bytes, header->e_shoff + index * sizeof(Elf64_Shdr));
  };
  std::uint64_t count = header->e_shnum;
  if (count == 0) {  // more than 65,279 sections: the number stands in the first one
    const auto first = section(0);
    if (!first) return std::nullopt;
    count = first->sh_size;
  }
  if (count > bytes.size() / sizeof(Elf64_Shdr)) return std::nullopt;
  std::vector<ElfSymbol> symbols;
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto table = section(i);
    if (!table) return std::nullopt;
    if (table->sh_type != static_cast<Elf64_Word>(dynamic ? SHT_DYNSYM : SHT_SYMTAB)) continue;
    const auto names = section(table->sh_link);
    if (!names || names->sh_offset > bytes.size() || names->sh_size > bytes.size() - names->sh_offset ||
        table->sh_offset > bytes.size() || table->sh_size > bytes.size() - table->sh_offset) {
      return std::nullopt;
    }
    const std::string_view strings = bytes.substr(names->sh_offset, names->sh_size);
    for (std::uint64_t at = 0; at + sizeof(Elf64_Sym) <= table->sh_size; at += sizeof(Elf64_Sym)) {
      const auto symbol = detail::elf_read<Elf64_Sym>(bytes, table->sh_offset + at);
      if (!symbol || symbol->st_name >= strings.size()) return std::nullopt;
      const std::string_view rest = strings.substr(symbol->st_name);
      const auto end = rest.find('\0');
      if (end == std::string_view::npos) return std::nullopt;
      if (end == 0) continue;
      const unsigned char type = ELF64_ST_TYPE(symbol->st_info);
      const unsigned char binding = ELF64_ST_BIND(symbol->st_info);
      const unsigned char visibility = ELF64_ST_VISIBILITY(symbol->st_other);
      symbols.push_back({rest.substr(0, end), symbol->st_shndx != SHN_UNDEF,
                         type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_NOTYPE,
                         (binding == STB_GLOBAL || binding == STB_WEAK) &&
                             (visibility == STV_DEFAULT || visibility == STV_PROTECTED)});
    }
  }
  return symbols;
}

/// Whether a shared object lets `name` be found by dlsym as something that can be called.
[[nodiscard]] inline bool exports_function(std::string_view object, std::string_view name) {
  const auto symbols = elf_symbols(object, true);
  if (!symbols) return false;
  for (const ElfSymbol& s : *symbols) {
    if (s.name == name && s.defined && s.callable && s.visible) return true;
  }
  return false;
}

}  // namespace kevin::cpu

#endif  // KEVIN_EVAL_CPU_ELF_SYMBOLS_HPP
