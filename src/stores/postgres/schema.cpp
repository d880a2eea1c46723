#include "stores/postgres/schema.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <span>

#include "base/digest.hpp"
#include "base/embedded.hpp"

namespace semel::postgres {

namespace migrations {
std::span<const EmbeddedFile> embedded_files();
}

namespace {

constexpr std::size_t identifier_size_max = 63;

struct Migration {
  int version = 0;
  std::string_view name;
  std::string_view sql;
};

/// The files of migrations/postgres, oldest first; "0001_first.sql" is version 1.
std::vector<Migration> all_migrations() {
  std::vector<Migration> all;
  for (const auto& file : migrations::embedded_files()) {
    Migration migration{.name = file.name, .sql = file.text};
    std::from_chars(file.name.data(), file.name.data() + file.name.size(), migration.version);
    all.push_back(migration);
  }
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.version < b.version; });
  return all;
}

Parameters with_text(std::string_view text) {
  Parameters parameters;
  parameters.add_text(std::string(text));
  return parameters;
}

/// A role, and what to let it do, in SQL.
Error with_advice(Error error, std::string_view schema) {
  if (error.code == ErrorCode::permission_denied)
    error.message += "; the role needs CREATE on the database (or an empty schema of its own named " +
                     quoted_identifier(schema) + ") to run `semel migrate`";
  return error;
}

Result<bool> schema_exists(Connection& connection, std::string_view schema) {
  if (auto read = run(connection, "SELECT count(*) FROM pg_namespace WHERE nspname = $1", with_text(schema)); !read)
    return read.error();
  return BinaryRow(connection.last(), 0).integer(0) > 0;
}

Result<void> apply(Connection& connection, const Migration& migration) {
  if (auto ran = connection.run_script(std::string(migration.sql)); !ran) return ran.error();
  auto parameters = with_text(std::to_string(migration.version));
  parameters.add_text(std::string(migration.name));
  const auto noted = run(connection, "INSERT INTO migrations (version, name) VALUES ($1, $2)", parameters);
  return noted ? Result<void>() : Result<void>(noted.error());
}

Error newer_than_this_release(int version) {
  return {Remedy::ask_operator, Certainty::not_applied, ErrorCode::schema_newer,
          "the schema has version " + std::to_string(version) + ", this release knows " +
              std::to_string(newest_version()) + ": a newer release of semel was here; use that one"};
}

/// Inside the transaction and under the lock.
Result<std::vector<int>> apply_missing(Connection& connection, std::string_view schema) {
  const auto version = schema_version(connection, schema);
  if (!version) return version.error();
  if (*version > newest_version()) return newer_than_this_release(*version);
  const auto exists = schema_exists(connection, schema);
  if (!exists) return exists.error();
  // CREATE SCHEMA IF NOT EXISTS asks for rights that a role with a schema of its own need not have.
  const auto name = quoted_identifier(schema);
  if (!*exists)
    if (auto created = connection.run_script("CREATE SCHEMA " + name); !created) return created.error();
  if (auto set = connection.run_script("SET LOCAL search_path TO " + name); !set) return set.error();
  std::vector<int> applied;
  for (const auto& migration : all_migrations()) {
    if (migration.version <= *version) continue;
    if (auto done = apply(connection, migration); !done) return done.error();
    applied.push_back(migration.version);
  }
  return applied;
}

constexpr std::string_view server_facts_sql =
    "SELECT pg_is_in_recovery(), current_setting('default_transaction_read_only')::bool, "
    "current_setting('fsync')::bool,"
    " current_setting('full_page_writes')::bool, current_setting('synchronous_commit') = 'off',"
    " (SELECT setting::int8 FROM pg_settings WHERE name = 'max_wal_size'), current_setting('server_encoding')";

class Findings {
 public:
  void refuse(ErrorCode code, std::string message) {
    all_.push_back({.severity = Finding::Severity::refuse, .message = std::move(message), .code = code});
  }
  void add(Finding::Severity severity, std::string message) {
    all_.push_back({.severity = severity, .message = std::move(message)});
  }
  /// A setting that may lose an acknowledged commit.
  void unsafe(bool allowed, const std::string& setting, const std::string& danger) {
    const auto message = setting + " is off: " + danger;
    if (allowed)
      add(Finding::Severity::warning, message + "; allowed by name");
    else
      refuse(ErrorCode::unsafe_durability, message);
  }
  std::vector<Finding> take() { return std::move(all_); }

 private:
  std::vector<Finding> all_;
};

