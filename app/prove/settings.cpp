#include "prove/settings.hpp"

#include "config/document.hpp"
#include "config/reading.hpp"
#include "config/sections.hpp"

namespace semel::prove {
namespace {

using app::Fields;
using app::Place;
using app::Reading;

class SettingsReader {
 public:
  explicit SettingsReader(Reading& reading) : reading_(reading) {}

  Settings read(const Place& place) {
    Fields top(reading_, place);
    if (!top) return std::move(settings_);
    if (const auto target = top.take("target")) read_target(*target);
    const auto request = top.take("request");
    const auto message = top.take("message");
    if (request && message)
      reading_.mistake(ErrorCode::config_bad_value, *message, "an event is a request or a message");
    if (!request && !message)
      reading_.mistake(ErrorCode::config_missing_field, place, "needs \"request\" (HTTP) or \"message\" (a command)");
    if (request) settings_.event = read_request(*request);
    if (message) settings_.event = read_message(*message);
    if (const auto effects = top.require("effects", "how the effects of one key are counted")) read_effects(*effects);
    if (const auto keys = top.take("keys")) {
      using Keys = Settings::Keys;
      settings_.keys =
          reading_.choice<Keys>(*keys, {{"uuid", Keys::uuid}, {"number", Keys::number}}).value_or(settings_.keys);
    }
    if (const auto answers = top.take("answers"))
      settings_.same_answers = reading_.choice<bool>(*answers, {{"same", true}, {"any", false}}).value_or(true);
    read_bounds(top);
    top.finish();
    return std::move(settings_);
  }

 private:
  void read_target(const Place& place) {
    Fields fields(reading_, place);
    if (!fields) return;
    Start start;
    if (const auto command = fields.require("start", "the command that starts it"))
      start.command = reading_.verbatim(*command).value_or("");
    if (const auto within = fields.take("within")) start.within = duration(*within).value_or(start.within);
    fields.finish();
    settings_.start = std::move(start);
  }

  Request read_request(const Place& place) {
    Request request;
    Fields fields(reading_, place);
    if (!fields) return request;
    if (const auto url = fields.require("url", "such as http://127.0.0.1:8080/orders")) request.url = read_url(*url);
    if (const auto method = fields.take("method")) request.method = reading_.text(*method).value_or(request.method);
    if (const auto headers = fields.take("headers")) read_headers(*headers, request);
    if (const auto body = fields.take("body")) request.body = reading_.text(*body).value_or("");
    if (const auto changed = fields.take("changed")) request.changed = read_changed(*changed, request.body);
    fields.finish();
    const bool keyed = std::ranges::any_of(request.headers, [](const auto& header) { return has_key(header.second); });
    if (!keyed && !has_key(request.url) && !has_key(request.body))
      reading_.mistake(ErrorCode::config_missing_field, place, "has no {{key}}: in its url, a header or its body");
    return request;
  }

  void read_headers(const Place& place, Request& request) {
    Fields fields(reading_, place);
    if (!fields) return;
    for (const auto& [name, value] : fields.take_all())
      request.headers.emplace_back(name, reading_.text(value).value_or(""));
  }

  Message read_message(const Place& place) {
    Message message;
    Fields fields(reading_, place);
    if (!fields) return message;
    if (const auto command = fields.require("command", "what puts one message into the queue"))
      message.command = read_command(*command);
    if (const auto changed = fields.take("changed")) message.changed = read_changed(*changed, message.command);
    fields.finish();
    return message;
  }

  std::optional<std::string> read_changed(const Place& place, const std::string& first) {
    auto changed = reading_.text(place);
    if (changed && *changed == first)
      reading_.mistake(ErrorCode::config_bad_value, place, "must differ from what it changes");
    return changed;
  }

  void read_effects(const Place& place) {
    Fields fields(reading_, place);
    if (!fields) return;
    const auto database = fields.take("database");
    const auto http = fields.take("http");
    const auto command = fields.take("command");
    if (int(database.has_value()) + int(http.has_value()) + int(command.has_value()) != 1)
      reading_.mistake(ErrorCode::config_bad_value, place, "needs one of database (with sql), http and command");
    if (database) read_sql(*database, fields);
    if (http) settings_.effects = HttpCount{with_key(*http, read_url(*http))};
    if (command) settings_.effects = CommandCount{read_command(*command)};
    fields.finish();
  }

  void read_sql(const Place& database, Fields& fields) {
    SqlCount count;
    if (auto store = read_store(reading_, database, settings_.redactor)) count.database = *std::move(store);
    if (const auto sql = fields.require("sql", "a statement that returns one number"))
      count.sql = with_key(*sql, reading_.text(*sql).value_or(""));
    settings_.effects = std::move(count);
  }

  void read_bounds(Fields& top) {
    const auto number = [&](const std::string& name, int min, int max, int& value) {
      if (const auto place = top.take(name))
        value = static_cast<int>(reading_.integer(*place, min, max).value_or(value));
    };
    number("clients", 2, 64, settings_.clients);
    number("trials", 1, 1'000, settings_.trials);
    const auto time = [&](const std::string& name, std::chrono::milliseconds& value) {
      if (const auto place = top.take(name)) value = duration(*place).value_or(value);
    };
    time("late", settings_.late);
    time("patience", settings_.patience);
    time("settle", settings_.settle);
    time("quiet", settings_.quiet);
  }

  std::optional<std::chrono::milliseconds> duration(const Place& place) {
    return reading_.duration(place, std::chrono::milliseconds(1));
  }

  std::string read_url(const Place& place) {
    auto url = reading_.text(place).value_or("http://");
    if (!url.starts_with("http://") && !url.starts_with("https://"))
      reading_.mistake(ErrorCode::config_bad_value, place, "must begin with http:// or https://");
    return url;
  }

  /// As it is written: `${NAME}` is the shell's.
  std::string read_command(const Place& place) { return with_key(place, reading_.verbatim(place).value_or("")); }

  std::string with_key(const Place& place, std::string text) {
    if (!has_key(text)) reading_.mistake(ErrorCode::config_missing_field, place, "has no {{key}}");
    return text;
  }

  static bool has_key(const std::string& text) { return text.find("{{key}}") != std::string::npos; }

  Reading& reading_;
  Settings settings_{};
};

}  // namespace

LoadedSettings load_settings(const std::string& file, const app::Environment& environment) {
  const auto text = app::text_of_file(file);
  if (const auto* mistake = std::get_if<app::Mistake>(&text)) return {.settings = std::nullopt, .mistakes = {*mistake}};
  Settings settings;
  auto mistakes = app::read_document(std::get<std::string>(text), [&](const YAML::Node& document) {
    Reading reading(environment);
    SettingsReader reader(reading);
    settings = reader.read({document, ""});
    auto found = reading.take_mistakes();
    for (auto& mistake : found) mistake.message = settings.redactor.clean(std::move(mistake.message));
    return found;
  });
  if (!mistakes.empty()) return {.settings = std::nullopt, .mistakes = std::move(mistakes)};
  return {.settings = std::move(settings), .mistakes = {}};
}

}  // namespace semel::prove
