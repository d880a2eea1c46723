// targets:
//   events: { url: "https://…", secrets: [ "${WEBHOOK_SECRET}" ], headers: { … } }
//   audit:  { file: out.jsonl }
//   jobs:   { queue: jobs }
#include "config/sections.hpp"

namespace semel::app {
namespace {

class TargetReader {
 public:
  TargetReader(Reading& reading, Config& config) : reading_(reading), config_(config) {}

  void read(const std::string& name, const Place& place) {
    Fields fields(reading_, place);
    if (!fields) return;
    target_ = {};
    target_.options.name = name;
    const auto url = fields.take("url");
    const auto file = fields.take("file");
    const auto queue = fields.take("queue");
    if (!url + !file + !queue != 2) {
      reading_.mistake(ErrorCode::config_missing_field, place,
                       "is one of url (a webhook), file (JSON lines) or queue (a queue in the store)");
    }
    if (url) read_webhook(fields, *url);
    if (file) target_.kind = FileTarget{reading_.text(*file).value_or("")};
    if (queue) target_.kind = QueueTarget{reading_.text(*queue).value_or("")};
    if (!queue) read_pace(fields);
    fields.finish();
    check_name(queue ? *queue : place);
    config_.targets.push_back(std::move(target_));
  }

 private:
  void read_webhook(Fields& fields, const Place& place) {
    http::WebhookOptions options;
    options.url = reading_.text(place).value_or("");
    if (!options.url.starts_with("https://") && !options.url.starts_with("http://")) {
      reading_.mistake(ErrorCode::config_bad_value, place, "must begin with https:// or http://");
    }
    if (const auto secrets = fields.take("secrets")) {
      for (const auto& item : reading_.list(*secrets)) read_secret(item, options);
    } else {
      config_.warnings.push_back(fields.place().path + ": no secrets, so its receiver cannot tell who sends");
    }
    if (const auto headers = fields.take("headers")) {
      options.headers = read_secret_headers(reading_, *headers, config_);
    }
    if (const auto file = fields.take("ca_file")) options.ca_file = reading_.text(*file);
    if (const auto proxy = fields.take("proxy")) {
      options.proxy = reading_.text(*proxy);
      if (options.proxy) config_.redactor.add_passwords_of(*options.proxy);
    }
    target_.kind = std::move(options);
  }

  void read_secret(const Place& place, http::WebhookOptions& options) {
    const auto value = reading_.secret(place);
    if (!value) return;
    if (reading_.secret_was_written()) {
      config_.warnings.push_back(place.path + ": a secret stands in the file; write ${NAME} or { file: path }");
    }
    config_.redactor.add(*value);
    options.secrets.push_back(*value);
  }

  void read_pace(Fields& fields) {
    auto& options = target_.options;
    if (const auto place = fields.take("sends_max")) {
      options.sends_max = static_cast<std::size_t>(reading_.integer(*place, 1, 10'000).value_or(16));
    }
    const auto duration = [&](const char* name, std::chrono::milliseconds& value) {
      const auto place = fields.take(name);
      if (place) value = reading_.duration(*place, std::chrono::milliseconds(1)).value_or(value);
    };
    duration("timeout", options.timeout);
    duration("delay", options.delay_first);
    duration("delay_max", options.delay_max);
  }

  void check_name(const Place& place) {
    for (const auto& other : config_.targets) {
      if (other.name() != target_.name()) continue;
      reading_.mistake(ErrorCode::config_bad_value, place,
                       "the target \"" + other.options.name + "\" has this name already");
    }
  }

  Reading& reading_;
  Config& config_;
  TargetConfig target_;
};

}  // namespace

const std::string& TargetConfig::name() const {
  const auto* queue = std::get_if<QueueTarget>(&kind);
  return queue ? queue->queue : options.name;
}

void read_targets(Reading& reading, const Place& place, Config& config) {
  Fields fields(reading, place);
  if (!fields) return;
  TargetReader reader(reading, config);
  for (const auto& [name, target] : fields.take_all()) reader.read(name, target);
}

}  // namespace semel::app
