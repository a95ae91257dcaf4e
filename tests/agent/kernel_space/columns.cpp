#include "kevin/agent/kernel_space/columns.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "agent/kernel_space/line_references.hpp"
#include "agent/kernel_space/try_kernel.hpp"

using namespace kevin_test;

namespace {

/// An op along the middle dim of [3, 13, 37].
kevin::Task columns(const std::string& op, bool reduces = false) {
  kevin::Task task = make_task(
      {tensor("x", {3, 13, 37})}, {},
      {{op, {{"dim", std::int64_t{1}}}, {"x"}, "t1", reduces ? kevin::Shape{3, 37} : kevin::Shape{3, 13, 37}}});
  task.tolerance = {1e-5, 1e-4};
  return task;
}

}  // namespace

TEST_CASE("every option of a normalisation along columns is right, but for those that cannot be") {
  KernelTrials trial(columns("rms_norm"), line_reference("rms_norm", 3, 13, 37));
  REQUIRE(trial.space().family() == "columns");
  CHECK(trial("") == "right");
  trial.check_each_option({{"width=12", "compile error"},
                           {"tail=ignore", "wrong"},
                           {"tail=past", "overrun"},
                           {"precision=bfloat16", "wrong"}});
}

TEST_CASE("the tail decides otherwise when the statistics lie in a buffer") {
  KernelTrials trial(columns("rms_norm"), line_reference("rms_norm", 3, 13, 37));
  CHECK(trial("order=sweep tail=scalar") == "right");
  CHECK(trial("order=sweep tail=pad") == "right");
  CHECK(trial("order=sweep tail=overlap") == "wrong");  // columns that two vectors share are summed twice
  CHECK(trial("order=sweep tail=ignore") == "wrong");
  CHECK(trial("order=sweep tail=past") == "overrun");
}

TEST_CASE("what is right by itself is right together") {
  KernelTrials trial(columns("softmax"), line_reference("softmax", 3, 13, 37));
  trial.check_mixtures(14,
                       {"width=12", "tail=overlap", "tail=ignore", "tail=past", "precision=bfloat16", "math=coarse"});
}

TEST_CASE("every algorithm of every op along columns is right in either order") {
  for (const std::string op : {"softmax", "log_softmax", "logsumexp", "sum", "mean", "max_reduce", "min_reduce"}) {
    CAPTURE(op);
    KernelTrials trial(columns(op, op != "softmax" && op != "log_softmax"), line_reference(op, 3, 13, 37));
    for (const std::string order : {"tile", "sweep"}) {
      for (const std::string algorithm : {"three_pass", "two_pass", "keep", "online"}) {
        const auto& knobs = trial.space().knobs();
        const bool choice = knobs[1].name == "algorithm";
        if (choice ? std::find(knobs[1].options.begin(), knobs[1].options.end(), algorithm) == knobs[1].options.end()
                   : algorithm != "keep") {
          continue;
        }
        CAPTURE(order);
        CAPTURE(algorithm);
        CHECK(trial("math=exact order=" + order + " algorithm=" + algorithm) == "right");
        CHECK(trial("tail=pad unroll=2 lines=4 precision=float64 math=fast order=" + order +
                    " algorithm=" + algorithm) == "right");
      }
    }
    CHECK(trial("tail=ignore") == "wrong");
  }
}
