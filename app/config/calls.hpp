// What a configured handler asks for after the commit: calls with what follows them, and publications.
#pragma once

#include <optional>
#include <semel/performer.hpp>
#include <semel/performers/http.hpp>
#include <string>
#include <variant>
#include <vector>

#include "config/answer_template.hpp"
#include "config/sql_template.hpp"
#include "config/text_template.hpp"

namespace semel::app {

struct ProviderConfig {
  std::string name;
  http::PerformerOptions performer{};
  ProviderLimits limits{};
  std::string profile{};  ///< the built-in one that it is made of; empty where it is stated
  bool used = false;

  const ProviderPolicy& policy() const { return performer.profile.policy; }
};

/// A file that publications are appended to, one JSON line each.
struct FileTarget {
  std::string path;
};
/// A queue in the store.
struct QueueTarget {
  std::string queue;
};
struct TargetConfig {
  TargetOptions options;
  std::variant<http::WebhookOptions, FileTarget, QueueTarget> kind;
  bool used = false;

  /// By which the engine knows it.
  const std::string& name() const;
};

/// One request of a provider, with places for values.
struct RequestTemplate {
  std::string method = "POST";
  TextTemplate url{};
  FormTemplate headers{};
  BodyTemplate body{};
  FormTemplate form{};  ///< in place of a body
};

struct PublishConfig {
  std::string to;                      ///< by which the engine knows the target
  std::optional<BodyTemplate> body{};  ///< nothing: the message's own body
  FormTemplate attributes{};
  std::optional<TextTemplate> order_key{};
};

struct CallConfig;

/// What is written together with an outcome.
struct StepConfig {
  std::vector<SqlTemplate> execute{};
  std::optional<AnswerTemplate> answer{};
  std::vector<PublishConfig> publish{};
};

/// How a call that has succeeded is undone.
struct CompensationConfig {
  EffectOptions options;
  RequestTemplate request{};
  bool gives_up_as_stated = false;  ///< `give_up_after` is in the file
};

struct CallConfig {
  EffectOptions options;
  bool gives_up_as_stated = false;  ///< `give_up_after` is in the file
  RequestTemplate request{};
  std::optional<TextTemplate> reference{};
  StepConfig settle{};                     ///< whatever came of it; where there is `on_failure`, once it has succeeded
  std::optional<StepConfig> on_failure{};  ///< it failed, or an operator gave it up
  std::vector<CallConfig> next;            ///< intended once it has succeeded
  std::optional<CompensationConfig> compensate{};
};

}  // namespace semel::app
