// Puts hostile candidates in random order, with honest ones between them, through one evaluator, and then looks at what
// is left: the judge itself, its child processes, descriptors, memory, files. Exit code 0 = nothing is.
//
//   hostile_soak [--count N] [--seed S] [--threads T]     N hostile candidates (default 60), from T threads at once
//   (default 2)
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <unistd.h>

#include "../eval/cpu/hostile_candidates.hpp"
#include "kevin/core/random.hpp"
#include "kevin/eval/cpu/evaluator.hpp"

namespace {

namespace fs = std::filesystem;

std::size_t open_descriptors() {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator()));
}

/// Resident memory of this process, MiB.
double resident_mib() {
  std::ifstream file("/proc/self/statm");
  double pages = 0;
  file >> pages >> pages;
  return pages * static_cast<double>(::sysconf(_SC_PAGESIZE)) / (1 << 20);
}

/// Every process whose parent is this one, or whose program is the runner (wherever it was re-parented to).
std::set<pid_t> stray_processes() {
  std::set<pid_t> found;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream file(entry.path() / "stat");
    std::string text;
    std::getline(file, text);
    const std::size_t end = text.rfind(')');
    if (end == std::string::npos) continue;
    char state = 0;
    int parent = 0;
    if (std::sscanf(text.c_str() + end + 1, " %c %d", &state, &parent) == 2 && parent == ::getpid())
      found.insert(std::atoi(name.c_str()));
  }
  return found;
}

std::set<std::string> files_below(const fs::path& folder) {
  std::set<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) names.insert(entry.path().filename());
  return names;
}

/// New files in places that candidates try to write to, or that the machinery uses for the moment.
std::set<std::string> new_files(const std::set<std::string>& before, const std::set<std::string>& after) {
  std::set<std::string> fresh;
  for (const std::string& name : after) {
    if (before.count(name) == 0 && name.find("kevin") != std::string::npos) fresh.insert(name);
  }
  return fresh;
}

}  // namespace

int main(int argc, char** argv) {
  std::size_t count = 60;
  std::uint64_t seed = 1;
  std::size_t workers = 2;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string option = argv[i];
    const std::uint64_t value = std::strtoull(argv[i + 1], nullptr, 10);
    if (option == "--count")
      count = value;
    else if (option == "--seed")
      seed = value;
    else if (option == "--threads")
      workers = std::max<std::uint64_t>(1, value);
    else
      return std::fprintf(stderr, "unknown option %s\n", option.c_str()), 2;
  }

  const auto start = std::chrono::steady_clock::now();
  // A temporary folder of its own: other programs' files come and go in the common one, where candidates try their luck.
  const fs::path common = fs::temp_directory_path();
  std::string own = (common / "kevin-soak-XXXXXX").string();
  if (::mkdtemp(own.data()) == nullptr || ::setenv("TMPDIR", own.c_str(), 1) != 0) return 2;
  const auto common_before = files_below(common);
  const auto shared_before = files_below("/dev/shm");
  const auto here_before = files_below(".");
  std::vector<hostile::Candidate> all = hostile::candidates();
  all.push_back(hostile::fifty_megabytes());
  const kevin::Task task = hostile::task();
  const kevin::Candidate honest = hostile::honest();

  std::atomic<std::size_t> wrong{0};
  std::mutex print;
  double resident_early = 0;
  std::size_t descriptors_early = 0;
  const auto complain = [&](const std::string& what) {
    ++wrong;
    const std::lock_guard lock(print);
    std::printf("WRONG: %s\n", what.c_str());
  };
  {
    kevin::cpu::EvaluatorOptions one;
    one.judge.launch_ms = 200;
    one.judge.memory = std::uint64_t{256} << 20;
    one.judge.timing.max_rounds = 8;
    one.compiler.time_limit = std::chrono::milliseconds(3000);
    kevin::cpu::EvaluatorOptions two = one;
    two.judge.threads = 2;
    kevin::cpu::Evaluator single(one);
    kevin::cpu::Evaluator pair(two);
    const auto evaluator = [&](int threads) -> kevin::cpu::Evaluator& { return threads == 1 ? single : pair; };

    const auto go = [&](std::size_t from, std::size_t to) {
      std::atomic<std::size_t> next{from};
      std::vector<std::thread> threads;
      for (std::size_t w = 0; w < workers; ++w) {
        threads.emplace_back([&] {
          for (std::size_t i = next++; i < to; i = next++) {
            kevin::Rng rng(seed, "soak", i);
            // every candidate once before any comes again
            const hostile::Candidate& c = all[i < all.size() ? i : rng.below(all.size())];
            try {
              const kevin::Verdict v = evaluator(c.threads).evaluate(task, {c.source}, rng());
              const bool right = v.stage == c.stage &&
                                 (c.reasons.empty() || std::count(c.reasons.begin(), c.reasons.end(), v.reason) > 0);
              if (!right)
                complain(c.name + ": " + std::string(to_string(v.stage)) + ' ' + v.reason + ' ' + v.diagnostics);
              const kevin::Verdict h = single.evaluate(task, honest, rng());
              if (!h.correct())
                complain("the honest candidate after " + c.name + ": " + std::string(to_string(h.stage)) + ' ' +
                         h.reason + ' ' + h.diagnostics);
            } catch (const std::exception& e) {
              complain(c.name + " made the machinery fail: " + e.what());
            }
          }
        });
      }
      for (auto& t : threads) t.join();
    };
    // the order is random, but the first pass over a permuted list meets every candidate
    kevin::Rng order(seed, "order");
    for (std::size_t i = all.size(); i > 1; --i) std::swap(all[i - 1], all[order.below(i)]);
    const std::size_t early = std::min(count, std::max<std::size_t>(count / 5, 20));
    go(0, early);
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    resident_early = resident_mib();
    descriptors_early = open_descriptors();
    go(early, count);
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    const double grown = resident_mib() - resident_early;
    const std::size_t descriptors = open_descriptors();
    std::printf(
        "%zu hostile candidates: resident memory %.0f MiB, %+.0f MiB since number %zu; descriptors %zu, then %zu\n",
        count, resident_mib(), grown, early, descriptors_early, descriptors);
#ifdef __SANITIZE_ADDRESS__
    constexpr double allowed = 64 + 256;  // AddressSanitizer keeps so much of what was freed
#else
    constexpr double allowed = 64;
#endif
    if (grown > allowed) complain("memory grew");
    if (descriptors > descriptors_early + 2) complain("descriptors leaked");
    const std::size_t children = stray_processes().size();
    if (children > one.spares + two.spares)
      complain(std::to_string(children) + " child processes, more than the spare ones");
  }
  if (const auto left = stray_processes(); !left.empty())
    complain(std::to_string(left.size()) + " child processes are left");
  for (const std::string& name : files_below(own)) complain("a file is left in the temporary folder: " + name);
  for (const std::string& name : new_files(common_before, files_below(common))) {
    if (name.starts_with("kevin_hostile")) complain("a file is left in the temporary folder: " + name);
  }
  fs::remove_all(own);
  for (const std::string& name : new_files(shared_before, files_below("/dev/shm")))
    complain("a file is left in /dev/shm: " + name);
  for (const std::string& name : new_files(here_before, files_below("."))) complain("a file is left here: " + name);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::printf("%zu wrong; %.1f s\n", wrong.load(), seconds);
  return wrong == 0 ? 0 : 1;
}
