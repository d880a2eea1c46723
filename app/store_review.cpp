#include "store_review.hpp"

#include <algorithm>

#include "configured_calls.hpp"
#include "handler_review.hpp"
#include "open_store.hpp"

namespace semel::app {
namespace {

/// Any unique constraint will do; which one the INSERT meets is the database's to say.
constexpr std::string_view unique_in_sqlite =
    "SELECT 1 FROM pragma_table_info($1) WHERE pk > 0 "
    "UNION ALL SELECT 1 FROM pragma_index_list($1) WHERE \"unique\" LIMIT 1";
constexpr std::string_view unique_in_postgres =
    "SELECT 1 FROM pg_index WHERE indrelid = to_regclass($1::text) AND indisunique LIMIT 1";

std::string without_quotes(std::string name) {
  name.erase(
      std::remove_if(name.begin(), name.end(), [](char c) { return c == '"' || c == '`' || c == '[' || c == ']'; }),
      name.end());
  return name;
}

/// Asks in transactions that are always rolled back.
class Asker {
 public:
  Asker(SqlSession& session, SqlDialect dialect) : session_(session), dialect_(dialect) {}

  std::vector<Finding> ask(const Config& config) {
    for (const auto& handler : config.handlers) {
      const auto path = "handlers." + handler.options.name;
      for (std::size_t i = 0; i < handler.execute.size(); ++i) {
        plan(path + ".execute[" + std::to_string(i) + "]", handler.execute[i]);
      }
      if (handler.execute_batch) plan(path + ".execute_batch", *handler.execute_batch);
      for (const auto* call : all_calls(handler)) {
        plan(call->options.name + ": settle.execute", call->settle);
        if (call->on_failure) plan(call->options.name + ": settle.on_failure.execute", *call->on_failure);
      }
      if (handler.options.guard == Guard::unique) look_for_unique_key(path, handler);
    }
    return std::move(findings_);
  }

 private:
  Result<Rows> query(const std::string& sql, std::span<const Value> parameters) {
    if (auto begun = session_.begin(); !begun) return begun.error();
    auto rows = session_.query(sql, parameters);
    session_.rollback();
    return rows;
  }

  void plan(const std::string& path, const SqlTemplate& sql) {
    const std::vector<Value> nothing(sql.parameters.size(), nullptr);
    const auto planned = query("EXPLAIN " + sql.sql, nothing);
    if (planned) return;
    findings_.push_back({.severity = Finding::Severity::refuse,
                         .message = path + ": " + planned.error().message,
                         .code = planned.error().code});
  }

  void plan(const std::string& path, const StepConfig& step) {
    for (std::size_t i = 0; i < step.execute.size(); ++i)
      plan("effect " + path + "[" + std::to_string(i) + "]", step.execute[i]);
  }

  void look_for_unique_key(const std::string& path, const HandlerConfig& handler) {
    const auto& sql = handler.execute_batch ? handler.execute_batch->sql : handler.execute.front().sql;
    auto table = inserted_table(sql);
    if (table.empty()) return;
    const bool postgres = dialect_ == SqlDialect::postgres;
    const Value name = postgres ? table : without_quotes(table);
    const auto rows = query(std::string(postgres ? unique_in_postgres : unique_in_sqlite), std::span(&name, 1));
    if (!rows || !rows->rows.empty()) return;
    findings_.push_back({.severity = Finding::Severity::refuse,
                         .message = path + ": guard unique, but the table " + table +
                                    " has no primary key and no unique index: every delivery would insert a row",
                         .code = ErrorCode::config_bad_value});
  }

  SqlSession& session_;
  SqlDialect dialect_;
  std::vector<Finding> findings_{};
};

Finding refusal(const Error& error) {
  return {.severity = Finding::Severity::refuse, .message = error.message, .code = error.code};
}

}  // namespace

std::vector<Finding> review_store(const Config& config) {
  const auto store = open_existing_store(config.store);
  if (!store) return {refusal(store.error())};
  auto findings = store_of(*store).check();
  if (!findings) return {refusal(findings.error())};
  auto session = store_of(*store).open_session();
  if (!session) return {refusal(session.error())};
  // Both stores' sessions speak SQL.
  Asker asker(static_cast<SqlSession&>(**session), dialect_of(config.store));
  for (auto& finding : asker.ask(config)) findings->push_back(std::move(finding));
  return std::move(*findings);
}

}  // namespace semel::app
