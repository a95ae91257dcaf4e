// Puts faulty CUDA candidates in random order, with an honest one after each, through one evaluator, kills runner
// processes from outside in between, and then looks at what is left: the judge, child processes, descriptors, GPU
// memory. Exit code 0 = nothing is; 77 = this machine has no GPU to try it on.
//
//   gpu_soak [--count N] [--seed S]     N faults (default 40)
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include <unistd.h>

#include "../eval/cuda/hostile_candidates.hpp"
#include "kevin/core/random.hpp"
#include "kevin/eval/cuda/evaluator.hpp"

namespace {

namespace fs = std::filesystem;

std::size_t open_descriptors() {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator()));
}

/// Children of this process whose program's name contains `name`.
std::vector<pid_t> children(const std::string& name) {
  std::vector<pid_t> found;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string number = entry.path().filename();
    if (number.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream file(entry.path() / "stat");
    std::string text;
    std::getline(file, text);
    const std::size_t end = text.rfind(')');
    char state = 0;
    int parent = 0;
    if (end == std::string::npos || std::sscanf(text.c_str() + end + 1, " %c %d", &state, &parent) != 2 ||
        parent != ::getpid()) {
      continue;
    }
    std::error_code error;
    if (fs::read_symlink(entry.path() / "exe", error).string().find(name) != std::string::npos)
      found.push_back(std::atoi(number.c_str()));
  }
  return found;
}

kevin::Task relu_task() {
  kevin::Task t;
  t.id = "soak/relu";
  t.name = "ReLU";
  t.inputs = {{"x", {gpu_hostile::elements}, kevin::DType::float32, {kevin::Distribution::Kind::normal, 0, 1}}};
  t.ops = {{"relu", {}, {"x"}, "y", {gpu_hostile::elements}}};
  t.outputs = {{"y", {gpu_hostile::elements}}};
  return t;
}

}  // namespace

