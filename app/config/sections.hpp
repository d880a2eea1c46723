// The sections of a configuration file, each read by a file of its own.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "config/config.hpp"
#include "config/reading.hpp"

namespace semel::app {

std::optional<StoreConfig> read_store(Reading& reading, const Place& place, Redactor& redactor);

/// Fills listeners and sources.
void read_sources(Reading& reading, const Place& place, Config& config);

/// Fills providers.
void read_providers(Reading& reading, const Place& place, Config& config);

/// Fills targets.
void read_targets(Reading& reading, const Place& place, Config& config);

/// Fills handlers; sources, providers and targets are there.
void read_handlers(Reading& reading, const Place& place, Config& config, SqlDialect dialect);

/// Reads what handlers ask for after the commit. One for all handlers: no two effects have one name.
class CallReader {
 public:
  CallReader(Reading& reading, Config& config, SqlDialect dialect)
      : reading_(reading), config_(config), dialect_(dialect) {}

  /// One call, or a list. `effect` is the name of a single one that does not say its own.
  std::vector<CallConfig> calls(const Place& place, const std::string& effect);
  /// One publication, or a list; `settles`: of a settle step.
  std::vector<PublishConfig> publications(const Place& place, bool settles);

 private:
  std::optional<CallConfig> call(const Place& place, const std::string& effect, bool settles);
  void read_effect(Fields& fields, const std::string& name, EffectOptions& options, const std::string& provider);
  /// True where `give_up_after` is stated.
  bool read_times(Fields& fields, EffectOptions& options);
  void read_request(Fields& fields, RequestTemplate& request, bool settles);
  void read_url(const Place& place, TextTemplate& url, bool settles);
  void read_request_headers(const Place& place, FormTemplate& headers, bool settles);
  void read_form(const Place& place, const std::string& name, FormTemplate& form, bool settles);
  void read_settle(const Place& place, CallConfig& call);
  StepConfig read_step(Fields& fields);
  void read_compensation(const Place& place, CallConfig& call);
  std::optional<PublishConfig> publication(const Place& place, bool settles);
  std::optional<TextTemplate> text(const Place& place, bool settles);
  /// The same, and /pointer and header:Name as keys are written.
  std::optional<TextTemplate> expression(const Place& place, bool settles);
  bool stored(const Place& place, const std::string& written);
  void check(const Place& place, const Parameter& parameter, bool settles);
  void check(const Place& place, const BodyTemplate& body, bool settles);

  Reading& reading_;
  Config& config_;
  SqlDialect dialect_;
  std::set<std::string> effects_{};
};

AnswerTemplate read_answer(Reading& reading, const Place& place);

/// Adds to `body`, and says its content type.
std::string read_body(Reading& reading, const Place& place, BodyTemplate& body);

/// Reports what is no header's name and value.
bool is_header(Reading& reading, const std::string& name, const Place& place);

/// Headers with credentials: never quoted, kept out of everything that is printed.
Attributes read_secret_headers(Reading& reading, const Place& place, Config& config);
bool names_credentials(std::string_view header);

/// A statement of a handler, or of a settle step; nothing where there is a mistake.
std::optional<SqlTemplate> read_statement(Reading& reading, const Place& place, SqlDialect dialect, bool settles);

/// Reports a parameter that only a settle step knows, anywhere else.
void check_known(Reading& reading, const Place& place, const Parameter& parameter, bool settles);

/// What whoever waits for outside calls gets.
void read_waiting(Reading& reading, const Place& place, Waiting& waiting);

/// The provider of that name; null, and a mistake with the nearest name, where there is none.
ProviderConfig* provider_named(Reading& reading, Config& config, const Place& place, const std::string& name);

/// "127.0.0.1:8080", "[::1]:8080".
struct ListenAddress {
  std::string host;
  unsigned short port;
};
std::optional<ListenAddress> read_address(Reading& reading, const Place& place);

}  // namespace semel::app
