// providers:
//   stripe: { profile: stripe, headers: { Authorization: "Bearer ${STRIPE_KEY}" }, calls_max: 16 }
//   bank:
//     key: { header: Idempotency-Key, lifetime: 24h, margin: 1h }
//     lookup: { url: "https://bank.example/charges?reference={reference}", list: /data, status: /status,
//               succeeded: [ succeeded ], failed: [ failed ], visibility_delay: 60s, compare: { /amount: /amount } }
//     answers: [ { status: 409, verdict: unfinished } ]
//   plain: {}
#include <algorithm>
#include <cctype>

#include "config/sections.hpp"

namespace semel::app {
namespace {

using http::Meaning;

const std::vector<std::pair<std::string, Meaning>> meanings = {
    {"succeeded", Meaning::succeeded}, {"failed", Meaning::failed},   {"refused", Meaning::refused},
    {"not_done", Meaning::not_done},   {"unknown", Meaning::unknown}, {"unfinished", Meaning::unfinished},
    {"mismatch", Meaning::mismatch},   {"look_up", Meaning::look_up}, {"existing", Meaning::existing}};

class ProviderReader {
 public:
  ProviderReader(Reading& reading, Config& config) : reading_(reading), config_(config) {}

  void read(const std::string& name, const Place& place) {
    Fields fields(reading_, place);
    if (!fields) return;
    provider_ = {.name = name};
    profile().name = name;
    profile().key.in = http::KeyCarrier::In::none;
    if (const auto from = fields.take("profile")) read_profile(*from);
    if (const auto headers = fields.take("headers")) {
      provider_.performer.headers = read_secret_headers(reading_, *headers, config_);
    } else if (!provider_.profile.empty()) {
      config_.warnings.push_back(place.path + ": no headers, so its calls go out without credentials");
    }
    if (const auto key = fields.take("key")) read_key(*key);
    read_lookups(fields);
    if (const auto answer = fields.take("answer")) {
      Fields shape(reading_, *answer);
      read_shape(shape, profile().answer);
      if (shape) shape.finish();
    }
    if (const auto answers = fields.take("answers")) read_rules(*answers);
    read_limits(fields);
    read_connection(fields);
    fields.finish();
    config_.providers.push_back(std::move(provider_));
  }

 private:
  http::ProviderProfile& profile() { return provider_.performer.profile; }
  ProviderPolicy& policy() { return profile().policy; }

  void read_profile(const Place& place) {
    const auto name = reading_.text(place);
    if (!name) return;
    if (auto built_in = http::built_in_profile(*name)) {
      profile() = *std::move(built_in);
      provider_.profile = *name;
      return;
    }
    std::vector<std::string> names;
    for (const auto& one : http::built_in_profiles()) names.push_back(one.name);
    reading_.mistake(ErrorCode::config_unknown_name, place,
                     "there is no built-in profile \"" + *name + "\"" + suggestion(*name, names));
  }

