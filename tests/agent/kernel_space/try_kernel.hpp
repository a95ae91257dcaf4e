#ifndef KEVIN_TESTS_AGENT_KERNEL_SPACE_TRY_KERNEL_HPP
#define KEVIN_TESTS_AGENT_KERNEL_SPACE_TRY_KERNEL_HPP

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <dlfcn.h>
#include <doctest/doctest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kevin/agent/kernel_space.hpp"
#include "kevin/eval/cpu/compiler.hpp"
#include "kevin/eval/spread.hpp"

/// Rendered kernels made real: compiled as candidates are, run in a child process, compared with what a test computes.
namespace kevin_test {

using kevin::Op;
using Numbers = std::vector<double>;
/// The output of a task, from its inputs and then its parameters.
using Reference = std::function<Numbers(const std::vector<Numbers>& arguments)>;

inline kevin::TensorSpec tensor(std::string name, kevin::Shape shape) {
  return {std::move(name), std::move(shape), kevin::DType::float32, {}};
}

/// A task whose output is the result of its last op.
inline kevin::Task make_task(std::vector<kevin::TensorSpec> inputs, std::vector<kevin::TensorSpec> parameters,
                             std::vector<Op> ops, kevin::Tolerance tolerance = {1e-6, 1e-4}) {
  kevin::Task task;
  task.id = "test/kernel_space";
  task.name = "Kernel space";
  task.inputs = std::move(inputs);
  task.parameters = std::move(parameters);
  task.outputs = {tensor(ops.back().out, ops.back().out_shape)};
  task.ops = std::move(ops);
  task.tolerance = tolerance;
  return task;
}

/// Floats that begin at a page, in memory that ends with a page nobody may touch; what is left of the last page before
/// it holds a number that tells whether it was written. Shared with child processes.
class GuardedFloats {
 public:
  GuardedFloats(std::size_t count, float behind)
      : count_(count), behind_(behind), pages_((count * sizeof(float) + page - 1) / page) {
    void* whole = ::mmap(nullptr, (pages_ + 2) * page, PROT_NONE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE((whole != MAP_FAILED));
    whole_ = static_cast<char*>(whole);
    REQUIRE(::mprotect(whole_ + page, pages_ * page, PROT_READ | PROT_WRITE) == 0);
    for (std::size_t i = 0; i < pages_ * page / sizeof(float); ++i) data()[i] = i < count ? poison : behind;
  }
  GuardedFloats(const GuardedFloats&) = delete;
  GuardedFloats& operator=(const GuardedFloats&) = delete;
  ~GuardedFloats() { ::munmap(whole_, (pages_ + 2) * page); }

  [[nodiscard]] float* data() const noexcept { return reinterpret_cast<float*>(whole_ + page); }
  [[nodiscard]] bool overrun() const noexcept {
    for (std::size_t i = count_; i < pages_ * page / sizeof(float); ++i) {
      if (data()[i] != behind_) return true;
    }
    return false;
  }

 private:
  static constexpr std::size_t page = 4096;
  static constexpr float poison = std::numeric_limits<float>::quiet_NaN();
  std::size_t count_;
  float behind_;
  std::size_t pages_;
  char* whole_ = nullptr;
};

class KernelTrials {
 public:
  KernelTrials(kevin::Task task, const Reference& reference)
      : task_(std::move(task)), space_(kevin::agent::kernel_space(task_)), compiler_(compiler_options()) {
    std::mt19937 random(1);
    for (const auto* specs : {&task_.inputs, &task_.parameters}) {
      for (const kevin::TensorSpec& t : *specs) {
        Numbers values(static_cast<std::size_t>(kevin::element_count(t.shape)));
        for (double& v : values) v = static_cast<float>(static_cast<double>(random() % 60001U) / 10000.0 - 3.0);
        arguments_.push_back(values);
      }
    }
    expected_ = reference(arguments_);
    REQUIRE(static_cast<std::int64_t>(expected_.size()) == kevin::element_count(task_.outputs[0].shape));
  }
  KernelTrials(const KernelTrials&) = delete;
  KernelTrials& operator=(const KernelTrials&) = delete;
  ~KernelTrials() { std::filesystem::remove_all(compiler_.options().cache_directory); }

  [[nodiscard]] const kevin::agent::KernelSpace& space() const noexcept { return space_; }

  /// The default choice but for the options in `words` ("width=8 tail=pad"): "right", "wrong" (values, or none
  /// written), "overrun" (stores behind the output), "crash" or "compile error".
  [[nodiscard]] std::string operator()(const std::string& words) {
    kevin::agent::Choices choices(space_.knobs().size(), 0);
    const auto read = space_.read_summary(words);
    for (std::size_t i = 0; i < choices.size(); ++i) choices[i] = read[i].value_or(0);
    return attempt(choices);
  }