void examine_server(const BinaryRow& row, const Options& options, Findings& findings) {
  enum { recovery, read_only, fsync, full_page_writes, asynchronous, wal_mebibytes, encoding };
  if (row.integer(recovery) != 0)
    findings.refuse(ErrorCode::store_read_only,
                    "the server is a replica (in recovery): it may lack what the primary has; connect to the primary");
  if (row.integer(read_only) != 0)
    findings.refuse(ErrorCode::store_read_only, "default_transaction_read_only is on: somebody wants no writes here");
  const bool allowed = options.allow_unsafe_durability;
  if (row.integer(fsync) == 0) findings.unsafe(allowed, "fsync", "a crash of the machine may lose or damage anything");
  if (row.integer(full_page_writes) == 0)
    findings.unsafe(allowed, "full_page_writes", "a crash of the machine may tear pages");
  if (row.integer(asynchronous) != 0)
    findings.unsafe(allowed, "synchronous_commit", "a crash may lose commits that were acknowledged");
  if (constexpr int default_mebibytes = 1024; row.integer(wal_mebibytes) <= default_mebibytes)
    findings.add(Finding::Severity::note,
                 "max_wal_size is at its default of 1 GB or below: under load, frequent checkpoints make each message "
                 "cost many times its log volume; raise it for throughput");
  if (const auto name = row.bytes(encoding); name != "UTF8")
    findings.add(Finding::Severity::note, "the database's encoding is " + name +
                                              ": keys and bodies are kept as bytes and are safe; your own text columns "
                                              "may refuse characters or not be checked");
}

struct Rights {
  std::string_view table;
  std::string_view names;
};
constexpr std::array rights_needed{
    Rights{"records", "SELECT, INSERT, UPDATE, DELETE"}, Rights{"dead_letters", "SELECT, INSERT, UPDATE"},
    Rights{"intents", "SELECT, INSERT, UPDATE, DELETE"}, Rights{"intent_events", "SELECT, INSERT, DELETE"},
    Rights{"outbox", "SELECT, INSERT, UPDATE, DELETE"},  Rights{"queue", "SELECT, INSERT, UPDATE, DELETE"}};

Result<void> examine_rights(Connection& connection, const Options& options, Findings& findings) {
  const auto schema = quoted_identifier(options.schema);
  // Asked of each by itself: a list would mean any of them.
  constexpr std::string_view sql =
      "SELECT bool_and(has_table_privilege($1, trim(name))) FROM unnest(string_to_array($2, ',')) AS name";
  std::string grants;
  for (const auto& [table, names] : rights_needed) {
    auto parameters = with_text(schema + "." + std::string(table));
    parameters.add_text(std::string(names));
    if (auto read = run(connection, sql, parameters); !read) return read.error();
    if (BinaryRow(connection.last(), 0).integer(0) == 0)
      grants += (grants.empty() ? "GRANT " : "; GRANT ") + std::string(names) + " ON " + schema + "." +
                std::string(table) + " TO it";
  }
  if (!grants.empty())
    findings.refuse(ErrorCode::permission_denied, "the role lacks rights on Semel's tables: " + grants);
  return {};
}

Result<void> examine_schema(Connection& connection, const Options& options, Findings& findings) {
  const auto version = schema_version(connection, options.schema);
  if (!version) return version.error();
  if (*version > newest_version()) {
    findings.refuse(ErrorCode::schema_newer, newer_than_this_release(*version).message);
  } else if (*version == 0) {
    findings.refuse(ErrorCode::schema_missing,
                    "the schema " + quoted_identifier(options.schema) + " has no tables yet: run `semel migrate`");
  } else if (*version < newest_version()) {
    findings.refuse(ErrorCode::schema_missing, "the schema has version " + std::to_string(*version) +
                                                   ", this release needs " + std::to_string(newest_version()) +
                                                   ": run `semel migrate`");
  } else {
    return examine_rights(connection, options, findings);
  }
  return {};
}

}  // namespace

Result<void> check_schema_name(std::string_view name) {
  if (!name.empty() && name.size() <= identifier_size_max && name.find('\0') == name.npos) return {};
  return fix_call(ErrorCode::config_bad_value,
                  "a PostgreSQL schema's name has 1 to " + std::to_string(identifier_size_max) + " bytes and no NUL");
}

std::string quoted_identifier(std::string_view name) {
  std::string quoted = "\"";
  for (const char c : name) quoted.append(c == '"' ? 2 : 1, c);
  return quoted += '"';
}

std::string in_schema(std::string_view text, const std::string& schema) {
  std::string sql(text);
  for (auto at = sql.find("{}"); at != sql.npos; at = sql.find("{}", at + schema.size())) sql.replace(at, 2, schema);
  return sql;
}

