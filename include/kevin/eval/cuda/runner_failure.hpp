#ifndef KEVIN_EVAL_CUDA_RUNNER_FAILURE_HPP
#define KEVIN_EVAL_CUDA_RUNNER_FAILURE_HPP

#include <csignal>
#include <cstdio>
#include <string>

#include "kevin/core/error.hpp"
#include "kevin/eval/cuda/driver.hpp"
#include "kevin/eval/cuda/plan.hpp"
#include "kevin/eval/cuda/runner.hpp"

namespace kevin::cuda {

/// Why a candidate could not be run: the stable word of Verdict::reason, and a text for the agent.
struct RunFailure {
  std::string reason;
  std::string text;
};

/// Whether the runner was ended from outside, which says nothing of the candidate: device code cannot send a signal.
[[nodiscard]] inline bool killed_from_outside(const CallResult& call) noexcept {
  return call.end == CallResult::End::died && call.exit.signaled && call.exit.code == SIGKILL;
}

/// Explains a request that did not succeed. `plan`: what was being launched, to name kernels; `limit_ms`: of the call.
/// Throws Error for a failure that no candidate can cause.
[[nodiscard]] inline RunFailure explain(const CallResult& call, const LaunchPlan& plan, const DriverApi& api,
                                        double limit_ms) {
  using End = CallResult::End;
  using protocol::Step;
  const auto kernel = [&] {
    return call.detail < plan.launches.size()
               ? "launch " + std::to_string(call.detail + 1) + " (" + plan.launches[call.detail].kernel + ")"
               : std::string("a launch");
  };
  switch (call.end) {
    case End::done:
      return {};
    case End::timeout: {
      char seconds[32];
      std::snprintf(seconds, sizeof seconds, "%.3g", limit_ms / 1000);
      return {"timeout", std::string("the kernels did not finish within ") + seconds + " s"};
    }
    case End::died:
      return {"crashed", "the process that runs the kernels ended (" +
                             std::string(call.exit.signaled ? "signal " : "exit code ") +
                             std::to_string(call.exit.code) + "): the driver could not cope with this candidate"};
    case End::failed:
      break;
  }
  if (call.status == protocol::Status::system)
    throw Error(ErrorCode::resource, "a GPU runner failed: " + eval::detail::errno_text(call.code));
  const std::string name = api.name_of(call.code);
  switch (call.code) {
    case 2:  // out of memory
      return {"memory", call.step == Step::scratch ? "there is not enough GPU memory for the scratch buffers"
                                                   : "the candidate needs more GPU memory than there is"};
    case 700: {  // illegal address
      if (call.step == Step::plan)
        return {"bad_plan",
                "kevin_plan reads or writes memory: it may only compute with addresses, the buffers are not there yet"};
      return {"illegal_address",
              "illegal memory access: a kernel reads or writes outside of its buffers, or writes to an input"};
    }
    case 716:
      return {"misaligned_address",
              "misaligned address: a vector access (float4, ...) at an address that is no multiple "
              "of its size"};
    case 719:
    case 710:
      return {"trap", "a kernel was stopped by a trap, a failed assertion or a hardware exception (" + name + ")"};
    case 715:
    case 718:
      return {"trap", "a kernel executed an illegal instruction or a trap (" + name + ")"};
    case 701:
      return {"launch_failed",
              kernel() + " needs more registers or shared memory than a block of that size can have (" + name + ")"};
    case 720:
      return {"launch_failed",
              kernel() + " is cooperative and has more blocks than fit on the device at once (" + name + ")"};
    case 1:
      if (call.step == Step::tensor_map)
        return {"bad_plan", "tensor map " + std::to_string(call.detail) +
                                " of kevin_plan: the driver refuses its sizes, strides, box or swizzle (strides are "
                                "multiples of 16 bytes, a box has at most 256 elements along each extent)"};
      break;
    default:
      break;
  }
  switch (call.step) {
    case Step::plan:
      return {"bad_plan", "kevin_plan failed: " + name};
    case Step::load:
      return {"load_failed", "the compiled module cannot be loaded: " + name};
    case Step::function:
      return {"launch_failed", kernel() + " cannot be readied: " + name};
    case Step::launch:
      return {"launch_failed", kernel() + " cannot be launched: " + name +
                                   ", a block size, a shared-memory size or a cluster that this kernel cannot have"};
    case Step::wait:
      return {"gpu_error", "the kernels failed: " + name};
    case Step::tensor_map:
      return {"bad_plan", "a tensor map of kevin_plan: " + name};
    default:
      throw Error(ErrorCode::worker_lost, "a GPU runner failed outside of the candidate: " + name);
  }
}

}  // namespace kevin::cuda

#endif  // KEVIN_EVAL_CUDA_RUNNER_FAILURE_HPP
