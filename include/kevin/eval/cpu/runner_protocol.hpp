#ifndef KEVIN_EVAL_CPU_RUNNER_PROTOCOL_HPP
#define KEVIN_EVAL_CPU_RUNNER_PROTOCOL_HPP

#include <cstddef>
#include <cstdint>

/// What judge and runner say to each other over a SOCK_SEQPACKET pair: one Request, one Reply.
///
/// A reply is a courtesy, never evidence: candidate code shares the runner's process and can say anything at any time.
/// The judge takes the time itself and believes that a call has ended only when the operating system shows it.
/// The same structures stand in the runner's own source (runner_source.hpp).
namespace kevin::cpu::protocol {

enum class Kind : std::uint32_t {
  idle = 1,     ///< answer at once; before a candidate is loaded. Measures what a call costs by itself.
  prepare = 2,  ///< a second message follows: descriptors {object, seccomp program, buffers...} and a Buffer for each;
                ///< map the buffers, confine yourself
  load = 3,     ///< load the object; from here on nothing that the runner says is trusted
  launch = 4,   ///< call kernel(buffers...)
};

struct Request {
  std::uint64_t nonce;
  Kind kind;
  std::uint32_t count;  ///< prepare: number of buffers
};

enum class Status : std::uint32_t {
  ok = 0,
  threw = 1,           ///< an exception left the kernel
  out_of_memory = 2,   ///< std::bad_alloc left the kernel
  load_failed = 3,     ///< dlopen or dlsym failed; text says why
  confine_failed = 4,  ///< at start-up or to prepare: the sandbox could not be built
  fault = 5,           ///< an invalid access, see Fault; the process is about to die of it
  ready = 6,           ///< once, after start-up
};

/// A reply without text is sent without the text's bytes.
struct Reply {
  std::uint64_t nonce;
  Status status;
  std::uint32_t detail;  ///< fault: see below; confine_failed: errno
  char text[240];
};
inline constexpr std::size_t short_reply = offsetof(Reply, text);

/// `detail` of a fault: 0 = anywhere, 1 = the stack, otherwise 16 * (buffer + 1) + flags.
struct Fault {
  static constexpr std::uint32_t stack = 1;
  static constexpr std::uint32_t after = 1;   ///< past the end, else before the start
  static constexpr std::uint32_t write = 2;   ///< a store, else a load
  static constexpr std::uint32_t inside = 4;  ///< within the buffer: a store into read-only memory
};

struct Buffer {
  std::uint64_t mapped;  ///< size of the file
  std::uint64_t offset;  ///< start of the tensor in it
  std::uint64_t bytes;   ///< of the tensor
  std::uint64_t writable;
};

/// Descriptor numbers in the runner.
inline constexpr int control_descriptor = 3;
inline constexpr int landlock_descriptor = 4;

inline constexpr std::size_t max_buffers = 128;

/// Inaccessible bytes before and after each buffer in the runner.
inline constexpr std::size_t guard_bytes = std::size_t{1} << 20;

}  // namespace kevin::cpu::protocol

#endif  // KEVIN_EVAL_CPU_RUNNER_PROTOCOL_HPP
