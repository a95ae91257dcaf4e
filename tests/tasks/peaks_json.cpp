#include "kevin/tasks/peaks_json.hpp"

#include <doctest/doctest.h>

#include <string>

using kevin::Error;
using kevin::tasks::load_peaks;
using kevin::tasks::MeasuredPeaks;
using kevin::tasks::parse_peaks;
using kevin::tasks::write_peaks;

namespace {

const MeasuredPeaks peaks{.device = "a device",
                          .measured = "by a test",
                          .bytes_per_s = 4e12,
                          .cache_bytes = 6e7,
                          .float32_per_s = 3e13,
                          .matrix_per_s = 4e14,
                          .transcendental_per_s = 4e12};

std::string with(const std::string& from, const std::string& to) {
  std::string text = write_peaks(peaks);
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

}  // namespace

TEST_CASE("what is written is read") { CHECK(parse_peaks(write_peaks(peaks), "test") == peaks); }

TEST_CASE("reading is strict, and errors name the file and the place") {
  const auto fails = [](const std::string& text, const char* expected) {
    CHECK_THROWS_WITH_AS(parse_peaks(text, "p.json"), doctest::Contains(expected), Error);
  };
  fails("", "bad_input: p.json: is not JSON");
  fails("[]", "p.json: must be an object");
  fails(with("kevin.peaks/1", "kevin.peaks/2"), "p.json: schema: must be \"kevin.peaks/1\"");
  fails(with("cache_bytes", "cash_bytes"), "unknown key 'cash_bytes'");
  fails(with("\"measured\":\"by a test\",", ""), "lacks the key 'measured'");
  fails(with("4000000000000.0", "0"), "p.json: bytes_per_s: must be above 0");
  fails(with("4000000000000.0", "-1"), "must be above 0");
  fails(with("4000000000000.0", "\"fast\""), "bytes_per_s: must be a number");
  fails(with("\"device\":", "\"device\":\"x\",\"device\":"), "twice");
}

TEST_CASE("a file that cannot be read is an error that says what writes one") {
  CHECK_THROWS_WITH_AS(load_peaks("/no/such.json"), doctest::Contains("cuda_peaks"), Error);
}
