#ifndef KEVIN_EVAL_CUDA_RUNNER_SOURCE_HPP
#define KEVIN_EVAL_CUDA_RUNNER_SOURCE_HPP

#include <string>
#include <string_view>

#include "kevin/eval/cuda/runner_driver_source.hpp"
#include "kevin/eval/cuda/runner_program_source.hpp"

namespace kevin::cuda {

namespace detail {

/// What comes before the driver's part, and after it.
inline constexpr std::string_view runner_start_source = R"runner(
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <dlfcn.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

enum Kind : u32 { buffers = 1, load = 2, plan = 3, program = 4, run = 5, reset = 6, equip = 7 };
struct Request { u32 kind, count; u64 a, b, c; };
enum Status : u32 { ok = 0, cuda = 1, failed = 2, ready = 3 };
enum Step : u32 { none, at_start, at_map, at_load, at_plan, at_function, at_scratch, at_tensor_map, at_launch, at_wait, at_flush };
struct Reply { u32 status; std::int32_t code; u32 step, detail; double milliseconds; };
struct Buffer { u64 mapped, offset, writable; };
struct Figures { std::int32_t registers, local_bytes, static_shared, blocks; };
constexpr std::size_t mailbox_bytes = std::size_t{1} << 20;
constexpr std::size_t max_buffers = 240;
constexpr std::size_t book_bytes = BOOK_BYTES;
constexpr std::size_t guard = std::size_t{2} << 20;

unsigned char* mailbox = nullptr;

void answer(u32 status, int code = 0, u32 step = 0, u32 detail = 0, double milliseconds = 0) {
  const Reply reply{status, code, step, detail, milliseconds};
  if (write(3, &reply, sizeof reply) < 0) _exit(1);
}

struct Failure { u32 status; int code; u32 step, detail; };
[[noreturn]] void fail(int code, u32 step, u32 detail = 0, u32 status = cuda) { throw Failure{status, code, step, detail}; }

)runner";

inline constexpr std::string_view runner_candidate_source = R"runner(
// ---- walls ----
void confine() {
  static sock_filter filter[4096];
  const ssize_t size = pread(5, filter, sizeof filter, 0);
  if (size <= 0 || static_cast<std::size_t>(size) == sizeof filter) fail(EINVAL, at_start, 1, failed);
  close(5);
  sock_fprog loaded{};
  loaded.len = static_cast<unsigned short>(static_cast<std::size_t>(size) / sizeof(sock_filter));
  loaded.filter = filter;
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &loaded) != 0)
    fail(errno, at_start, 1, failed);
}

// ---- buffers ----
struct Mapped { u64 room, size, start; };
std::vector<Mapped> mapped;
std::size_t sets = 0;
std::size_t arguments = 0;

void unmap(const Mapped& m) {
  cuMemUnmap(m.room + guard, m.size);
  cuMemAddressFree(m.room, m.size + 2 * guard);
}

void unmap_all() {
  for (const Mapped& m : mapped) unmap(m);
  mapped.clear();
}

// Maps `handle` between guards, and gives the handle up: the mapping keeps the memory.
Mapped map(u64 handle, u64 bytes, u64 offset, bool writable, u32 step, u32 detail) {
  const auto check = [&](int r) { if (r != 0) fail(r, step, detail); };
  u64 room = 0;
  check(cuMemAddressReserve(&room, bytes + 2 * guard, 0, 0, 0));
  check(cuMemMap(room + guard, bytes, 0, handle, 0));
  const AccessDescription access{{1, device}, writable ? 3 : 1};
  check(cuMemSetAccess(room + guard, bytes, &access, 1));
  check(cuMemRelease(handle));
  return {room, bytes, room + guard + offset};
}

void map_buffers(const Request& q, const int* files) {
  unmap_all();
  sets = q.a;
  if (sets == 0 || q.count % sets != 0 || q.count > max_buffers) fail(EINVAL, at_map, 0, failed);
  arguments = q.count / sets;
  std::vector<Buffer> headers(q.count);
  std::memcpy(headers.data(), mailbox, q.count * sizeof(Buffer));
  for (u32 i = 0; i < q.count; ++i) {
    const Buffer& b = headers[i];
    u64 handle = 0;
    if (const int r = cuMemImport(&handle, reinterpret_cast<void*>(static_cast<std::uintptr_t>(files[i])), 1)) fail(r, at_map, i);
    mapped.push_back(map(handle, b.mapped, b.offset, b.writable != 0, at_map, i));
  }
}

