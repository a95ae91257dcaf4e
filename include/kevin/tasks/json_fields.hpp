#ifndef KEVIN_TASKS_JSON_FIELDS_HPP
#define KEVIN_TASKS_JSON_FIELDS_HPP

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "kevin/core/error.hpp"
#include "kevin/tasks/nearest.hpp"
#include "kevin/tasks/operation.hpp"

/// Strict reading of JSON: what is not asked for is an error, and every error names its place.
namespace kevin::tasks::detail {

/// Parses text; syntax errors, keys that an object has twice, and nesting deeper than 16 are Complaints.
[[nodiscard]] inline nlohmann::json parse_strictly(std::string_view text) {
  std::vector<std::set<std::string>> keys;
  const auto watch = [&](int depth, nlohmann::json::parse_event_t event, nlohmann::json& value) {
    using Event = nlohmann::json::parse_event_t;
    if (depth > 16) complain({}, "is nested deeper than 16 levels");
    if (event == Event::object_start) keys.emplace_back();
    if (event == Event::object_end) keys.pop_back();
    if (event == Event::key && !keys.back().insert(value.get_ref<const std::string&>()).second) {
      complain({}, "has the key " + quote(value.get_ref<const std::string&>()) + " twice in one object");
    }
    return true;
  };
  try {
    return nlohmann::json::parse(text.begin(), text.end(), watch);
  } catch (const nlohmann::json::exception& e) {
    // "[json.exception.parse_error.101] parse error at line 1, column 3: ..." without the first part
    const std::string_view what = e.what();
    const std::size_t bracket = what.find("] ");
    complain({}, "is not JSON: " +
                     std::string(bracket == std::string_view::npos ? what : what.substr(bracket + 2)).substr(0, 300));
  }
}

/// One value and its place in the document.
class Field {
 public:
  Field(const nlohmann::json& value, std::string place) : value_(&value), place_(std::move(place)) {}

  [[nodiscard]] const nlohmann::json& value() const noexcept { return *value_; }
  [[nodiscard]] const std::string& place() const noexcept { return place_; }
  [[noreturn]] void fail(const std::string& text) const { complain(place_, text); }

  [[nodiscard]] std::string text() const {
    if (!value_->is_string()) fail("must be a text");
    return value_->get<std::string>();
  }
  [[nodiscard]] bool flag() const {
    if (!value_->is_boolean()) fail("must be true or false");
    return value_->get<bool>();
  }
  [[nodiscard]] double number() const {
    if (!value_->is_number()) fail("must be a number");
    return value_->get<double>();
  }
  [[nodiscard]] std::int64_t integer() const {
    if (!value_->is_number_integer()) fail("must be an integer");
    if (value_->is_number_unsigned() &&
        value_->get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      fail("is too large");
    }
    return value_->get<std::int64_t>();
  }
  /// The elements of an array.
  [[nodiscard]] std::vector<Field> elements() const {
    if (!value_->is_array()) fail("must be an array");
    std::vector<Field> fields;
    for (std::size_t i = 0; i < value_->size(); ++i)
      fields.emplace_back((*value_)[i], place_ + '[' + std::to_string(i) + ']');
    return fields;
  }
  [[nodiscard]] std::vector<std::int64_t> integers() const {
    std::vector<std::int64_t> numbers;
    for (const Field& f : elements()) numbers.push_back(f.integer());
    return numbers;
  }
  /// This value as an object that has no keys but these.
  const Field& object(std::initializer_list<std::string_view> keys) const {
    if (!value_->is_object()) fail("must be an object");
    for (const auto& [key, unused] : value_->items()) {
      bool known = false;
      for (std::string_view k : keys) known = known || k == key;
      if (!known)
        fail("has an unknown key " + quote(key) +
             nearest_text(key, std::vector<std::string>(keys.begin(), keys.end())));
    }
    return *this;
  }
  [[nodiscard]] bool has(std::string_view key) const { return value_->contains(key); }
  /// A member of an object.
  [[nodiscard]] Field operator[](std::string_view key) const {
    const auto it = value_->find(key);
    if (it == value_->end()) fail("lacks the key '" + std::string(key) + "'");
    return {*it, place_.empty() ? std::string(key) : place_ + '.' + std::string(key)};
  }

 private:
  const nlohmann::json* value_;
  std::string place_;
};

}  // namespace kevin::tasks::detail

#endif  // KEVIN_TASKS_JSON_FIELDS_HPP
