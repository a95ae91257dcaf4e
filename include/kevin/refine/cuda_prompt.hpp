#ifndef KEVIN_REFINE_CUDA_PROMPT_HPP
#define KEVIN_REFINE_CUDA_PROMPT_HPP

#include <string>
#include <string_view>

#include "kevin/refine/prompt_options.hpp"

namespace kevin {

/// The wording of prompts for CUDA kernels.
namespace cuda_wording {

inline constexpr std::string_view goal =
    "You write fast CUDA kernels for an NVIDIA GPU. You are given a reference operation; replace it by kernels that\n"
    "compute the same result in less time. A wrong kernel earns nothing; a correct one earns more the faster it is.\n";

inline constexpr std::string_view interface_notes =
    "It says what is launched, in order, and is run once by one device thread:\n"
    "`kevin::launch<kernel>(grid, block)(arguments...)`, or `kevin::launch<kernel>(grid, block, shared_bytes)`, or "
    "with\n"
    "`{.shared = bytes, .cluster = dim3(2), .cooperative = true}` as third argument. Template instances are kernels "
    "too:\n"
    "`kernel<64, float>`. `kevin::scratch<float>(count)` gives memory for intermediate results; it holds garbage at "
    "first.\n"
    "`kevin::make_tensor_map<rank>(address, kevin::type::f32, {sizes}, {strides in bytes}, {box})` makes a TMA "
    "descriptor\n"
    "for a parameter `const __grid_constant__ kevin::tensor_map m`. kevin_plan computes with addresses but reads and\n"
    "writes nothing: all work is done by the kernels.\n"
    "Every tensor is contiguous and row-major, aligned to 256 bytes, and the shapes above are fixed: use them as\n"
    "constants. Inputs and parameters are read-only. Outputs hold garbage before the launches: write every element. "
    "The\n"
    "launches are repeated with fresh inputs at other addresses, so compute everything anew each time.\n";

inline constexpr std::string_view rules =
    "- CUDA C++20, device code only, compiled by NVRTC: no host code, no <<<>>>, no main, no PyTorch.\n"
    "- CUDA's own headers can be included (<cuda_fp16.h>, <mma.h>, <cooperative_groups.h>, <cub/cub.cuh>, ...), none "
    "of\n"
    "  the host's (<cuda/std/cstdint> instead of <cstdint>).\n"
    "- Kernels read and write only their arguments, shared memory and scratch memory. Time and memory are limited.\n"
    "- It is judged in a sandbox; whatever breaks a rule counts as a failure of the kernel.\n";

inline constexpr std::string_view answer_format =
    "Think first, between <think> and </think>. Then give the complete source in exactly one code block marked cuda, "
    "and after\n"
    "it a summary of a few sentences between <summary> and </summary>: what you did, why, and what you would try next. "
    "In later\n"
    "turns you will see your kernels, your summaries and what came of them, but not your thoughts.\n";

inline constexpr std::string_view example =
    "For a task that adds two float32 vectors of 1048576 elements, `__device__ void kevin_plan(const float* a, const "
    "float* b, float* out)`,\n"
    "this would be a complete answer:\n"
    "\n"
    "<think>\n"
    "The sum is bound by memory traffic. Sixteen bytes a thread keep the memory system busy.\n"
    "</think>\n"
    "\n"
    "```cuda\n"
    "__global__ void add(const float4* a, const float4* b, float4* out) {\n"
    "  const int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  const float4 u = a[i], v = b[i];\n"
    "  out[i] = {u.x + v.x, u.y + v.y, u.z + v.z, u.w + v.w};\n"
    "}\n"
    "\n"
    "__device__ void kevin_plan(const float* a, const float* b, float* out) {\n"
    "  kevin::launch<add>(1048576 / 4 / 256, 256)((const float4*)a, (const float4*)b, (float4*)out);\n"
    "}\n"
    "```\n"
    "\n"
    "<summary>\n"
    "One float4 a thread; the size is a multiple of 1024, so no tail. Two float4 a thread could be tried next.\n"
    "</summary>\n";

}  // namespace cuda_wording

/// Prompts for candidates of the CUDA evaluator.
[[nodiscard]] inline PromptOptions cuda_prompt_options() {
  PromptOptions o;
  o.backend = Backend::cuda;
  o.goal = cuda_wording::goal;
  o.interface_notes = cuda_wording::interface_notes;
  o.rules = cuda_wording::rules;
  o.answer_format = cuda_wording::answer_format;
  o.example = cuda_wording::example;
  return o;
}

}  // namespace kevin

#endif  // KEVIN_REFINE_CUDA_PROMPT_HPP
