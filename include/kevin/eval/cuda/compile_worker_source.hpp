#ifndef KEVIN_EVAL_CUDA_COMPILE_WORKER_SOURCE_HPP
#define KEVIN_EVAL_CUDA_COMPILE_WORKER_SOURCE_HPP

#include <string>
#include <string_view>
#include <vector>

#include "kevin/eval/blindfold_source.hpp"

namespace kevin::cuda {

/// The program in which NVRTC runs: it loads the library once and then compiles one request after the other. NVRTC
/// reads hostile text, so nothing that it says is trusted; the walls around the process are put up by who starts it.
///
/// A message, either way: magic, number of fields, the fields' sizes, the fields. A request: the main file's text, the
/// candidate's (kernel.cu), the prelude (kevin.cuh), then the options. The first reply, unasked: NVRTC's version and
/// architectures, or what is wrong. Every other one: result, log, CUBIN, PTX.
inline constexpr std::string_view compile_worker_main = R"worker(
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <dlfcn.h>

// More of what NVRTC opens files with; see the functions above.
template <class Function>
static Function next(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}
static FILE* hide_file(FILE* file) {
  if (file == nullptr && errno == EACCES) errno = ENOENT;
  return file;
}
extern "C" FILE* fopen(const char* path, const char* mode) {
  static const auto real = next<FILE* (*)(const char*, const char*)>("fopen");
  return hide_file(real(path, mode));
}
extern "C" FILE* fopen64(const char* path, const char* mode) {
  static const auto real = next<FILE* (*)(const char*, const char*)>("fopen64");
  return hide_file(real(path, mode));
}
extern "C" DIR* opendir(const char* path) {
  static const auto real = next<DIR* (*)(const char*)>("opendir");
  DIR* folder = real(path);
  if (folder == nullptr && errno == EACCES) errno = ENOENT;
  return folder;
}
extern "C" int access(const char* path, int mode) noexcept {
  const int result = hide(syscall(SYS_faccessat, AT_FDCWD, path, mode));
  return result == 0 && hidden(path) ? -1 : result;
}
extern "C" int __xstat(int, const char* path, struct stat* info) noexcept { return stat(path, info); }
extern "C" int __xstat64(int, const char* path, struct stat64* info) noexcept { return stat64(path, info); }
extern "C" int __lxstat(int, const char* path, struct stat* info) noexcept {
  const long result = syscall(SYS_newfstatat, AT_FDCWD, path, info, AT_SYMLINK_NOFOLLOW);
  return result == 0 && hidden(path) ? -1 : static_cast<int>(result);
}

// Memory that is used up ends the process with a code of its own: NVRTC would crash, which looks like its own fault.
extern "C" void* __libc_malloc(std::size_t);
extern "C" void* __libc_calloc(std::size_t, std::size_t);
extern "C" void* __libc_realloc(void*, std::size_t);
static void* given(void* memory, std::size_t size) {
  if (memory == nullptr && size != 0) _exit(77);
  return memory;
}
extern "C" void* malloc(std::size_t size) noexcept { return given(__libc_malloc(size), size); }
extern "C" void* calloc(std::size_t n, std::size_t size) noexcept {
  return given(__libc_calloc(n, size), n == 0 ? 0 : size);
}
extern "C" void* realloc(void* memory, std::size_t size) noexcept { return given(__libc_realloc(memory, size), size); }

namespace {

constexpr int control = 3;
constexpr std::uint32_t magic = 0x6b63756b;
constexpr std::size_t max_fields = 160;
constexpr std::uint64_t max_request = std::uint64_t{64} << 20;
constexpr std::size_t log_head = std::size_t{192} << 10;
constexpr std::size_t log_tail = std::size_t{64} << 10;

void receive(void* data, std::size_t size) {
  char* at = static_cast<char*>(data);
  while (size > 0) {
    const ssize_t n = read(control, at, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) _exit(0);  // nobody is there any more
    at += n;
    size -= static_cast<std::size_t>(n);
  }
}

void send(const void* data, std::size_t size) {
  const char* at = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t n = write(control, at, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) _exit(0);
    at += n;
    size -= static_cast<std::size_t>(n);
  }
}

struct Field {
  const char* data;
  std::uint64_t size;
};

template <std::size_t N>
void reply(const Field (&fields)[N]) {
  std::uint32_t head[2] = {magic, N};
  std::uint64_t sizes[N];
  for (std::size_t i = 0; i < N; ++i) sizes[i] = fields[i].size;
  send(head, sizeof head);
  send(sizes, sizeof sizes);
  for (const Field& field : fields) send(field.data, field.size);
}

// NVRTC's interface in own words: nvrtc.h is not needed, and any version from 12.0 on has these.
using Program = void*;
struct {
  int (*version)(int*, int*);
  int (*architectures_count)(int*);
  int (*architectures)(int*);
  int (*create)(Program*, const char*, const char*, int, const char* const*, const char* const*);
  int (*destroy)(Program*);
  int (*compile)(Program, int, const char* const*);
  int (*log_size)(Program, std::size_t*);
  int (*log)(Program, char*);
  int (*cubin_size)(Program, std::size_t*);
  int (*cubin)(Program, char*);
  int (*ptx_size)(Program, std::size_t*);
  int (*ptx)(Program, char*);
} nvrtc;

const char* load(const char* path) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return dlerror();
  const auto find = [library](auto& function, const char* name) {
    void* symbol = dlsym(library, name);
    std::memcpy(&function, &symbol, sizeof symbol);
    return symbol != nullptr;
  };
  const bool all = find(nvrtc.version, "nvrtcVersion") && find(nvrtc.architectures_count, "nvrtcGetNumSupportedArchs") &&
                   find(nvrtc.architectures, "nvrtcGetSupportedArchs") && find(nvrtc.create, "nvrtcCreateProgram") &&
                   find(nvrtc.destroy, "nvrtcDestroyProgram") && find(nvrtc.compile, "nvrtcCompileProgram") &&
                   find(nvrtc.log_size, "nvrtcGetProgramLogSize") && find(nvrtc.log, "nvrtcGetProgramLog") &&
                   find(nvrtc.cubin_size, "nvrtcGetCUBINSize") && find(nvrtc.cubin, "nvrtcGetCUBIN") &&
                   find(nvrtc.ptx_size, "nvrtcGetPTXSize") && find(nvrtc.ptx, "nvrtcGetPTX");
  return all ? nullptr : "it lacks functions that NVRTC 12.0 has";
}

