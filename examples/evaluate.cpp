// Judges a kernel file against a task: a table for people, or JSON.

#include <kevin/agent/json.hpp>
#include <kevin/cpu.hpp>
#include <kevin/cuda.hpp>
#include <kevin/kevin.hpp>
#include <kevin/tasks/peaks_json.hpp>

#include <CLI/CLI.hpp>

#include <filesystem>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <iterator>
#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "command_line.hpp"

namespace {

std::string read_source(const std::string& file) {
  std::ifstream in;
  if (file != "-") in.open(file, std::ios::binary);
  if (!in || (file != "-" && std::filesystem::is_directory(file)))
    throw kevin::Error(kevin::ErrorCode::not_found, "cannot read " + file);
  std::string source(std::size_t{1} << 20, '\0');  // more than the evaluator takes, which says so
  std::istream& from = file == "-" ? std::cin : in;
  from.read(source.data(), static_cast<std::streamsize>(source.size()));
  source.resize(static_cast<std::size_t>(from.gcount()));
  return source;
}

void print_timing(const char* name, const kevin::Timing& t) {
  std::cout << std::left << std::setw(12) << name << std::fixed << std::setprecision(4) << t.median_ms << " ms   ["
            << t.low_ms << ", " << t.high_ms << "] over " << t.samples << " runs\n";
}

/// What a backend tells besides the verdict, for the table and for JSON.
struct Judged {
  kevin::Verdict verdict;
  nlohmann::json details = nlohmann::json::object();
  std::string table{};
};

Judged judge_on_cpu(const kevin::Task& task, const kevin::Candidate& candidate, std::uint64_t seed, int threads) {
  kevin::cpu::EvaluatorOptions options;
  options.judge.threads = threads;
  return {kevin::cpu::Evaluator(options).evaluate(task, candidate, seed)};
}

Judged judge_on_gpu(const kevin::Task& task, const kevin::Candidate& candidate, std::uint64_t seed, int gpu,
                    std::string_view tf32, const std::string& peaks, bool compile_only) {
  kevin::cuda::EvaluatorOptions options;
  options.gpus = {gpu};
  options.spares = 1;
  options.compile_only = compile_only;
  options.judge.variants = true;
  if (!peaks.empty()) options.judge.peaks = kevin::tasks::load_peaks(peaks);
  for (const auto t : {kevin::tasks::Tf32::convolutions, kevin::tasks::Tf32::all}) {
    if (tf32 == to_string(t)) options.judge.baseline_tf32 = t;
  }
  kevin::cuda::Evaluator evaluator(options);
  const kevin::cuda::Evaluation e = evaluator.evaluate_in_detail(task, candidate, seed);
  Judged judged{e.verdict};
  std::ostringstream table;
  nlohmann::json kernels = nlohmann::json::array();
  for (const auto& k : e.compiled) {
    if (k.name == "kevin_entry") continue;
    table << std::left << std::setw(12) << "kernel" << k.name << ": " << k.registers << " registers, "
          << k.spill_store_bytes + k.spill_load_bytes << " bytes spilled, " << k.shared_bytes << " bytes shared\n";
    kernels.push_back({{"name", k.name},
                       {"registers", k.registers},
                       {"spill_bytes", k.spill_store_bytes + k.spill_load_bytes},
                       {"shared_bytes", k.shared_bytes}});
  }
  judged.details["kernels"] = std::move(kernels);
  if (e.judgement) {
    const kevin::cuda::Judgement& j = *e.judgement;
    nlohmann::json launches = nlohmann::json::array();
    for (const auto& l : j.kernels) {
      table << std::left << std::setw(12) << "launch" << l.kernel << ": " << l.resident_threads
            << " threads on a multiprocessor\n";
      launches.push_back({{"kernel", l.kernel}, {"resident_threads", l.resident_threads}});
    }
    judged.details["launches"] = std::move(launches);
    judged.details["protocol"] = std::string(name_of(options.judge.protocol));
    judged.details["baseline_tf32"] = to_string(options.judge.baseline_tf32);
    judged.details["floor_ms"] = j.floor_ms;
    judged.details["ms"] = {{"setup", j.setup_ms}, {"load", j.load_ms}, {"check", j.check_ms}, {"timing", j.timing_ms}};
    const auto variant = [&](const char* name, const std::optional<kevin::Timing>& t) {
      if (!t) return;
      table << std::left << std::setw(12) << name << std::fixed << std::setprecision(4) << t->median_ms << " ms\n";
      judged.details["variants"][name] = t->median_ms;
    };
    variant("warm", j.variants.warm);
    variant("graph", j.variants.graph);
    variant("graph, warm", j.variants.graph_warm);
    variant("eager, warm", j.variants.eager_warm);
    variant("eager graph", j.variants.eager_graph);
    table << std::left << std::setw(12) << "clock" << name_of(options.judge.protocol) << ", an empty plan shows "
          << std::fixed << std::setprecision(4) << j.floor_ms << " ms\n"
          << std::setw(12) << "spent" << std::setprecision(0) << j.setup_ms << " ms buffers, " << j.load_ms
          << " ms loading, " << j.check_ms << " ms checking, " << j.timing_ms << " ms timing\n";
  }
  judged.table = table.str();
  return judged;
}

void print_table(const kevin::Task& task, const Judged& judged, const kevin::Score& score) {
  const kevin::Verdict& v = judged.verdict;
  const auto row = [](const char* name) -> std::ostream& { return std::cout << std::left << std::setw(12) << name; };
  row("task") << task.id << " (" << task.name << ")\n";
  row("stage") << kevin::to_string(v.stage) << (v.reason.empty() ? "" : " (" + v.reason + ")") << '\n';
  if (v.error) {
    row("errors") << v.error->wrong << " of " << v.error->elements << " elements wrong, largest error "
                  << std::defaultfloat << std::setprecision(3) << v.error->max_absolute << '\n';
    row("KernelBench");
    if (v.error->outside_kernelbench == 0)
      std::cout << "would accept this output\n";
    else
      std::cout << "would not: " << v.error->outside_kernelbench << " elements are outside its rule\n";
  }
  if (v.candidate) print_timing("candidate", *v.candidate);
  if (v.baseline) print_timing("baseline", *v.baseline);
  if (v.speedup) row("speedup") << std::fixed << std::setprecision(3) << *v.speedup << "x\n";
  if (v.speed_of_light_ms && v.candidate)
    row("light") << std::setprecision(1) << 100 * *v.speed_of_light_ms / v.candidate->median_ms
                 << " % of the speed of light, which is " << std::setprecision(4) << *v.speed_of_light_ms << " ms\n";
  if (v.reason != "not_run") {
    row("score") << std::fixed << std::setprecision(3) << score.value;
    for (const auto& p : score.parts) std::cout << "  " << p.name << ' ' << p.value;
    std::cout << '\n';
  }
  for (const std::string& f : v.flags) row("flag") << f << '\n';
  std::cout << judged.table;
  row("took") << std::setprecision(0) << v.compile_ms << " ms compiling" << (v.compile_cached ? " (cached)" : "")
              << ", " << v.evaluate_ms << " ms judging\n";
  if (!v.diagnostics.empty()) std::cout << '\n' << v.diagnostics << '\n';
}

}  // namespace

