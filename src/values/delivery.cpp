#include <algorithm>
#include <semel/delivery.hpp>

namespace semel {
namespace {

/// ASCII only: a locale must not decide which header is meant.
char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool same_name(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) { return lower(x) == lower(y); });
}

}  // namespace

void Attributes::add(std::string name, std::string value) { entries_.emplace_back(std::move(name), std::move(value)); }

std::optional<std::string_view> Attributes::find(std::string_view name) const {
  for (const auto& [entry_name, value] : entries_)
    if (same_name(entry_name, name)) return value;
  return std::nullopt;
}

std::size_t Attributes::count(std::string_view name) const {
  return static_cast<std::size_t>(std::count_if(entries_.begin(), entries_.end(),
                                                [&](const Entry& entry) { return same_name(entry.first, name); }));
}

}  // namespace semel
