// What a configuration file says, read and checked: plain values, no YAML any more. The schema is in
// docs/guides/program.md.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <semel/consumer.hpp>
#include <semel/sources/file.hpp>
#include <semel/sources/http.hpp>
#include <semel/sources/queue.hpp>
#include <semel/stores/postgres.hpp>
#include <semel/stores/sqlite.hpp>
#include <string>
#include <variant>
#include <vector>

#include "config/answer_template.hpp"
#include "config/calls.hpp"
#include "config/mistake.hpp"
#include "config/redactor.hpp"
#include "config/sql_template.hpp"

namespace semel::app {

using StoreConfig = std::variant<sqlite::Options, postgres::Options>;

/// A path on a listener.
struct HttpSource {
  std::size_t listener;  ///< its number in Config::listeners
  std::variant<http::Webhook, http::Requests> kind;
};

/// A gateway on a listener. Its guarded routes are sources of their own, and `from` takes them by its name.
struct GatewayConfig {
  std::string name;
  std::size_t listener;
  http::Gateway gateway;
  /// Says what makes a repeated call to the service safe: a name from `providers`. Empty: nothing does.
  std::string provider{};
  std::chrono::seconds retention = std::chrono::hours(24 * 30);
  Waiting waiting{.accepted_when_late = false};
};

/// A guarded route of a gateway.
struct GatewaySource {
  std::size_t gateway;  ///< its number in Config::gateways
  std::size_t route;    ///< its number there
};

struct SourceConfig {
  std::string name;
  std::variant<HttpSource, GatewaySource, file::Options, queue::Options> kind;
};

struct HandlerConfig {
  HandlerOptions options;
  std::vector<SqlTemplate> execute{};          ///< for each message, in order
  std::optional<SqlTemplate> execute_batch{};  ///< or one statement for all messages of a batch
  AnswerTemplate answer{};
  std::vector<CallConfig> calls{};  ///< made once a message's transaction has committed
  std::vector<PublishConfig> publish{};
};

struct AdminConfig {
  std::string address = "127.0.0.1";
  unsigned short port = 9090;
  bool asked_for = false;  ///< written in the file: then a run without it is no run
};

struct LogConfig {
  enum class Format { text, json } format = Format::text;
  enum class Level { debug, info, warn, error, off } level = Level::info;
};

struct Config {
  std::string file;
  StoreConfig store;
  std::vector<http::Options> listeners{};
  std::vector<GatewayConfig> gateways{};
  std::vector<SourceConfig> sources{};
  std::vector<ProviderConfig> providers{};
  std::vector<TargetConfig> targets{};
  std::vector<HandlerConfig> handlers{};
  std::optional<AdminConfig> admin{};
  LogConfig log{};
  ConsumerOptions consumer{};
  Redactor redactor{};
  std::vector<std::string> warnings{};  ///< legal, but not wise: "handlers.a.key: …"
};

/// Looks a variable up; nothing where it is not set.
using Environment = std::function<std::optional<std::string>(const std::string&)>;
Environment process_environment();

/// The configuration, or every mistake in it in the order of the file. `mistakes` is empty exactly where `config` is
/// there.
struct Loaded {
  std::optional<Config> config;
  std::vector<Mistake> mistakes;
};
Loaded load_config(const std::string& file, const Environment& environment);
/// The same for a text; `file` is its name in messages.
Loaded read_config(const std::string& text, const std::string& file, const Environment& environment);

/// Where a source's callers come from; null where its messages have no callers. Callers bring an Idempotency-Key.
const http::Principal* callers_of(const SourceConfig& source, const Config& config);

/// Whether the source takes that header out of its messages, since it holds credentials.
bool takes_out(const SourceConfig& source, const std::string& header, const Config& config);

/// The SQL that the store speaks.
SqlDialect dialect_of(const StoreConfig& store);

/// A store's URI by itself ("sqlite:shop.db", "postgresql://…"), as `store:` takes it.
Result<StoreConfig> store_from_uri(const std::string& uri);

}  // namespace semel::app
