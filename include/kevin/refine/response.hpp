#ifndef KEVIN_REFINE_RESPONSE_HPP
#define KEVIN_REFINE_RESPONSE_HPP

#include <string>

namespace kevin {

/// An agent's answer of one turn: its thought (dropped from later contexts), its own short summary of it (carried on),
/// and the kernel's source. An empty source is a format failure.
struct Response {
  std::string thought;
  std::string summary;
  std::string source;
  friend bool operator==(const Response&, const Response&) = default;
};

}  // namespace kevin

#endif  // KEVIN_REFINE_RESPONSE_HPP
