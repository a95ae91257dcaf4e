#ifndef KEVIN_EVAL_CPU_PROCESS_WATCH_HPP
#define KEVIN_EVAL_CPU_PROCESS_WATCH_HPP

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kevin/core/error.hpp"
#include "kevin/eval/descriptor.hpp"
#include "kevin/eval/timing.hpp"

namespace kevin::cpu {

/// Looks at another process through the kernel's eyes: what it says about itself does not enter.
///
/// A process is quiet when
///   - /proc/PID/syscall says that its main thread is blocked in read() on the one descriptor,
///   - /proc/PID/task says that there is no other thread, and
///   - its CPU clock stood still while both were looked at, so that the two observations are of one moment.
/// In the runner's sandbox a quiet process stays quiet until its peer writes: no timer, signal or other thread can wake
/// it up, and no descriptor of another kind can take that number. One look costs about two microseconds.
class ProcessWatch {
 public:
  enum class Look {
    quiet,
    busy,
    threads,  ///< the main thread waits, but it is not the only one
    gone,
  };

  /// Of a child of this process that has not been reaped. Throws Error(unsupported) where /proc cannot be used.
  ProcessWatch(pid_t pid, int descriptor) : pid_(pid), cpu_(pid) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%d 0x%x ", static_cast<int>(SYS_read), static_cast<unsigned>(descriptor));
    reading_ = text.data();
    syscall_ = open_proc("syscall", O_RDONLY);
    tasks_ = open_proc("task", O_RDONLY | O_DIRECTORY);
  }

  [[nodiscard]] const eval::CpuClock& cpu() const noexcept { return cpu_; }

  /// `cpu_ns`: the process' CPU clock at this moment, left alone when it is gone.
  [[nodiscard]] Look look(std::int64_t& cpu_ns) const noexcept {
    const std::int64_t before = cpu_.nanoseconds();
    std::array<char, 256> line{};
    const ssize_t n = ::pread(syscall_.get(), line.data(), line.size(), 0);
    struct stat tasks {};
    if (n <= 0 || ::fstat(tasks_.get(), &tasks) != 0) return Look::gone;
    const std::int64_t after = cpu_.nanoseconds();
    if (after < 0) return Look::gone;
    cpu_ns = after;
    if (!std::string_view(line.data(), static_cast<std::size_t>(n)).starts_with(reading_) || after != before)
      return Look::busy;
    // a directory has two links more than subdirectories: here one for each thread
    return tasks.st_nlink == 3 ? Look::quiet : tasks.st_nlink < 3 ? Look::gone : Look::threads;
  }

  /// Waits for a process that is known to come to rest. Throws Error(unsupported) when that cannot be seen.
  void await_quiet() const {
    const auto start = eval::WallClock::now();
    std::int64_t ns = 0;
    while (look(ns) != Look::quiet) {
      if (eval::WallClock::now() - start > std::chrono::seconds(5)) {
        throw Error(ErrorCode::unsupported,
                    "/proc/PID/syscall does not show a waiting runner as blocked in read(): this system (a container's "
                    "own kernel?) "
                    "cannot tell when a candidate has finished");
      }
      ::usleep(50);
    }
  }

  /// Bytes of address space in use.
  [[nodiscard]] std::uint64_t address_space() const {
    const eval::Descriptor file = open_proc("statm", O_RDONLY);
    std::array<char, 128> text{};
    unsigned long long pages = 0;
    if (::read(file.get(), text.data(), text.size() - 1) <= 0 || std::sscanf(text.data(), "%llu", &pages) != 1) {
      eval::detail::throw_errno("reading /proc/PID/statm");
    }
    return static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  }

 private:
  [[nodiscard]] eval::Descriptor open_proc(const char* name, int flags) const {
    std::array<char, 64> path{};
    std::snprintf(path.data(), path.size(), "/proc/%d/%s", static_cast<int>(pid_), name);
    eval::Descriptor fd(::open(path.data(), flags | O_CLOEXEC));
    if (!fd) {
      throw Error(ErrorCode::unsupported,
                  std::string("cannot open /proc/PID/") + name + " of a child process (" +
                      eval::detail::errno_text(errno) +
                      "): /proc must be mounted, and the kernel show system calls in it (CONFIG_HAVE_ARCH_TRACEHOOK)");
    }
    return fd;
  }

  pid_t pid_;
  eval::CpuClock cpu_;
  std::string reading_;
  eval::Descriptor syscall_;
  eval::Descriptor tasks_;
};

}  // namespace kevin::cpu

#endif  // KEVIN_EVAL_CPU_PROCESS_WATCH_HPP
