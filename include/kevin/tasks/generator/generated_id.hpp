#ifndef KEVIN_TASKS_GENERATOR_GENERATED_ID_HPP
#define KEVIN_TASKS_GENERATOR_GENERATED_ID_HPP

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace kevin::tasks {

/// What every id of a generated task begins with.
inline constexpr std::string_view generated_prefix = "generated/";

/// The parts of "generated/SEED/INDEX" and "generated/SEED/INDEX@small".
struct GeneratedId {
  std::uint64_t seed = 0;
  std::uint64_t index = 0;
  bool small = false;
  friend bool operator==(const GeneratedId&, const GeneratedId&) = default;
};

[[nodiscard]] inline std::string to_string(const GeneratedId& id) {
  return std::string(generated_prefix) + std::to_string(id.seed) + '/' + std::to_string(id.index) +
         (id.small ? "@small" : "");
}

/// The parts of an id, or nothing when it is not exactly what to_string writes: one task has one id. SEED and INDEX are
/// decimal numbers below 2^64 without sign and leading zeros.
[[nodiscard]] inline std::optional<GeneratedId> parse_generated_id(std::string_view text) {
  GeneratedId id;
  if (!text.starts_with(generated_prefix)) return std::nullopt;
  const auto number = [&text](std::uint64_t& value) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc()) return false;
    const auto length = static_cast<std::size_t>(end - text.data());
    const bool padded = length > 1 && text[0] == '0';
    text.remove_prefix(length);
    return !padded;
  };
  text.remove_prefix(generated_prefix.size());
  if (!number(id.seed) || !text.starts_with('/')) return std::nullopt;
  text.remove_prefix(1);
  if (!number(id.index)) return std::nullopt;
  id.small = text == "@small";
  if (!id.small && !text.empty()) return std::nullopt;
  return id;
}

}  // namespace kevin::tasks

#endif  // KEVIN_TASKS_GENERATOR_GENERATED_ID_HPP
