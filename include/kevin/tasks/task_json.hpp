#ifndef KEVIN_TASKS_TASK_JSON_HPP
#define KEVIN_TASKS_TASK_JSON_HPP

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
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
#include "kevin/tasks/module_task.hpp"
#include "kevin/tasks/task_reading.hpp"

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
/// "fan_in": "WEIGHT" instead of low and high is PyTorch's default initialisation. "presets": {"small": {"shapes":
/// {"x": [8, 32]}, "args": {"t1": {"dim": 1}}, "tolerance": {...}}} stands for further tasks, "<id>@small", that differ
/// in these shapes of inputs and parameters and these arguments of ops; all other shapes are inferred.
///
/// "module": "FILE.pt" in place of ops makes a TorchScript archive the reference. Its parameters and buffers are the
/// task's, with the values that they have there unless "parameters" lists them with an init; "training": true puts it
/// in training mode; "description" is shown to agents in place of its code.
///
/// May be left out: dtype (float32), distribution and init (uniform in [0, 1)), parameters, args, out_shape (inferred),
/// outputs (the last result) and their shape and dtype, tolerance and its spread (0), flags, notes. An argument that is
/// null counts as left out. Everything else that deviates is Error(bad_input) with its place, e.g. "task 'mine':
/// ops[2].in[0]: 't7' is not defined before".
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

