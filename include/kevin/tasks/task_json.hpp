#ifndef KEVIN_TASKS_TASK_JSON_HPP
#define KEVIN_TASKS_TASK_JSON_HPP

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <nlohmann/json.hpp>

#include "kevin/core/error.hpp"
#include "kevin/refine/task.hpp"
#include "kevin/tasks/graph.hpp"
#include "kevin/tasks/json_fields.hpp"

/// Tasks as JSON, schema "kevin.task/1" (docs/tasks.md describes it in full):
///
///     {"schema": "kevin.task/1", "id": "mine/add_relu", "name": "Add and ReLU",
///      "inputs": [{"name": "x", "shape": [64, 256], "dtype": "float32", "distribution": {"kind": "normal", "mean": 0,
///      "std": 1}}], "parameters": [{"name": "bias", "shape": [256], "init": {"kind": "uniform", "low": -1, "high":
///      1}}], "ops": [{"op": "add_parameter", "args": {"parameter": "bias"}, "in": ["x"], "out": "t1", "out_shape":
///      [64, 256]},
///              {"op": "relu", "args": {}, "in": ["t1"], "out": "t2", "out_shape": [64, 256]}],
///      "outputs": [{"name": "t2", "shape": [64, 256], "dtype": "float32"}],
///      "tolerance": {"absolute": 1e-4, "relative": 1e-4}, "flags": [], "notes": ""}
///
/// May be left out: dtype (float32), distribution and init (uniform in [0, 1)), parameters, args, out_shape (inferred),
/// outputs (the last result) and their shape and dtype, tolerance, flags, notes. An argument that is null counts as
/// left out. Everything else that deviates is Error(bad_input) with its place, e.g. "task 'mine': ops[2].in[0]: 't7' is
/// not defined before".
namespace kevin::tasks {

inline constexpr std::string_view task_schema = "kevin.task/1";

namespace detail {

inline constexpr std::array all_dtypes = {DType::float32, DType::float64, DType::float16, DType::bfloat16,
                                          DType::int32,   DType::int64,   DType::boolean};

[[nodiscard]] inline DType read_dtype(const Field& field) {
  const std::string name = field.text();
  std::vector<std::string> names;
  for (DType t : all_dtypes) {
    if (name == to_string(t)) return t;
    names.emplace_back(to_string(t));
  }
  field.fail("there is no element type " + quote(name) + nearest_text(name, names));
}

/// JSON names of a kind and of its two numbers; an empty name: the kind has no such number.
struct KindNames {
  Distribution::Kind kind;
  std::string_view name, a, b;
};
inline constexpr std::array kind_names = {KindNames{Distribution::Kind::uniform, "uniform", "low", "high"},
                                          KindNames{Distribution::Kind::normal, "normal", "mean", "std"},
                                          KindNames{Distribution::Kind::constant, "constant", "value", ""},
                                          KindNames{Distribution::Kind::integer, "integer", "low", "high"},
                                          KindNames{Distribution::Kind::sign, "sign", "", ""}};
inline constexpr std::array structure_names = {
    std::pair{Distribution::Structure::symmetric, std::string_view("symmetric")},
    std::pair{Distribution::Structure::upper, std::string_view("upper")},
    std::pair{Distribution::Structure::lower, std::string_view("lower")},
    std::pair{Distribution::Structure::softmax, std::string_view("softmax")}};

[[nodiscard]] inline Distribution read_distribution(const Field& field) {
  field.object({"kind", "low", "high", "mean", "std", "value", "random_scale", "structure"});
  Distribution d;
  const std::string kind = field["kind"].text();
  const KindNames* names = nullptr;
  for (const KindNames& k : kind_names) {
    if (k.name == kind) names = &k;
  }
  if (names == nullptr)
    field["kind"].fail("there is no kind " + quote(kind) + "; known: uniform, normal, constant, integer, sign");
  d.kind = names->kind;
  if (!names->a.empty()) d.a = field[names->a].number();
  if (!names->b.empty()) d.b = field[names->b].number();
  for (std::string_view key : {"low", "high", "mean", "std", "value"}) {
    if (field.has(key) && key != names->a && key != names->b)
      field.fail("of kind " + quote(kind) + " has no '" + std::string(key) + '\'');
  }
  if (field.has("random_scale")) d.random_scale = field["random_scale"].flag();
  if (field.has("structure")) {
    const std::string structure = field["structure"].text();
    for (const auto& [value, name] : structure_names) {
      if (name == structure) d.structure = value;
    }
    if (d.structure == Distribution::Structure::none) {
      field["structure"].fail("there is no structure " + quote(structure) +
                              "; known: symmetric, upper, lower, softmax");
    }
  }
  return d;
}

[[nodiscard]] inline nlohmann::ordered_json write_distribution(const Distribution& d) {
  nlohmann::ordered_json json;
  for (const KindNames& k : kind_names) {
    if (k.kind != d.kind) continue;
    json["kind"] = k.name;
    if (!k.a.empty()) json[std::string(k.a)] = d.a;
    if (!k.b.empty()) json[std::string(k.b)] = d.b;
  }
  if (d.random_scale) json["random_scale"] = true;
  for (const auto& [value, name] : structure_names) {
    if (value == d.structure) json["structure"] = name;
  }
  return json;
}

[[nodiscard]] inline TensorSpec read_spec(const Field& field, std::string_view draw_key) {
  field.object({"name", "shape", "dtype", draw_key});
  TensorSpec t;
  t.name = field["name"].text();
  t.shape = field["shape"].integers();
  if (field.has("dtype")) t.dtype = read_dtype(field["dtype"]);
  if (field.has(draw_key)) t.distribution = read_distribution(field[draw_key]);
  return t;
}

[[nodiscard]] inline OpArgument read_argument(const Field& field) {
  const nlohmann::json& v = field.value();
  if (v.is_boolean()) return field.flag();
  if (v.is_number_integer()) return field.integer();
  if (v.is_number()) return field.number();
  if (v.is_string()) return field.text();
  if (v.is_array()) return field.integers();
  field.fail("must be a flag, a number, a text or a list of integers");
}

[[nodiscard]] inline Op read_op(const Field& field) {
  field.object({"op", "args", "in", "out", "out_shape"});
  Op op;
  op.op = field["op"].text();
  if (field.has("args")) {
    const Field args = field["args"];
    if (!args.value().is_object()) args.fail("must be an object");
    for (const auto& [key, value] : args.value().items()) {
      if (!value.is_null()) op.args.emplace(key, read_argument({value, args.place() + '.' + key}));
    }
  }
  for (const Field& name : field["in"].elements()) op.in.push_back(name.text());
  op.out = field["out"].text();
  if (field.has("out_shape")) op.out_shape = field["out_shape"].integers();
  return op;
}

[[nodiscard]] inline Task read_task_fields(const Field& field, Gaps& gaps) {
  field.object({"schema", "id", "name", "inputs", "parameters", "ops", "outputs", "tolerance", "flags", "notes"});
  const std::string schema = field["schema"].text();
  if (schema != task_schema)
    field["schema"].fail("is " + quote(schema) + "; this release reads '" + std::string(task_schema) + '\'');
  Task task;
  task.id = field["id"].text();
  task.name = field["name"].text();
  for (const Field& f : field["inputs"].elements()) task.inputs.push_back(read_spec(f, "distribution"));
  if (field.has("parameters")) {
    for (const Field& f : field["parameters"].elements()) task.parameters.push_back(read_spec(f, "init"));
  }
  for (const Field& f : field["ops"].elements()) {
    if (!f.value().contains("out_shape")) gaps.op_shapes.insert(task.ops.size());
    task.ops.push_back(read_op(f));
  }
  if (field.has("outputs")) {
    for (const Field& f : field["outputs"].elements()) {
      f.object({"name", "shape", "dtype"});
      TensorSpec output{.name = f["name"].text(), .shape = {}, .dtype = DType::float32, .distribution = {}};
      if (f.has("shape"))
        output.shape = f["shape"].integers();
      else
        gaps.output_shapes.insert(task.outputs.size());
      if (f.has("dtype"))
        output.dtype = read_dtype(f["dtype"]);
      else
        gaps.output_types.insert(task.outputs.size());
      task.outputs.push_back(std::move(output));
    }
  } else if (!task.ops.empty()) {
    task.outputs.push_back({.name = task.ops.back().out, .shape = {}, .dtype = DType::float32, .distribution = {}});
    gaps.output_shapes.insert(0);
    gaps.output_types.insert(0);
  }
  if (field.has("tolerance")) {
    const Field t = field["tolerance"];
    t.object({"absolute", "relative"});
    task.tolerance = {t["absolute"].number(), t["relative"].number()};
  }
  if (field.has("flags")) {
    for (const Field& f : field["flags"].elements()) task.flags.push_back(f.text());
  }
  if (field.has("notes")) task.notes = field["notes"].text();
  return task;
}

/// "task 'x': " where the id can be read, for messages.
[[nodiscard]] inline std::string task_label(const nlohmann::json& json) {
  if (!json.is_object() || !json.contains("id") || !json["id"].is_string()) return "task: ";
  return "task " + quote(json["id"].get_ref<const std::string&>()) + ": ";
}

}  // namespace detail

/// A task from its JSON, checked as a whole. Error(bad_input) names the place.
[[nodiscard]] inline Task read_task(const nlohmann::json& json) {
  try {
    Gaps gaps;
    Task task = detail::read_task_fields(detail::Field(json, {}), gaps);
    Graph graph(task, gaps);
    return task;
  } catch (const detail::Complaint& c) {
    throw Error(ErrorCode::bad_input,
                detail::task_label(json) + (c.place().empty() ? "" : c.place() + ": ") + c.what());
  }
}

/// The JSON of a task: read_task gives the same task back.
[[nodiscard]] inline nlohmann::ordered_json write_task(const Task& task) {
  using Json = nlohmann::ordered_json;
  Json json;
  json["schema"] = task_schema;
  json["id"] = task.id;
  json["name"] = task.name;
  const auto specs = [](const std::vector<TensorSpec>& list, const char* draw_key) {
    Json array = Json::array();
    for (const TensorSpec& t : list) {
      Json spec;
      spec["name"] = t.name;
      spec["shape"] = t.shape;
      spec["dtype"] = to_string(t.dtype);
      if (draw_key != nullptr) spec[draw_key] = detail::write_distribution(t.distribution);
      array.push_back(std::move(spec));
    }
    return array;
  };
  json["inputs"] = specs(task.inputs, "distribution");
  json["parameters"] = specs(task.parameters, "init");
  json["ops"] = Json::array();
  for (const Op& op : task.ops) {
    Json step;
    step["op"] = op.op;
    step["args"] = Json::object();
    for (const auto& argument : op.args) {
      std::visit([&slot = step["args"][argument.first]](const auto& v) { slot = v; }, argument.second);
    }
    step["in"] = op.in;
    step["out"] = op.out;
    step["out_shape"] = op.out_shape;
    json["ops"].push_back(std::move(step));
  }
  json["outputs"] = specs(task.outputs, nullptr);
  json["tolerance"]["absolute"] = task.tolerance.absolute;
  json["tolerance"]["relative"] = task.tolerance.relative;
  json["flags"] = task.flags;
  json["notes"] = task.notes;
  return json;
}

/// Tasks from text: one task, an array of tasks, or JSON lines (one task a line; blank lines are skipped).
/// Error(bad_input) begins with `where`, and names the task's number in an array or its line, and the place within it.
[[nodiscard]] inline std::vector<Task> parse_tasks(std::string_view text, const std::string& where = "text") {
  std::vector<Task> tasks;
  std::set<std::string> ids;
  const auto fail = [](const std::string& place, std::string_view what) {
    if (what.starts_with("bad_input: ")) what.remove_prefix(11);
    throw Error(ErrorCode::bad_input, place + ": " + std::string(what));
  };
  const auto add = [&](const nlohmann::json& json, const std::string& place) {
    try {
      tasks.push_back(read_task(json));
    } catch (const Error& e) {
      fail(place, e.what());
    }
    if (!ids.insert(tasks.back().id).second)
      fail(place, "the id " + detail::quote(tasks.back().id) + " is taken by an earlier task");
  };
  const auto parse = [&](std::string_view part, const std::string& place) {
    try {
      return detail::parse_strictly(part);
    } catch (const detail::Complaint& c) {
      fail(place, c.what());
      throw;
    }
  };
  constexpr std::string_view blank = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(blank);
  if (begin == std::string_view::npos) fail(where, "holds no task");
  const std::size_t first_end = std::min(text.find('\n', begin), text.size());
  const bool more = text.find_first_not_of(blank, first_end) != std::string_view::npos;
  if (text[begin] == '{' && more && nlohmann::json::accept(text.substr(begin, first_end - begin))) {
    std::size_t line = 1;
    for (std::size_t at = 0; at < text.size(); ++line) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      const std::string_view part = text.substr(at, end - at);
      at = end + 1;
      const std::string place = where + ": line " + std::to_string(line);
      if (part.find_first_not_of(blank) != std::string_view::npos) add(parse(part, place), place);
    }
    return tasks;
  }
  const nlohmann::json json = parse(text, where);
  if (!json.is_array()) {
    add(json, where);
    return tasks;
  }
  for (std::size_t i = 0; i < json.size(); ++i) add(json[i], where + ": [" + std::to_string(i) + ']');
  if (tasks.empty()) fail(where, "holds no task");
  return tasks;
}

/// The tasks of a file (see parse_tasks). Error(not_found) when it cannot be read, Error(bad_input) when it is above 64
/// MiB or wrong.
[[nodiscard]] inline std::vector<Task> load_tasks(const std::string& path) {
  constexpr std::size_t most = std::size_t{64} << 20;
  std::ifstream file(path, std::ios::binary);
  std::string text;
  std::array<char, 65536> part{};
  while (file && text.size() <= most) {
    file.read(part.data(), static_cast<std::streamsize>(part.size()));
    text.append(part.data(), static_cast<std::size_t>(file.gcount()));
  }
  if (text.size() > most) throw Error(ErrorCode::bad_input, path + ": is above 64 MiB");
  if (!file.eof())
    throw Error(ErrorCode::not_found,
                "cannot read the task file '" + path + "'; give the path of a file in the format of docs/tasks.md");
  return parse_tasks(text, path);
}

}  // namespace kevin::tasks

#endif  // KEVIN_TASKS_TASK_JSON_HPP
