// Looks at tasks: lists them, shows one with its shapes, bytes and operations, writes them as JSON, generates new ones.

#include <kevin/kevin.hpp>
#include <kevin/tasks/cost.hpp>
#include <kevin/tasks/generator.hpp>
#include <kevin/tasks/peaks_json.hpp>
#include <kevin/tasks/suite.hpp>
#include <kevin/tasks/task_json.hpp>

#include <CLI/CLI.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "command_line.hpp"

namespace {

/// "1.5 GiB"
std::string bytes_text(double bytes) {
  constexpr const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  for (; bytes >= 1024 && unit + 1 < std::size(units); ++unit) bytes /= 1024;
  std::ostringstream text;
  text << std::setprecision(4) << bytes << ' ' << units[unit];
  return text.str();
}

std::string shape_text(const kevin::Shape& shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  return text + ']';
}

void list(const std::string& prefix) {
  for (const std::string& id : kevin::tasks::ids()) {
    if (!id.starts_with(prefix)) continue;
    std::cout << std::left << std::setw(28) << id << kevin::tasks::find(id).name << '\n';
  }
}

void show(const std::string& id, const std::string& peaks_file) {
  kevin::Task task = kevin::tasks::find(id);
  const kevin::tasks::Graph graph(task);
  const kevin::tasks::Cost cost = kevin::tasks::cost_of(task, graph);
  const auto row = [](const std::string& name) -> std::ostream& {
    return std::cout << std::left << std::setw(16) << name;
  };
  row("task") << task.id << " (" << task.name << ")\n";
  const auto tensors = [&](const char* what, const std::vector<kevin::TensorSpec>& specs) {
    for (const kevin::TensorSpec& s : specs)
      row(what) << s.name << ' ' << shape_text(s.shape) << ' ' << kevin::to_string(s.dtype) << '\n';
  };
  tensors("input", task.inputs);
  tensors("parameter", task.parameters);
  for (const kevin::Op& op : task.ops) {
    row("step") << op.out << " = " << op.op << '(';
    for (std::size_t i = 0; i < op.in.size(); ++i) std::cout << (i == 0 ? "" : ", ") << op.in[i];
    std::cout << ")  " << shape_text(op.out_shape) << '\n';
  }
  tensors("output", task.outputs);
  row("bytes") << bytes_text(cost.bytes()) << " at least: inputs " << bytes_text(cost.input_bytes) << ", parameters "
               << bytes_text(cost.parameter_bytes) << ", outputs " << bytes_text(cost.output_bytes) << '\n';
  std::cout << std::setprecision(4);
  row("multiply-adds") << cost.work.matrix_products << " in matrix products, " << cost.work.convolution_products
                       << " in convolutions\n";
  row("operations") << cost.work.arithmetic << " others, " << cost.work.transcendental << " transcendental\n";
  if (cost.work.matrix_products > 0 && !cost.products_needed)
    row("reducible") << "fewer products than these are known to do\n";
  if (!task.flags.empty()) {
    row("flags");
    for (std::size_t i = 0; i < task.flags.size(); ++i) std::cout << (i == 0 ? "" : ", ") << task.flags[i];
    std::cout << '\n';
  }
  row("tolerance") << "absolute " << task.tolerance.absolute << ", relative " << task.tolerance.relative << ", spread "
                   << task.tolerance.spread << '\n';
  if (!task.notes.empty()) row("notes") << task.notes << '\n';
  if (peaks_file.empty()) return;
  const kevin::tasks::MeasuredPeaks peaks = kevin::tasks::load_peaks(peaks_file);
  const kevin::tasks::SpeedOfLight bound = kevin::tasks::speed_of_light(cost, peaks);
  row("speed of light") << bound.ms() << " ms on " << peaks.device << ": memory " << bound.memory_ms << " ms, products "
                        << bound.products_ms << " ms\n";
}

/// Tasks as JSON, one a line, as `find` reads them from a file.
void write(const std::vector<kevin::Task>& tasks, const std::string& out) {
  std::ofstream file;
  if (!out.empty()) file.open(out, std::ios::trunc);
  std::ostream& to = out.empty() ? std::cout : file;
  for (const kevin::Task& t : tasks) to << kevin::tasks::write_task(t).dump() << '\n';
  to.flush();
  if (!to) throw kevin::Error(kevin::ErrorCode::resource, "cannot write " + (out.empty() ? "to standard output" : out));
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Lists, shows, writes and generates tasks");
  app.require_subcommand(1);
  std::string prefix, id, peaks, out;
  std::vector<std::string> ids;
  std::uint64_t seed = 0, first = 0, count = 1;
  bool small = false;

  CLI::App* lists = app.add_subcommand("list", "Ids and names of the embedded tasks");
  lists->add_option("PREFIX", prefix, "Of the ids, such as kernelbench/l2");

  CLI::App* shows = app.add_subcommand("show", "Graph, shapes, least bytes, operations and flags of a task");
  shows->add_option("ID", id, "Id of a task, generated/SEED/INDEX, mine.json or mine.json#ID")->required();
  shows->add_option("--peaks", peaks, "What benchmarks/cuda_peaks measured of a device: the speed of light, too");

  CLI::App* exports = app.add_subcommand("export", "Tasks as JSON, one a line");
  exports->add_option("ID", ids, "Ids of tasks (default: all embedded ones)");
  exports->add_option("--out", out, "Where to write them (default: standard output)");

  CLI::App* generates = app.add_subcommand("generate", "New fusion tasks as JSON, one a line; the same for a seed");
  generates->add_option("--seed", seed, "Seed of the generator")->check(command_line::whole_number);
  generates->add_option("--first", first, "Index of the first task")->check(command_line::whole_number);
  generates->add_option("--count", count, "How many")->check(command_line::whole_number);
  generates->add_flag("--small", small, "At a size for a 2-core cpu");
  generates->add_option("--out", out, "Where to write them (default: standard output)");

  if (const auto status = command_line::parse(app, argc, argv)) return *status;
  try {
    if (lists->parsed()) list(prefix);
    if (shows->parsed()) show(id, peaks);
    std::vector<kevin::Task> tasks;
    if (exports->parsed()) {
      for (const std::string& name : ids.empty() ? kevin::tasks::ids() : ids) tasks.push_back(kevin::tasks::find(name));
    }
    if (generates->parsed()) {
      const kevin::tasks::Generator generator(seed);
      for (std::uint64_t i = 0; i < count; ++i) tasks.push_back(generator.task(first + i, small ? "small" : ""));
    }
    if (exports->parsed() || generates->parsed()) write(tasks, out);
    return 0;
  } catch (const std::exception& e) {
    std::cerr << "tasks: " << e.what() << '\n';
    return 2;
  }
}