  void read_key(const Place& place) {
    using In = http::KeyCarrier::In;
    Fields fields(reading_, place);
    if (!fields) return;
    auto& key = profile().key;
    int carriers = 0;
    for (const auto& [name, in] :
         {std::pair("header", In::header), {"field", In::json_member}, {"form_field", In::form_field}}) {
      const auto carrier = fields.take(name);
      if (!carrier) continue;
      ++carriers;
      key.in = in;
      key.name = (in == In::json_member ? pointer(*carrier) : reading_.text(*carrier)).value_or("");
      if (in == In::header) is_header(reading_, key.name, *carrier);
    }
    if (carriers > 1 || (carriers == 0 && provider_.profile.empty())) {
      reading_.mistake(carriers > 1 ? ErrorCode::config_bad_value : ErrorCode::config_missing_field, place,
                       "says where the provider takes the key, in one place: header, field (a JSON Pointer into the "
                       "body) or form_field");
    }
    read_key_lifetime(fields);
    if (const auto size = fields.take("size_max")) {
      key.size_max = static_cast<std::size_t>(reading_.integer(*size, 1, 65'536).value_or(255));
    }
    fields.finish();
  }

  void read_key_lifetime(Fields& fields) {
    policy().kind = ProviderPolicy::Kind::idempotent;
    const bool stated = provider_.profile.empty();
    const auto lifetime = stated ? fields.require("lifetime", "how long the provider remembers a key, such as 24h")
                                 : fields.take("lifetime");
    if (lifetime) policy().key_lifetime = seconds(*lifetime).value_or(policy().key_lifetime);
    const auto margin = fields.take("margin");
    if (margin) policy().margin = seconds(*margin).value_or(policy().margin);
    if (lifetime && policy().margin >= policy().key_lifetime && reading_.clean()) {
      reading_.mistake(ErrorCode::config_bad_value, margin ? *margin : *lifetime,
                       "the margin (1h unless stated) leaves nothing of the lifetime: no repeat would be made");
    }
  }

  std::optional<std::chrono::seconds> seconds(const Place& place) {
    const auto value = reading_.duration(place, std::chrono::seconds(0));
    if (!value) return std::nullopt;
    return std::chrono::duration_cast<std::chrono::seconds>(*value);
  }

  std::optional<std::string> pointer(const Place& place) {
    const auto text = reading_.text(place);
    const auto problem = text ? pointer_problem(*text) : std::nullopt;
    if (problem) reading_.mistake(ErrorCode::config_bad_expression, place, *problem);
    return problem ? std::nullopt : text;
  }

  void read_lookups(Fields& fields) {
    if (const auto place = fields.take("lookup")) {
      profile().by_reference = read_lookup(*place, true);
      policy().can_look_up = true;
      if (policy().kind == ProviderPolicy::Kind::neither) policy().kind = ProviderPolicy::Kind::lookup;
    }
    if (const auto place = fields.take("lookup_by_id")) profile().by_id = read_lookup(*place, false);
  }

  http::Lookup read_lookup(const Place& place, bool by_reference) {
    http::Lookup lookup;
    Fields fields(reading_, place);
    if (!fields) return lookup;
    if (const auto url = fields.require("url", by_reference ? "with {reference} or {key} in it" : "with {id} in it")) {
      lookup.url = reading_.text(*url).value_or("");
      check_lookup_url(*url, lookup.url);
    }
    if (const auto method = fields.take("method")) {
      lookup.method = reading_.choice<std::string>(*method, {{"GET", "GET"}, {"POST", "POST"}}).value_or("GET");
    }
    if (const auto body = fields.take("body")) lookup.body = reading_.text(*body).value_or("");
    if (by_reference) {
      if (const auto list = fields.take("list")) {
        lookup.is_list = true;
        lookup.list = pointer(*list).value_or("");
      }
      if (const auto delay = fields.take("visibility_delay")) {
        policy().visibility_delay = seconds(*delay).value_or(policy().visibility_delay);
      }
      check_asks(fields, lookup);
    }
    read_shape(fields, lookup.shape);
    if (lookup.is_list && lookup.shape.reference.empty()) {
      reading_.mistake(ErrorCode::config_missing_field, place,
                       "\"reference\" is missing: where each of the list holds ours, such as /reference; others in it "
                       "do not count");
    }
    fields.finish();
    return lookup;
  }

  void check_lookup_url(const Place& place, const std::string& url) {
    if (url.starts_with("https://") || url.starts_with("http://") || url.starts_with('/') || url.empty()) return;
    reading_.mistake(ErrorCode::config_bad_value, place,
                     "must begin with https://, http:// or \"/\" (where the call went), not \"" + url + "\"");
  }

  /// One that asks for nothing in particular would find another call's charge.
  void check_asks(const Fields& fields, const http::Lookup& lookup) {
    const auto asks = [](const std::string& text) {
      return text.find("{reference}") != std::string::npos || text.find("{key}") != std::string::npos ||
             text.find("{asked:/") != std::string::npos;
    };
    if (lookup.url.empty() || asks(lookup.url) || asks(lookup.body)) return;
    reading_.mistake(ErrorCode::config_bad_value, fields.place(),
                     "asks about no call in particular: write {reference} or {key} into url or body");
  }

  void read_shape(Fields& fields, http::Shape& shape) {
    if (!fields) return;
    const auto take_pointer = [&](const char* name, std::string& target) {
      const auto place = fields.take(name);
      if (place) target = pointer(*place).value_or(target);
    };
    const auto take_words = [&](const char* name, std::vector<std::string>& target) {
      const auto place = fields.take(name);
      if (!place) return;
      for (const auto& item : reading_.one_or_many(*place))
        if (const auto word = reading_.text(item)) target.push_back(*word);
    };
    take_pointer("object", shape.object);
    take_pointer("id", shape.id);
    take_pointer("status", shape.status);
    take_pointer("reference", shape.reference);
    take_words("succeeded", shape.succeeded);
    take_words("failed", shape.failed);
    take_words("pending", shape.pending);
    take_words("ignored", shape.ignored);
    if (shape.status.empty() != shape.succeeded.empty()) {
      reading_.mistake(ErrorCode::config_missing_field, fields.place(),
                       shape.status.empty() ? "names values of a status, but not where it is: status: /status"
                                            : "says where the status is, but not which values mean success: "
                                              "succeeded: [ … ]");
    }
    if (const auto compare = fields.take("compare")) read_compare(*compare, shape);
  }

  void read_compare(const Place& place, http::Shape& shape) {
    using As = http::Comparison::As;
    Fields fields(reading_, place);
    for (const auto& [asked, value] : fields.take_all()) {
      http::Comparison comparison{.asked = asked, .found = {}};
      if (const auto problem = pointer_problem(asked)) {
        reading_.mistake(ErrorCode::config_bad_expression, value, "\"" + asked + "\": " + *problem);
      }
      if (!value.node.IsMap()) {
        comparison.found = pointer(value).value_or("");
      } else {
        Fields inside(reading_, value);
        if (const auto at = inside.require("at", "where it is in what was found")) {
          comparison.found = pointer(*at).value_or("");
        }
        if (const auto as = inside.take("as")) {
          const auto chosen = reading_.choice<As>(
              *as, {{"text", As::text}, {"text_without_case", As::text_without_case}, {"decimal", As::decimal}});
          comparison.as = chosen.value_or(As::text);
        }
        inside.finish();
      }
      shape.compared.push_back(std::move(comparison));
    }
  }

  /// What is stated here comes before what the profile says.
  void read_rules(const Place& place) {
    std::vector<http::AnswerRule> rules;
    for (const auto& item : reading_.list(place)) {
      Fields fields(reading_, item);
      if (!fields) continue;
      const auto rule = read_rule(fields);
      const auto statuses = fields.take("status");
      fields.finish();
      if (!statuses) {
        rules.push_back(rule);
        continue;
      }
      for (const auto& one : reading_.one_or_many(*statuses)) {
        rules.push_back(rule);
        rules.back().status_from = rules.back().status_to =
            static_cast<int>(reading_.integer(one, 100, 599).value_or(0));
      }
    }
    profile().rules.insert(profile().rules.begin(), rules.begin(), rules.end());
  }

  http::AnswerRule read_rule(Fields& fields) {
    http::AnswerRule rule;
    if (const auto header = fields.take("header")) rule.header = reading_.text(*header).value_or("");
    if (const auto value = fields.take("header_value")) rule.header_value = reading_.text(*value).value_or("");
    if (const auto at = fields.take("at")) rule.pointer = pointer(*at).value_or("");
    if (const auto is = fields.take("is")) {
      for (const auto& item : reading_.one_or_many(*is))
        if (const auto word = reading_.text(item)) rule.values.push_back(*word);
      if (rule.pointer.empty()) {
        reading_.mistake(ErrorCode::config_missing_field, *is, "of which place? write at: /json/pointer");
      }
    }
    if (const auto id = fields.take("id")) rule.id = pointer(*id).value_or("");
    const auto verdict = fields.require("verdict", "what such an answer means");
    if (!verdict) return rule;
    rule.meaning = reading_.choice<Meaning>(*verdict, meanings).value_or(Meaning::unknown);
    if (rule.meaning == Meaning::existing && (rule.id.empty() || !profile().by_id)) {
      reading_.mistake(ErrorCode::config_missing_field, *verdict,
                       "needs \"id\" (where the answer names what exists) and the provider's lookup_by_id");
    }
    return rule;
  }

  void read_limits(Fields& fields) {
    if (const auto place = fields.take("calls_max")) {
      provider_.limits.calls_max = static_cast<std::size_t>(reading_.integer(*place, 1, 10'000).value_or(32));
      provider_.performer.calls_max = provider_.limits.calls_max;
    }
    if (const auto place = fields.take("calls_per_second")) {
      provider_.limits.calls_per_second = static_cast<double>(reading_.integer(*place, 1, 1'000'000).value_or(1));
    }
    const auto place = fields.take("breaker");
    if (!place) return;
    Fields inside(reading_, *place);
    if (const auto failures = inside.take("failures")) {
      provider_.limits.breaker_failures = static_cast<int>(reading_.integer(*failures, 0, 1'000'000).value_or(10));
    }
    if (const auto pause = inside.take("pause")) {
      provider_.limits.breaker_pause =
          reading_.duration(*pause, std::chrono::milliseconds(1)).value_or(provider_.limits.breaker_pause);
    }
    if (inside) inside.finish();
  }

  void read_connection(Fields& fields) {
    auto& options = provider_.performer;
    if (const auto place = fields.take("ca_file")) options.ca_file = reading_.text(*place);
    if (const auto place = fields.take("proxy")) {
      options.proxy = reading_.text(*place);
      if (options.proxy) config_.redactor.add_passwords_of(*options.proxy);
    }
    if (const auto place = fields.take("connect_timeout")) {
      options.connect_timeout =
          reading_.duration(*place, std::chrono::milliseconds(1)).value_or(options.connect_timeout);
    }
  }

  Reading& reading_;
  Config& config_;
  ProviderConfig provider_;
};

}  // namespace

bool names_credentials(std::string_view header) {
  std::string lower(header);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (const auto* part : {"authorization", "cookie", "api-key", "apikey", "api_key", "token", "secret", "password"}) {
    if (lower.find(part) != std::string::npos) return true;
  }
  return false;
}

Attributes read_secret_headers(Reading& reading, const Place& place, Config& config) {
  Attributes headers;
  Fields fields(reading, place);
  for (const auto& [name, value_place] : fields.take_all()) {
    const auto value = reading.secret(value_place);
    if (!value) continue;
    const bool written = reading.secret_was_written();
    if (!is_header(reading, name, value_place)) continue;
    if (written && names_credentials(name)) {
      config.warnings.push_back(value_place.path + ": a secret stands in the file; write ${NAME} or { file: path }");
    }
    if (!written || names_credentials(name)) {
      config.redactor.add(*value);
      // "Bearer …": a foreign text may quote the secret alone.
      config.redactor.add(value->substr(value->find(' ') + 1));
    }
    headers.add(name, *value);
  }
  return headers;
}

void read_providers(Reading& reading, const Place& place, Config& config) {
  Fields fields(reading, place);
  if (!fields) return;
  ProviderReader reader(reading, config);
  for (const auto& [name, provider] : fields.take_all()) reader.read(name, provider);
}

}  // namespace semel::app
