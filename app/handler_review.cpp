#include "handler_review.hpp"

#include <algorithm>
#include <cctype>
#include <optional>
#include <sstream>

#include "call_review.hpp"
#include "output.hpp"

namespace semel::app {
namespace {

using From = KeyExpression::From;

/// Upper-case words and signs of a statement, good enough to recognise habits in it; it decides nothing.
std::vector<std::string> words_of(const std::string& sql) {
  std::vector<std::string> words;
  bool joined = false;
  for (const char c : sql) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) || c == '_' || c == '.' || c == '"' || c == '$') {
      if (!joined) words.emplace_back();
      words.back() += static_cast<char>(std::toupper(byte));
      joined = true;
    } else {
      if (!std::isspace(byte)) words.emplace_back(1, c);
      joined = false;
    }
  }
  return words;
}

/// `x = x + …`: the value depends on how often the statement ran.
bool counts_up(const std::string& sql) {
  const auto words = words_of(sql);
  for (std::size_t i = 0; i + 3 < words.size(); ++i) {
    const auto column = [](const std::string& word) { return word.substr(word.rfind('.') + 1); };
    const bool sign = words[i + 3] == "+" || words[i + 3] == "-" || words[i + 3] == "*" || words[i + 3] == "|";
    if (words[i + 1] == "=" && sign && column(words[i]) == column(words[i + 2])) return true;
  }
  return false;
}

bool has_words(const std::string& sql, const std::vector<std::string>& wanted) {
  const auto words = words_of(sql);
  return std::search(words.begin(), words.end(), wanted.begin(), wanted.end()) != words.end();
}

bool same_header(const std::string& name, const std::string& other) {
  return Attributes{{name, {}}}.count(other) > 0;  // it compares names as headers are compared
}

const char* guard_sentence(Guard guard) {
  switch (guard) {
    case Guard::record:
      return "guard record: a record of the key commits together with the effect; a replay gets the first answer";
    case Guard::unique:
      return "guard unique: the table's own unique key decides; where the first statement inserts no row it is a "
             "replay, "
             "and the other statements are not run";
    case Guard::version:
      return "guard version: the first statement changes a row only for a newer version; where it changes none the "
             "message is out of date, and the other statements are not run";
    case Guard::natural:
      break;
  }
  return "guard natural: nothing is remembered; every delivery runs the statements again";
}

std::string part_sentence(const KeyExpression::Part& part) {
  switch (part.from) {
    case From::body:
      return "the body's " + part.name;
    case From::attribute:
      return "the header " + part.name;
    case From::transport_id:
      break;
  }
  return "the transport's own id";
}

std::string key_sentence(const HandlerOptions& options) {
  std::string text = "key: ";
  const auto& parts = options.key.parts();
  for (std::size_t i = 0; i < parts.size(); ++i) text += (i == 0 ? "" : " and ") + part_sentence(parts[i]);
  return text + (options.key_is_event_id ? ", the provider's id of the event" : "");
}

/// Which kinds of messages a handler can get.
struct Senders {
  bool verified = false;    ///< webhooks with a checked signature
  bool unverified = false;  ///< all others
  bool requests = false;
  bool messages = false;  ///< all but requests
};

Senders senders_of(const HandlerOptions& options, const Config& config) {
  Senders senders;
  for (const auto& source : config.sources) {
    if (std::find(options.from.begin(), options.from.end(), source.name) == options.from.end()) continue;
    const auto* http = std::get_if<HttpSource>(&source.kind);
    const auto* webhook = http ? std::get_if<http::Webhook>(&http->kind) : nullptr;
    const bool verified = webhook && webhook->verify.scheme != http::Verification::Scheme::none;
    const bool requests = callers_of(source, config) != nullptr;
    (verified ? senders.verified : senders.unverified) = true;
    (requests ? senders.requests : senders.messages) = true;
  }
  return senders;
}

