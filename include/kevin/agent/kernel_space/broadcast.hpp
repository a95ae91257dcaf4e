#ifndef KEVIN_AGENT_KERNEL_SPACE_BROADCAST_HPP
#define KEVIN_AGENT_KERNEL_SPACE_BROADCAST_HPP

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "kevin/agent/kernel_space/chain.hpp"
#include "kevin/agent/kernel_space/vector_code.hpp"

namespace kevin::agent::detail {

/// A tensor seen as rows of `inner` elements, and how operands that broadcast to it are reached from the number of the
/// row.
class Broadcast {
 public:
  /// Rows along the last dims of `shape`: the last `inner_dims`, fewer when an operand varies along some of them only.
  Broadcast(Shape shape, const std::vector<Operand>& operands, std::size_t inner_dims) : shape_(std::move(shape)) {
    for (const Operand& o : operands) {
      Shape padded(shape_.size() >= o.shape.size() ? shape_.size() - o.shape.size() : 0, 1);
      padded.insert(padded.end(), o.shape.begin(), o.shape.end());
      padded_.push_back(padded);
    }
    inner_dims_ = inner_dims < shape_.size() ? inner_dims : shape_.size();
    while (inner_dims_ > 0 && !uniform(inner_dims_)) --inner_dims_;
    for (std::size_t d = shape_.size() - inner_dims_; d < shape_.size(); ++d) inner_ *= shape_[d];
  }

  [[nodiscard]] std::int64_t inner() const noexcept { return inner_; }
  [[nodiscard]] std::int64_t rows() const noexcept { return element_count(shape_) / inner_; }
  [[nodiscard]] std::size_t inner_dims() const noexcept { return inner_dims_; }

  /// Whether the operand has an element for each element of a row, rather than one for the whole row.
  [[nodiscard]] bool along_row(std::size_t operand) const {
    const Shape& p = padded_[operand];
    for (std::size_t d = shape_.size() - inner_dims_; d < shape_.size(); ++d) {
      if (p[d] != 1) return true;
    }
    return false;
  }

  /// The operand's first element of row `row` (an expression), counted from its start; "0" for none.
  [[nodiscard]] std::string offset(std::size_t operand, const std::string& row) const {
    const Shape& p = padded_[operand];
    std::string sum;
    std::int64_t stride = along_row(operand) ? inner_ : 1;
    std::int64_t below = 1;  // rows in one step of the dim at hand
    for (std::size_t d = shape_.size() - inner_dims_; d-- > 0;) {
      // dims that the operand shares are taken together as long as they follow each other
      std::int64_t extent = 1;
      const std::int64_t divisor = below;
      bool shared = p[d] != 1;
      while (true) {
        extent *= shape_[d];
        below *= shape_[d];
        if (d == 0 || (p[d - 1] != 1) != shared || shape_[d - 1] == 1) break;
        --d;
      }
      if (!shared || extent == 1) continue;
      std::string term = row;
      if (divisor != 1) term += " / " + std::to_string(divisor);
      if (divisor * extent != rows()) term += " % " + std::to_string(extent);
      if (stride != 1) term = (term == row ? row : '(' + term + ')') + " * " + std::to_string(stride);
      sum = sum.empty() ? term : term + " + " + sum;
      stride *= extent;
    }
    return sum.empty() ? "0" : sum;
  }

  /// Expressions of type D for the operands in one vector of a row; `at` finds those that lie along the row, pointers
  /// to the row's own elements being called "row_NAME".
  [[nodiscard]] std::vector<std::string> values(const std::vector<Operand>& operands, const Loader& at) const {
    std::vector<std::string> v;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const std::string pointer = "row_" + operands[i].argument;
      v.push_back("wide(" + (along_row(i) ? at(pointer) : "splat(*" + pointer + ")") + ')');
    }
    return v;
  }

  /// Declarations of those pointers for row `row`.
  [[nodiscard]] std::string pointers(const std::vector<Operand>& operands, const std::string& row,
                                     const std::string& indent, const std::string& column = "") const {
    std::string code;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const std::string offset_text = offset(i, row);
      code += indent + "const float* row_" + operands[i].argument + " = " + operands[i].argument +
              (offset_text == "0" ? "" : " + " + offset_text) +
              (column.empty() || !along_row(i) ? "" : " + " + column) + ";\n";
    }
    return code;
  }

 private:
  [[nodiscard]] bool uniform(std::size_t dims) const {
    for (const Shape& p : padded_) {
      bool all = true;
      bool none = true;
      for (std::size_t d = shape_.size() - dims; d < shape_.size(); ++d) {
        if (shape_[d] == 1) continue;
        (p[d] == 1 ? all : none) = false;
      }
      if (!all && !none) return false;
    }
    return true;
  }

  Shape shape_;
  std::vector<Shape> padded_;
  std::size_t inner_dims_ = 0;
  std::int64_t inner_ = 1;
};

}  // namespace kevin::agent::detail

#endif  // KEVIN_AGENT_KERNEL_SPACE_BROADCAST_HPP
