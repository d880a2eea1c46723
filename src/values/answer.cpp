#include <algorithm>
#include <semel/answer.hpp>
#include <string_view>

namespace semel {
namespace {

constexpr std::string_view replayable[] = {
    "content-type", "content-encoding", "content-language", "content-location", "etag",
    "link",         "location",         "last-modified",    "retry-after"};

}  // namespace

Attributes replayable_headers(const Attributes& headers) {
  Attributes kept;
  for (const auto& [name, value] : headers.entries()) {
    const Attributes one{{name, {}}};  // it compares names as headers are compared
    if (std::any_of(std::begin(replayable), std::end(replayable), [&](auto known) { return one.count(known) > 0; }))
      kept.add(name, value);
  }
  return kept;
}

}  // namespace semel
