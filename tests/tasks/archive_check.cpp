#include "kevin/tasks/archive_check.hpp"

#include <doctest/doctest.h>

#include <string>

using kevin::tasks::detail::crc32;
using kevin::tasks::detail::zip_damage;

namespace {

std::string number(std::uint64_t n, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(n >> (8 * i) & 0xffU);
  return text;
}

/// A zip of one stored entry; `wide`: sizes and places in the extra fields and records of zip64.
std::string zip(const std::string& content, bool wide = false, std::uint32_t method = 0) {
  const std::string none = number(0xffffffffU, 4);
  const std::string size = number(content.size(), 4);
  const std::string crc = number(crc32(content), 4);
  std::string file = "PK\x03\x04" + number(0, 4) + number(method, 2) + number(0, 4) + crc + size + size + number(1, 2) +
                     number(0, 2) + "a" + content;
  const std::string extra =
      wide ? number(1, 2) + number(24, 2) + number(content.size(), 8) + number(content.size(), 8) + number(0, 8) : "";
  const std::size_t directory = file.size();
  file += "PK\x01\x02" + number(0, 6) + number(method, 2) + number(0, 4) + crc + (wide ? none + none : size + size) +
          number(1, 2) + number(extra.size(), 2) + number(0, 10) + (wide ? none : number(0, 4)) + "a" + extra;
  const std::size_t directory_bytes = file.size() - directory;
  if (wide) {
    const std::size_t record = file.size();
    file += "PK\x06\x06" + number(44, 8) + number(0, 12) + number(1, 8) + number(1, 8) + number(directory_bytes, 8) +
            number(directory, 8);
    file += "PK\x06\x07" + number(0, 4) + number(record, 8) + number(1, 4);
  }
  return file + "PK\x05\x06" + number(0, 4) + number(wide ? 0xffffU : 1, 2) + number(wide ? 0xffffU : 1, 2) +
         number(directory_bytes, 4) + (wide ? none : number(directory, 4)) + number(0, 2);
}

}  // namespace

TEST_CASE("crc32 is zip's: the check value of the polynomial") {
  CHECK(crc32("123456789") == 0xcbf43926U);
  CHECK(crc32("") == 0);
}

TEST_CASE("a whole archive has no damage, in zip and in zip64") {
  for (const bool wide : {false, true}) {
    CAPTURE(wide);
    CHECK(zip_damage(zip("some content", wide)) == "");
    CHECK(zip_damage(zip("", wide)) == "");
    CHECK(zip_damage(zip("not really deflated", wide, 8)) == "");  // compressed ones are left to who reads them
  }
}

TEST_CASE("every changed byte of a stored entry is found, and so is every missing one") {
  for (const bool wide : {false, true}) {
    CAPTURE(wide);
    const std::string whole = zip("some content", wide);
    for (std::size_t i = 0; i < 12; ++i) {
      std::string changed = whole;
      changed[31 + i] = static_cast<char>(changed[31 + i] ^ 4);
      CHECK(zip_damage(changed).find("checksum") != std::string::npos);
    }
    for (std::size_t n = 0; n < whole.size(); ++n) CHECK(zip_damage(whole.substr(0, n)) != "");
  }
}

TEST_CASE("whatever stands in it, nothing beyond the bytes is read") {
  for (const bool wide : {false, true}) {
    const std::string whole = zip("some content", wide);
    for (std::size_t i = 0; i < whole.size(); ++i) {
      for (const char c : {'\x00', '\x01', '\x7f', '\xff'}) {
        std::string changed = whole;
        changed[i] = c;
        (void)zip_damage(changed);
      }
    }
  }
  CHECK(zip_damage("") == "is no zip archive, or its end is missing");
  CHECK(zip_damage(std::string(100, 'P')) == "is no zip archive, or its end is missing");
}
