#include "config/reading.hpp"

#include <cctype>
#include <charconv>
#include <fstream>
#include <sstream>

namespace semel::app {
namespace {

std::string kind_of(const YAML::Node& node) {
  if (node.IsMap()) return "a mapping";
  if (node.IsSequence()) return "a list";
  if (node.IsScalar()) return "a single value";
  return "nothing";
}

std::string in_quotes(const std::string& text) { return "\"" + text + "\""; }

/// A number and the unit that sticks to it.
std::optional<std::pair<std::int64_t, std::string>> number_and_unit(const std::string& text) {
  std::int64_t number = 0;
  const auto* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || number < 0) return std::nullopt;
  return std::pair(number, std::string(rest, end));
}

std::string shown(std::chrono::milliseconds duration) {
  const auto count = duration.count();
  return count % 1'000 == 0 ? std::to_string(count / 1'000) + "s" : std::to_string(count) + "ms";
}

}  // namespace

void Reading::mistake(ErrorCode code, const Place& place, std::string message) {
  mistake(code, place.node.Mark(), place.path, std::move(message));
}

void Reading::mistake(ErrorCode code, const YAML::Mark& mark, std::string path, std::string message) {
  mistakes_.push_back({.code = code,
                       .line = mark.line + 1,
                       .column = mark.column + 1,
                       .path = std::move(path),
                       .message = std::move(message)});
}

std::vector<Mistake> Reading::take_mistakes() {
  std::stable_sort(mistakes_.begin(), mistakes_.end(), [](const Mistake& a, const Mistake& b) {
    return std::pair(a.line, a.column) < std::pair(b.line, b.column);
  });
  return std::move(mistakes_);
}

std::optional<std::string> Reading::verbatim(const Place& place) {
  if (place.node.IsScalar()) return place.node.Scalar();
  mistake(ErrorCode::config_bad_value, place, "must be a single value, not " + kind_of(place.node));
  return std::nullopt;
}

std::optional<std::string> Reading::text(const Place& place) {
  const auto written = verbatim(place);
  if (!written) return std::nullopt;
  return expanded(place, *written);
}

std::optional<std::string> Reading::expanded(const Place& place, const std::string& written) {
  std::string text;
  for (std::size_t at = 0; at < written.size();) {
    const auto rest = std::string_view(written).substr(at);
    if (rest.starts_with("$${")) {
      text += "${";
      at += 3;
    } else if (rest.starts_with("${")) {
      const auto end = rest.find('}');
      if (end == std::string_view::npos) {
        mistake(ErrorCode::config_syntax, place, "\"${\" has no closing brace; write $${ for the characters ${");
        return std::nullopt;
      }
      const std::string name(rest.substr(2, end - 2));
      const auto value = environment_(name);
      if (!value) {
        mistake(ErrorCode::config_secret_missing, place, "the environment variable " + name + " is not set");
        return std::nullopt;
      }
      text += *value;
      at += end + 1;
    } else {
      text += written[at++];
    }
  }
  return text;
}

std::optional<std::string> Reading::secret(const Place& place) {
  secret_was_written_ = false;
  if (!place.node.IsMap()) {
    const auto value = text(place);
    if (!value) return std::nullopt;
    secret_was_written_ = place.node.Scalar() == *value;
    if (!value->empty()) return value;
    mistake(ErrorCode::config_secret_missing, place, "the secret is empty");
    return std::nullopt;
  }
  Fields fields(*this, place);
  const auto file = fields.require("file");
  fields.finish();
  const auto path = file ? text(*file) : std::nullopt;
  if (!path) return std::nullopt;
  std::ifstream input(*path, std::ios::binary);
  std::stringstream content;
  content << input.rdbuf();
  auto value = content.str();
  while (!value.empty() && (value.back() == '\n' || value.back() == '\r')) value.pop_back();
  if (input && !value.empty()) return value;
  mistake(ErrorCode::config_secret_missing, *file,
          input ? "the file " + *path + " is empty" : "cannot read the file " + *path);
  return std::nullopt;
}

std::optional<std::int64_t> Reading::integer(const Place& place, std::int64_t min, std::int64_t max) {
  const auto written = text(place);
  if (!written) return std::nullopt;
  std::int64_t number = 0;
  const auto* end = written->data() + written->size();
  const auto [rest, error] = std::from_chars(written->data(), end, number);
  if (error == std::errc() && rest == end && number >= min && number <= max) return number;
  mistake(ErrorCode::config_bad_value, place,
          "must be a whole number from " + std::to_string(min) + " to " + std::to_string(max) + ", not " +
              in_quotes(place.node.Scalar()));
  return std::nullopt;
}

std::optional<bool> Reading::boolean(const Place& place) {
  return choice<bool>(place, {{"true", true}, {"false", false}});
}

