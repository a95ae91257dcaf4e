#ifndef KEVIN_EVAL_CUDA_RUNNER_PROTOCOL_HPP
#define KEVIN_EVAL_CUDA_RUNNER_PROTOCOL_HPP

#include <array>
#include <cstddef>
#include <cstdint>

/// What judge and GPU runner say to each other: short messages over a SOCK_SEQPACKET pair, one Request, one Reply;
/// larger things lie in the mailbox, a file in memory that both have mapped. Device code can reach neither. The same
/// structures stand in the runner's own source (runner_source.hpp).
namespace kevin::cuda::protocol {

enum class Kind : std::uint32_t {
  buffers = 1,  ///< descriptors {buffers...}, mailbox {Buffer...}; a = sets; map them all
  load = 2,     ///< descriptor {cubin}, a = its bytes, count = tags, mailbox {names, each ended by NUL}; load afresh
  plan = 3,     ///< a = tag of the stand-in addresses, count = the task's arguments; mailbox then holds the Book
  program = 4,  ///< mailbox {program, see encode_program}; ready the launches for every set
  run = 5,      ///< a = set, b = Run flags, c = word to fill scratch memory with, count = head start in microseconds;
                ///< one run of the plan, waited for
  reset = 6,    ///< forget the candidate, so that another one can have the process
  equip = 7,    ///< descriptor {cubin of the judge's kernels}, a = its bytes, b = bytes of the L2 cache, c =
                ///< shared memory that a block can have, count = multiprocessors; once, before any candidate
};

/// Flags of a run.
struct Run {
  static constexpr std::uint64_t cold = 1;     ///< empty the L2 cache before
  static constexpr std::uint64_t graph = 2;    ///< replay a CUDA graph instead of launching one by one
  static constexpr std::uint64_t warm = 8;     ///< run the plan once untimed right before
  static constexpr std::uint64_t nothing = 4;  ///< launch nothing: what the clock shows for an empty plan
  static constexpr std::uint64_t dirty = 16;   ///< fill the L2 cache before with what has yet to be written to memory
};

struct Request {
  Kind kind;
  std::uint32_t count;
  std::uint64_t a, b, c;
};

enum class Status : std::uint32_t {
  ok = 0,
  cuda = 1,    ///< `code` is the driver's error, `step` says at what
  system = 2,  ///< `code` is an errno
  ready = 3,   ///< once, after start-up
};

/// What the runner was doing when something failed.
enum class Step : std::uint32_t {
  none = 0,
  start,       ///< driver, context, walls
  map,         ///< mapping buffers
  load,        ///< loading the module
  plan,        ///< running kevin_plan
  function,    ///< finding a kernel or setting its attributes; detail = launch
  scratch,     ///< scratch memory
  tensor_map,  ///< detail = map
  launch,      ///< launching; detail = launch
  wait,        ///< waiting for the launches to finish
  flush,       ///< our own work around the launches
};

struct Reply {
  Status status;
  std::int32_t code;
  Step step;
  std::uint32_t detail;  ///< also of a run that went well: 1 = the GPU came to the launches before all were queued
  double milliseconds;   ///< run: between the events around the launches
};

struct Buffer {
  std::uint64_t mapped;  ///< bytes of the allocation
  std::uint64_t offset;  ///< of the tensor in it
  std::uint64_t writable;
};

/// What a kernel needs, as the driver reports it; in the mailbox after `program`, one for each launch.
struct KernelFigures {
  std::int32_t registers, local_bytes, static_shared, blocks_per_multiprocessor;
};

inline constexpr int control_descriptor = 3;
inline constexpr int mailbox_descriptor = 4;
inline constexpr int filter_descriptor = 5;
inline constexpr std::size_t mailbox_bytes = std::size_t{1} << 20;
inline constexpr std::size_t max_buffers = 240;  ///< sets times arguments; a message carries at most 253 descriptors
inline constexpr std::size_t max_sets = 8;

}  // namespace kevin::cuda::protocol

#endif  // KEVIN_EVAL_CUDA_RUNNER_PROTOCOL_HPP
