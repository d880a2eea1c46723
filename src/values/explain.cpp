#include "values/explain.hpp"

#include <algorithm>
#include <charconv>
#include <semel/error.hpp>
#include <span>

#include "base/embedded.hpp"

namespace semel {

namespace errors {
std::span<const EmbeddedFile> embedded_files();
}

namespace {

constexpr std::string_view prefix = "semel-";

bool starts_with_prefix(std::string_view text) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return text.size() >= prefix.size() && std::equal(prefix.begin(), prefix.end(), text.begin(),
                                                    [&](char wanted, char c) { return wanted == lower(c); });
}

}  // namespace

std::optional<std::string_view> explain(std::string_view name) {
  if (starts_with_prefix(name)) name.remove_prefix(prefix.size());
  unsigned number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error != std::errc{} || end != name.data() + name.size() || number > 9999) return std::nullopt;
  const auto wanted = code_name(static_cast<ErrorCode>(number)) + ".md";
  for (const auto& page : errors::embedded_files())
    if (page.name == wanted) return page.text;
  return std::nullopt;
}

}  // namespace semel
