#ifndef KEVIN_EVAL_LANDLOCK_HPP
#define KEVIN_EVAL_LANDLOCK_HPP

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kevin/core/error.hpp"
#include "kevin/eval/descriptor.hpp"

namespace kevin::eval {

namespace detail {

// The kernel's interface in own words, since headers of many systems are older than their kernels.
// Numbers and layout: Linux' documentation, userspace-api/landlock.
inline constexpr long landlock_create_ruleset = 444;
inline constexpr long landlock_add_rule = 445;
inline constexpr long landlock_restrict_self = 446;

struct LandlockRulesetAttributes {
  std::uint64_t files;    // rights over files that are handled, that is, refused unless a rule grants them
  std::uint64_t network;  // ABI 4: bind and connect of TCP
  std::uint64_t scoped;   // ABI 6: abstract unix sockets, signals to processes outside
};

struct __attribute__((packed)) LandlockPathRule {
  std::uint64_t allowed;
  std::int32_t parent;
};

inline constexpr std::uint64_t landlock_execute = 1U << 0;
inline constexpr std::uint64_t landlock_write_file = 1U << 1;
inline constexpr std::uint64_t landlock_read_file = 1U << 2;
inline constexpr std::uint64_t landlock_read_directory = 1U << 3;
inline constexpr std::uint64_t landlock_truncate = 1U << 14;
inline constexpr std::uint64_t landlock_ioctl = 1U << 15;
// Rights that make sense for a single file; the others are for directories and refused otherwise.
inline constexpr std::uint64_t landlock_file_rights =
    landlock_execute | landlock_write_file | landlock_read_file | landlock_truncate | landlock_ioctl;

[[nodiscard]] constexpr std::uint64_t landlock_all_files(int abi) noexcept {
  std::uint64_t rights = (1U << 13) - 1;  // ABI 1: execute ... make_sym
  if (abi >= 2) rights |= 1U << 13;       // refer
  if (abi >= 3) rights |= landlock_truncate;
  if (abi >= 5) rights |= landlock_ioctl;
  return rights;
}

}  // namespace detail

/// The version of Landlock that the running kernel offers; 0 or negative errno = none (-ENOSYS: not built in,
/// -EOPNOTSUPP: switched off at boot).
[[nodiscard]] inline int landlock_abi() noexcept {
  const long abi = ::syscall(detail::landlock_create_ruleset, nullptr, 0, 1U /* LANDLOCK_CREATE_RULESET_VERSION */);
  return abi < 0 ? -errno : static_cast<int>(abi);
}

/// A set of Landlock rules, to be put on a child (SpawnOptions::landlock_ruleset) or on oneself (restrict_self).
class LandlockRuleset {
 public:
  /// Handles every right of the running kernel's ABI: nothing may be opened until allow() grants it.
  /// Throws Error(unsupported) where the kernel has no Landlock.
  LandlockRuleset() : abi_(landlock_abi()) {
    if (abi_ < 1) {
      throw Error(
          ErrorCode::unsupported,
          abi_ == -EOPNOTSUPP
              ? "Landlock is built into this kernel but switched off: add landlock to the kernel's lsm= boot parameter"
          : abi_ == -EPERM
              ? "Landlock is forbidden here, probably by a container's seccomp profile: allow the landlock_* system "
                "calls"
              : "this kernel has no Landlock: Linux 5.13 or later with CONFIG_SECURITY_LANDLOCK is needed");
    }
    detail::LandlockRulesetAttributes attributes{};
    attributes.files = detail::landlock_all_files(abi_);
    attributes.network = abi_ >= 4 ? 3U : 0U;
    attributes.scoped = abi_ >= 6 ? 3U : 0U;
    const std::size_t size = abi_ >= 6   ? sizeof attributes
                             : abi_ >= 4 ? offsetof(detail::LandlockRulesetAttributes, scoped)
                                         : offsetof(detail::LandlockRulesetAttributes, network);
    fd_.reset(static_cast<int>(::syscall(detail::landlock_create_ruleset, &attributes, size, 0U)));
    if (!fd_) detail::throw_errno("landlock_create_ruleset");
  }

  [[nodiscard]] int fd() const noexcept { return fd_.get(); }
  [[nodiscard]] int abi() const noexcept { return abi_; }

  /// Lets files below `path` (or the file `path`) be read and executed, and also written, made and removed when
  /// `writable`. Throws Error(not_found) when it does not exist.
  void allow(const std::filesystem::path& path, bool writable) {
    const Descriptor parent(::open(path.c_str(), O_PATH | O_CLOEXEC));
    struct stat info {};
    if (!parent || ::fstat(parent.get(), &info) != 0)
      throw Error(ErrorCode::not_found, "landlock: " + path.string() + ": " + detail::errno_text(errno));
    detail::LandlockPathRule rule{};
    rule.allowed = writable ? detail::landlock_all_files(abi_)
                            : detail::landlock_execute | detail::landlock_read_file | detail::landlock_read_directory;
    if (!S_ISDIR(info.st_mode)) rule.allowed &= detail::landlock_file_rights & detail::landlock_all_files(abi_);
    rule.parent = parent.get();
    if (::syscall(detail::landlock_add_rule, fd_.get(), 1 /* LANDLOCK_RULE_PATH_BENEATH */, &rule, 0U) != 0) {
      detail::throw_errno("landlock_add_rule " + path.string());
    }
  }

  /// Puts the rules on the calling thread and on what it starts from now on; sets no_new_privs.
  void restrict_self() const {
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) detail::throw_errno("no_new_privs");
    if (::syscall(detail::landlock_restrict_self, fd_.get(), 0U) != 0) detail::throw_errno("landlock_restrict_self");
  }

 private:
  int abi_;
  Descriptor fd_;
};

/// A ruleset under which files below `readable` may be read and executed, files below `writable` also be changed,
/// and nothing else be opened; no TCP, no signals and no abstract sockets to outside (where the kernel can).
/// With both empty nothing at all may be opened by path.
[[nodiscard]] inline LandlockRuleset landlock(std::span<const std::filesystem::path> readable,
                                              std::span<const std::filesystem::path> writable) {
  LandlockRuleset rules;
  for (const auto& path : readable) rules.allow(path, false);
  for (const auto& path : writable) rules.allow(path, true);
  return rules;
}

}  // namespace kevin::eval

#endif  // KEVIN_EVAL_LANDLOCK_HPP
