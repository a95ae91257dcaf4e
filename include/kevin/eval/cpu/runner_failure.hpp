#ifndef KEVIN_EVAL_CPU_RUNNER_FAILURE_HPP
#define KEVIN_EVAL_CPU_RUNNER_FAILURE_HPP

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "kevin/eval/cpu/runner.hpp"
#include "kevin/refine/signature.hpp"

namespace kevin::cpu {

/// Why a call failed: the stable word of Verdict::reason, and a text for the agent.
struct RunFailure {
  std::string reason;
  std::string text;
};

namespace detail {

/// Where an invalid access went, by the runner's own remark; "" when unknown.
[[nodiscard]] inline std::string describe_fault(std::uint32_t fault, const std::vector<KernelArgument>& arguments) {
  using protocol::Fault;
  if (fault == Fault::stack) return "the stack overflowed (too deep a recursion, or arrays too large for the stack)";
  const std::uint32_t buffer = fault / 16;
  if (buffer == 0 || buffer > arguments.size()) return "";
  const std::string access = (fault & Fault::write) != 0 ? "a write" : "a read";
  const std::string& name = arguments[buffer - 1].name;
  if ((fault & Fault::inside) != 0) return access + " to `" + name + "`, which is read-only";
  return access + ((fault & Fault::after) != 0 ? " past the end of `" : " before the start of `") + name + '`';
}

/// The loader's message without the path it begins with, and without anything unprintable.
[[nodiscard]] inline std::string loader_message(std::string_view text) {
  if (text.starts_with("/proc/self/fd/")) {
    const std::size_t end = text.find(": ");
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 2);
  }
  std::string clean;
  for (const char c : text) clean += c >= ' ' && c <= '~' ? c : ' ';
  return clean;
}

}  // namespace detail

/// Explains a call that did not return normally. `arguments`: the kernel's, to name buffers. `what`: e.g. "the kernel".
[[nodiscard]] inline RunFailure explain(const CallResult& call, const std::vector<KernelArgument>& arguments,
                                        const CallLimit& limit, bool loading) {
  using End = CallResult::End;
  const std::string what = loading ? "loading the kernel (its global constructors)" : "the kernel";
  switch (call.end) {
    case End::returned:
      break;
    case End::threw:
      return {"threw", "the kernel threw an exception; it must not"};
    case End::out_of_memory:
      return {"memory", "the kernel asked for more memory than it may have (std::bad_alloc)"};
    case End::load_failed: {
      const std::string text = detail::loader_message(call.text);
      const bool memory = text.find("cannot map zero-fill") != std::string::npos ||
                          text.find("failed to map segment") != std::string::npos ||
                          text.find("annot allocate memory") != std::string::npos;
      if (memory) return {"memory", "the kernel's global arrays are larger than the memory it may have"};
      return {"load_failed", "the compiled kernel could not be loaded: " + text};
    }
    case End::timeout: {
      char seconds[32];
      std::snprintf(seconds, sizeof seconds, "%.3g", limit.milliseconds / 1000);
      return {"timeout", what + " did not finish within " + seconds + " s"};
    }
    case End::threads_left:
      return {"threads_left", "threads that the kernel started were still there after it returned; join them"};
    case End::protocol:
      return {"protocol", what + " interfered with the process that runs it (its control channel)"};
    case End::died: {
      if (!call.exit.signaled)
        return {"exited",
                what + " ended the process (exit code " + std::to_string(call.exit.code) + ") instead of returning"};
      switch (call.exit.code) {
        case SIGSEGV:
        case SIGBUS: {
          const std::string where = detail::describe_fault(call.fault, arguments);
          return {"segmentation_fault",
                  "segmentation fault: " +
                      (where.empty() ? "an access out of bounds, through a bad pointer, or a stack overflow" : where)};
        }
        case SIGABRT:
          return {"aborted", what + " called abort (an assertion, std::terminate, or heap corruption)"};
        case SIGILL:
          return {"illegal_instruction",
                  what + " executed an illegal instruction (__builtin_trap, or an instruction this processor lacks)"};
        case SIGFPE:
          return {"arithmetic", what + " divided an integer by zero"};
        case SIGTRAP:
          return {"aborted", what + " executed a trap"};
        case SIGSYS:
          return {"forbidden_call",
                  what +
                      " made a system call that is not allowed: where only one thread may run that is waiting for a "
                      "lock, a condition, a semaphore or a time, which nobody could end; else one of a foreign ABI"};
        case SIGXCPU:
          return {"timeout", what + " used up the processor time it may have"};
        default:
          return {"killed", what + " was ended by signal " + std::to_string(call.exit.code)};
      }
    }
  }
  return {"", ""};
}

/// Whether the runner was ended from outside: nothing in the sandbox can send this signal.
[[nodiscard]] inline bool killed_from_outside(const CallResult& call) noexcept {
  return call.end == CallResult::End::died && call.exit.signaled && call.exit.code == SIGKILL;
}

}  // namespace kevin::cpu

#endif  // KEVIN_EVAL_CPU_RUNNER_FAILURE_HPP