/// What is compared where the configuration names nothing.
std::string automatic_fingerprint(const HandlerOptions& options, const Senders& senders, const std::string& conflict) {
  const auto part_from = [&](From from) {
    const auto& parts = options.key.parts();
    return std::any_of(parts.begin(), parts.end(), [&](const auto& part) { return part.from == from; });
  };
  if (options.key_is_event_id && senders.verified) {
    if (!senders.unverified) return "fingerprint: none, for the sender is verified and the key is its event's id";
    return "fingerprint: none for a verified sender, else the body" + conflict;
  }
  if (part_from(From::transport_id)) return "fingerprint: none";
  const bool requests = senders.requests && part_from(From::attribute);
  if (requests && !senders.messages) return "fingerprint: method, path and body" + conflict;
  return std::string("fingerprint: the body") + (requests ? ", for requests with method and path" : "") + conflict;
}

std::string fingerprint_sentence(const HandlerOptions& options, const Senders& senders) {
  using Parts = FingerprintPolicy::Parts;
  std::string pointers;
  for (const auto& pointer : options.fingerprint.pointers) pointers += (pointers.empty() ? "" : ", ") + pointer;
  const std::string conflict = "; another one under the same key is a conflict";
  switch (options.fingerprint.parts) {
    case Parts::automatic:
      return automatic_fingerprint(options, senders, conflict);
    case Parts::none:
      return "fingerprint: none; two events that share a key by mistake are not noticed";
    case Parts::body:
      return "fingerprint: the body" + conflict;
    case Parts::request:
      return "fingerprint: method, path and body" + conflict;
    case Parts::only:
      return "fingerprint: only " + pointers + conflict;
    case Parts::all_but:
      break;
  }
  return "fingerprint: the body without " + pointers + conflict;
}

const SqlTemplate* first_statement(const HandlerConfig& handler) {
  if (handler.execute_batch) return &*handler.execute_batch;
  return handler.execute.empty() ? nullptr : &handler.execute.front();
}

class Reviewer {
 public:
  Reviewer(const HandlerConfig& handler, const Config& config) : handler_(handler), config_(config) {
    review_.name = handler.options.name;
  }

  HandlerReview review() {
    const auto& options = handler_.options;
    say(from_sentence());
    say(key_sentence(options));
    say(guard_sentence(options.guard));
    if (options.guard == Guard::record) {
      say(fingerprint_sentence(options, senders_of(options, config_)));
      say("a record is kept for " + duration_text(options.retention) +
          (options.keep_answer ? "" : ", without its answer"));
    }
    warn_of_transport_id();
    warn_of_headers();
    warn_of_guard();
    auto calls = review_calls(handler_, config_);
    for (auto& sentence : calls.sentences) say(std::move(sentence));
    for (auto& finding : calls.findings) review_.findings.push_back(std::move(finding));
    return std::move(review_);
  }

 private:
  void say(std::string sentence) { review_.sentences.push_back(std::move(sentence)); }
  void warn(const std::string& message) {
    review_.findings.push_back(
        {.severity = Finding::Severity::warning, .message = "handlers." + review_.name + ": " + message});
  }

  std::string from_sentence() const {
    std::string text = "takes messages from ";
    const auto& from = handler_.options.from;
    for (std::size_t i = 0; i < from.size(); ++i) text += (i == 0 ? "" : ", ") + from[i];
    for (const auto& condition : handler_.options.when) {
      text += (&condition == &handler_.options.when.front() ? " where " : " and ") + condition.expression + " is " +
              condition.equals;
    }
    return text;
  }

  void warn_of_transport_id() {
    for (const auto& part : handler_.options.key.parts()) {
      if (part.from != From::transport_id) continue;
      warn(
          "the key is the transport's id, which covers a redelivery only: not a message sent a second time by its "
          "producer, not a redrive from a dead-letter queue, not the same event by another way" +
          std::string(reads_file() ? "; a line's id is its number in its file, so a changed file shifts it" : ""));
      return;
    }
  }

  void warn_of_headers() {
    if (handler_.options.guard != Guard::record || !handler_.options.keep_answer) return;
    const auto kept = replayable_headers(handler_.answer.headers);
    for (const auto& [name, value] : handler_.answer.headers.entries()) {
      if (kept.find(name)) continue;
      warn("answer.headers: " + printable(name) + " goes with the first answer only; a replay does not carry it");
    }
  }

