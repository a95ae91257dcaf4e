#ifndef KEVIN_AGENT_KERNEL_SPACE_TILE_CODE_HPP
#define KEVIN_AGENT_KERNEL_SPACE_TILE_CODE_HPP

#include <functional>
#include <string>

#include "kevin/agent/kernel_space/vector_code.hpp"

namespace kevin::agent::detail {

/// The heart of products: a tile of `height` rows x `vectors` vectors of sums, each sum in a variable
/// of its own so that the compiler keeps it in a register, and a loop that adds one outer product for each k.
struct TileCode {
  int height = 1;
  int vectors = 1;
  int unroll = 1;                                                      ///< steps of k in one turn of the loop
  std::function<std::string(int row, const std::string& k)> left;      ///< a float
  std::function<std::string(int vector, const std::string& k)> right;  ///< an expression of type V
  std::function<std::string(int row, int vector, const std::string& sum)>
      result;                                                   ///< the statement that disposes of a sum (type D)
  std::function<std::string(const std::string& row)> pointers;  ///< declarations that `result` needs for a row

  /// Sums from zero, the loop over k in [0, count), the results. `row` is the expression of the tile's first row.
  [[nodiscard]] std::string text(const std::string& count, const std::string& row) const {
    return start() + loop(count) + finish(row);
  }

  [[nodiscard]] static std::string sum(int row, int vector) {
    return "c" + std::to_string(row) + "_" + std::to_string(vector);
  }

  [[nodiscard]] std::string start() const {
    std::string code;
    for (int i = 0; i < height; ++i) {
      code += "  D ";
      for (int u = 0; u < vectors; ++u) code += (u > 0 ? ", " : "") + sum(i, u) + " = {}";
      code += ";\n";
    }
    return code;
  }

  /// One outer product.
  [[nodiscard]] std::string step(const std::string& k, const std::string& indent) const {
    std::string code = indent + "{\n";
    for (int u = 0; u < vectors; ++u)
      code += indent + "  const D b" + std::to_string(u) + " = wide(" + right(u, k) + ");\n";
    for (int i = 0; i < height; ++i) {
      const std::string a = "a" + std::to_string(i);
      code += indent + "  const D " + a + " = wide(splat(" + left(i, k) + "));\n" + indent + " ";
      for (int u = 0; u < vectors; ++u) code += ' ' + sum(i, u) + " += " + a + " * b" + std::to_string(u) + ';';
      code += '\n';
    }
    return code + indent + "}\n";
  }

  [[nodiscard]] std::string loop(const std::string& count) const {
    std::string code = "  long k = 0;\n";
    if (unroll > 1) {
      const std::string by = std::to_string(unroll);
      code += "  for (; k + " + by + " <= " + count + "; k += " + by + ") {\n";
      for (int j = 0; j < unroll; ++j) code += step(j == 0 ? "k" : "(k + " + std::to_string(j) + ")", "    ");
      code += "  }\n";
    }
    return code + "  for (; k < " + count + "; ++k) {\n" + step("k", "    ") + "  }\n";
  }

  [[nodiscard]] std::string finish(const std::string& row) const {
    std::string code;
    for (int i = 0; i < height; ++i) {
      const std::string here = i == 0 ? row : "(" + row + " + " + std::to_string(i) + ")";
      code += "  {\n" + (pointers ? pointers(here) : std::string());
      for (int u = 0; u < vectors; ++u) code += "    " + result(i, u, sum(i, u)) + '\n';
      code += "  }\n";
    }
    return code;
  }
};

}  // namespace kevin::agent::detail

#endif  // KEVIN_AGENT_KERNEL_SPACE_TILE_CODE_HPP