namespace {

/// `text` with each `{name …}` in it replaced by `form(…)`, which is given the first and the last number.
template <class Form>
std::string replaced(std::string text, std::string_view name, Form form) {
  const auto opening = "{" + std::string(name) + " ";
  for (auto at = text.find(opening); at != text.npos; at = text.find(opening, at)) {
    const auto end = text.find('}', at);
    const auto numbers = text.substr(at + opening.size(), end - at - opening.size());
    const int first = std::stoi(numbers);
    const auto dash = numbers.find('-');
    const auto form_of_it = form(first, dash == numbers.npos ? first : std::stoi(numbers.substr(dash + 1)));
    text.replace(at, end + 1 - at, form_of_it);
  }
  return text;
}

std::string listed(int first, int last) {
  std::string list;
  for (int number = first; number <= last; ++number) {
    list += list.empty() ? "" : ", ";
    list.append("$").append(std::to_string(number));
  }
  return list;
}

}  // namespace

ArrayStatement::ArrayStatement(std::string_view text, const std::string& schema, Many plan_of_many)
    : many(plan_of_many) {
  const auto sql = in_schema(text, schema);
  of_one = replaced(sql, "any", [](int number, int) { return "= " + listed(number, number); });
  of_one = replaced(of_one, "rows", [](int first, int last) { return "(VALUES (" + listed(first, last) + "))"; });
  of_one = replaced(of_one, "count", [](int, int) { return std::string("1"); });
  of_many = replaced(sql, "any", [](int number, int) { return "= ANY (" + listed(number, number) + ")"; });
  of_many = replaced(of_many, "rows", [](int first, int last) { return "unnest(" + listed(first, last) + ")"; });
  of_many = replaced(of_many, "count", [](int number, int) { return "cardinality(" + listed(number, number) + ")"; });
}

std::string advisory_lock_number(std::string_view purpose, std::string_view schema) {
  const auto digest = sha256(std::string(purpose) + " " + std::string(schema));
  std::uint64_t number = 0;
  for (const char c : std::string_view(digest).substr(0, 8)) number = number << 8 | static_cast<unsigned char>(c);
  return std::to_string(static_cast<std::int64_t>(number));
}

Statements::Statements(std::string_view schema_name)
    : ledger(quoted_identifier(schema_name)), outbox(schema_name, quoted_identifier(schema_name)) {
  const auto schema = quoted_identifier(schema_name);
  const std::string record_columns =
      "id, handler, principal, key, fingerprint, state, answer, source, transport_id, recorded_at, expires_at";
  const std::string needed =
      "(EXISTS (SELECT FROM {}.outbox AS o WHERE o.record = r.id) OR EXISTS (SELECT FROM {}.queue AS q WHERE q.record "
      "= r.id) OR EXISTS (SELECT FROM {}.intents AS i WHERE i.record = r.id AND i.flagged))";
  // CASE, so that the other tables are looked at for rows past their time only.
  const std::string expired = "CASE WHEN expires_at <= now() THEN NOT " + needed + " ELSE false END";
  const std::string intents_of_gone =
      "calls AS (DELETE FROM {}.intents AS i USING gone WHERE i.record = gone.id RETURNING i.id), "
      "events AS (DELETE FROM {}.intent_events AS e USING calls WHERE e.intent = calls.id)";
  const std::string letter_columns =
      "id, reason, code, detail, handler, principal, key, fingerprint, recorded_fingerprint, source, caller, "
      "sender_verified, transport_id, body, attributes, attempts, times";
  // Whether one past its time has messages that wait is asked of those alone: of every claim it costs half as much
  // again.
  claim = ArrayStatement("SELECT " + record_columns + ", expires_at <= now() FROM {}.records WHERE id {any 1}", schema);
  still_needed = ArrayStatement("SELECT id FROM {}.records AS r WHERE id {any 1} AND " + needed, schema);
  find = in_schema("SELECT " + record_columns + ", " + expired + " FROM {}.records AS r WHERE id = $1", schema);
  // The conditions are asked again here: since the claim somebody else may have put a new record in that place.
  make_room = in_schema("WITH gone AS (DELETE FROM {}.records AS r WHERE (id = ANY ($1) AND " + expired +
                            ") OR (id = ANY ($2) AND state = 2) RETURNING id), " + intents_of_gone +
                            " SELECT count(*) FROM gone",
                        schema);
  // Plain, without ON CONFLICT: a key that is taken is an error, and the error decides the race.
  record = ArrayStatement(
      "INSERT INTO {}.records (" + record_columns +
          ") SELECT t.id, t.handler, t.principal, t.key, t.fingerprint, t.state, t.answer, t.source, t.transport_id, "
          "statement_timestamp(), CASE WHEN t.state IN (3, 4) THEN 'infinity' ELSE statement_timestamp() + t.seconds * "
          "interval '1 s' END FROM {rows 1-10} AS t (id, handler, principal, key, fingerprint, state, answer, source, "
          "transport_id, seconds)",
      schema, ArrayStatement::Many::kept);
  set_aside = in_schema(
      "INSERT INTO {}.dead_letters AS d (" + letter_columns +
          ", set_aside_at) SELECT coalesce(t.id, convert_to(gen_random_uuid()::text, 'UTF8')), t.reason, t.code, "
          "t.detail, t.handler, t.principal, t.key, t.fingerprint, t.recorded_fingerprint, t.source, t.caller, "
          "t.sender_verified, t.transport_id, t.body, t.attributes, t.attempts, t.times, statement_timestamp() "
          "FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17) AS t (" +
          letter_columns + ") ON CONFLICT (id) DO UPDATE SET times = d.times + excluded.times, resolution = ''",
      schema);
  // Asked twice on purpose: the row may have been replaced by a living one between the two looks.
  purge = in_schema(
      "WITH gone AS (DELETE FROM {}.records AS r WHERE ctid = ANY (ARRAY (SELECT ctid FROM {}.records AS r WHERE "
      "expires_at <= now() AND " +
          expired + " LIMIT $1)) AND " + expired + " RETURNING id), " + intents_of_gone + " SELECT count(*) FROM gone",
      schema);
  const auto letters = "SELECT " + letter_columns + ", set_aside_at, resolution FROM {}.dead_letters ";
  list_letters = in_schema(letters +
                               "WHERE ($1::bytea IS NULL OR handler = $1) AND ($2::text IS NULL OR reason = $2) AND "
                               "(NOT $3::boolean OR resolution = '') AND ($4::bytea IS NULL OR number < (SELECT number "
                               "FROM {}.dead_letters WHERE id = $4)) ORDER BY number DESC LIMIT $5",
                           schema);
  find_letter = in_schema(letters + "WHERE id = $1", schema);
  resolve_letter = in_schema("UPDATE {}.dead_letters SET resolution = $2 WHERE id = $1 AND resolution = ''", schema);
}

