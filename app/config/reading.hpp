// Reads YAML values with their places, and collects every mistake instead of stopping at the first.
#pragma once

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <semel/error.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/config.hpp"
#include "config/mistake.hpp"
#include "config/nearest_name.hpp"

namespace semel::app {

/// A value of the file, and the way to it from the top.
struct Place {
  YAML::Node node;
  std::string path;
};

/// One pass over one file. Every function that returns nothing has noted a mistake.
class Reading {
 public:
  explicit Reading(const Environment& environment) : environment_(environment) {}

  void mistake(ErrorCode code, const Place& place, std::string message);
  void mistake(ErrorCode code, const YAML::Mark& mark, std::string path, std::string message);
  std::vector<Mistake> take_mistakes();
  bool clean() const { return mistakes_.empty(); }

  /// A scalar as it is written.
  std::optional<std::string> verbatim(const Place& place);
  /// A scalar with `${NAME}` replaced from the environment; `$${` stands for `${`.
  std::optional<std::string> text(const Place& place);
  /// Text, or `{ file: path }` for the content of a file without its last line end. Never quoted in a mistake.
  std::optional<std::string> secret(const Place& place);
  /// Whether the last `secret` stood in the file itself.
  bool secret_was_written() const { return secret_was_written_; }

  std::optional<std::int64_t> integer(const Place& place, std::int64_t min, std::int64_t max);
  std::optional<bool> boolean(const Place& place);
  /// "250ms", "10s", "5m", "12h", "30d".
  std::optional<std::chrono::milliseconds> duration(const Place& place, std::chrono::milliseconds min);
  /// A number of bytes, or "64KiB", "1MiB".
  std::optional<std::size_t> size(const Place& place);

  template <class E>
  std::optional<E> choice(const Place& place, const std::vector<std::pair<std::string, E>>& choices);

  /// The items of a list; a single value stands for a list of one.
  std::vector<Place> one_or_many(const Place& place);
  /// The items of a list.
  std::vector<Place> list(const Place& place);

 private:
  std::optional<std::string> expanded(const Place& place, const std::string& written);
  void bad_choice(const Place& place, const std::string& written, const std::vector<std::string>& names);

  const Environment& environment_;
  std::vector<Mistake> mistakes_;
  bool secret_was_written_ = false;
};

/// The fields of a mapping. Each is taken by name; `finish` reports those that nobody took.
class Fields {
 public:
  Fields(Reading& reading, Place place);

  /// False where the value is no mapping, which has been reported.
  explicit operator bool() const { return mapping_; }
  const Place& place() const { return place_; }

  std::optional<Place> take(const std::string& name);
  /// Reports a field that is not there.
  std::optional<Place> require(const std::string& name, std::string_view why = "");
  /// All fields, for mappings whose names are the user's. Nothing is left to report.
  std::vector<std::pair<std::string, Place>> take_all();
  void finish();

 private:
  struct Entry {
    std::string name;
    YAML::Mark mark;
    Place value;
    bool taken = false;
  };
  Reading& reading_;
  Place place_;
  bool mapping_ = false;
  std::vector<Entry> entries_;
  std::vector<std::string> known_;
};

template <class E>
std::optional<E> Reading::choice(const Place& place, const std::vector<std::pair<std::string, E>>& choices) {
  const auto written = text(place);
  if (!written) return std::nullopt;
  std::vector<std::string> names;
  for (const auto& [name, value] : choices) {
    if (name == *written) return value;
    names.push_back(name);
  }
  bad_choice(place, place.node.Scalar(), names);
  return std::nullopt;
}

}  // namespace semel::app
