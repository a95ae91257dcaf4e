// needs: torch
// libFuzzer target: no text makes the reader of a device's peaks throw anything but kevin::Error, and what is accepted
// is written and read back the same.
//
//   clang++ -std=c++20 -g -O1 -fsanitize=fuzzer,address,undefined -Iinclude <LibTorch flags> tests/fuzz/peaks.cpp
//   ./a.out -max_total_time=60 corpus/

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "kevin/core/error.hpp"
#include "kevin/tasks/peaks_json.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const auto peaks = kevin::tasks::parse_peaks({reinterpret_cast<const char*>(data), size}, "fuzz");
    if (!(kevin::tasks::parse_peaks(kevin::tasks::write_peaks(peaks), "again") == peaks)) std::abort();
  } catch (const kevin::Error&) {
  }
  return 0;
}
