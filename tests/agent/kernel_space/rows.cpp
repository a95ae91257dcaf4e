#include "kevin/agent/kernel_space/rows.hpp"

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "agent/kernel_space/line_references.hpp"
#include "agent/kernel_space/try_kernel.hpp"

using namespace kevin_test;

namespace {

/// An op on the rows of [5, 37]: softmax needs 9 vectors of 4 and one element more.
kevin::Task rows(const std::string& op, kevin::Shape out = {5, 37}) {
  return make_task({tensor("x", {5, 37})}, {}, {{op, {{"dim", std::int64_t{1}}}, {"x"}, "t1", std::move(out)}});
}

}  // namespace

TEST_CASE("every option of a softmax along rows is right, but for those that cannot be") {
  KernelTrials trial(rows("softmax"), line_reference("softmax", 5, 37, 1));
  REQUIRE(trial.space().family() == "rows");
  CHECK(trial("") == "right");
  trial.check_each_option({{"width=12", "compile error"},
                           {"tail=overlap", "wrong"},  // elements that two vectors share are summed twice
                           {"tail=ignore", "wrong"},
                           {"precision=bfloat16", "wrong"},
                           {"math=coarse", "wrong"}});
}

TEST_CASE("what is right by itself is right together") {
  KernelTrials trial(rows("softmax"), line_reference("softmax", 5, 37, 1));
  trial.check_mixtures(14, {"width=12", "tail=overlap", "tail=ignore", "precision=bfloat16", "math=coarse"});
}

TEST_CASE("every algorithm of every op on rows is right") {
  for (const std::string op : {"log_softmax", "logsumexp", "sum", "mean", "max_reduce", "min_reduce", "rms_norm"}) {
    CAPTURE(op);
    const bool reduces = op != "log_softmax" && op != "rms_norm";
    kevin::Task task = rows(op, reduces ? kevin::Shape{5} : kevin::Shape{5, 37});
    task.tolerance = {1e-5, 1e-4};
    KernelTrials trial(task, line_reference(op, 5, 37, 1));
    for (const std::string algorithm : {"two_pass", "online"}) {  // the others have one only
      CHECK(trial("algorithm=" + algorithm) == "right");
      CHECK(trial("tail=pad unroll=2 width=8 algorithm=" + algorithm) == "right");
      CHECK(trial("precision=float64 threads=2 algorithm=" + algorithm) == "right");
    }
    if (op != "max_reduce" && op != "min_reduce") CHECK(trial("tail=ignore") == "wrong");
  }
}

TEST_CASE("padding reads nothing beyond the input") {
  // the last row ends where the memory does; a compiler that reads all lanes of a part faults there
  kevin::Task task =
      make_task({tensor("x", {1024, 1003})}, {}, {{"softmax", {{"dim", std::int64_t{1}}}, {"x"}, "t1", {1024, 1003}}});
  KernelTrials trial(task, line_reference("softmax", 1024, 1003, 1));
  for (const std::string width : {"8", "16"}) {
    for (const std::string precision : {"float32", "float64"}) {
      for (const std::string algorithm : {"keep", "online"}) {
        const std::string words = "tail=pad math=exact unroll=4 threads=2 width=" + width + " precision=" + precision +
                                  " algorithm=" + algorithm;
        CAPTURE(words);
        CHECK(trial(words) == "right");
      }
    }
  }
}

TEST_CASE("the greatest element does not mind elements seen twice") {
  KernelTrials trial(rows("max_reduce", {5}), line_reference("max_reduce", 5, 37, 1));
  CHECK(trial("tail=overlap") == "right");
}

TEST_CASE("a layer norm goes along several dims, with weight and bias") {
  kevin::Task task = make_task({tensor("x", {3, 7, 11})}, {tensor("ln.weight", {7, 11}), tensor("ln.bias", {7, 11})},
                               {{"layer_norm",
                                 {{"normalized_shape", std::vector<std::int64_t>{7, 11}},
                                  {"weight", std::string("ln.weight")},
                                  {"bias", std::string("ln.bias")}},
                                 {"x"},
                                 "t1",
                                 {3, 7, 11}}});
  task.tolerance = {1e-5, 1e-4};
  KernelTrials trial(task, line_reference("layer_norm", 3, 77, 1));
  trial.check_each_option({{"width=12", "compile error"},
                           {"tail=overlap", "wrong"},
                           {"tail=ignore", "wrong"},
                           {"precision=bfloat16", "wrong"}});
  CHECK(trial("algorithm=moments scale=divide tail=pad unroll=4") == "right");
}

TEST_CASE("a tensor is divided by its norm in one kernel") {
  for (const std::int64_t p : {1, 2}) {
    CAPTURE(p);
    kevin::Task task =
        make_task({tensor("x", {3, 37})}, {},
                  {{"vector_norm", {{"dim", std::int64_t{1}}, {"keepdim", true}, {"p", p}}, {"x"}, "t1", {3, 1}},
                   {"div_tensor", {}, {"x", "t1"}, "t2", {3, 37}}});
    KernelTrials trial(task, line_reference(p == 1 ? "divide_by_norm1" : "divide_by_norm2", 3, 37, 1));
    CHECK(trial("") == "right");
    CHECK(trial("tail=pad scale=divide unroll=2 threads=2") == "right");
  }
}

TEST_CASE("a norm may be all there is") {
  kevin::Task task =
      make_task({tensor("x", {3, 37})}, {}, {{"vector_norm", {{"dim", std::string("all")}}, {"x"}, "t1", {}}});
  KernelTrials trial(task, line_reference("norm2", 1, 111, 1));
  CHECK(trial("") == "right");
  CHECK(trial("tail=pad unroll=8 threads=2") == "right");
}

TEST_CASE("a matrix times a vector is a dot product for each row") {
  kevin::Task task =
      make_task({tensor("A", {5, 37}), tensor("B", {37, 1})}, {}, {{"matmul", {}, {"A", "B"}, "t1", {5, 1}}});
  task.tolerance = {1e-4, 1e-4};
  KernelTrials trial(task, line_reference("dot", 5, 37, 1));
  REQUIRE(trial.space().family() == "rows");
  CHECK(trial("") == "right");
  CHECK(trial("tail=pad unroll=4 width=8") == "right");
  CHECK(trial("tail=overlap") == "wrong");
}
