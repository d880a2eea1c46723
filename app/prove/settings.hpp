// What a file for `semel prove` says: the target, the event, and how its effects are counted. The schema is in
// docs/guides/prove.md.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "config/config.hpp"

namespace semel::prove {

/// How the target is started; without it nothing is killed.
struct Start {
  std::string command;  ///< for /bin/sh
  std::chrono::milliseconds within{30'000};
};

/// Texts may have `{{key}}` in them.
struct Request {
  std::string method = "POST";
  std::string url;
  std::vector<std::pair<std::string, std::string>> headers{};
  std::string body{};
  std::optional<std::string> changed{};  ///< another content under the same key
};

/// A message that a command puts where the target takes it from, for queues of every kind.
struct Message {
  std::string command;
  std::optional<std::string> changed{};
};

struct SqlCount {
  app::StoreConfig database;
  std::string sql;
};
struct HttpCount {
  std::string url;
};
struct CommandCount {
  std::string command;
};

struct Settings {
  std::optional<Start> start{};
  std::variant<Request, Message> event{};
  std::variant<SqlCount, HttpCount, CommandCount> effects{CommandCount{}};
  enum class Keys { uuid, number } keys = Keys::uuid;
  bool same_answers = true;  ///< whether whoever asks again is promised the first answer
  int clients = 8;           ///< that ask at once
  int trials = 20;           ///< of an attack that depends on moments
  std::chrono::milliseconds late{2'000};
  std::chrono::milliseconds patience{10'000};  ///< of a client, until it has an answer
  std::chrono::milliseconds settle{5'000};     ///< until an effect can be seen
  std::chrono::milliseconds quiet{200};        ///< so long no more effects may come
  app::Redactor redactor{};
};

struct LoadedSettings {
  std::optional<Settings> settings;
  std::vector<app::Mistake> mistakes;
};
LoadedSettings load_settings(const std::string& file, const app::Environment& environment);

}  // namespace semel::prove
