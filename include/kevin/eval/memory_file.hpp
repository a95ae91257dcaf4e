#ifndef KEVIN_EVAL_MEMORY_FILE_HPP
#define KEVIN_EVAL_MEMORY_FILE_HPP

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "kevin/core/error.hpp"
#include "kevin/eval/descriptor.hpp"

/// Files that live in memory only (memfd_create): they have no name, vanish with their last descriptor or mapping, and
/// can be sealed against changes for good.
namespace kevin::eval {

namespace detail {
inline constexpr unsigned memfd_noexec_seal = 0x0008U;  // MFD_NOEXEC_SEAL and MFD_EXEC, Linux 6.3
inline constexpr unsigned memfd_exec = 0x0010U;
inline constexpr int seal_future_write = 0x0010;  // F_SEAL_FUTURE_WRITE, Linux 5.1

[[nodiscard]] inline Descriptor create_memory_file(const char* name, bool executable) {
  const unsigned base = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  Descriptor fd(::memfd_create(name, base | (executable ? memfd_exec : memfd_noexec_seal)));
  if (!fd && errno == EINVAL) fd.reset(::memfd_create(name, base));  // a kernel older than these flags
  if (!fd) throw_errno("memfd_create (a file in memory, shared with a child process)");
  return fd;
}

inline void seal(const Descriptor& fd, int seals) {
  if (::fcntl(fd.get(), F_ADD_SEALS, seals | F_SEAL_SEAL) != 0) {
    throw Error(ErrorCode::unsupported,
                "sealing a file in memory failed (" + errno_text(errno) + "): Linux 5.1 or later is needed");
  }
}
}  // namespace detail

/// A file in memory that holds `content` and that nobody can change any more, this process included.
/// `executable`: it may be mapped executable (a shared object). Throws Error(resource | unsupported).
[[nodiscard]] inline Descriptor sealed_memory_file(const char* name, std::span<const std::byte> content,
                                                   bool executable) {
  Descriptor fd = detail::create_memory_file(name, executable);
  std::size_t done = 0;
  while (done < content.size()) {
    const ssize_t n = ::write(fd.get(), content.data() + done, content.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) detail::throw_errno("writing a file in memory");
    done += static_cast<std::size_t>(n);
  }
  detail::seal(fd, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
  return fd;
}

/// Fills `bytes` from the kernel's random source, which no candidate can foretell.
inline void secret_bytes(std::span<std::byte> bytes) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = ::getrandom(bytes.data() + done, bytes.size() - done, 0);
    if (n < 0 && errno != EINTR) detail::throw_errno("getrandom");
    if (n > 0) done += static_cast<std::size_t>(n);
  }
}

/// 64 bits of them.
[[nodiscard]] inline std::uint64_t secret_bits() {
  std::uint64_t bits = 0;
  secret_bytes(std::as_writable_bytes(std::span(&bits, 1)));
  return bits;
}

}  // namespace kevin::eval

#endif  // KEVIN_EVAL_MEMORY_FILE_HPP