  bool reads_file() const {
    return std::any_of(config_.sources.begin(), config_.sources.end(), [&](const SourceConfig& source) {
      const auto& from = handler_.options.from;
      return std::holds_alternative<file::Options>(source.kind) &&
             std::find(from.begin(), from.end(), source.name) != from.end();
    });
  }

  /// The principal's header where there is one; nothing where the handler's callers are not told apart.
  std::optional<std::string> callers_told_apart_by() const {
    const auto& from = handler_.options.from;
    for (const auto& source : config_.sources) {
      const auto* principal = callers_of(source, config_);
      if (!principal || principal->from == http::Principal::From::none) continue;
      if (std::find(from.begin(), from.end(), source.name) != from.end()) return principal->header;
    }
    return std::nullopt;
  }

  /// Semel's records keep callers apart; the effect's own unique key must do it by itself.
  void warn_of_shared_unique_key(const SqlTemplate& guarding) {
    const auto header = callers_told_apart_by();
    if (!header) return;
    const auto& key = handler_.options.key.parts();
    const bool key_holds_caller = std::any_of(key.begin(), key.end(), [&](const KeyExpression::Part& part) {
      return part.from == From::attribute && same_header(part.name, *header);
    });
    const auto holds_caller = [&](const Parameter& parameter) {
      return parameter.from == Parameter::From::principal ||
             (parameter.from == Parameter::From::key && key_holds_caller) ||
             (parameter.from == Parameter::From::header && same_header(parameter.name, *header));
    };
    const auto& parameters = guarding.parameters;
    if (std::any_of(parameters.begin(), parameters.end(), holds_caller)) return;
    warn(
        "guard unique behind requests whose callers are told apart, but the guarding statement does not write the "
        "caller: one caller's key would count as another's; write :principal and make it part of the unique key");
  }

  void warn_of_guard() {
    const auto guard = handler_.options.guard;
    const auto* first = first_statement(handler_);
    if (guard == Guard::natural) {
      for (const auto& statement : handler_.execute) warn_natural(statement);
      if (handler_.execute_batch) warn_natural(*handler_.execute_batch);
    }
    if (guard == Guard::unique && first && !has_words(first->sql, {"ON", "CONFLICT"}) &&
        !has_words(first->sql, {"OR", "IGNORE"})) {
      warn("guard unique needs INSERT … ON CONFLICT DO NOTHING as the first statement; without it a replay fails");
    }
    if (guard == Guard::unique && first) warn_of_shared_unique_key(*first);
    if (guard == Guard::version && first && !has_words(first->sql, {"WHERE"})) {
      warn("guard version needs a condition on the stored version (… WHERE stored < new) in the first statement");
    }
  }

  void warn_natural(const SqlTemplate& statement) {
    if (counts_up(statement.sql)) {
      warn("guard natural with a value that counts on itself (x = x + …): a redelivery counts twice; use guard record");
    } else if (!inserted_table(statement.sql).empty() && !has_words(statement.sql, {"CONFLICT"}) &&
               !has_words(statement.sql, {"OR", "REPLACE"}) && !has_words(statement.sql, {"OR", "IGNORE"})) {
      warn("guard natural with a plain INSERT: a redelivery inserts twice; use guard record or unique");
    }
  }

  const HandlerConfig& handler_;
  const Config& config_;
  HandlerReview review_;
};

}  // namespace

HandlerReview review_handler(const HandlerConfig& handler, const Config& config) {
  return Reviewer(handler, config).review();
}

std::string inserted_table(const std::string& sql) {
  std::istringstream words(sql);
  std::string word;
  bool insert = false;
  while (words >> word) {
    std::string upper(word);
    std::transform(upper.begin(), upper.end(), upper.begin(),
                   [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    if (upper == "INSERT") insert = true;
    if (!insert || upper != "INTO" || !(words >> word)) continue;
    return word.substr(0, word.find('('));
  }
  return "";
}

}  // namespace semel::app
