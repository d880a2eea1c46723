#include "log.hpp"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <vector>

#include "config/parameter.hpp"
#include "output.hpp"

namespace semel::app {
namespace {

constexpr std::chrono::minutes between_refusals(1);

spdlog::level::level_enum level_of(LogConfig::Level level) {
  switch (level) {
    case LogConfig::Level::debug:
      return spdlog::level::debug;
    case LogConfig::Level::info:
      return spdlog::level::info;
    case LogConfig::Level::warn:
      return spdlog::level::warn;
    case LogConfig::Level::error:
      return spdlog::level::err;
    case LogConfig::Level::off:
      break;
  }
  return spdlog::level::off;
}

spdlog::level::level_enum level_of(Decision decision) {
  switch (decision) {
    case Decision::fresh:
    case Decision::replay:
    case Decision::unmatched:
      return spdlog::level::info;
    default:
      return spdlog::level::warn;
  }
}

spdlog::level::level_enum level_of(const CallReported& report) {
  const bool expected = report.verdict == CallVerdict::succeeded || report.verdict == CallVerdict::failed;
  return expected && report.state != IntentState::ambiguous ? spdlog::level::info : spdlog::level::warn;
}

/// One fact of a line; a number is written without quotes.
struct Fact {
  std::string name;
  std::string value;
  bool number = false;
};

bool is_plain(std::string_view value) {
  return !value.empty() && value.find_first_of(" \"=\\") == std::string_view::npos;
}

std::string line_of(LogConfig::Format format, const std::vector<Fact>& facts) {
  std::string line;
  for (const auto& [name, raw, number] : facts) {
    const auto value = printable(raw);
    if (format == LogConfig::Format::json) {
      line += ",\"" + name + "\":" + (number ? value : json_string(value));
    } else {
      line += " " + name + "=" + (number || is_plain(value) ? value : json_string(value));
    }
  }
  return line;
}

}  // namespace

Log::Log(const LogConfig& config, const Redactor& redactor)
    : redactor_(redactor),
      format_(config.format),
      logger_(std::make_unique<spdlog::logger>("semel", std::make_shared<spdlog::sinks::stderr_sink_mt>())) {
  const bool json = config.format == LogConfig::Format::json;
  logger_->set_pattern(json ? R"({"time":"%Y-%m-%dT%H:%M:%S.%eZ","level":"%l"%v})" : "%Y-%m-%dT%H:%M:%S.%eZ %l%v",
                       spdlog::pattern_time_type::utc);
  logger_->set_level(level_of(config.level));
}

Log::~Log() = default;

void Log::started() { info("running"); }

void Log::info(const std::string& text) { logger_->info("{}", line_of(format_, {{"event", redactor_.clean(text)}})); }

void Log::warn(const std::string& text) { logger_->warn("{}", line_of(format_, {{"event", redactor_.clean(text)}})); }

void Log::message(const MessageReport& report) {
  const auto level = level_of(report.decision);
  if (!logger_->should_log(level)) return;
  const auto& delivery = report.delivery;
  std::vector<Fact> facts = {{"decision", std::string(decision_name(report.decision))},
                             {"handler", std::string(report.handler)},
                             {"key", report.key ? report.key->text() : ""},
                             {"source", delivery.source},
                             {"transport_id", delivery.transport_id}};
  if (delivery.receive_count) facts.push_back({"receive_count", std::to_string(*delivery.receive_count), true});
  if (report.error) {
    facts.push_back({"code", code_name(report.error->code)});
    facts.push_back({"error", redactor_.clean(report.error->message)});
  }
  logger_->log(level, "{}", line_of(format_, facts));
}

void Log::called(const CallReported& report) {
  const auto level = level_of(report);
  if (!logger_->should_log(level)) return;
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(report.duration).count();
  std::vector<Fact> facts = {{"event", report.looked_up ? "looked_up" : "called"},
                             {"effect", std::string(report.effect)},
                             {"provider", std::string(report.provider)},
                             {"intent", std::string(report.intent)},
                             {"attempt", std::to_string(report.attempt), true},
                             {"verdict", std::string(call_verdict_name(report.verdict))},
                             {"state", std::string(intent_state_name(report.state))},
                             {"milliseconds", std::to_string(milliseconds), true}};
  if (!report.detail.empty()) facts.push_back({"detail", redactor_.clean(std::string(report.detail))});
  logger_->log(level, "{}", line_of(format_, facts));
}

void Log::sent(const SendReported& report) {
  const auto level = report.confirmed ? spdlog::level::info : spdlog::level::warn;
  if (!logger_->should_log(level)) return;
  std::vector<Fact> facts = {{"event", report.confirmed ? "sent" : "not_sent"},
                             {"target", std::string(report.target)},
                             {"publication", std::string(report.publication)}};
  if (!report.detail.empty()) facts.push_back({"detail", redactor_.clean(std::string(report.detail))});
  logger_->log(level, "{}", line_of(format_, facts));
}

void Log::trouble(const Error& error) {
  logger_->error("{}", line_of(format_, {{"event", "trouble"},
                                         {"code", code_name(error.code)},
                                         {"error", redactor_.clean(error.message)}}));
}

void Log::refused(std::string_view source, const Error& why) {
  const auto count = count_to_say(source, code_name(why.code));
  if (!count) return;
  logger_->warn("{}", line_of(format_, {{"event", "refused"},
                                        {"source", std::string(source)},
                                        {"code", code_name(why.code)},
                                        {"count", std::to_string(*count), true},
                                        {"error", redactor_.clean(why.message)}}));
}

void Log::problem(std::string_view listener, int status, std::string_view problem) {
  const auto count = count_to_say(listener, problem);
  if (!count) return;
  logger_->warn("{}", line_of(format_, {{"event", "problem"},
                                        {"listener", std::string(listener)},
                                        {"status", std::to_string(status), true},
                                        {"problem", std::string(problem)},
                                        {"count", std::to_string(*count), true}}));
}

std::optional<std::uint64_t> Log::count_to_say(std::string_view where, std::string_view why) {
  const std::lock_guard lock(refusals_mutex_);
  auto& refusals = refusals_[{std::string(where), std::string(why)}];
  ++refusals.unsaid;
  const auto now = std::chrono::steady_clock::now();
  if (now < refusals.next) return std::nullopt;
  refusals.next = now + between_refusals;
  return std::exchange(refusals.unsaid, 0);
}

void Log::recovered() { info("recovered"); }

}  // namespace semel::app