int main(int argc, char** argv) {
  std::size_t count = 40;
  std::uint64_t seed = 1;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--count") == 0) count = std::strtoull(argv[i + 1], nullptr, 10);
    if (std::strcmp(argv[i], "--seed") == 0) seed = std::strtoull(argv[i + 1], nullptr, 10);
  }
  const auto start = std::chrono::steady_clock::now();
  const kevin::Task task = relu_task();
  const kevin::Candidate honest{gpu_hostile::with_body("if (i < n) out[i] = x[i] > 0 ? x[i] : 0;")};
  std::vector<gpu_hostile::Candidate> faults;
  for (const auto& c : gpu_hostile::candidates()) {
    if (c.stage == kevin::Stage::run && c.name != "deep recursion") faults.push_back(c);
  }
  std::size_t wrong = 0;
  const auto complain = [&](const std::string& what) {
    ++wrong;
    std::printf("WRONG: %s\n", what.c_str());
  };
  try {
    kevin::cuda::EvaluatorOptions options;
    options.judge.launch_ms = 1500;  // a trap has been seen to take the driver more than half a second
    options.judge.timing.max_rounds = 10;
    options.spares = 3;
    kevin::cuda::Evaluator evaluator(options);
    const kevin::cuda::Gpu gpu;
    const auto used_mib = [&] {
      std::size_t free = 0;
      std::size_t total = 0;
      gpu.use();
      gpu.api().check(gpu.api().memory_info(&free, &total), "cuMemGetInfo");
      return static_cast<double>(total - free) / (1 << 20);
    };
    double used_early = 0;
    std::size_t descriptors_early = 0;
    struct Times {
      std::size_t count = 0;
      double fault = 0;   ///< the longest evaluation of it
      double honest = 0;  ///< the longest of an honest one after it
    };
    std::map<std::string, Times> times;
    std::vector<double> honest_ms;
    std::vector<double> speedups;  ///< of the honest candidate, always the same
    const auto milliseconds_since = [](std::chrono::steady_clock::time_point begin) {
      return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
    };
    std::setvbuf(stdout, nullptr, _IOLBF, 0);
    for (std::size_t i = 0; i < count; ++i) {
      if (i % 50 == 0 && i > 0) std::printf("%zu faults, %zu wrong\n", i, wrong);
      kevin::Rng rng(seed, "soak", i);
      const std::size_t which = rng.below(faults.size() + 1);
      Times& t = times[which < faults.size() ? faults[which].name : "runner killed from outside"];
      const auto begin = std::chrono::steady_clock::now();
      if (which == faults.size()) {  // a runner is killed from outside while an honest candidate is judged
        std::thread killer([&] {
          std::this_thread::sleep_for(std::chrono::milliseconds(rng.below(15)));
          for (const pid_t pid : children("kevin-gpu-runner")) ::kill(pid, SIGKILL);
        });
        const kevin::Verdict v = evaluator.evaluate(task, honest, rng());
        killer.join();
        if (!v.correct()) complain("an honest candidate whose runner was killed: " + v.reason + ' ' + v.diagnostics);
      } else {
        const gpu_hostile::Candidate& c = faults[which];
        const kevin::Verdict v = evaluator.evaluate(task, {c.source}, rng());
        if (v.stage != c.stage || (!c.reasons.empty() && std::count(c.reasons.begin(), c.reasons.end(), v.reason) == 0))
          complain(c.name + ": " + std::string(to_string(v.stage)) + ' ' + v.reason + ' ' + v.diagnostics);
      }
      ++t.count;
      t.fault = std::max(t.fault, milliseconds_since(begin));
      const auto before = std::chrono::steady_clock::now();
      const kevin::Verdict v = evaluator.evaluate(task, honest, rng());
      honest_ms.push_back(milliseconds_since(before));
      t.honest = std::max(t.honest, honest_ms.back());
      if (!v.correct()) complain("the honest candidate after number " + std::to_string(i) + ": " + v.reason);
      if (v.speedup) speedups.push_back(*v.speedup);
      if (i == std::min<std::size_t>(count / 5, 40)) {
        std::this_thread::sleep_for(std::chrono::seconds(2));
        used_early = used_mib();
        descriptors_early = open_descriptors();
      }
    }
    std::this_thread::sleep_for(std::chrono::seconds(2));  // spares are there, used ones are gone
    const double used = used_mib();
    std::printf("%-34s | times | longest ms | longest honest verdict after it, ms\n", "fault");
    for (const auto& [name, t] : times)
      std::printf("%-34s | %5zu | %10.0f | %6.0f\n", name.c_str(), t.count, t.fault, t.honest);
    std::sort(honest_ms.begin(), honest_ms.end());
    std::sort(speedups.begin(), speedups.end());
    const auto quantile = [](const std::vector<double>& sorted, double q) {
      return sorted.empty() ? 0 : sorted[static_cast<std::size_t>(q * static_cast<double>(sorted.size() - 1))];
    };
    std::printf(
        "%zu faults: GPU memory in use %.0f MiB, then %.0f MiB; descriptors %zu, then %zu; honest verdicts after a "
        "fault: median %.0f ms, 90 %% within %.0f ms, the slowest %.0f ms; their speedups: %.2f to %.2f, median %.2f\n",
        count, used_early, used, descriptors_early, open_descriptors(), quantile(honest_ms, 0.5),
        quantile(honest_ms, 0.9), quantile(honest_ms, 1), quantile(speedups, 0), quantile(speedups, 1),
        quantile(speedups, 0.5));
    if (used > used_early + 600) complain("GPU memory is left behind");  // one context more or less
    if (open_descriptors() > descriptors_early + 8) complain("descriptors leaked");
    if (children("kevin-gpu-runner").size() > options.spares + 1) complain("runners are left over");
  } catch (const kevin::Error& e) {
    if (e.code() == kevin::ErrorCode::unsupported) return std::printf("skipped: %s\n", e.what()), 77;
    complain(std::string("the machinery failed: ") + e.what());
  }
  if (!children("kevin-gpu-runner").empty()) complain("child processes are left");
  std::printf("%zu wrong; %.1f s\n", wrong,
              std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  return wrong == 0 ? 0 : 1;
}