// ---- the candidate ----
void* module = nullptr;

struct Launch {
  LaunchConfig config;
  LaunchAttribute attributes[2];
  void* function;
  std::vector<std::vector<TensorMapBytes>> arguments;  // for each set; 64-byte aligned
  std::vector<std::vector<void*>> pointers;            // for each set: where each argument lies
  std::size_t bytes;
};
std::vector<Launch> launches;
std::vector<void*> graphs;  // for each set, once made
std::vector<Mapped> scratch;
u64 book_memory = 0;

// ---- the judge's own kernels, and what they work on ----
struct Tools {
  void* wait = nullptr;
  void* read = nullptr;
  void* discard = nullptr;
  void* scrub = nullptr;
  u64 memory = 0;  // twice the L2 cache
  std::size_t bytes = 0;
  u32 multiprocessors = 0, shared = 0;
};
Tools tools;

void forget_program() {
  for (void* g : graphs) if (g != nullptr) cuGraphExecDestroy(g);
  graphs.clear();
  launches.clear();
  for (const Mapped& s : scratch) unmap(s);
  scratch.clear();
}

void load_module(const Request& q, int file) {
  forget_program();
  if (module != nullptr) cuModuleUnload(module);
  module = nullptr;
  void* image = mmap(nullptr, q.a, PROT_READ, MAP_PRIVATE, file, 0);
  if (image == MAP_FAILED) fail(errno, at_load, 0, failed);
  const int result = cuModuleLoadData(&module, image);
  munmap(image, q.a);
  if (result != 0) fail(result, at_load);
  const char* name = reinterpret_cast<const char*>(mailbox);
  const char* end = name + mailbox_bytes;
  for (u32 i = 0; i < q.count; ++i) {
    const std::size_t length = strnlen(name, static_cast<std::size_t>(end - name));
    if (name + length >= end) fail(EINVAL, at_load, i, failed);
    u64 address = 0;
    std::size_t size = 0;
    const u64 number = i + 1;
    if (const int r = cuModuleGetGlobal(&address, &size, module, name)) fail(r, at_load, i);
    if (size != sizeof number) fail(EINVAL, at_load, i, failed);
    if (const int r = cuMemcpyHtoD(address, &number, sizeof number)) fail(r, at_load, i);
    name += length + 1;
  }
}

void run_plan(const Request& q) {
  void* entry = nullptr;
  if (module == nullptr || q.count > 128) fail(EINVAL, at_plan, 0, failed);
  if (const int r = cuModuleGetFunction(&entry, module, "kevin_entry")) fail(r, at_plan);
  const auto check = [](int r) { if (r != 0) fail(r, at_plan); };
  if (book_memory == 0) check(cuMemAlloc(&book_memory, book_bytes));
  std::vector<unsigned char> start(book_bytes);
  std::memcpy(start.data(), &q.a, 8);
  std::memcpy(start.data() + 24, &q.count, 4);
  check(cuMemcpyHtoD(book_memory, start.data(), book_bytes));
  std::vector<u64> values{book_memory};
  for (u32 i = 0; i < q.count; ++i) values.push_back(q.a + (static_cast<u64>(i) << 40));
  std::size_t size = values.size() * 8;
  void* extra[] = {reinterpret_cast<void*>(1), values.data(), reinterpret_cast<void*>(2), &size, nullptr};
  LaunchConfig config{{1, 1, 1}, {1, 1, 1}, 0, stream, nullptr, 0};
  check(cuLaunchKernelEx(&config, entry, nullptr, extra));
  check(cuStreamSynchronize(stream));
  check(cuMemcpyDtoH(mailbox, book_memory, book_bytes));
}

)runner";

inline constexpr std::string_view runner_work_source = R"runner(
void launch_all(std::size_t set) {
  for (std::size_t i = 0; i < launches.size(); ++i) {
    Launch& l = launches[i];
    if (const int r = cuLaunchKernelEx(&l.config, l.function, l.pointers[set].data(), nullptr)) fail(r, at_launch, static_cast<u32>(i));
  }
}

