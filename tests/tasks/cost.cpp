#include "kevin/tasks/cost.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "kevin/tasks/suite.hpp"
#include "kevin/tasks/task_json.hpp"

using kevin::tasks::Cost;
using kevin::tasks::cost_of;
using kevin::tasks::MeasuredPeaks;
using kevin::tasks::speed_of_light;

namespace {

/// A task with this input, these parameters and ops (JSON).
kevin::Task task(const std::string& input, const std::string& parameters, const std::string& ops,
                 const std::string& flags = "") {
  return kevin::tasks::parse_tasks(R"({"schema":"kevin.task/1","id":"test/cost","name":"Cost","inputs":[)" + input +
                                       R"(],"parameters":[)" + parameters + R"(],"ops":[)" + ops + R"(],"flags":[)" +
                                       flags + "]}",
                                   "test")
      .front();
}

const std::string x = R"({"name":"x","shape":[8,6]})";
const std::string weight = R"({"name":"w","shape":[4,6]})";
const std::string linear = R"({"op":"linear","args":{"weight":"w"},"in":["x"],"out":"t1"})";

std::string then(const std::string& op, const std::string& args = "{}", const std::string& in = "t1",
                 const std::string& out = "t2") {
  return R"(,{"op":")" + op + R"(","args":)" + args + R"(,"in":[")" + in + R"("],"out":")" + out + "\"}";
}

}  // namespace

TEST_CASE("bytes are those of inputs, parameters and outputs, each once") {
  const Cost c = cost_of(task(x, weight, linear + then("relu")));
  CHECK(c.input_bytes == 8 * 6 * 4);
  CHECK(c.parameter_bytes == 4 * 6 * 4);
  CHECK(c.output_bytes == 8 * 4 * 4);
  CHECK(c.bytes() == c.input_bytes + c.parameter_bytes + c.output_bytes);
  CHECK(c.work == kevin::tasks::Work{8 * 6 * 4, 0, 8 * 4, 0});
  CHECK(c.products_needed);
}

TEST_CASE("element types have their sizes") {
  const Cost c =
      cost_of(task(R"({"name":"x","shape":[8,6],"dtype":"float16"})", "", R"({"op":"relu","in":["x"],"out":"t1"})"));
  CHECK(c.input_bytes == 8 * 6 * 2);
  CHECK(c.output_bytes == 8 * 6 * 2);
  CHECK_FALSE(c.products_needed);
}

TEST_CASE("what no output depends on need not be read") {
  CHECK(cost_of(task(x, weight, R"({"op":"relu","in":["x"],"out":"t1"})")).parameter_bytes == 0);
  CHECK(cost_of(task(x, "", R"({"op":"narrow","args":{"dim":1,"start":0,"length":5},"in":["x"],"out":"t1"})"))
            .input_bytes == 8 * 5 * 4);
  const std::string square =
      R"({"name":"x","shape":[4,4],"distribution":{"kind":"uniform","low":0,"high":1,"structure":")";
  for (const char* structure : {"upper", "lower"}) {
    CHECK(cost_of(task(square + structure + "\"}}", "", R"({"op":"relu","in":["x"],"out":"t1"})")).input_bytes ==
          10 * 4);
  }
  // windows of 1 at every second place: one element in two of each dim, 4 of 7
  CHECK(cost_of(task(R"({"name":"x","shape":[1,2,7,7]})", R"({"name":"w","shape":[3,2,1,1]})",
                     R"({"op":"conv2d","args":{"weight":"w","stride":[2,2]},"in":["x"],"out":"t1"})"))
            .input_bytes == 2 * 4 * 4 * 4);
  // used twice: all of it
  CHECK(cost_of(task(x, "",
                     R"({"op":"narrow","args":{"dim":1,"start":0,"length":5},"in":["x"],"out":"t1"},)"
                     R"({"op":"relu","in":["x"],"out":"t2"},)"
                     R"({"op":"concat","args":{"dim":1},"in":["t1","t2"],"out":"t3"})"))
            .input_bytes == 8 * 6 * 4);
}

