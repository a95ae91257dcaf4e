#ifndef KEVIN_EVAL_CUDA_RUNNER_POOL_HPP
#define KEVIN_EVAL_CUDA_RUNNER_POOL_HPP

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <linux/filter.h>
#include <sys/socket.h>
#include <unistd.h>

#include "kevin/core/error.hpp"
#include "kevin/eval/cuda/plan.hpp"
#include "kevin/eval/cuda/runner.hpp"
#include "kevin/eval/cuda/runner_protocol.hpp"
#include "kevin/eval/cuda/runner_source.hpp"
#include "kevin/eval/file_cache.hpp"
#include "kevin/eval/helper_program.hpp"
#include "kevin/eval/landlock.hpp"
#include "kevin/eval/memory_file.hpp"
#include "kevin/eval/process.hpp"
#include "kevin/eval/seccomp.hpp"
#include "kevin/eval/spare_pool.hpp"

namespace kevin::cuda {

/// What a GPU runner may not do: start programs or processes, reach other processes, the network, or the machine as a
/// whole. The driver's own calls (ioctl, mmap, threads, an abstract socket that it binds) remain.
[[nodiscard]] inline std::vector<sock_filter> gpu_runner_seccomp() {
  using enum eval::SeccompAction;
  eval::SeccompFilter filter(allow);
  for (const char* name : {"execve",
                           "execveat",
                           "fork",
                           "vfork",
                           "ptrace",
                           "process_vm_readv",
                           "process_vm_writev",
                           "pidfd_getfd",
                           "pidfd_send_signal",
                           "kill",
                           "tkill",
                           "rt_sigqueueinfo",
                           "connect",

                           "accept",
                           "accept4",
                           "io_uring_setup",
                           "io_uring_enter",
                           "io_uring_register",
                           "bpf",
                           "userfaultfd",
                           "perf_event_open",
                           "keyctl",
                           "add_key",
                           "request_key",
                           "mount",
                           "umount2",
                           "pivot_root",
                           "chroot",
                           "move_mount",
                           "open_tree",
                           "fsopen",
                           "fsmount",
                           "open_by_handle_at",
                           "unshare",
                           "setns",
                           "init_module",
                           "finit_module",
                           "delete_module",
                           "kexec_load",
                           "kexec_file_load",
                           "reboot",
                           "swapon",
                           "swapoff",
                           "settimeofday",
                           "clock_settime",
                           "clock_adjtime",
                           "adjtimex",
                           "setuid",
                           "setgid",
                           "setreuid",
                           "setregid",
                           "setresuid",
                           "setresgid",
                           "mknod",
                           "mknodat",
                           "setsid",
                           "setpgid",
                           "personality"}) {
    filter.add(deny, name);
  }
  filter.add(unavailable, "clone3");            // its flags cannot be looked at; threads are made by clone
  constexpr std::uint64_t thread = 0x00010000;  // CLONE_THREAD
  filter.add(deny, "clone", {{0, thread, 0}});
  return filter.program();
}

/// GPU runner processes, kept started and waiting with a context of their own (eval::SparePool).
class RunnerPool {
 public:
  /// `gpu`: index as CUDA counts. Throws Error(unsupported) where a sandbox cannot be had.
  RunnerPool(const std::filesystem::path& compiler, eval::FileCache& cache, int gpu, std::size_t spares)
      : gpu_(gpu),
        program_("gpu-runner", compiler, runner_source(),
                 {"-std=c++17", "-O2", "-DBOOK_BYTES=" + std::to_string(sizeof(Book)), "-rdynamic", "-ldl"},
                 "runs CUDA candidates", cache),
        filter_(gpu_runner_seccomp()) {
    for (const char* path : {"/usr", "/lib", "/lib64", "/etc", "/proc", "/sys", "/opt", "/run", "/var/lib"}) {
      std::error_code error;
      if (std::filesystem::exists(path, error)) files_.allow(path, false);
    }
    std::error_code error;
    for (std::filesystem::directory_iterator device("/dev", error), end; !error && device != end;
         device.increment(error)) {
      const std::string name = device->path().filename().string();
      if (name.starts_with("nvidia") || name == "null" || name == "zero" || name == "shm")
        files_.allow(device->path(), true);
    }
    pool_.emplace([this] { return start(); }, spares, spares);
  }

  /// A fresh runner. Throws Error when none can be started.
  [[nodiscard]] std::unique_ptr<Runner> acquire() { return pool_->acquire(); }
  /// Ends a used runner. Returns at once.
  void retire(std::unique_ptr<Runner> runner) noexcept { pool_->retire(std::move(runner)); }

 private:
  [[nodiscard]] std::unique_ptr<Runner> start() const {
    int pair[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
      eval::detail::throw_errno("socketpair for a GPU runner");
    eval::Descriptor control(pair[0]);
    eval::Descriptor theirs(pair[1]);
    eval::Descriptor mailbox = eval::detail::create_memory_file("kevin-mailbox", false);
    if (::ftruncate(mailbox.get(), static_cast<off_t>(protocol::mailbox_bytes)) != 0)
      eval::detail::throw_errno("making a runner's mailbox");
    const eval::Descriptor filter = eval::sealed_memory_file("kevin-filter", std::as_bytes(std::span(filter_)), false);
    eval::SpawnOptions options;
    options.program = program_.path();
    options.arguments = {std::to_string(::getpid()), std::to_string(gpu_)};
    options.directory = "/";
    options.environment = {"CUDA_CACHE_DISABLE=1", "CUDA_MODULE_LOADING=EAGER"};
    for (const char* name : {"CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "LD_LIBRARY_PATH"}) {
      if (const char* value = std::getenv(name)) options.environment.push_back(std::string(name) + '=' + value);
    }
    options.descriptors = {{theirs.get(), protocol::control_descriptor},
                           {mailbox.get(), protocol::mailbox_descriptor},
                           {filter.get(), protocol::filter_descriptor}};
    options.landlock_ruleset = files_.fd();
    eval::Child child = eval::spawn(options);
    theirs.reset();  // so that the end of the process closes the channel
    auto runner = std::make_unique<Runner>(std::move(child), std::move(control), std::move(mailbox));
    runner->await_ready();
    return runner;
  }

  int gpu_;
  eval::HelperProgram program_;
  std::vector<sock_filter> filter_;
  eval::LandlockRuleset files_;
  std::optional<eval::SparePool<Runner>> pool_;  // last: its threads use everything above
};

}  // namespace kevin::cuda

#endif  // KEVIN_EVAL_CUDA_RUNNER_POOL_HPP
