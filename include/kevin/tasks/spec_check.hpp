#ifndef KEVIN_TASKS_SPEC_CHECK_HPP
#define KEVIN_TASKS_SPEC_CHECK_HPP

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "kevin/refine/task.hpp"
#include "kevin/tasks/operation.hpp"

/// Checks of the parts of a task other than its graph; they complain with the place within the task.
namespace kevin::tasks::detail {

/// Bounds that keep a hostile task file from costing more than its own size.
inline constexpr std::size_t most_inputs = 64;
inline constexpr std::size_t most_parameters = 512;
inline constexpr std::size_t most_ops = 1024;
inline constexpr std::size_t most_dims = 8;
inline constexpr std::size_t longest_name = 64;
inline constexpr std::size_t longest_notes = 4096;

/// Words that cannot name an argument of a candidate's kernel.
inline constexpr std::array<std::string_view, 98> cpp_keywords = {
    "alignas",    "alignof",       "and",          "and_eq",    "asm",          "atomic_cancel",
    "auto",       "bitand",        "bitor",        "bool",      "break",        "case",
    "catch",      "char",          "char8_t",      "char16_t",  "char32_t",     "class",
    "compl",      "concept",       "const",        "consteval", "constexpr",    "constinit",
    "const_cast", "continue",      "co_await",     "co_return", "co_yield",     "decltype",
    "default",    "delete",        "do",           "double",    "dynamic_cast", "else",
    "enum",       "explicit",      "export",       "extern",    "false",        "float",
    "for",        "friend",        "goto",         "if",        "inline",       "int",
    "long",       "main",          "mutable",      "namespace", "new",          "noexcept",
    "not",        "not_eq",        "nullptr",      "operator",  "or",           "or_eq",
    "private",    "protected",     "public",       "reflexpr",  "register",     "reinterpret_cast",
    "requires",   "restrict",      "return",       "short",     "signed",       "sizeof",
    "static",     "static_assert", "static_cast",  "struct",    "switch",       "synchronized",
    "template",   "this",          "thread_local", "throw",     "true",         "try",
    "typedef",    "typeid",        "typename",     "typeof",    "union",        "unsigned",
    "using",      "virtual",       "void",         "volatile",  "wchar_t",      "while",
    "xor",        "xor_eq"};

/// A name of a value: a letter, then letters, digits, '_' and '.'; no C++ keyword, since candidates name their
/// arguments by it.
inline void check_name(std::string_view name, const std::string& place) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const bool fine = !name.empty() && name.size() <= longest_name && letter(name[0]) &&
                    std::all_of(name.begin(), name.end(),
                                [&](char c) { return letter(c) || (c >= '0' && c <= '9') || c == '_' || c == '.'; });
  if (!fine)
    complain(place, quote(name) + " is not a name: a letter, then letters, digits, '_' and '.', at most 64 characters");
  if (std::find(cpp_keywords.begin(), cpp_keywords.end(), name) != cpp_keywords.end())
    complain(place, quote(name) + " is a C++ keyword");
}

inline void check_shape(const Shape& shape, const std::string& place) {
  if (shape.size() > most_dims) complain(place, "has more than 8 dims");
  (void)checked_count(shape, place);
}

/// Numbers of the distribution, and whether its draws fit the element type.
inline void check_distribution(const TensorSpec& t, const std::string& place) {
  using Kind = Distribution::Kind;
  const Distribution& d = t.distribution;
  constexpr double largest = 1e9;  // well inside float32, int32 and exact integers of double
  const auto number = [&](double x) {
    if (!std::isfinite(x) || std::fabs(x) > largest) complain(place, "has a number that is not finite or above 1e9");
  };
  number(d.a);
  number(d.b);
  const bool real = is_real(t.dtype);
  const bool whole = d.a == std::floor(d.a) && d.b == std::floor(d.b);
  if ((d.kind == Kind::given) != (t.values != nullptr)) complain(place, "and given values do not belong together");
  switch (d.kind) {
    case Kind::given:
      if (static_cast<std::int64_t>(t.values->size()) != element_count(t.shape) * size_of(t.dtype))
        complain(place, "has given values of another size");
      if (d.random_scale || d.structure != Distribution::Structure::none)
        complain(place, "has a scale or structure, which given values cannot have");
      return;
    case Kind::uniform:
      if (!(d.a < d.b)) complain(place, "needs low < high");
      break;
    case Kind::normal:
      if (!(d.b > 0)) complain(place, "needs std > 0");
      break;
    case Kind::integer:
      if (!whole || !(d.a < d.b)) complain(place, "needs whole numbers low < high");
      break;
    case Kind::constant:
    case Kind::sign:
      break;
  }
  if (!real) {
    const bool fits = d.kind == Kind::integer || (d.kind == Kind::constant && whole) ||
                      (d.kind == Kind::sign && t.dtype != DType::boolean);
    if (!fits) complain(place, "does not give values of type " + std::string(to_string(t.dtype)));
    if (t.dtype == DType::boolean && (d.a < 0 || d.a > 1 || (d.kind == Kind::integer && d.b > 2)))
      complain(place, "does not give 0 and 1");
    if (d.random_scale || d.structure != Distribution::Structure::none)
      complain(place, "has a scale or structure, which needs a real type");
  }
  const std::size_t rank = t.shape.size();
  switch (d.structure) {
    case Distribution::Structure::none:
      break;
    case Distribution::Structure::softmax:
      if (rank < 1) complain(place, "needs at least one dim for its structure");
      break;
    case Distribution::Structure::symmetric:
      if (rank >= 2 && t.shape[rank - 1] != t.shape[rank - 2]) complain(place, "needs a square for its structure");
      [[fallthrough]];
    case Distribution::Structure::upper:
    case Distribution::Structure::lower:
      if (rank < 2) complain(place, "needs at least two dims for its structure");
      break;
  }
}

