#ifndef KEVIN_EVAL_BLINDFOLD_SOURCE_HPP
#define KEVIN_EVAL_BLINDFOLD_SOURCE_HPP

#include <string_view>

namespace kevin::eval {

/// Source of functions that take the C library's place inside a compiler. Landlock answers EACCES for what exists and
/// is hidden, and ENOENT for what does not exist; to a source that asks by __has_include that is a difference, so here
/// both become ENOENT.
inline constexpr std::string_view blindfold_source = R"cpp(
#include <cerrno>
#include <cstdarg>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
  static int hide(long result) {
    if (result < 0 && errno == EACCES) errno = ENOENT;
    return static_cast<int>(result);
  }
  static bool hidden(const char* path) {
    const int saved = errno;
    long fd = syscall(SYS_openat, AT_FDCWD, path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    bool is_hidden = false;
    if (fd < 0) {
      fd = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
      is_hidden = fd < 0 && errno == EACCES;
    }
    if (fd >= 0) syscall(SYS_close, fd);
    errno = is_hidden ? ENOENT : saved;
    return is_hidden;
  }
  extern "C" int open(const char* path, int flags, ...) {
    va_list more;
    va_start(more, flags);
    const int mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(more, int) : 0;
    va_end(more);
    return hide(syscall(SYS_openat, AT_FDCWD, path, flags, mode));
  }
  extern "C" int open64(const char* path, int flags, ...) {
    va_list more;
    va_start(more, flags);
    const int mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(more, int) : 0;
    va_end(more);
    return hide(syscall(SYS_openat, AT_FDCWD, path, flags, mode));
  }
  extern "C" int stat(const char* path, struct stat* info) noexcept {
    const long result = syscall(SYS_newfstatat, AT_FDCWD, path, info, 0);
    return result == 0 && hidden(path) ? -1 : static_cast<int>(result);
  }
  extern "C" int stat64(const char* path, struct stat64* info) noexcept {
    const long result = syscall(SYS_newfstatat, AT_FDCWD, path, info, 0);
    return result == 0 && hidden(path) ? -1 : static_cast<int>(result);
  }
)cpp";

}  // namespace kevin::eval

#endif  // KEVIN_EVAL_BLINDFOLD_SOURCE_HPP
