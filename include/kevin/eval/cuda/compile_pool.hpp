#ifndef KEVIN_EVAL_CUDA_COMPILE_POOL_HPP
#define KEVIN_EVAL_CUDA_COMPILE_POOL_HPP

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <sstream>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <linux/filter.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "kevin/core/error.hpp"
#include "kevin/eval/command.hpp"
#include "kevin/eval/cuda/compile_worker.hpp"
#include "kevin/eval/cuda/compiler_options.hpp"
#include "kevin/eval/cuda/nvrtc.hpp"
#include "kevin/eval/memory_file.hpp"
#include "kevin/eval/process.hpp"
#include "kevin/eval/sandbox.hpp"
#include "kevin/eval/scratch.hpp"

namespace kevin::cuda {

namespace detail {

/// The paths in what the dynamic loader prints for ldd.
[[nodiscard]] inline std::vector<std::filesystem::path> listed_libraries(const std::string& output) {
  std::vector<std::filesystem::path> all;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    const auto slash = line.find('/');
    const auto end = line.rfind(" (0x");
    if (line.starts_with('\t') && slash != std::string::npos && end != std::string::npos && slash < end)
      all.emplace_back(line.substr(slash, end - slash));
  }
  return all;
}

}  // namespace detail

/// Keeps the processes in which NVRTC compiles: loading it takes longer than compiling a small kernel, its front end
/// works for one thread at a time only, and precompiled headers are usable only in the process that made them.
///
/// A process is started when one is needed and none is idle, at most `workers` of them. Each has a folder of its own,
/// sees NVRTC's libraries and the headers beside it and nothing else (Landlock), can do what compilers do and no more
/// (seccomp), and is replaced after a number of compilations. Between two candidates in one process nothing is passed
/// on that NVRTC itself does not keep. All are children of a thread that lives as long as the pool (see spawn()).
/// Thread safe.
class CompilePool {
 public:
  /// Bytes of the largest file that a worker may write: one set of precompiled headers.
  static constexpr std::uint64_t file_limit = std::uint64_t{512} << 20;

