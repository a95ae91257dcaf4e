// libFuzzer target: a text is an id of a generated task exactly when writing its parts gives the text back.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "kevin/tasks/generator/generated_id.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::optional<kevin::tasks::GeneratedId> id = kevin::tasks::parse_generated_id(text);
  if (id && kevin::tasks::to_string(*id) != text) std::abort();
  // any text gives two numbers, whose id has to be read back
  kevin::tasks::GeneratedId own{.seed = size, .index = 0, .small = size % 2 == 1};
  for (const char c : text) own.index = own.index * 257 + static_cast<unsigned char>(c);
  if (kevin::tasks::parse_generated_id(kevin::tasks::to_string(own)) != own) std::abort();
  return 0;
}
