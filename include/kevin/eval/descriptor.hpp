#ifndef KEVIN_EVAL_DESCRIPTOR_HPP
#define KEVIN_EVAL_DESCRIPTOR_HPP

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include <unistd.h>

#include "kevin/core/error.hpp"

namespace kevin::eval {

/// Owns one file descriptor and closes it. -1 = none.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) noexcept : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this != &other) reset(std::exchange(other.fd_, -1));
    return *this;
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { reset(); }

  [[nodiscard]] int get() const noexcept { return fd_; }
  [[nodiscard]] explicit operator bool() const noexcept { return fd_ >= 0; }
  [[nodiscard]] int release() noexcept { return std::exchange(fd_, -1); }
  /// Closes what is held and takes over `fd`.
  void reset(int fd = -1) noexcept {
    if (fd_ >= 0) ::close(fd_);  // never retried: Linux frees the number even when close reports EINTR
    fd_ = fd;
  }

 private:
  int fd_ = -1;
};

namespace detail {

/// The system's text for an errno value, thread safe (plain strerror is not promised to be).
[[nodiscard]] inline std::string errno_text(int error) {
  char buffer[128] = {};
  // The GNU form, which g++ and clang++ select by _GNU_SOURCE, returns the text and may leave the buffer alone.
  return ::strerror_r(error, buffer, sizeof buffer);
}

/// Throws Error(resource) for a failed system call: "<what>: <errno text>".
[[noreturn]] inline void throw_errno(const std::string& what, int error = errno) {
  throw Error(ErrorCode::resource, what + ": " + errno_text(error));
}

}  // namespace detail
}  // namespace kevin::eval

#endif  // KEVIN_EVAL_DESCRIPTOR_HPP