int main(int argc, char** argv) {
  std::string id;
  std::string backend = "cpu";
  std::string file;
  std::uint64_t seed = 0;
  int threads = 1;
  int gpu = 0;
  std::string tf32 = "none";
  std::string peaks;
  bool compile_only = false;
  bool json = false;
  bool list = false;
  bool show = false;
  CLI::App app{"Judges a kernel file against a task. Exit status: 0 correct, 1 not correct, 2 it could not be judged."};
  app.add_option("--task", id,
                 "Task, e.g. kevin/l1/23@small, or of your own file (docs/tasks.md): mine.json, mine.json#ID");
  app.add_option("--backend", backend, "Where the kernel runs")
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->capture_default_str();
  app.add_option("--seed", seed, "Seed of the inputs (default: a new one)")->check(command_line::whole_number);
  app.add_option("--threads", threads, "Threads on both sides (cpu)")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option("--gpu", gpu, "Which GPU, as CUDA counts")->check(CLI::Range(0, 1023))->capture_default_str();
  app.add_option("--tf32", tf32,
                 "What of TF32 the timed reference may use (cuda); convolutions is PyTorch's own setting")
      ->check(CLI::IsMember({"none", "convolutions", "all"}))
      ->capture_default_str();
  app.add_option("--peaks", peaks, "What benchmarks/cuda_peaks measured of the GPU, for the speed of light (cuda)");
  app.add_flag("--compile-only", compile_only, "Compile and go no further; needs no GPU (cuda)");
  app.add_flag("--json", json, "Print the verdict as JSON");
  app.add_flag("--list", list, "Print the embedded tasks, or with --task FILE.json those of a file");
  app.add_flag("--show", show, "Print what the task computes and the function that a kernel file defines");
  app.add_option("FILE", file, "The kernel's source, or - for standard input");
  if (const auto status = command_line::parse(app, argc, argv)) return *status;
  try {
    if (list) {
      for (const kevin::Task& t : id.empty() ? kevin::tasks::all() : kevin::tasks::load_tasks(id))
        std::cout << std::left << std::setw(28) << t.id << t.name << '\n';
      return 0;
    }
    if (show && !id.empty()) {
      const kevin::Task task = kevin::tasks::find(id);
      std::cout << kevin::describe(task) << '\n'
                << kevin::kernel_signature(task, backend == "cuda" ? kevin::Backend::cuda : kevin::Backend::cpu)
                << ";\n";
      return 0;
    }
    if (id.empty() || file.empty())
      throw kevin::Error(kevin::ErrorCode::bad_input,
                         "--task and FILE are needed (--list prints the tasks, --show one of them, "
                         "--help the options)");
    if (app.count("--seed") == 0) seed = (std::uint64_t{std::random_device{}()} << 32U) | std::random_device{}();
    const kevin::Task task = kevin::tasks::find(id);
    const kevin::Candidate candidate{read_source(file)};
    if (app.count("--tf32") > 0 && backend != "cuda")
      throw kevin::Error(kevin::ErrorCode::bad_input, "--tf32 belongs to --backend cuda");
    if (!peaks.empty() && backend != "cuda")
      throw kevin::Error(kevin::ErrorCode::bad_input, "--peaks belongs to --backend cuda");
    if (compile_only && backend != "cuda")
      throw kevin::Error(kevin::ErrorCode::bad_input, "--compile-only belongs to --backend cuda");
    const Judged judged = backend == "cuda" ? judge_on_gpu(task, candidate, seed, gpu, tf32, peaks, compile_only)
                                            : judge_on_cpu(task, candidate, seed, threads);
    const kevin::Verdict& verdict = judged.verdict;
    const kevin::Score score = kevin::KevinReward{}(verdict);
    if (json) {
      nlohmann::json line{
          {"task", task.id}, {"backend", backend}, {"seed", seed}, {"verdict", verdict}, {"score", score}};
      if (verdict.reason == "not_run") line["score"] = nullptr;
      line.update(judged.details);
      std::cout << kevin::json_line(line) << '\n';
    } else {
      print_table(task, judged, score);
    }
    return verdict.correct() || verdict.reason == "not_run" ? 0 : 1;
  } catch (const std::exception& e) {
    std::cerr << "evaluate: " << e.what() << '\n';
    return 2;
  }
}
