#include "kevin/refine/cuda_prompt.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <string>

#include "fixtures.hpp"
#include "kevin/refine/prompt.hpp"

using namespace kevin;

TEST_CASE("cuda prompt: shows the plan's declaration, the launch syntax and no word of the cpu's interface") {
  Context context;
  context.task = std::make_shared<const Task>(kevin_test::softmax_task());
  const std::string text = prompt_text(context, cuda_prompt_options());
  CHECK(text.find("__device__ void kevin_plan(const float* x, float* out)") != std::string::npos);
  CHECK(text.find("kevin::launch<") != std::string::npos);
  CHECK(text.find("extern \"C\" void kernel(") == std::string::npos);
  CHECK(text.find("uses one thread") == std::string::npos);
  CHECK(text.find("```cuda\n") != std::string::npos);
}

TEST_CASE("cuda prompt: its own example is an answer that the response format takes") {
  const auto parsed = parse_response(cuda_wording::example);
  REQUIRE(parsed.ok());
  CHECK(parsed.response.source.find("kevin_plan") != std::string::npos);
}
