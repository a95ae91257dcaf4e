// Any bytes as a log: reading ends in trajectories that can be written and read again the same, or in a kevin::Error
// that names a line.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <string>
#include <string_view>

#include "kevin/agent/trajectory_log.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::istringstream in(std::string(reinterpret_cast<const char*>(data), size));
  try {
    const auto read = kevin::agent::read_trajectory_log(in, "log");
    std::string written;
    for (const auto& trajectory : read) written += kevin::json_line(trajectory) + '\n';
    std::istringstream again(written);
    if (kevin::agent::read_trajectory_log(again, "log").size() != read.size()) std::abort();
  } catch (const kevin::Error& e) {
    if (std::string_view(e.what()).find("log:") == std::string_view::npos) std::abort();
  }
  return 0;
}