  /// Tries each option of each knob with all other knobs at their first: right, but for the `exceptions`.
  void check_each_option(const std::map<std::string, std::string>& exceptions) {
    std::size_t met = 0;
    for (const kevin::agent::Knob& knob : space_.knobs()) {
      for (const std::string& option : knob.options) {
        const std::string word = knob.name + '=' + option;
        CAPTURE(word);
        const auto exception = exceptions.find(word);
        CHECK((*this)(word) == (exception == exceptions.end() ? "right" : exception->second));
        met += exception == exceptions.end() ? 0U : 1U;
      }
    }
    CHECK(met == exceptions.size());
  }

  /// Tries `count` random choices among the options that are not in `avoided`; all are right.
  void check_mixtures(int count, const std::vector<std::string>& avoided) {
    std::mt19937 random(2);
    for (int n = 0; n < count; ++n) {
      std::string words;
      for (const kevin::agent::Knob& knob : space_.knobs()) {
        std::vector<std::string> left;
        for (const std::string& option : knob.options) {
          const std::string word = knob.name + '=' + option;
          if (std::find(avoided.begin(), avoided.end(), word) == avoided.end()) left.push_back(word);
        }
        REQUIRE_FALSE(left.empty());
        words += left[random() % left.size()] + ' ';
      }
      CAPTURE(words);
      CHECK((*this)(words) == "right");
    }
  }

 private:
  static kevin::cpu::CompilerOptions compiler_options() {
    kevin::cpu::CompilerOptions o;
    o.cache_directory =
        std::filesystem::temp_directory_path() / ("kevin-test-kernel-space-" + std::to_string(::getpid()));
    o.time_limit = std::chrono::minutes(2);  // however busy the machine is
    return o;
  }

  [[nodiscard]] std::string attempt(const kevin::agent::Choices& choices) {
    const kevin::cpu::Compiled compiled = compiler_.compile(space_.render(choices), kevin::kernel_signature(task_));
    if (compiled.object.empty()) {
      REQUIRE(compiled.reason == "syntax");
      return "compile error";
    }
    std::vector<std::unique_ptr<GuardedFloats>> buffers;
    std::array<float*, 6> pointers{};
    REQUIRE(arguments_.size() < pointers.size());
    const auto add = [&](std::size_t count, float behind) {
      buffers.push_back(std::make_unique<GuardedFloats>(count, behind));
      pointers[buffers.size() - 1] = buffers.back()->data();
      return buffers.back()->data();
    };
    for (const Numbers& a : arguments_) {
      std::transform(a.begin(), a.end(), add(a.size(), 1000), [](double v) { return static_cast<float>(v); });
    }
    add(expected_.size(), -54321);  // another number: one that is copied here shows
    if (!run(compiled.object, pointers)) return "crash";
    if (buffers.back()->overrun()) return "overrun";
    const double spread =
        kevin::eval::spread_of(kevin::DType::float64, expected_.data(), static_cast<std::int64_t>(expected_.size()));
    for (std::size_t i = 0; i < expected_.size(); ++i) {
      const double limit = task_.tolerance.absolute + task_.tolerance.relative * std::abs(expected_[i]) +
                           task_.tolerance.spread * spread;
      const bool close = std::abs(static_cast<double>(buffers.back()->data()[i]) - expected_[i]) <= limit;
      if (!close) return "wrong";
    }
    return "right";
  }

  /// Whether the kernel comes back, in a process of its own. It may take fewer arguments than it is given.
  static bool run(const std::string& object, const std::array<float*, 6>& p) {
    const int fd = ::memfd_create("kernel", MFD_CLOEXEC);
    REQUIRE(::write(fd, object.data(), object.size()) == static_cast<ssize_t>(object.size()));
    void* handle = ::dlopen(("/proc/self/fd/" + std::to_string(fd)).c_str(), RTLD_NOW | RTLD_LOCAL);
    REQUIRE((handle != nullptr));
    using Kernel = void (*)(float*, float*, float*, float*, float*, float*);
    const auto kernel = reinterpret_cast<Kernel>(::dlsym(handle, "kernel"));
    REQUIRE((kernel != nullptr));
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      for (const int signal : {SIGSEGV, SIGBUS, SIGABRT}) ::signal(signal, SIG_DFL);  // not the test framework's
      kernel(p[0], p[1], p[2], p[3], p[4], p[5]);
      ::_exit(0);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    ::dlclose(handle);
    ::close(fd);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }

  kevin::Task task_;
  kevin::agent::KernelSpace space_;
  kevin::cpu::Compiler compiler_;
  std::vector<Numbers> arguments_;
  Numbers expected_;
};

}  // namespace kevin_test

#endif  // KEVIN_TESTS_AGENT_KERNEL_SPACE_TRY_KERNEL_HPP
