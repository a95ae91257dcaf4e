#ifndef KEVIN_TASKS_ARCHIVE_CHECK_HPP
#define KEVIN_TASKS_ARCHIVE_CHECK_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

/// Whether a zip archive is whole. LibTorch's reader leaves checksums unread, and dies of some damages that they show.
namespace kevin::tasks::detail {

/// CRC-32 as zip has it: polynomial 0xedb88320, reflected.
[[nodiscard]] constexpr std::uint32_t crc32(std::string_view bytes) noexcept {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < table.size(); ++i) {
    std::uint32_t c = i;
    for (int bit = 0; bit < 8; ++bit) c = (c & 1U) != 0 ? 0xedb88320U ^ (c >> 1U) : c >> 1U;
    table[i] = c;
  }
  std::uint32_t crc = 0xffffffffU;
  for (const char b : bytes) crc = table[(crc ^ static_cast<unsigned char>(b)) & 0xffU] ^ (crc >> 8U);
  return ~crc;
}

/// Numbers of a zip, little-endian; beyond the end there are none.
class ZipBytes {
 public:
  explicit ZipBytes(std::string_view bytes) : bytes_(bytes) {}

  [[nodiscard]] bool holds(std::uint64_t at, std::uint64_t count) const noexcept {
    return at <= bytes_.size() && count <= bytes_.size() - at;
  }
  [[nodiscard]] std::uint64_t number(std::uint64_t at, std::size_t bytes) const noexcept {
    std::uint64_t n = 0;
    for (std::size_t i = bytes; holds(at, bytes) && i-- > 0;) n = n << 8U | static_cast<unsigned char>(bytes_[at + i]);
    return n;
  }
  [[nodiscard]] std::string_view part(std::uint64_t at, std::uint64_t count) const {
    return holds(at, count) ? bytes_.substr(at, count) : std::string_view();
  }
  /// Where the record that ends the archive begins; bytes_.size(): nowhere.
  [[nodiscard]] std::uint64_t end_record() const noexcept {
    for (std::uint64_t back = 22; back <= bytes_.size() && back <= 22 + 0xffff; ++back) {
      if (number(bytes_.size() - back, 4) == 0x06054b50U) return bytes_.size() - back;
    }
    return bytes_.size();
  }

 private:
  std::string_view bytes_;
};

/// What is wrong with a zip archive; empty: each entry lies within it, and each that is not compressed has the checksum
/// that its header lists. (APPNOTE.TXT 6.3.9, sections 4.3.7 to 4.5.3.)
[[nodiscard]] inline std::string zip_damage(std::string_view bytes) {
  constexpr std::uint64_t in_extra = 0xffffffffU;
  const ZipBytes zip(bytes);
  const std::uint64_t end = zip.end_record();
  if (end == bytes.size()) return "is no zip archive, or its end is missing";
  std::uint64_t count = zip.number(end + 10, 2);
  std::uint64_t at = zip.number(end + 16, 4);
  if (count == 0xffffU || at == in_extra) {
    const std::uint64_t wide =
        end < 20 || zip.number(end - 20, 4) != 0x07064b50U ? bytes.size() : zip.number(end - 12, 8);
    if (!zip.holds(wide, 56) || zip.number(wide, 4) != 0x06064b50U) return "has a damaged directory";
    count = zip.number(wide + 32, 8);
    at = zip.number(wide + 48, 8);
  }
  for (std::uint64_t i = 0; i < count; ++i) {
    if (!zip.holds(at, 46) || zip.number(at, 4) != 0x02014b50U) return "has a damaged directory";
    const std::uint64_t name_bytes = zip.number(at + 28, 2);
    const std::uint64_t extra_bytes = zip.number(at + 30, 2);
    const std::uint64_t rest_bytes = zip.number(at + 32, 2);
    std::array<std::uint64_t, 3> fields = {zip.number(at + 24, 4), zip.number(at + 20, 4), zip.number(at + 42, 4)};
    std::uint64_t extra = at + 46 + name_bytes;
    const std::uint64_t extra_end = extra + extra_bytes;
    while (extra + 4 <= extra_end && zip.number(extra, 2) != 1) extra += 4 + zip.number(extra + 2, 2);
    extra += 4;
    for (std::uint64_t& field : fields) {  // size, size in the archive, place of the header
      if (field != in_extra) continue;
      if (extra + 8 > extra_end) return "has a damaged directory";
      field = zip.number(extra, 8);
      extra += 8;
    }
    const std::uint64_t header = fields[2];
    if (!zip.holds(header, 30) || zip.number(header, 4) != 0x04034b50U) return "has an entry that lies nowhere";
    const std::uint64_t start = header + 30 + zip.number(header + 26, 2) + zip.number(header + 28, 2);
    if (!zip.holds(start, fields[1])) return "has an entry that lies nowhere";
    const bool stored = zip.number(at + 10, 2) == 0;
    if (stored && (fields[0] != fields[1] || crc32(zip.part(start, fields[1])) != zip.number(at + 16, 4)))
      return "has an entry whose content is not what its checksum says: the file is damaged";
    at = extra_end + rest_bytes;
  }
  return {};
}

}  // namespace kevin::tasks::detail

#endif  // KEVIN_TASKS_ARCHIVE_CHECK_HPP
