#ifndef KEVIN_EVAL_SECCOMP_HPP
#define KEVIN_EVAL_SECCOMP_HPP

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <dlfcn.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kevin/core/error.hpp"
#include "kevin/eval/descriptor.hpp"

namespace kevin::eval {

/// What a filter answers to a system call.
enum class SeccompAction : std::uint32_t {
  allow = 0x7fff0000U,
  kill_process = 0x80000000U,
  deny = 0x00050000U | EPERM,          ///< the call fails with EPERM
  unavailable = 0x00050000U | ENOSYS,  ///< as on a kernel that lacks the call: libraries fall back
  try_again = 0x00050000U | EAGAIN,    ///< as when a limit of processes is reached
};

/// Condition on one argument of a system call: (argument & mask) == value.
struct SeccompArgument {
  unsigned index;
  std::uint64_t mask;
  std::uint64_t value;
};

namespace detail {

/// The few functions of libseccomp that are used, opened at run time: a machine needs the library (every Debian
/// and Ubuntu has it), not its headers, and a program that never makes a filter starts without it.
class SeccompLibrary {
 public:
  /// Throws Error(unsupported) that names the package when the library is absent.
  SeccompLibrary() {
    handle_.reset(::dlopen("libseccomp.so.2", RTLD_NOW | RTLD_LOCAL));
    if (!handle_) {
      throw Error(ErrorCode::unsupported,
                  "libseccomp.so.2 is missing, so candidates cannot be confined: install libseccomp2 (Debian, Ubuntu) "
                  "or libseccomp (Fedora, Arch, Alpine)");
    }
    load(init, "seccomp_init");
    load(release, "seccomp_release");
    load(set_attribute, "seccomp_attr_set");
    load(add_rule, "seccomp_rule_add_array");
    load(resolve, "seccomp_syscall_resolve_name");
    load(export_bpf, "seccomp_export_bpf");
  }

  struct Compare {  // scmp_arg_cmp
    unsigned argument;
    int operation;
    std::uint64_t a;
    std::uint64_t b;
  };
  static constexpr int masked_equal = 7;        // SCMP_CMP_MASKED_EQ
  static constexpr int attribute_bad_arch = 2;  // SCMP_FLTATR_ACT_BADARCH

  void* (*init)(std::uint32_t) = nullptr;
  void (*release)(void*) = nullptr;
  int (*set_attribute)(void*, int, std::uint32_t) = nullptr;
  int (*add_rule)(void*, std::uint32_t, int, unsigned, const Compare*) = nullptr;
  int (*resolve)(const char*) = nullptr;
  int (*export_bpf)(const void*, int) = nullptr;

 private:
  struct Close {
    void operator()(void* handle) const noexcept { ::dlclose(handle); }
  };

  template <class Function>
  void load(Function& function, const char* name) {
    void* symbol = ::dlsym(handle_.get(), name);
    if (!symbol)
      throw Error(ErrorCode::unsupported,
                  std::string("libseccomp.so.2 has no function ") + name + ": version 2.3 or later is needed");
    function = reinterpret_cast<Function>(symbol);
  }

  std::unique_ptr<void, Close> handle_;
};

}  // namespace detail

/// Builds a seccomp program for this machine's native system calls. Calls of any other ABI (i386, x32) kill the
/// process, since their numbers mean other things.
class SeccompFilter {
 public:
  /// `standard` is the answer to calls without a rule. Throws Error(unsupported) without libseccomp.
  explicit SeccompFilter(SeccompAction standard) : standard_(standard) {
    context_ = Context(library_.init(static_cast<std::uint32_t>(standard)), library_.release);
    if (!context_) throw Error(ErrorCode::resource, "seccomp_init failed");
    check(library_.set_attribute(context_.get(), library_.attribute_bad_arch,
                                 static_cast<std::uint32_t>(SeccompAction::kill_process)),
          "setting the answer to foreign ABIs");
  }

  /// Answers calls of that name, whose arguments meet every condition, with `action`. A name that this machine's
  /// architecture or libseccomp does not know is left out; true = a rule was made.
  bool add(SeccompAction action, const std::string& name, std::initializer_list<SeccompArgument> conditions = {}) {
    const int number = library_.resolve(name.c_str());
    return number >= 0 && add(action, number, conditions);
  }

  /// The same by number, for calls younger than the machine's libseccomp.
  bool add(SeccompAction action, int number, std::initializer_list<SeccompArgument> conditions = {}) {
    if (action == standard_) return false;
    std::vector<detail::SeccompLibrary::Compare> compare;
    for (const SeccompArgument& c : conditions) compare.push_back({c.index, library_.masked_equal, c.mask, c.value});
    const int result = library_.add_rule(context_.get(), static_cast<std::uint32_t>(action), number,
                                         static_cast<unsigned>(compare.size()), compare.data());
    if (result == -EEXIST) return true;
    check(result, "adding a rule for system call " + std::to_string(number));
    return true;
  }

  /// The program, in the order and form that the kernel takes.
  [[nodiscard]] std::vector<sock_filter> program() const {
    Descriptor file(static_cast<int>(::syscall(SYS_memfd_create, "seccomp", 1U /* MFD_CLOEXEC */)));
    if (!file) detail::throw_errno("memfd_create");
    check(library_.export_bpf(context_.get(), file.get()), "exporting the program");
    const off_t bytes = ::lseek(file.get(), 0, SEEK_END);
    if (bytes <= 0 || static_cast<std::size_t>(bytes) % sizeof(sock_filter) != 0)
      throw Error(ErrorCode::internal, "seccomp_export_bpf wrote no program");
    std::vector<sock_filter> filter(static_cast<std::size_t>(bytes) / sizeof(sock_filter));
    if (::pread(file.get(), filter.data(), static_cast<std::size_t>(bytes), 0) != bytes)
      detail::throw_errno("reading a seccomp program");
    return filter;
  }

 private:
  using Context = std::unique_ptr<void, void (*)(void*)>;

  static void check(int result, const std::string& what) {
    if (result < 0) throw Error(ErrorCode::internal, "libseccomp, " + what + ": " + detail::errno_text(-result));
  }

  detail::SeccompLibrary library_;
  SeccompAction standard_;
  Context context_{nullptr, nullptr};
};

/// Confines the calling thread (and what it starts from now on) with `filter`; sets no_new_privs. For a process
/// that confines itself after its own start-up; SpawnOptions::seccomp does it for a child. Throws Error(resource).
inline void install_seccomp(std::span<const sock_filter> filter) {
  sock_fprog program{};
  program.len = static_cast<unsigned short>(filter.size());
  program.filter = const_cast<sock_filter*>(filter.data());
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) detail::throw_errno("no_new_privs");
  if (::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) != 0)
    detail::throw_errno("installing a seccomp filter");
}

}  // namespace kevin::eval

#endif  // KEVIN_EVAL_SECCOMP_HPP