void* graph_of(std::size_t set) {
  if (graphs[set] != nullptr) return graphs[set];
  const auto check = [](int r) { if (r != 0) fail(r, at_launch); };
  void* graph = nullptr;
  check(cuStreamBeginCapture(stream, 2));
  launch_all(set);
  check(cuStreamEndCapture(stream, &graph));
  check(cuGraphInstantiate(&graphs[set], graph, 0));
  cuGraphDestroy(graph);
  check(cuGraphUpload(graphs[set], stream));
  check(cuStreamSynchronize(stream));
  return graphs[set];
}

int empty_cache() {
  if (tools.bytes == 0) return 0;
  u64 count = tools.bytes / 16;
  u32 never = 1;
  void* arguments[] = {&tools.memory, &count, &never};
  LaunchConfig config{{8 * tools.multiprocessors, 1, 1}, {256, 1, 1}, 0, stream, nullptr, 0};
  const int result = cuLaunchKernelEx(&config, tools.read, arguments, nullptr);
  return result != 0 ? result : cuLaunchKernelEx(&config, tools.discard, arguments, nullptr);
}

int hold(u32 microseconds) {
  if (microseconds == 0) return 0;
  u64 nanoseconds = u64{1000} * microseconds;
  void* arguments[] = {&nanoseconds};
  LaunchConfig config{{1, 1, 1}, {1, 1, 1}, 0, stream, nullptr, 0};
  return cuLaunchKernelEx(&config, tools.wait, arguments, nullptr);
}

// Between the events, and whether the GPU came to the first of them before all was queued.
struct Run { double milliseconds; bool late; };

Run run_once(const Request& q) {
  if (q.a >= sets || launches.empty() || tools.read == nullptr) fail(EINVAL, at_launch, 0, failed);
  const auto ours = [](int r) { if (r != 0) fail(r, at_flush); };
  void* graph = (q.b & 2) != 0 && (q.b & 4) == 0 ? graph_of(q.a) : nullptr;
  for (const Mapped& s : scratch) ours(cuMemsetD32Async(s.room + guard, static_cast<unsigned>(q.c), s.size / 4, stream));
  if ((q.b & 17) != 0) ours(cuCtxResetPersistingL2Cache());
  ours(hold(q.count));
  if ((q.b & 17) != 0) {
    if ((q.b & 16) != 0) ours(cuMemsetD8Async(tools.memory, 0, tools.bytes, stream));
    else ours(empty_cache());
  }
  const auto launch = [&] {
    if (graph == nullptr) return launch_all(q.a);
    if (const int r = cuGraphLaunch(graph, stream)) fail(r, at_launch);
  };
  if ((q.b & 8) != 0) launch();
  ours(cuEventRecord(before, stream));
  if ((q.b & 4) == 0) launch();
  ours(cuEventRecord(after, stream));
  const bool late = cuEventQuery(before) == 0;
  if (const int r = cuStreamSynchronize(stream)) fail(r, at_wait);
  float ms = 0;
  ours(cuEventElapsedTime(&ms, before, after));
  return {ms, late};
}

void take_tools(const Request& q, int file) {
  const auto ours = [](int r) { if (r != 0) fail(r, at_flush); };
  void* image = mmap(nullptr, q.a, PROT_READ, MAP_PRIVATE, file, 0);
  if (image == MAP_FAILED) fail(errno, at_flush, 0, failed);
  void* loaded = nullptr;
  const int result = cuModuleLoadData(&loaded, image);
  munmap(image, q.a);
  ours(result);
  tools.multiprocessors = q.count;
  tools.shared = static_cast<u32>(q.c);
  ours(cuModuleGetFunction(&tools.wait, loaded, "kevin_wait"));
  ours(cuModuleGetFunction(&tools.read, loaded, "kevin_read"));
  ours(cuModuleGetFunction(&tools.discard, loaded, "kevin_discard"));
  ours(cuModuleGetFunction(&tools.scrub, loaded, "kevin_scrub"));
  ours(cuFuncSetAttribute(tools.scrub, 8, static_cast<int>(tools.shared)));
  tools.bytes = 2 * q.b / 128 * 128;
  if (tools.bytes == 0) return;
  ours(cuMemAlloc(&tools.memory, tools.bytes));
  ours(cuMemsetD8Async(tools.memory, 0, tools.bytes, stream));
}

