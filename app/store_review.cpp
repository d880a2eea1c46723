#include "store_review.hpp"

#include <algorithm>
#include <cctype>
#include <set>

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

/// Whether the database can be asked about a statement without running it. What begins in another way, with a comment
/// or a parenthesis, is asked about.
bool can_be_planned(const std::string& sql) {
  static const std::set<std::string> plannable{"",      "SELECT", "INSERT", "UPDATE",  "DELETE",
                                               "MERGE", "VALUES", "WITH",   "REPLACE", "TABLE"};
  std::string word;
  for (std::size_t i = sql.find_first_not_of(" \t\r\n"); i < sql.size(); ++i) {
    const auto c = static_cast<unsigned char>(sql[i]);
    if (!std::isalpha(c)) break;
    word += static_cast<char>(std::toupper(c));
  }
  return plannable.contains(word);
}

/// Asks in transactions that are always rolled back.
class Asker {
 public:
  Asker(SqlSession& session, SqlDialect dialect) : session_(session), dialect_(dialect) {}

  std::vector<Error> ask(const Config& config) {
    for (const auto& handler : config.handlers) {
      const auto path = "handlers." + handler.options.name;
      plan(path + ".execute", handler.execute);
      if (handler.execute_batch) plan(path + ".execute_batch", *handler.execute_batch);
      for (const auto* call : all_calls(handler)) {
        const auto effect = "effect " + call->options.name + ": settle.";
        plan(effect + "execute", call->settle.execute);
        if (call->on_failure) plan(effect + "on_failure.execute", call->on_failure->execute);
      }
      if (handler.options.guard == Guard::unique) look_for_unique_key(path, handler);
    }
    return std::move(refused_);
  }

 private:
  Result<Rows> query(const std::string& sql, std::span<const Value> parameters) {
    if (auto begun = session_.begin(); !begun) return begun.error();
    auto rows = session_.query(sql, parameters);
    session_.rollback();
    return rows;
  }

  bool plan(const std::string& path, const SqlTemplate& sql) {
    if (!can_be_planned(sql.sql)) return false;
    const std::vector<Value> nothing(sql.parameters.size(), nullptr);
    const auto planned = query("EXPLAIN " + sql.sql, nothing);
    if (!planned) complain(path + ": " + planned.error().message, planned.error());
    return true;
  }

  /// What follows a statement that cannot be planned may need what that one makes.
  void plan(const std::string& path, const std::vector<SqlTemplate>& statements) {
    for (std::size_t i = 0; i < statements.size(); ++i)
      if (!plan(path + "[" + std::to_string(i) + "]", statements[i])) return;
  }

  void complain(std::string message, const Error& error) {
    refused_.push_back(error);
    refused_.back().message = std::move(message);
  }

  void look_for_unique_key(const std::string& path, const HandlerConfig& handler) {
    const auto& sql = handler.execute_batch ? handler.execute_batch->sql : handler.execute.front().sql;
    auto table = inserted_table(sql);
    if (table.empty()) return;
    const bool postgres = dialect_ == SqlDialect::postgres;
    const Value name = postgres ? table : without_quotes(table);
    const auto rows = query(std::string(postgres ? unique_in_postgres : unique_in_sqlite), std::span(&name, 1));
    if (!rows || !rows->rows.empty()) return;
    refused_.push_back(fix_call(ErrorCode::config_bad_value,
                                path + ": guard unique, but the table " + table +
                                    " has no primary key and no unique index: every delivery would insert a row"));
  }

  SqlSession& session_;
  SqlDialect dialect_;
  std::vector<Error> refused_{};
};

std::vector<Error> review_sql(const Config& config, Store& store) {
  auto session = store.open_session();
  if (!session) return {session.error()};
  // Both stores' sessions speak SQL.
  return Asker(static_cast<SqlSession&>(**session), dialect_of(config.store)).ask(config);
}

Finding refusal(const Error& error) {
  return {.severity = Finding::Severity::refuse, .message = error.message, .code = error.code};
}

}  // namespace

std::vector<Finding> review_store(const Config& config) {
  const auto store = open_existing_store(config.store);
  if (!store) return {refusal(store.error())};
  auto findings = store_of(*store).check();
  if (!findings) return {refusal(findings.error())};
  for (const auto& error : review_sql(config, store_of(*store))) findings->push_back(refusal(error));
  return std::move(*findings);
}

std::vector<Error> wrong_statements(const Config& config, Store& store) {
  const auto findings = store.check();
  if (!findings || std::ranges::any_of(
                       *findings, [](const Finding& finding) { return finding.severity == Finding::Severity::refuse; }))
    return {};
  auto wrong = review_sql(config, store);
  // A lock that is held, or a connection that breaks, says nothing of a statement.
  std::erase_if(wrong, [](const Error& error) { return error.remedy != Remedy::fix_call; });
  return wrong;
}

}  // namespace semel::app