/// `draw` is what JSON calls the distribution here.
inline void check_spec(const TensorSpec& t, const std::string& place, std::string_view draw) {
  check_name(t.name, place + ".name");
  check_shape(t.shape, place + ".shape");
  check_distribution(t, place + '.' + std::string(draw));
}

/// Everything that is neither a tensor nor an op.
inline void check_header(const Task& task) {
  const auto printable = [](std::string_view text) {
    return std::all_of(text.begin(), text.end(),
                       [](char c) { return static_cast<unsigned char>(c) >= 0x20 && c != 0x7f; });
  };
  if (task.id.empty() || task.id.size() > 2 * longest_name || !printable(task.id) ||
      task.id.find(' ') != std::string::npos) {
    complain("id", "must be 1 to 128 characters without spaces");
  }
  if (task.name.empty() || task.name.size() > 2 * longest_name || !printable(task.name))
    complain("name", "must be 1 to 128 characters on one line");
  if (task.inputs.empty() || task.inputs.size() > most_inputs) complain("inputs", "must be 1 to 64");
  if (task.parameters.size() > most_parameters) complain("parameters", "must be at most 512");
  if (task.external != nullptr && !task.ops.empty())
    complain("ops", "and a reference that is no graph exclude each other");
  if (task.external == nullptr && (task.ops.empty() || task.ops.size() > most_ops))
    complain("ops", "must be 1 to 1024");
  if (task.outputs.empty() || task.outputs.size() > most_inputs) complain("outputs", "must be 1 to 64");
  if (task.notes.size() > longest_notes) complain("notes", "must be at most 4096 bytes");
  if (task.flags.size() > most_inputs) complain("flags", "must be at most 64");
  for (std::size_t i = 0; i < task.flags.size(); ++i) {
    if (task.flags[i].empty() || task.flags[i].size() > longest_name || !printable(task.flags[i])) {
      complain("flags[" + std::to_string(i) + "]", "must be 1 to 64 characters on one line");
    }
  }
  for (const auto& [name, value] :
       {std::pair{"absolute", task.tolerance.absolute}, std::pair{"relative", task.tolerance.relative},
        std::pair{"spread", task.tolerance.spread}}) {
    if (!std::isfinite(value) || value < 0 || value > 1)
      complain(std::string("tolerance.") + name, "must lie in [0, 1]");
  }
}

/// An argument against the rule for it.
inline void check_argument(const ArgumentRule& rule, const OpArgument& value) {
  constexpr double largest = 1e30;
  const auto* integer = std::get_if<std::int64_t>(&value);
  const auto* number = std::get_if<double>(&value);
  const auto* text = std::get_if<std::string>(&value);
  const auto* list = std::get_if<std::vector<std::int64_t>>(&value);
  const char* needed = nullptr;
  switch (rule.type) {
    case ArgumentType::flag:
      needed = std::holds_alternative<bool>(value) ? nullptr : "true or false";
      break;
    case ArgumentType::integer:
      needed = integer != nullptr ? nullptr : "an integer";
      break;
    case ArgumentType::number:
      needed = integer != nullptr || (number != nullptr && std::isfinite(*number) && std::fabs(*number) <= largest)
                   ? nullptr
                   : "a finite number";
      break;
    case ArgumentType::text:
      needed = text != nullptr ? nullptr : "a text";
      break;
    case ArgumentType::integers:
      needed = list != nullptr ? nullptr : "a list of integers";
      break;
    case ArgumentType::dims:
      needed = integer != nullptr || list != nullptr || (text != nullptr && *text == "all")
                   ? nullptr
                   : "a dim, a list of dims, or \"all\"";
      break;
    case ArgumentType::parameter:
      needed = text != nullptr ? nullptr : "the name of a parameter";
      break;
  }
  const std::string place = "args." + std::string(rule.name);
  if (needed != nullptr) complain(place, std::string("must be ") + needed);
  if (list != nullptr && list->size() > most_dims) complain(place, "has more than 8 numbers");
}

}  // namespace kevin::tasks::detail

#endif  // KEVIN_TASKS_SPEC_CHECK_HPP
