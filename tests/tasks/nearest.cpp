#include "kevin/tasks/nearest.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace kevin::tasks::detail;

TEST_CASE("edit distance counts insertions, deletions and replacements") {
  CHECK(edit_distance("", "") == 0);
  CHECK(edit_distance("abc", "") == 3);
  CHECK(edit_distance("kitten", "sitting") == 3);
  CHECK(edit_distance("softmax", "softmax") == 0);
  CHECK(edit_distance("relu", "gelu") == 1);
}

TEST_CASE("the nearest names come first and strangers not at all") {
  const std::vector<std::string> names = {"matmul", "relu", "gelu", "zeros", "selu"};
  CHECK(nearest("relo", names) == std::vector<std::string>{"relu", "gelu", "selu"});
  CHECK(nearest("relo", names, 1) == std::vector<std::string>{"relu"});
  CHECK(nearest("something_else", names).empty());
  CHECK(nearest_text("relo", {"relu"}) == "; near: 'relu'");
  CHECK(nearest_text("relo", {"matmul"}).empty());
}

TEST_CASE("a very long name is compared by its beginning") {
  CHECK(nearest(std::string(1000000, 'x'), {"relu"}).empty());
}