std::optional<std::chrono::milliseconds> Reading::duration(const Place& place, std::chrono::milliseconds min) {
  const auto written = text(place);
  if (!written) return std::nullopt;
  static const std::vector<std::pair<std::string, std::int64_t>> units = {
      {"ms", 1}, {"s", 1'000}, {"m", 60'000}, {"h", 3'600'000}, {"d", 86'400'000}};
  const auto parts = number_and_unit(*written);
  for (const auto& [unit, factor] : units) {
    if (!parts || parts->second != unit) continue;
    if (parts->first > std::chrono::milliseconds(std::chrono::hours(24 * 36'500)).count() / factor) break;
    const std::chrono::milliseconds value(parts->first * factor);
    if (value >= min) return value;
    mistake(ErrorCode::config_bad_value, place,
            "must be at least " + shown(min) + ", not " + in_quotes(place.node.Scalar()));
    return std::nullopt;
  }
  mistake(ErrorCode::config_bad_value, place,
          "must be a duration such as 250ms, 10s, 5m, 12h or 30d, not " + in_quotes(place.node.Scalar()));
  return std::nullopt;
}

std::optional<std::size_t> Reading::size(const Place& place) {
  const auto written = text(place);
  if (!written) return std::nullopt;
  static const std::vector<std::pair<std::string, std::int64_t>> units = {{"", 1}, {"KiB", 1 << 10}, {"MiB", 1 << 20}};
  const auto parts = number_and_unit(*written);
  for (const auto& [unit, factor] : units) {
    if (!parts || parts->second != unit || parts->first < 1 || parts->first > (std::int64_t{1} << 31) / factor)
      continue;
    return static_cast<std::size_t>(parts->first * factor);
  }
  mistake(ErrorCode::config_bad_value, place,
          "must be a size such as 65536, 64KiB or 1MiB, at most 2048MiB, not " + in_quotes(place.node.Scalar()));
  return std::nullopt;
}

void Reading::bad_choice(const Place& place, const std::string& written, const std::vector<std::string>& names) {
  std::string all;
  for (std::size_t i = 0; i < names.size(); ++i) all += (i == 0 ? "" : ", ") + names[i];
  const auto nearest = nearest_name(written, names);
  mistake(ErrorCode::config_bad_value, place,
          "must be one of " + all + ", not " + in_quotes(written) +
              (nearest ? "; did you mean " + in_quotes(*nearest) + "?" : ""));
}

std::vector<Place> Reading::one_or_many(const Place& place) {
  return place.node.IsSequence() ? list(place) : std::vector{place};
}

std::vector<Place> Reading::list(const Place& place) {
  if (!place.node.IsSequence() || place.node.size() == 0) {
    mistake(ErrorCode::config_bad_value, place,
            place.node.IsSequence() ? "must not be empty" : "must be a list, not " + kind_of(place.node));
    return {};
  }
  std::vector<Place> items;
  for (const auto& item : place.node) items.push_back({item, place.path + "[" + std::to_string(items.size()) + "]"});
  return items;
}

Fields::Fields(Reading& reading, Place place) : reading_(reading), place_(std::move(place)) {
  if (!place_.node.IsMap()) {
    reading_.mistake(ErrorCode::config_bad_value, place_, "must be a mapping, not " + kind_of(place_.node));
    return;
  }
  mapping_ = true;
  for (const auto& field : place_.node) {
    const auto mark = field.first.Mark();
    if (!field.first.IsScalar()) {
      reading_.mistake(ErrorCode::config_syntax, mark, place_.path, "a field's name must be a single value");
      continue;
    }
    const auto& name = field.first.Scalar();
    const auto path = place_.path.empty() ? name : place_.path + "." + name;
    const auto earlier =
        std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) { return entry.name == name; });
    if (earlier != entries_.end()) {
      reading_.mistake(ErrorCode::config_syntax, mark, path,
                       "is there twice; the first is on line " + std::to_string(earlier->mark.line + 1));
      continue;
    }
    entries_.push_back({name, mark, Place{field.second, path}});
  }
}

std::optional<Place> Fields::take(const std::string& name) {
  known_.push_back(name);
  for (auto& entry : entries_) {
    if (entry.name != name) continue;
    entry.taken = true;
    if (!entry.value.node.IsNull()) return entry.value;
    reading_.mistake(ErrorCode::config_bad_value, entry.mark, entry.value.path, "has no value");
    return std::nullopt;
  }
  return std::nullopt;
}

std::optional<Place> Fields::require(const std::string& name, std::string_view why) {
  if (!mapping_) return std::nullopt;
  const bool there =
      std::any_of(entries_.begin(), entries_.end(), [&](const Entry& entry) { return entry.name == name; });
  if (there) return take(name);
  known_.push_back(name);
  reading_.mistake(ErrorCode::config_missing_field, place_,
                   "\"" + name + "\" is missing" + (why.empty() ? "" : ": " + std::string(why)));
  return std::nullopt;
}

std::vector<std::pair<std::string, Place>> Fields::take_all() {
  std::vector<std::pair<std::string, Place>> all;
  for (auto& entry : entries_) {
    entry.taken = true;
    all.emplace_back(entry.name, entry.value);
  }
  return all;
}

void Fields::finish() {
  for (const auto& entry : entries_) {
    if (entry.taken) continue;
    reading_.mistake(ErrorCode::config_unknown_field, entry.mark, entry.value.path,
                     "unknown field" + suggestion(entry.name, known_));
  }
}

}  // namespace semel::app