  /// `program`: path of the compiled worker. Keeps references to options and NVRTC.
  CompilePool(std::filesystem::path program, const CompilerOptions& options, const Nvrtc& nvrtc)
      : program_(std::move(program)),
        options_(options),
        nvrtc_(nvrtc),
        limit_(options.workers != 0 ? options.workers
                                    : std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, 16)),
        scratch_("kevin-nvrtc-", headers_place(options, limit_)),
        filter_(eval::compiler_seccomp()) {
    find_libraries();
    spawner_ = std::jthread([this](std::stop_token stop) { spawn_wanted(stop); });
    reaper_ = std::jthread([this](std::stop_token stop) { reap(stop); });
  }

  CompilePool(const CompilePool&) = delete;
  CompilePool& operator=(const CompilePool&) = delete;

  /// All workers must have been given back.
  ~CompilePool() {
    spawner_.request_stop();
    spawner_.join();
    reaper_.request_stop();
    reaper_.join();
  }

  /// An idle worker, preferably one that has `headers` precompiled; `fresh`: one that never compiled anything.
  /// Throws Error when none can be started.
  [[nodiscard]] std::unique_ptr<CompileWorker> acquire(const std::string& headers, bool fresh) {
    std::unique_lock lock(mutex_);
    std::size_t& waiting = fresh ? waiting_fresh_ : waiting_;
    ++waiting;
    std::unique_ptr<CompileWorker> worker;
    const auto found = [&] {
      while ((worker = take(headers, fresh))) {
        if (worker->jobs() == 0 || worker->idle()) return true;
        discard(std::move(worker));  // it died, or says something unasked
      }
      return false;
    };
    while (!found()) {
      changed_.notify_all();
      if (failure_) {
        --waiting;
        std::rethrow_exception(std::exchange(failure_, nullptr));
      }
      changed_.wait(lock);
    }
    --waiting;
    changed_.notify_all();
    return worker;
  }

  /// Gives back a worker that may be used again.
  void release(std::unique_ptr<CompileWorker> worker) {
    trim_headers(*worker);
    const bool old = worker->jobs() >= std::max<std::size_t>(1, options_.compiles_per_worker);
    const std::lock_guard lock(mutex_);
    if (old || alive_ > limit_) {
      replacements_ += old && alive_ <= limit_ ? 1 : 0;  // started before somebody waits for it
      discard(std::move(worker));
    } else {
      idle_.push_back(std::move(worker));
    }
    changed_.notify_all();
  }

  /// Ends a worker that may not be used again. Returns at once.
  void retire(std::unique_ptr<CompileWorker> worker) noexcept {
    const std::lock_guard lock(mutex_);
    discard(std::move(worker));
    changed_.notify_all();
  }

  [[nodiscard]] std::size_t limit() const noexcept { return limit_; }
  /// Where workers have their folders; nothing of it is left when the pool is destroyed.
  [[nodiscard]] const std::filesystem::path& folder() const noexcept { return scratch_.folder(); }
  /// Processes that are there now.
  [[nodiscard]] std::size_t alive() const {
    const std::lock_guard lock(mutex_);
    return alive_;
  }

 private:
  /// NVRTC writes 100 MB and more for cub or cooperative groups, which memory takes in no time and a busy disk in
  /// seconds. Where there is less room than all workers may want, it is not used: a full one kills the process.
  [[nodiscard]] static std::filesystem::path headers_place(const CompilerOptions& options, std::size_t workers) {
    if (!options.headers_directory.empty()) return options.headers_directory;
    constexpr const char* memory = "/dev/shm";
    constexpr std::uint64_t heap = std::uint64_t{256} << 20;
    struct statvfs info {};
    const bool room = options.precompiled_headers && ::access(memory, W_OK) == 0 && ::statvfs(memory, &info) == 0 &&
                      (info.f_flag & ST_RDONLY) == 0 &&
                      info.f_bavail * info.f_frsize / (workers + 1) > options.headers_limit + heap;
    return room ? memory : eval::temporary_folder();
  }

  /// The last used of the suitable ones, since its memory is warm. Under the lock.
  [[nodiscard]] std::unique_ptr<CompileWorker> take(const std::string& headers, bool fresh) {
    auto chosen = idle_.rend();
    for (auto w = idle_.rbegin(); w != idle_.rend(); ++w) {
      if (fresh && (*w)->jobs() != 0) continue;
      if (chosen == idle_.rend()) chosen = w;
      if (!fresh && (*w)->prepared(headers)) {
        chosen = w;
        break;
      }
    }
    if (chosen == idle_.rend()) return nullptr;
    auto worker = std::move(*chosen);
    idle_.erase(std::next(chosen).base());
    return worker;
  }

  /// Under the lock.
  void discard(std::unique_ptr<CompileWorker> worker) noexcept {
    worker->kill();
    --alive_;
    used_.push_back(std::move(worker));
  }

  [[nodiscard]] bool wants_more() const {
    if (failure_) return false;  // only when somebody has taken notice of it
    const auto unused = static_cast<std::size_t>(
        std::count_if(idle_.begin(), idle_.end(), [](const auto& w) { return w->jobs() == 0; }));
    if (waiting_fresh_ > unused) return true;  // also above the limit, for a moment
    return alive_ < limit_ && (waiting_ > idle_.size() || replacements_ > 0);
  }

  void spawn_wanted(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (changed_.wait(lock, stop, [&] { return wants_more(); })) {
      if (replacements_ > 0) --replacements_;
      ++alive_;
      lock.unlock();
      std::unique_ptr<CompileWorker> worker;
      std::exception_ptr failure;
      try {
        worker = start();
      } catch (...) {
        failure = std::current_exception();
      }
      lock.lock();
      if (worker) {
        idle_.push_back(std::move(worker));
      } else {
        --alive_;
        // nobody may be there to take notice; then the next one tries again
        if (waiting_ + waiting_fresh_ > 0) failure_ = failure;
      }
      changed_.notify_all();
    }
  }

  void reap(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (changed_.wait(lock, stop, [&] { return !used_.empty(); }) || !used_.empty()) {
      auto ended = std::exchange(used_, {});
      lock.unlock();
      ended.clear();  // waits until each is gone, and removes its folder
      lock.lock();
    }
  }

  /// Only starts it: the greeting is awaited by who uses it, so that several start at the same time.
  [[nodiscard]] std::unique_ptr<CompileWorker> start() {
    int pair[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
      eval::detail::throw_errno("socketpair for a compiler");
    eval::Descriptor control(pair[0]);
    eval::Descriptor theirs(pair[1]);
    if (::fcntl(control.get(), F_SETFL, O_NONBLOCK) != 0) eval::detail::throw_errno("fcntl");
    // so that code of the usual size is handed over without the worker waiting for us
    const int size = 1 << 20;
    ::setsockopt(theirs.get(), SOL_SOCKET, SO_SNDBUF, &size, sizeof size);

    auto part = std::make_unique<eval::Scratch::Part>(scratch_.folder() / std::to_string(started_++));
    // a name that no source can guess: it shall not include what lies there
    std::array<std::uint64_t, 2> secret{};
    eval::secret_bytes(std::as_writable_bytes(std::span(secret)));
    const std::filesystem::path empty = part->path() / "empty";
    const std::filesystem::path headers = part->path() / (std::to_string(secret[0]) + std::to_string(secret[1]));
    for (const auto& path : {empty, headers}) {
      if (::mkdir(path.c_str(), 0700) != 0) eval::detail::throw_errno("making " + path.string());
    }
    std::vector<std::filesystem::path> writable;
    if (options_.precompiled_headers) writable.push_back(headers);
    const eval::LandlockRuleset rules = eval::landlock(readable_, writable);

    eval::SpawnOptions options;
    options.program = program_;
    options.arguments = {nvrtc_.file.string()};
    options.environment = {"LC_ALL=C", "TMPDIR=" + headers.string(), library_path_};
    options.directory = empty;  // where a source's own folder would be
    options.descriptors = {{theirs.get(), 3}};
    options.limits.address_space = options_.memory_limit;
    options.limits.file_size = file_limit;
    options.limits.stack = std::uint64_t{64} << 20;  // NVRTC recurses deeply
    options.limits.open_files = 256;
    const auto life = options_.time_limit.count() / 1000 * static_cast<std::int64_t>(options_.compiles_per_worker);
    options.limits.cpu_seconds = static_cast<std::uint64_t>(std::clamp<std::int64_t>(4 * life, 600, 1'000'000));
    options.landlock_ruleset = rules.fd();
    options.seccomp = filter_;
    eval::Child child = eval::spawn(options);
    return std::make_unique<CompileWorker>(std::move(child), std::move(control), std::move(part), headers);
  }

  /// What the program and NVRTC are loaded with, and nothing else of the system.
  void find_libraries() {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    eval::SpawnOptions trace;
    trace.program = program_;
    trace.environment = {"LC_ALL=C", "LD_TRACE_LOADED_OBJECTS=1"};
    trace.directory = "/";
    auto found = detail::listed_libraries(eval::run_command(trace, deadline, eval::Capture::output).output);
    const auto loader = std::find_if(found.begin(), found.end(), [](const std::filesystem::path& p) {
      return p.filename().string().starts_with("ld-");
    });
    if (loader != found.end()) {
      const std::filesystem::path program = *loader;
      for (const std::filesystem::path& library : nvrtc_.libraries) {
        eval::SpawnOptions list;
        list.program = program;
        list.arguments = {"--list", library.string()};
        list.environment = {"LC_ALL=C"};
        list.directory = "/";
        const auto more = detail::listed_libraries(eval::run_command(list, deadline, eval::Capture::output).output);
        found.insert(found.end(), more.begin(), more.end());
      }
    }
    std::set<std::string> folders;
    for (const std::filesystem::path& path : found) {
      readable_.push_back(path);
      folders.insert(path.parent_path().string());
    }
    // Without /etc/ld.so.cache, which is not shown, the loader has to be told where libraries are.
    library_path_ = "LD_LIBRARY_PATH=" + nvrtc_.file.parent_path().string();
    for (const std::string& folder : folders) library_path_ += ':' + folder;
    readable_.insert(readable_.end(), nvrtc_.libraries.begin(), nvrtc_.libraries.end());
    readable_.insert(readable_.end(), nvrtc_.include.begin(), nvrtc_.include.end());
    std::sort(readable_.begin(), readable_.end());
    readable_.erase(std::unique(readable_.begin(), readable_.end()), readable_.end());
    std::erase_if(readable_, [](const std::filesystem::path& p) { return !std::filesystem::exists(p); });
  }

  /// Removes the oldest precompiled headers above the limit.
  void trim_headers(const CompileWorker& worker) const {
    struct File {
      std::filesystem::file_time_type time;
      std::uint64_t size;
      std::filesystem::path path;
    };
    if (!options_.precompiled_headers) return;
    std::vector<File> files;
    std::uint64_t sum = 0;
    std::error_code error;
    for (std::filesystem::directory_iterator entry(worker.headers(), error), end; !error && entry != end;
         entry.increment(error)) {
      std::error_code gone;
      if (entry->is_symlink(gone) || !entry->is_regular_file(gone)) {
        std::filesystem::remove_all(entry->path(), gone);
        continue;
      }
      files.push_back({entry->last_write_time(gone), entry->file_size(gone), entry->path()});
      sum += files.back().size;
    }
    std::sort(files.begin(), files.end(), [](const File& a, const File& b) { return a.time < b.time; });
    for (const File& file : files) {
      if (sum <= options_.headers_limit && files.size() <= 4096) break;
      std::filesystem::remove(file.path, error);
      sum -= file.size;
    }
  }

  std::filesystem::path program_;
  const CompilerOptions& options_;
  const Nvrtc& nvrtc_;
  std::size_t limit_;
  eval::Scratch scratch_;
  std::vector<sock_filter> filter_;
  std::vector<std::filesystem::path> readable_;
  std::string library_path_;
  unsigned long started_ = 0;  // of the spawner

  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  std::vector<std::unique_ptr<CompileWorker>> idle_;
  std::vector<std::unique_ptr<CompileWorker>> used_;
  std::size_t alive_ = 0;
  std::size_t waiting_ = 0;
  std::size_t waiting_fresh_ = 0;
  std::size_t replacements_ = 0;
  std::exception_ptr failure_;

  // last: they use everything above
  std::jthread spawner_;
  std::jthread reaper_;
};

}  // namespace kevin::cuda

#endif  // KEVIN_EVAL_CUDA_COMPILE_POOL_HPP
