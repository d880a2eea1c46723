#include "commands/given.hpp"

#include <algorithm>
#include <cctype>

#include "config/nearest_name.hpp"
#include "output.hpp"

namespace semel::app {
namespace {

constexpr std::size_t digits_min = 6;
constexpr std::size_t digits_all = 32;
constexpr std::size_t named_max = 5;

std::string in_small_letters(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

bool is_hex(std::string_view text) {
  return std::ranges::all_of(text, [](unsigned char c) { return std::isxdigit(c) != 0; });
}

std::string several(const std::vector<std::string>& found) {
  std::string text = "several begin like this: ";
  for (std::size_t i = 0; i < std::min(found.size(), named_max); ++i) text += (i == 0 ? "" : ", ") + found[i];
  return text + (found.size() > named_max ? " and more" : "");
}

}  // namespace

Error not_found(std::string_view thing, const std::string& written, std::string_view why) {
  return fix_call(ErrorCode::config_unknown_name,
                  std::string(thing).append(" ").append(printable(written)).append(": ").append(why));
}

Result<std::string> whole_id(std::string_view thing, const std::string& written) {
  if (written.size() != digits_all || !is_hex(written))
    return not_found(thing, written, "an id has " + std::to_string(digits_all) + " hexadecimal digits");
  return in_small_letters(written);
}

Result<std::string> find_id(std::string_view thing, const std::string& written, const NextIds& next) {
  if (written.size() < digits_min || written.size() > digits_all || !is_hex(written)) {
    return not_found(thing, written,
                     "an id has " + std::to_string(digits_all) + " hexadecimal digits; write at least the first " +
                         std::to_string(digits_min));
  }
  const auto begin = in_small_letters(written);
  if (begin.size() == digits_all) return begin;
  std::vector<std::string> found;
  for (std::string after;;) {
    const auto page = next(after);
    if (!page) return page.error();
    if (page->empty()) break;
    std::ranges::copy_if(*page, std::back_inserter(found), [&](const auto& id) { return id.starts_with(begin); });
    // One more than are named is enough to say that there are more.
    if (found.size() > named_max) break;
    after = page->back();
  }
  if (found.empty()) return not_found(thing, written);
  if (found.size() > 1) return not_found(thing, written, several(found));
  return found.front();
}

Result<void> check_name(std::string_view thing, const std::string& written, std::span<const std::string> configured,
                        const std::function<Result<bool>()>& is_in_store) {
  if (written.empty() || std::ranges::find(configured, written) != configured.end()) return {};
  const auto stored = is_in_store();
  if (!stored) return stored.error();
  if (*stored) return {};
  return fix_call(ErrorCode::config_unknown_name, "there is no " + std::string(thing) + " \"" + printable(written) +
                                                      "\"" + suggestion(written, configured));
}

int report_given(const Error& error, const Redactor& redactor) {
  const int code = report(error, redactor);
  return code == configuration ? static_cast<int>(usage) : code;
}

}  // namespace semel::app