// Nothing of a candidate that came to rest is left for the next one: its module, its mappings and its scratch memory go,
// and shared memory, thread-local memory and our own buffers are written over.
void forget_candidate() {
  forget_program();
  if (module != nullptr) cuModuleUnload(module);
  module = nullptr;
  unmap_all();
  const auto ours = [](int r) { if (r != 0) fail(r, at_flush); };
  unsigned value = 0;
  void* arguments[] = {&value};
  LaunchConfig config{{2 * tools.multiprocessors, 1, 1}, {1024, 1, 1}, tools.shared, stream, nullptr, 0};
  ours(cuLaunchKernelEx(&config, tools.scrub, arguments, nullptr));
  if (tools.memory != 0) ours(cuMemsetD8Async(tools.memory, 0, tools.bytes, stream));
  if (book_memory != 0) ours(cuMemsetD8Async(book_memory, 0, book_bytes, stream));
  ours(cuStreamSynchronize(stream));
}

void serve() {
  Request q{};
  iovec io{&q, sizeof q};
  alignas(cmsghdr) static char ancillary[CMSG_SPACE(max_buffers * sizeof(int))];
  msghdr message{};
  message.msg_iov = &io;
  message.msg_iovlen = 1;
  message.msg_control = ancillary;
  message.msg_controllen = sizeof ancillary;
  ssize_t n = 0;
  while ((n = recvmsg(3, &message, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR) {}
  if (n != static_cast<ssize_t>(sizeof q)) _exit(0);
  std::vector<int> files;
  if (const cmsghdr* rights = CMSG_FIRSTHDR(&message); rights != nullptr && rights->cmsg_type == SCM_RIGHTS) {
    files.resize((rights->cmsg_len - CMSG_LEN(0)) / sizeof(int));
    std::memcpy(files.data(), CMSG_DATA(rights), files.size() * sizeof(int));
  }
  Run timed{};
  bool answered = false;
  try {
    switch (q.kind) {
      case buffers:
        if (files.size() != q.count) fail(EPROTO, at_map, 0, failed);
        map_buffers(q, files.data());
        break;
      case load:
        if (files.size() != 1) fail(EPROTO, at_load, 0, failed);
        load_module(q, files[0]);
        break;
      case plan: run_plan(q); break;
      case program: take_program(); break;
      case run: timed = run_once(q); break;
      case reset: forget_candidate(); break;
      case equip:
        if (files.size() != 1) fail(EPROTO, at_flush, 0, failed);
        take_tools(q, files[0]);
        break;
      default: fail(EPROTO, none, 0, failed);
    }
  } catch (const Failure& f) {
    answer(f.status, f.code, f.step, f.detail);
    answered = true;
  } catch (...) {
    answer(failed, ENOMEM);
    answered = true;
  }
  for (const int file : files) close(file);
  if (!answered) answer(ok, 0, 0, timed.late, timed.milliseconds);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3 || prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != std::atoi(argv[1])) _exit(1);
  mailbox = static_cast<unsigned char*>(mmap(nullptr, mailbox_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, 4, 0));
  if (mailbox == MAP_FAILED) _exit(1);
  close(4);
  try {
    confine();
    open_driver(std::atoi(argv[2]));
  } catch (const Failure& f) {
    answer(f.status, f.code, f.step, f.detail);
    return 1;
  }
  answer(ready);
  for (;;) serve();
}
)runner";

}  // namespace detail

/// The program that holds a candidate's GPU context: the driver API alone, opened at run time, no LibTorch, compiled
/// once by the system's compiler. The candidate is device code only, so what runs on the processor here is this text
/// and the driver; the walls around it (Landlock from its start, seccomp before the driver is opened) are there for the
/// case that device code finds a fault in the driver. It never holds an expected answer.
[[nodiscard]] inline std::string runner_source() {
  return std::string(detail::runner_start_source) + std::string(runner_driver_source) +
         std::string(detail::runner_candidate_source) + std::string(detail::runner_program_source) +
         std::string(detail::runner_work_source);
}

}  // namespace kevin::cuda

#endif  // KEVIN_EVAL_CUDA_RUNNER_SOURCE_HPP
