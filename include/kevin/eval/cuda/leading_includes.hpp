#ifndef KEVIN_EVAL_CUDA_LEADING_INCLUDES_HPP
#define KEVIN_EVAL_CUDA_LEADING_INCLUDES_HPP

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

#include "kevin/core/error.hpp"
#include "kevin/eval/cuda/diagnostics.hpp"
#include "kevin/eval/source_text.hpp"

namespace kevin::cuda {

namespace detail {

[[nodiscard]] inline bool header_exists(std::string_view name, std::span<const std::filesystem::path> folders) {
  std::error_code error;
  return std::any_of(folders.begin(), folders.end(), [&](const std::filesystem::path& folder) {
    return std::filesystem::is_regular_file(folder / name, error);
  });
}

}  // namespace detail

/// The lines #include <name> of a prelude, wherever they stand: it is our own text, so they may be moved to the front.
/// Throws Error(unsupported) when one does not exist in `folders`: that is this machine's fault and no candidate's.
[[nodiscard]] inline std::string prelude_includes(std::string_view prelude,
                                                  std::span<const std::filesystem::path> folders) {
  constexpr std::string_view begin = "#include <";
  std::string found;
  eval::detail::for_each_line(prelude, [&](std::string_view line) {
    if (!line.starts_with(begin) || !line.ends_with('>')) return;
    const std::string name(line.substr(begin.size(), line.size() - begin.size() - 1));
    if (!detail::header_exists(name, folders)) {
      throw Error(ErrorCode::unsupported,
                  "the CUDA header " + name +
                      " that this task needs is not found beside NVRTC: install it (pip install "
                      "nvidia-cuda-runtime nvidia-cuda-cccl, or the CUDA toolkit), or name its "
                      "folder in CompilerOptions::include");
    }
    found += std::string(line) + '\n';
  });
  return found;
}

/// The headers that a source includes before anything else, as lines "#include <name>\n" in its order; only those that
/// exist in one of `folders`. Only plain lines #include <name> or "name" with comments and #pragma once between them
/// count: nothing that comes before them could change what they mean, so that including them beforehand is the same
/// program. At most 32.
[[nodiscard]] inline std::string leading_includes(std::string_view source,
                                                  std::span<const std::filesystem::path> folders) {
  std::string found;
  std::size_t count = 0;
  while (count < 32 && eval::detail::skip_blank_and_comments(source) && source[0] == '#') {
    const auto end = source.find('\n');
    if (end == std::string_view::npos) break;
    std::string_view line = source.substr(1, end - 1);
    source.remove_prefix(end);
    const auto skip = [&line] { line.remove_prefix(std::min(line.size(), line.find_first_not_of(" \t\r"))); };
    skip();
    if (line.starts_with("pragma once")) {
      line.remove_prefix(11);
      skip();
      if (line.empty()) continue;
      break;
    }
    if (!line.starts_with("include")) break;
    line.remove_prefix(7);
    skip();
    if (line.empty() || (line[0] != '<' && line[0] != '"')) break;
    const auto close = line.find(line[0] == '<' ? '>' : '"', 1);
    if (close == std::string_view::npos) break;
    const std::string_view name = line.substr(1, close - 1);
    line.remove_prefix(close + 1);
    skip();
    if (!line.empty() && !line.starts_with("//")) break;
    if (line.ends_with('\\') || line.ends_with("\\\r")) break;  // the comment goes on
    if (name == prelude_file) continue;                         // it is there already
    const bool plain = !name.empty() && name.size() <= 128 && name[0] != '/' &&
                       name.find("..") == std::string_view::npos &&
                       name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./") ==
                           std::string_view::npos;
    if (!plain || !detail::header_exists(name, folders)) break;
    found += "#include <" + std::string(name) + ">\n";
    ++count;
  }
  return found;
}

}  // namespace kevin::cuda

#endif  // KEVIN_EVAL_CUDA_LEADING_INCLUDES_HPP
