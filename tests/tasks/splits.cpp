#include "kevin/tasks/splits.hpp"

#include <algorithm>
#include <set>
#include <string>

#include <doctest/doctest.h>

#include "kevin/core/error.hpp"
#include "kevin/tasks/suite.hpp"

using kevin::tasks::paper_split;
using kevin::tasks::Split;

TEST_CASE("the paper's split: 90 + 90 to train on, 10 + 10 held out, 80 generated ones unseen") {
  const Split split = paper_split();
  CHECK(split.training.size() == 180);
  CHECK(split.held_out.size() == 20);
  CHECK(split.unseen.size() == 80);
  CHECK(std::count_if(split.held_out.begin(), split.held_out.end(),
                      [](const std::string& id) { return id.starts_with("kernelbench/l1/"); }) == 10);
  std::set<std::string> all(split.training.begin(), split.training.end());
  all.insert(split.held_out.begin(), split.held_out.end());
  CHECK(all.size() == 200);
  for (const std::string& id : {split.training[0], split.held_out[0], split.unseen[79]})
    CHECK(kevin::tasks::find(id).id == id);
}

TEST_CASE("a split depends on its seed, and holds the same numbers out of every suite and preset") {
  CHECK(paper_split().held_out == paper_split().held_out);
  CHECK(paper_split({.seed = 1}).held_out != paper_split({.seed = 2}).held_out);
  const Split full = paper_split();
  const Split small = paper_split({.preset = "small"});
  REQUIRE(small.held_out.size() == full.held_out.size());
  for (std::size_t i = 0; i < full.held_out.size(); ++i) CHECK(small.held_out[i] == full.held_out[i] + "@small");
  CHECK(small.unseen[3] == full.unseen[3] + "@small");
}

TEST_CASE("an unknown suite or preset, and more held-out tasks than there are, are errors") {
  CHECK_THROWS_AS(static_cast<void>(paper_split({.suite = "kernelbanch"})), kevin::Error);
  CHECK_THROWS_AS(static_cast<void>(paper_split({.preset = "large"})), kevin::Error);
  CHECK_THROWS_AS(static_cast<void>(paper_split({.held_out_per_level = 101})), kevin::Error);
}
