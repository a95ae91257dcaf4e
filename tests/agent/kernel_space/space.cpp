#include "kevin/agent/kernel_space/space.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <optional>
#include <random>
#include <string>
#include <vector>

using kevin::agent::Choices;
using kevin::agent::KernelSpace;
using kevin::agent::Knob;

namespace {

KernelSpace small_space() {
  return KernelSpace("rows", {{"width", {"4", "8"}}, {"tail", {"scalar", "pad", "ignore"}}},
                     [](const KernelSpace::Picks& pick) {
                       return std::to_string(pick.integer("width") * 2) + pick("tail") + pick("math", "libm");
                     });
}

}  // namespace

TEST_CASE("a choice takes one option of each knob") {
  const KernelSpace space = small_space();
  CHECK(space.family() == "rows");
  REQUIRE(space.knobs().size() == 2);
  CHECK(space.knobs()[1] == Knob{"tail", {"scalar", "pad", "ignore"}});
  CHECK(space.valid({0, 0}));
  CHECK(space.valid({1, 2}));
  CHECK_FALSE(space.valid({}));
  CHECK_FALSE(space.valid({0}));
  CHECK_FALSE(space.valid({0, 0, 0}));
  CHECK_FALSE(space.valid({2, 0}));
  CHECK_FALSE(space.valid({0, static_cast<std::size_t>(-1)}));
}

TEST_CASE("the renderer sees the options by the names of their knobs") {
  CHECK(small_space().render({1, 2}) == "16ignorelibm");
}

TEST_CASE("options can be chosen by name, the first ones being the default") {
  const KernelSpace space = small_space();
  CHECK(space.choose({}) == Choices{0, 0});
  CHECK(space.choose({{"tail", "pad"}}) == Choices{0, 1});
  CHECK(space.choose({{"tail", "ignore"}, {"width", "8"}}) == Choices{1, 2});
}

TEST_CASE("a summary says all choices and can be read back") {
  const KernelSpace space = small_space();
  CHECK(space.summary({1, 1}) == "width=8 tail=pad");
  for (std::size_t width = 0; width < 2; ++width) {
    for (std::size_t tail = 0; tail < 3; ++tail) {
      const auto read = space.read_summary(space.summary({width, tail}));
      REQUIRE(read.size() == 2);
      CHECK(read[0] == width);
      CHECK(read[1] == tail);
    }
  }
}

TEST_CASE("reading takes what it knows from any text") {
  using Read = std::vector<std::optional<std::size_t>>;
  const KernelSpace space = small_space();
  CHECK(space.read_summary("") == Read{{}, {}});
  CHECK(space.read_summary("I took tail=ignore, since it is fast;width=8.") == Read{{}, 2});
  CHECK(space.read_summary("tail=pad;width=8\n") == Read{1, 1});
  CHECK(space.read_summary("width=4 width=8") == Read{0, {}});
  CHECK(space.read_summary("width=5 width=8") == Read{1, {}});  // an unknown option is as good as none
  CHECK(space.read_summary("width= =8 = == width==8 Width=8 xwidth=8 width=88 width =8") == Read{{}, {}});
  CHECK(space.read_summary(std::string("width=8\0 tail=pad", 17)) == Read{{}, 1});
}

TEST_CASE("reading bears any bytes") {
  const KernelSpace space = small_space();
  const std::string alphabet = "width=48 tail=pd,;\n\xff";
  std::mt19937 random(1);
  std::size_t found = 0;
  for (int n = 0; n < 2000; ++n) {
    std::string text = n % 2 == 0 ? "" : "width=8 ";
    for (std::size_t length = random() % 40; length > 0; --length) text += alphabet[random() % alphabet.size()];
    const auto read = space.read_summary(text);
    REQUIRE(read.size() == 2);
    if (read[0]) REQUIRE(*read[0] < 2);
    if (read[1]) REQUIRE(*read[1] < 3);
    if (n % 2 == 1) REQUIRE(read[0] == 1U);
    found += read[0] ? 1U : 0U;
  }
  CHECK(found >= 1000);
}
