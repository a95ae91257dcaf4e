#ifndef KEVIN_EVAL_CACHE_DIRECTORY_HPP
#define KEVIN_EVAL_CACHE_DIRECTORY_HPP

#include <cstdlib>
#include <filesystem>
#include <string>

#include <unistd.h>

namespace kevin::eval {

/// $KEVIN_CACHE_DIR, else $XDG_CACHE_HOME/kevin, else ~/.cache/kevin, else kevin-<user id> in the temporary folder.
[[nodiscard]] inline std::filesystem::path default_cache_directory() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::filesystem::path(value ? value : "");
  };
  if (const auto own = variable("KEVIN_CACHE_DIR"); !own.empty()) return own;
  if (const auto user = variable("XDG_CACHE_HOME"); user.is_absolute()) return user / "kevin";
  if (const auto home = variable("HOME"); home.is_absolute()) return home / ".cache" / "kevin";
  std::error_code error;
  const auto temporary = std::filesystem::temp_directory_path(error);
  return (error ? std::filesystem::path("/tmp") : temporary) / ("kevin-" + std::to_string(::geteuid()));
}

}  // namespace kevin::eval

#endif  // KEVIN_EVAL_CACHE_DIRECTORY_HPP