TEST_CASE("matrix products are no bound where a smaller product would do") {
  CHECK(cost_of(task(x, weight, linear + then("relu") + then("sum", R"({"dim":1})", "t2", "t3"))).products_needed);
  CHECK_FALSE(cost_of(task(x, weight, linear + then("sum", R"({"dim":1})"))).products_needed);
  CHECK_FALSE(
      cost_of(task(x, weight, linear + then("mul_scalar", R"({"value":2})") + then("mean", R"({"dim":1})", "t2", "t3")))
          .products_needed);
  const std::string two = weight + R"(,{"name":"v","shape":[5,4]})";
  CHECK_FALSE(cost_of(task(x, two, linear + then("linear", R"({"weight":"v"})"))).products_needed);
  CHECK(cost_of(task(x, two, linear + then("relu") + then("linear", R"({"weight":"v"})", "t2", "t3"))).products_needed);
}

TEST_CASE("nor where the task is flagged as one with a shortcut") {
  for (const std::string_view flag : kevin::tasks::detail::shortcut_flags) {
    CAPTURE(flag);
    CHECK_FALSE(cost_of(task(x, weight, linear + then("relu"), '"' + std::string(flag) + '"')).products_needed);
  }
}

TEST_CASE("KernelBench's reducible products are all recognised, and plain ones are not") {
  for (const char* id :
       {"l1/14", "l1/15", "l2/9", "l2/14", "l2/18", "l2/45", "l2/51", "l2/56", "l2/64", "l2/80", "l2/98"})
    CHECK_FALSE(cost_of(kevin::tasks::find("kernelbench/" + std::string(id))).products_needed);
  for (const char* id : {"l1/1", "l1/3", "l1/97", "l2/12", "l2/40", "l2/76", "l2/99"}) {
    CAPTURE(id);
    CHECK(cost_of(kevin::tasks::find("kernelbench/" + std::string(id))).products_needed ==
          (std::string(id) != "l2/40"));
  }
}

TEST_CASE("every embedded task has its cost") {
  for (const kevin::Task& t : kevin::tasks::all()) {
    CAPTURE(t.id);
    const Cost c = cost_of(t);
    CHECK(c.input_bytes > 0);
    CHECK(c.output_bytes > 0);
    double all = 0;
    for (const auto* specs : {&t.inputs, &t.parameters, &t.outputs}) {
      for (const auto& s : *specs)
        all += static_cast<double>(kevin::element_count(s.shape)) * static_cast<double>(kevin::size_of(s.dtype));
    }
    CHECK(c.bytes() <= all);
    CHECK(c.bytes() > all / 3);
    CHECK(c.work.matrix_products + c.work.convolution_products + c.work.arithmetic + c.work.transcendental > 0);
  }
}

TEST_CASE("full-shape figures of known tasks") {
  const Cost gemm = cost_of(kevin::tasks::find("kernelbench/l1/1"));  // 4096 x 4096 x 4096
  CHECK(gemm.work.matrix_products == 4096.0 * 4096.0 * 4096.0);
  CHECK(gemm.bytes() == 3.0 * 4096 * 4096 * 4);
  const Cost convolution =
      cost_of(kevin::tasks::find("kernelbench/l1/63"));  // 16 x 16 x 1024 x 1024, 128 3 x 3 kernels
  CHECK(convolution.work.convolution_products == 16.0 * 128 * 16 * 9 * 1022 * 1022);
  CHECK_FALSE(convolution.products_needed);
}

TEST_CASE("the speed of light is the slower of moving bytes and doing products") {
  const MeasuredPeaks peaks{.device = "d",
                            .measured = "m",
                            .bytes_per_s = 1e12,
                            .cache_bytes = 1e6,
                            .float32_per_s = 1e13,
                            .matrix_per_s = 1e14,
                            .transcendental_per_s = 1e12};
  Cost c{.input_bytes = 3e9, .parameter_bytes = 1e9, .output_bytes = 2e9 + 1e6, .work = {}, .products_needed = true};
  CHECK(speed_of_light(c, peaks).memory_ms == doctest::Approx(6));
  CHECK(speed_of_light(c, peaks).ms() == doctest::Approx(6));
  c.work.matrix_products = 8e12;
  CHECK(speed_of_light(c, peaks).products_ms == doctest::Approx(70));
  CHECK(speed_of_light(c, peaks).ms() == doctest::Approx(70));
  c.products_needed = false;
  CHECK(speed_of_light(c, peaks).ms() == doctest::Approx(6));
  c.output_bytes = 1e5;  // stays in the cache
  CHECK(speed_of_light(c, peaks).memory_ms == doctest::Approx(4));
}
