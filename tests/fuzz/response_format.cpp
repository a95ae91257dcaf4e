// Any bytes: parsing must end in a clean response or in a fault with a place; what was read must survive writing.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "kevin/refine/feedback.hpp"
#include "kevin/refine/format.hpp"

namespace {
void require(bool condition) {
  if (!condition) std::abort();
}
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const kevin::ParsedResponse strict = kevin::parse_response(text, kevin::FormatMode::strict);
  const kevin::ParsedResponse lenient = kevin::parse_response(text);
  for (const kevin::ParsedResponse* parsed : {&strict, &lenient}) {
    for (const std::string* part : {&parsed->response.thought, &parsed->response.summary, &parsed->response.source}) {
      require(kevin::detail::find_unclean(*part) == std::string::npos);
    }
    if (!parsed->ok()) {
      require(parsed->response.source.empty() && parsed->error->position <= size && !parsed->error->text.empty());
      require(kevin::detail::find_unclean(kevin::feedback(kevin::to_verdict(*parsed->error))) == std::string::npos);
      continue;
    }
    require(!kevin::detail::blank(parsed->response.source));
    const kevin::Response canonical = kevin::canonical(parsed->response);
    require(kevin::canonical(canonical) == canonical);
    const std::string written = kevin::format_response(parsed->response);
    const kevin::ParsedResponse again = kevin::parse_response(written);
    require(again.ok() && again.response == canonical);
    require(canonical.summary.empty() || kevin::parse_response(written, kevin::FormatMode::strict).ok());
  }
  if (strict.ok()) require(lenient.ok() && lenient.response == strict.response);

  // the text as parts of a response, and as diagnostics
  const std::size_t third = size / 3;
  const kevin::Response response{std::string(text.substr(0, third)), std::string(text.substr(third, third)),
                                 std::string(text.substr(2 * third))};
  const kevin::Response canonical = kevin::canonical(response);
  if (!canonical.source.empty()) {
    const kevin::ParsedResponse read = kevin::parse_response(kevin::format_response(response));
    require(read.ok() && read.response == canonical);
  }
  kevin::Verdict verdict;
  verdict.stage = kevin::Stage::compile;
  verdict.diagnostics = std::string(text);
  const std::string told = kevin::feedback(verdict, {.max_diagnostics_bytes = 100});
  require(kevin::detail::find_unclean(told) == std::string::npos && told.size() < 100 + 350);
  return 0;
}