/// `fan_in` receives the name of the parameter that the bounds depend on.
[[nodiscard]] inline Distribution read_distribution(const Field& field, std::string& fan_in) {
  field.object({"kind", "low", "high", "mean", "std", "value", "fan_in", "random_scale", "structure"});
  Distribution d;
  const std::string kind = field["kind"].text();
  const KindNames* names = nullptr;
  for (const KindNames& k : kind_names) {
    if (k.name == kind) names = &k;
  }
  if (names == nullptr)
    field["kind"].fail("there is no kind " + quote(kind) + "; known: uniform, normal, constant, integer, sign");
  d.kind = names->kind;
  const bool scaled = field.has("fan_in") && d.kind == Distribution::Kind::uniform;
  if (scaled) fan_in = field["fan_in"].text();
  if (!names->a.empty() && !scaled) d.a = field[names->a].number();
  if (!names->b.empty() && !scaled) d.b = field[names->b].number();
  for (std::string_view key : {"low", "high", "mean", "std", "value", "fan_in"}) {
    const bool known = scaled ? key == "fan_in" : key == names->a || key == names->b;
    if (field.has(key) && !known) field.fail("of kind " + quote(kind) + " has no '" + std::string(key) + '\'');
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

[[nodiscard]] inline TensorSpec read_spec(const Field& field, std::string_view draw_key, std::string& fan_in,
                                          bool needs_shape = true) {
  field.object({"name", "shape", "dtype", draw_key});
  TensorSpec t;
  t.name = field["name"].text();
  if (needs_shape || field.has("shape")) t.shape = field["shape"].integers();
  if (field.has("dtype")) t.dtype = read_dtype(field["dtype"]);
  if (field.has(draw_key)) t.distribution = read_distribution(field[draw_key], fan_in);
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

[[nodiscard]] inline Tolerance read_tolerance(const Field& field) {
  field.object({"absolute", "relative", "spread"});
  return {field["absolute"].number(), field["relative"].number(), field.has("spread") ? field["spread"].number() : 0.0};
}

[[nodiscard]] inline ModuleFields read_module(const Field& field) {
  if (field.has("ops")) field["ops"].fail("and 'module' exclude each other");
  ModuleFields module;
  module.file = field["module"].text();
  if (module.file.empty() || module.file.find('\0') != std::string::npos) field["module"].fail("must be a path");
  if (field.has("training")) module.training = field["training"].flag();
  if (field.has("description")) module.description = field["description"].text();
  return module;
}

inline void read_ops(const Field& field, Reading& reading) {
  for (const Field& f : field.elements()) {
    if (!f.value().contains("out_shape")) reading.gaps.op_shapes.insert(reading.task.ops.size());
    reading.task.ops.push_back(read_op(f));
  }
}

[[nodiscard]] inline Reading read_task_fields(const Field& field) {
  field.object({"schema", "id", "name", "inputs", "parameters", "ops", "module", "training", "description", "outputs",
                "tolerance", "flags", "notes", "presets"});
  Reading reading;
  Gaps& gaps = reading.gaps;
  Task& task = reading.task;
  const std::string schema = field["schema"].text();
  if (schema != task_schema)
    field["schema"].fail("is " + quote(schema) + "; this release reads '" + std::string(task_schema) + '\'');
  task.id = field["id"].text();
  task.name = field["name"].text();
  for (const Field& f : field["inputs"].elements()) {
    task.inputs.push_back(read_spec(f, "distribution", reading.fan_in.emplace_back()));
  }
  if (field.has("module")) reading.module = read_module(field);
  for (const char* key : {"training", "description"}) {
    if (field.has(key) && !reading.module) field[key].fail("belongs to a task with a 'module'");
  }
  if (field.has("parameters")) {
    for (const Field& f : field["parameters"].elements()) {
      if (reading.module) reading.module->listed.push_back({f.has("init"), f.has("shape"), f.has("dtype")});
      task.parameters.push_back(read_spec(f, "init", reading.fan_in.emplace_back(), !reading.module));
    }
  }
  if (!reading.module) read_ops(field["ops"], reading);

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
  } else if (!task.ops.empty()) {  // those of a module are found by running it
    task.outputs.push_back({.name = task.ops.back().out, .shape = {}, .dtype = DType::float32, .distribution = {}});
    gaps.output_shapes.insert(0);
    gaps.output_types.insert(0);
  }
  if (field.has("tolerance")) task.tolerance = read_tolerance(field["tolerance"]);
  if (field.has("flags")) {
    for (const Field& f : field["flags"].elements()) task.flags.push_back(f.text());
  }
  if (field.has("notes")) task.notes = field["notes"].text();
  return reading;
}

/// Puts a preset's shapes, arguments and tolerance in place of the record's own; all other shapes are then inferred.
inline void apply_preset(Reading& reading, const Field& preset) {
  preset.object({"shapes", "args", "tolerance"});
  Task& task = reading.task;
  if (preset.has("shapes")) {
    for (const auto& [name, shape] : members(preset["shapes"])) {
      TensorSpec* found = nullptr;
      for (std::vector<TensorSpec>* list : {&task.inputs, &task.parameters}) {
        if (reading.module && list == &task.parameters) break;  // their shapes are those of the archive
        for (TensorSpec& t : *list) found = t.name == name ? &t : found;
      }
      if (found == nullptr) shape.fail("is of no input and no parameter");
      found->shape = shape.integers();
    }
  }
  if (preset.has("args")) {
    for (const auto& [out, args] : members(preset["args"])) {
      Op* found = nullptr;
      for (Op& op : task.ops) found = op.out == out ? &op : found;
      if (found == nullptr) args.fail("is of no op: none has this out");
      for (const auto& [name, value] : members(args)) found->args[name] = read_argument(value);
    }
  }
  if (preset.has("tolerance")) task.tolerance = read_tolerance(preset["tolerance"]);
  for (std::size_t i = 0; i < task.ops.size(); ++i) reading.gaps.op_shapes.insert(i);
  for (std::size_t i = 0; i < task.outputs.size(); ++i) reading.gaps.output_shapes.insert(i);
}

/// The task of a record, in one of its presets or ("") as it stands.
[[nodiscard]] inline Task read_record(const nlohmann::json& json, std::string_view preset, ModuleFolder* modules) {
  const Field field(json, {});
  Reading reading = read_task_fields(field);
  if (!preset.empty()) {
    const Field chosen = field["presets"][preset];
    check_preset_name(chosen, reading.task.id, preset);
    apply_preset(reading, chosen);
    reading.task.id += '@' + std::string(preset);
  }
  if (reading.module) {
    if (modules == nullptr) field["module"].fail("needs a task file: it is a path within the file's folder");
    attach_module(reading.task, reading.fan_in, *reading.module, *modules);
  }
  fill_bounds(reading);
  const Gaps& gaps = reading.gaps;
  if (reading.module && (reading.task.outputs.empty() || !gaps.output_shapes.empty() || !gaps.output_types.empty()))
    infer_outputs(reading.task, gaps);
  Graph graph(reading.task, reading.gaps);
  return std::move(reading.task);
}

}  // namespace detail

/// A task from its JSON, checked as a whole: in the preset of that name, or as it stands. Error(bad_input) names the
/// place. A task with a module needs `modules`, and throws what LoadedModule and infer_outputs throw.
[[nodiscard]] inline Task read_task(const nlohmann::json& json, std::string_view preset = "",
                                    ModuleFolder* modules = nullptr) {
  try {
    return detail::read_record(json, preset, modules);
  } catch (const detail::Complaint& c) {
    throw Error(ErrorCode::bad_input,
                detail::task_label(json) + (c.place().empty() ? "" : c.place() + ": ") + c.what());
  }
}

/// The names of a record's presets.
[[nodiscard]] inline std::vector<std::string> preset_names(const nlohmann::json& json) {
  std::vector<std::string> names;
  if (!json.is_object() || !json.contains("presets")) return names;
  try {
    for (const auto& member : detail::members({json["presets"], "presets"})) names.push_back(member.first);
  } catch (const detail::Complaint& c) {
    throw Error(ErrorCode::bad_input, detail::task_label(json) + c.place() + ": " + c.what());
  }
  return names;
}

/// The JSON of a task: read_task gives the same task back, but for the pointers of one with a module.
/// Error(unsupported) for a task that no file can hold: one with a function, or with given values outside of a module.
[[nodiscard]] inline nlohmann::ordered_json write_task(const Task& task) {
  using Json = nlohmann::ordered_json;
  const auto* module = dynamic_cast<const ModuleProgram*>(task.external.get());
  if (task.external != nullptr && module == nullptr)
    throw Error(ErrorCode::unsupported,
                "task " + detail::quote(task.id) + ": its reference is a function of a program");
  Json json;
  json["schema"] = task_schema;
  json["id"] = task.id;
  json["name"] = task.name;
  const auto specs = [&](const std::vector<TensorSpec>& list, const char* draw_key) {
    Json array = Json::array();
    for (const TensorSpec& t : list) {
      const bool given = t.distribution.kind == Distribution::Kind::given;
      if (given && module != nullptr) continue;  // they are in the archive
      if (given)
        throw Error(ErrorCode::unsupported,
                    "task " + detail::quote(task.id) + ": " + detail::quote(t.name) + " has given values");
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
  if (module != nullptr) {
    json["module"] = module->file();
    json["training"] = module->module().training();
    if (!module->description().empty()) json["description"] = module->description();
  } else {
    json["ops"] = Json::array();
  }
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
  if (task.tolerance.spread != 0) json["tolerance"]["spread"] = task.tolerance.spread;
  json["flags"] = task.flags;
  json["notes"] = task.notes;
  return json;
}

}  // namespace kevin::tasks

#endif  // KEVIN_TASKS_TASK_JSON_HPP