Result<std::int64_t> run(Connection& connection, std::string_view sql, const Parameters& parameters) {
  auto breakdown = connection.send(
      {.purpose = Purpose::own, .sql = sql, .parameters = parameters, .reusable = false, .binary_result = true});
  if (!breakdown) breakdown = connection.finish();
  if (breakdown)
    return breakdown->lost ? lost_connection(breakdown->complaint, false) : translate_own(breakdown->complaint);
  return rows_affected(connection.last());
}

Result<int> schema_version(Connection& connection, std::string_view schema) {
  // Not to_regclass: it looks into a cache, which after a wait for another migration still says what was before it.
  constexpr std::string_view exists =
      "SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
      "WHERE n.nspname = $1 AND c.relname = 'migrations'";
  if (auto read = run(connection, exists, with_text(schema)); !read) return read.error();
  if (BinaryRow(connection.last(), 0).integer(0) == 0) return 0;
  const auto version = "SELECT coalesce(max(version), 0) FROM " + quoted_identifier(schema) + ".migrations";
  if (auto read = run(connection, version); !read) return read.error();
  return static_cast<int>(BinaryRow(connection.last(), 0).integer(0));
}

int newest_version() { return all_migrations().back().version; }

Result<std::vector<int>> migrate(Connection& connection, std::string_view schema) {
  const auto version = schema_version(connection, schema);
  if (!version) return with_advice(version.error(), schema);
  if (*version == newest_version()) return std::vector<int>{};
  // Whoever comes second waits for the first, as long as a statement may take, and then finds nothing to do.
  const auto begin =
      "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SET LOCAL lock_timeout = 0; "
      "SELECT pg_advisory_xact_lock(" +
      advisory_lock_number("semel migrate", schema) + ")";
  if (auto begun = connection.run_script(begin); !begun) return begun.error();
  auto applied = apply_missing(connection, schema);
  const auto ended = connection.run_script(applied ? "COMMIT" : "ROLLBACK");
  if (!applied) return with_advice(applied.error(), schema);
  if (!ended) return ended.error();
  return applied;
}

Result<std::vector<Finding>> findings(Connection& connection, const Options& options) {
  Findings findings;
  if (constexpr int oldest = 130000; connection.server_version() < oldest) {
    findings.refuse(ErrorCode::store_unreachable, "the server is PostgreSQL " +
                                                      std::to_string(connection.server_version() / 10'000) +
                                                      "; Semel needs 13 or newer");
    return findings.take();
  }
  if (auto read = run(connection, server_facts_sql); !read) return read.error();
  examine_server(BinaryRow(connection.last(), 0), options, findings);
  if (auto examined = examine_schema(connection, options, findings); !examined) return examined.error();
  return findings.take();
}

}  // namespace semel::postgres
