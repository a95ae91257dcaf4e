#include "kevin/tasks/work.hpp"

#include <doctest/doctest.h>

#include <map>
#include <string>
#include <vector>

#include "kevin/tasks/graph.hpp"
#include "kevin/tasks/operations.hpp"
#include "kevin/tasks/suite.hpp"

using kevin::Shape;
using kevin::tasks::Arguments;
using kevin::tasks::TensorInfo;
using kevin::tasks::Work;
using kevin::tasks::detail::Window;

namespace {

using Args = std::map<std::string, kevin::OpArgument>;
using List = std::vector<std::int64_t>;

/// The work of one operation on operands of these shapes.
Work work(const std::string& op, const std::vector<Shape>& in, const Args& args, const Shape& out) {
  std::vector<TensorInfo> infos;
  for (const Shape& s : in) infos.push_back({s});
  std::vector<const TensorInfo*> operands;
  for (const TensorInfo& i : infos) operands.push_back(&i);
  while (operands.size() < 3) operands.push_back(nullptr);
  if (op == "einsum") operands.resize(in.size());
  return kevin::tasks::work_of(op, operands, Arguments(args), {out});
}

/// Counted one by one.
std::int64_t taps_by_hand(const Window& w) {
  std::int64_t n = 0;
  for (std::int64_t p = 0; p < w.places; ++p) {
    for (std::int64_t k = 0; k < w.size; ++k) {
      const std::int64_t at = p * w.stride + k * w.dilation - w.padding;
      n += at >= 0 && at < w.extent ? 1 : 0;
    }
  }
  return n;
}

}  // namespace

TEST_CASE("every operation of the table has its work") {
  const TensorInfo x{{2, 4, 8, 8}};
  for (const kevin::tasks::Operation& o : kevin::tasks::operations()) {
    CAPTURE(o.name);
    const bool plain = std::any_of(kevin::tasks::detail::element_work.begin(), kevin::tasks::detail::element_work.end(),
                                   [&](const auto& e) { return e.op == o.name; });
    const bool own = o.name.starts_with("conv") || o.name.starts_with("max_pool") || o.name.starts_with("avg_pool") ||
                     o.name == "matmul" || o.name == "bmm" || o.name == "linear" || o.name == "einsum" ||
                     o.name == "scaled_dot_product_attention";
    CHECK(plain != own);
  }
  for (const auto& e : kevin::tasks::detail::element_work) {
    CAPTURE(e.op);
    CHECK(kevin::tasks::find_operation(e.op) != nullptr);
  }
}

TEST_CASE("an operation without an entry is a complaint that says where entries are") {
  CHECK_THROWS_WITH_AS(work("frobnicate", {{4}}, {}, {4}), doctest::Contains("work.hpp"),
                       kevin::tasks::detail::Complaint);
}

TEST_CASE("matrix products are counted by their inner extent") {
  CHECK(work("matmul", {{5, 7}, {7, 3}}, {}, {5, 3}).matrix_products == 5 * 7 * 3);
  CHECK(work("matmul", {{7, 5}, {7, 3}}, {{"transpose_a", true}}, {5, 3}).matrix_products == 5 * 7 * 3);
  CHECK(work("bmm", {{2, 5, 7}, {2, 7, 3}}, {}, {2, 5, 3}).matrix_products == 2 * 5 * 7 * 3);
  CHECK(work("linear", {{5, 7}, {3, 7}, {3}}, {}, {5, 3}) == Work{5 * 7 * 3, 0, 5 * 3, 0});
  CHECK(work("linear", {{5, 7}, {3, 7}}, {}, {5, 3}) == Work{5 * 7 * 3, 0, 0, 0});
  CHECK(work("einsum", {{2, 3, 5}, {5, 7}}, {{"equation", "bil,lk->bik"}}, {2, 3, 7}).matrix_products == 2 * 3 * 5 * 7);
  CHECK(work("einsum", {{2, 3}}, {{"equation", "ij->ji"}}, {3, 2}).matrix_products == 0);
}

