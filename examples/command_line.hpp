#ifndef KEVIN_EXAMPLES_COMMAND_LINE_HPP
#define KEVIN_EXAMPLES_COMMAND_LINE_HPP

#include <CLI/CLI.hpp>

#include <optional>
#include <string>

namespace command_line {

/// For options that are unsigned, which CLI11 would read "-1" into as a huge number.
inline std::string whole_number(const std::string& text) {
  const bool digits = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
  return digits ? "" : "'" + text + "' is no whole number of 0 or more";
}

/// Reads the options. A status: the program ends with it, since help was asked for (0) or an option is wrong (2).
inline std::optional<int> parse(CLI::App& app, int argc, char** argv) {
  try {
    app.parse(argc, argv);
    return std::nullopt;
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;
  }
}

}  // namespace command_line

#endif  // KEVIN_EXAMPLES_COMMAND_LINE_HPP
