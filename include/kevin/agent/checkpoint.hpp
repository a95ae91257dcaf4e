#ifndef KEVIN_AGENT_CHECKPOINT_HPP
#define KEVIN_AGENT_CHECKPOINT_HPP

#include <cerrno>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>

#include <fcntl.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "kevin/core/error.hpp"
#include "kevin/tasks/torch.hpp"

namespace kevin::agent {

/// A checkpoint file: one line of JSON (schema "kevin.checkpoint/1", facts of the run, size and hash of what follows)
/// and a LibTorch archive with parameters and optimizer state.
inline constexpr std::string_view checkpoint_schema = "kevin.checkpoint/1";

namespace detail {
[[nodiscard]] inline std::uint64_t fnv1a(std::string_view bytes) noexcept {
  std::uint64_t h = 0xcbf29ce484222325ULL;
  for (char c : bytes) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return h;
}

/// Writes a file so that after a crash or a kill either the old or the new content is there, whole.
inline void write_atomically(const std::filesystem::path& path, std::string_view content) {
  const std::filesystem::path temporary = path.string() + ".new";
  const auto fail = [&](const char* what) {
    const std::string reason = std::strerror(errno);
    ::unlink(temporary.c_str());
    throw Error(ErrorCode::resource, std::string(what) + ' ' + temporary.string() + ": " + reason);
  };
  std::error_code ec;
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), ec);
  const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) fail("cannot create");
  for (std::size_t done = 0; done < content.size();) {
    const ssize_t n = ::write(fd, content.data() + done, content.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      ::close(fd);
      fail("cannot write");
    }
    done += static_cast<std::size_t>(n);
  }
  if (::fsync(fd) != 0 || ::close(fd) != 0) fail("cannot write");
  if (::rename(temporary.c_str(), path.c_str()) != 0) fail("cannot put into place");
}
}  // namespace detail

/// Writes a checkpoint atomically. `state` (a trainer) has save(OutputArchive&); `facts` is a JSON object of the
/// caller's. Throws Error(resource).
template <class State>
void save_checkpoint(const std::filesystem::path& path, const State& state, nlohmann::json facts) {
  torch::serialize::OutputArchive archive;
  state.save(archive);
  std::ostringstream out;
  archive.save_to(out);
  const std::string bytes = out.str();
  const nlohmann::json header = {{"schema", checkpoint_schema},
                                 {"bytes", bytes.size()},
                                 {"hash", detail::fnv1a(bytes)},
                                 {"facts", std::move(facts)}};
  detail::write_atomically(path, header.dump() + '\n' + bytes);
}

/// Restores `state` (restore(InputArchive&)) and returns the facts. Throws Error(not_found | bad_input) that names the
/// file; `accept(facts)` may throw before anything is restored.
template <class State>
nlohmann::json load_checkpoint(const std::filesystem::path& path, State& state,
                               const std::function<void(const nlohmann::json&)>& accept = {}) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw Error(ErrorCode::not_found, "cannot read checkpoint " + path.string());
  const auto fail = [&](const std::string& what) -> void {
    throw Error(ErrorCode::bad_input,
                "checkpoint " + path.string() + ": " + what + "; move it and its log away to start afresh");
  };
  std::string line;
  std::getline(in, line);
  const nlohmann::json header = nlohmann::json::parse(line, nullptr, false);
  if (header.is_discarded() || !header.is_object() || !header.contains("schema") ||
      header["schema"] != checkpoint_schema) {
    fail("is no " + std::string(checkpoint_schema) + " file");
  }
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  const auto size = header.find("bytes");
  const auto hash = header.find("hash");
  if (size == header.end() || !size->is_number_unsigned() || hash == header.end() || !hash->is_number_unsigned())
    fail("has a damaged header");
  if (bytes.size() != size->template get<std::uint64_t>() ||
      detail::fnv1a(bytes) != hash->template get<std::uint64_t>())
    fail("is truncated or damaged");
  const nlohmann::json facts = header.value("facts", nlohmann::json::object());
  if (!facts.is_object()) fail("has a damaged header");
  if (accept) accept(facts);
  try {
    std::istringstream stream(bytes);
    torch::serialize::InputArchive archive;
    archive.load_from(stream);
    state.restore(archive);
  } catch (const std::exception& e) {
    const std::string_view text = e.what();
    fail("does not fit this policy (" + std::string(text.substr(0, text.find('\n'))) + ")");
  }
  return facts;
}

}  // namespace kevin::agent

#endif  // KEVIN_AGENT_CHECKPOINT_HPP