TEST_CASE("attention is two products and a softmax; a causal mask leaves half") {
  const Work w = work("scaled_dot_product_attention", {{2, 3, 5, 8}, {2, 3, 7, 8}, {2, 3, 7, 4}}, {}, {2, 3, 5, 4});
  CHECK(w.matrix_products == 6 * 5 * 7 * (8 + 4));
  CHECK(w.transcendental == 6 * 5 * 7 * 2);
  const std::vector<Shape> square(3, Shape{1, 1, 4, 8});
  CHECK(work("scaled_dot_product_attention", square, {{"is_causal", true}}, {1, 1, 4, 8}).matrix_products ==
        (1 + 2 + 3 + 4) * 16);
}

TEST_CASE("convolutions are counted without their padding") {
  // 1 channel, 3 taps, padding 1 on 4 elements: the ends have 2
  CHECK(work("conv1d", {{1, 1, 4}, {1, 1, 3}}, {{"padding", List{1}}}, {1, 1, 4}).convolution_products == 3 * 4 - 2);
  // groups: each output channel sees its own group of inputs
  CHECK(work("conv2d", {{2, 4, 6, 6}, {8, 2, 3, 3}, {8}}, {{"groups", std::int64_t{2}}}, {2, 8, 4, 4}) ==
        Work{0, 2.0 * 8 * 2 * 9 * 16, 2.0 * 8 * 16, 0});
  // transposed, stride 2: every input meets every weight of its channel
  CHECK(work("conv_transpose1d", {{2, 3, 5}, {3, 4, 2}}, {{"stride", List{2}}}, {2, 4, 10}).convolution_products ==
        2 * 3 * 4 * 5 * 2);
  // and padding cuts off the ends of the result
  CHECK(work("conv_transpose1d", {{1, 1, 5}, {1, 1, 3}}, {{"padding", List{1}}}, {1, 1, 5}).convolution_products ==
        5 * 3 - 2);
}

TEST_CASE("pools compare or add what their windows see") {
  CHECK(work("max_pool1d", {{2, 3, 8}}, {{"kernel_size", List{2}}}, {2, 3, 4}) == Work{0, 0, 2 * 3 * 8, 0});
  CHECK(work("avg_pool1d", {{1, 1, 4}}, {{"kernel_size", List{3}}, {"stride", List{1}}, {"padding", List{1}}},
             {1, 1, 4}) == Work{0, 0, 3 * 4 - 2, 0});
}

TEST_CASE("reductions count what they read, element-wise operations what they write") {
  CHECK(work("sum", {{4, 5}}, {{"dim", std::int64_t{1}}}, {4}).arithmetic == 20);
  CHECK(work("relu", {{4, 5}}, {}, {4, 5}) == Work{0, 0, 20, 0});
  CHECK(work("tanh", {{4, 5}}, {}, {4, 5}) == Work{0, 0, 0, 20});
  CHECK(work("reshape", {{4, 5}}, {}, {20}) == Work{});
}

TEST_CASE("taps and touched elements are those that one finds by going through all") {
  for (std::int64_t extent : {1, 4, 9}) {
    for (std::int64_t places : {1, 3, 6}) {
      for (std::int64_t size : {1, 2, 3}) {
        for (std::int64_t stride : {1, 2, 4}) {
          for (std::int64_t padding : {0, 1, 3}) {
            for (std::int64_t dilation : {1, 2}) {
              const Window w{extent, places, size, stride, padding, dilation};
              CAPTURE(extent);
              CAPTURE(places);
              CAPTURE(size);
              CAPTURE(stride);
              CAPTURE(padding);
              CAPTURE(dilation);
              CHECK(w.taps() == taps_by_hand(w));
            }
          }
        }
      }
    }
  }
  CHECK(Window{8, 4, 1, 2, 0, 1}.touched() == 4);
  CHECK(Window{8, 3, 3, 2, 0, 1}.touched() == 7);
  CHECK(Window{8, 8, 3, 1, 1, 1}.touched() == 8);
}