void greet(const char* trouble) {
  char version[32] = "";
  char known[1024] = "";
  if (trouble == nullptr) {
    int major = 0, minor = 0, count = 0;
    static int numbers[128];
    if (nvrtc.version(&major, &minor) != 0 || nvrtc.architectures_count(&count) != 0 || count < 1 || count > 128 ||
        nvrtc.architectures(numbers) != 0) {
      trouble = "it does not tell its version";
    } else {
      std::snprintf(version, sizeof version, "%d.%d", major, minor);
      std::size_t at = 0;
      for (int i = 0; i < count && at < sizeof known - 16; ++i)
        at += static_cast<std::size_t>(std::snprintf(known + at, sizeof known - at, "%d ", numbers[i]));
    }
  }
  if (trouble == nullptr) trouble = "";
  const Field fields[] = {{trouble, std::strlen(trouble)}, {version, std::strlen(version)}, {known, std::strlen(known)}};
  reply(fields);
}

// `size` and `get` of one of the results; null = there is none.
char* result(Program program, int (*size)(Program, std::size_t*), int (*get)(Program, char*), std::size_t& bytes) {
  bytes = 0;
  if (size(program, &bytes) != 0 || bytes == 0) return nullptr;
  char* data = static_cast<char*>(std::malloc(bytes));
  if (data == nullptr || get(program, data) != 0) bytes = 0;
  return data;
}

void serve() {
  static std::uint64_t sizes[max_fields];
  static char* fields[max_fields];
  for (;;) {
    std::uint32_t head[2];
    receive(head, sizeof head);
    const std::size_t count = head[1];
    if (head[0] != magic || count < 3 || count > max_fields) _exit(2);
    receive(sizes, count * sizeof sizes[0]);
    for (std::size_t i = 0; i < count; ++i) {
      if (sizes[i] > max_request) _exit(2);
      fields[i] = static_cast<char*>(std::malloc(sizes[i] + 1));
      if (fields[i] == nullptr) _exit(3);
      receive(fields[i], sizes[i]);
      fields[i][sizes[i]] = '\0';
    }
    static const char* const names[] = {"kernel.cu", "kevin.cuh"};
    const char* const texts[] = {fields[1], fields[2]};
    Program program = nullptr;
    int status = nvrtc.create(&program, fields[0], "kevin.cu", 2, texts, names);
    std::size_t log_bytes = 0, cubin_bytes = 0, ptx_bytes = 0;
    char *log = nullptr, *cubin = nullptr, *ptx = nullptr;
    if (status == 0) {
      status = nvrtc.compile(program, static_cast<int>(count - 3), fields + 3);
      log = result(program, nvrtc.log_size, nvrtc.log, log_bytes);
      if (log_bytes > 0) --log_bytes;  // the zero at its end
      if (log_bytes > log_head + log_tail) {  // errors stand first, the assembler's lines last
        std::memmove(log + log_head, log + log_bytes - log_tail, log_tail);
        log[log_head] = '\n';
        log_bytes = log_head + log_tail;
      }
      if (status == 0) {
        cubin = result(program, nvrtc.cubin_size, nvrtc.cubin, cubin_bytes);
        ptx = result(program, nvrtc.ptx_size, nvrtc.ptx, ptx_bytes);
        if (ptx_bytes > 0) --ptx_bytes;
      }
      nvrtc.destroy(&program);
    }
    char number[16];
    std::snprintf(number, sizeof number, "%d", status);
    const Field answer[] = {{number, std::strlen(number)}, {log, log_bytes}, {cubin, cubin_bytes}, {ptx, ptx_bytes}};
    reply(answer);
    for (std::size_t i = 0; i < count; ++i) std::free(fields[i]);
    std::free(log);
    std::free(cubin);
    std::free(ptx);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 1;
  greet(load(argv[1]));
  serve();
}
)worker";

/// The whole program.
[[nodiscard]] inline std::string compile_worker_source() {
  return std::string(eval::blindfold_source) + std::string(compile_worker_main);
}

/// How it is compiled: its functions must be found before the C library's (-rdynamic), and what NVRTC's libraries are
/// linked to is named, so that the walls can be cut to what the loader says of this program.
[[nodiscard]] inline std::vector<std::string> compile_worker_flags() {
  return {"-std=c++17",         "-O1", "-rdynamic", "-fno-lto", "-U_FORTIFY_SOURCE", "-pthread",
          "-Wl,--no-as-needed", "-lm", "-lrt",      "-lstdc++", "-lgcc_s",           "-ldl"};
}

}  // namespace kevin::cuda

#endif  // KEVIN_EVAL_CUDA_COMPILE_WORKER_SOURCE_HPP
