#include "stores/postgres/session.hpp"

#include <algorithm>
#include <array>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "stores/postgres/connection.hpp"
#include "stores/postgres/ledger.hpp"
#include "stores/postgres/outbox.hpp"
#include "stores/postgres/rows.hpp"
#include "stores/postgres/statement_kind.hpp"

namespace semel::postgres {

namespace {

// Named in full: a database or role may have stricter or read-only defaults.
constexpr std::string_view begin_sql = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE";

struct DigestHash {
  std::size_t operator()(const RecordDigest& digest) const { return std::hash<std::string_view>{}(digest.view()); }
};

/// What travels together: BEGIN with the claim; effects until somebody needs their result; records, dead letters and
/// COMMIT. An error makes the server skip what was sent behind it, a COMMIT too.
class LaneSession final : public SqlSession, private OpenTransaction {
 public:
  LaneSession(const Options& options, const Statements& statements) : options_(options), statements_(statements) {}

  Result<void> begin() override;
  Result<std::vector<std::optional<Record>>> claim(std::span<const RecordId> ids) override;
  Result<void> record(std::span<const Record> records) override;
  Result<void> set_aside(std::span<const DeadLetter> letters) override;
  Result<void> commit() override;
  void rollback() noexcept override;

  void mark(std::size_t number) override { mark_ = number; }
  Result<void> synchronise() override;
  std::optional<std::size_t> failed_mark() const override { return failed_mark_; }

  Result<void> execute(std::string_view sql, std::span<const Value> parameters) override;
  Result<std::int64_t> execute_counted(std::string_view sql, std::span<const Value> parameters) override;
  Result<Rows> query(std::string_view sql, std::span<const Value> parameters) override;
  Result<std::int64_t> execute_set(std::string_view sql, std::span<const std::vector<Value>> columns) override;

  Ledger& ledger() override { return *ledger_; }
  Outbox& outbox() override { return *outbox_; }

 private:
  Result<void> usable() const override;
  Result<void> send(std::string_view sql, const Parameters& parameters) override { return send_own(sql, parameters); }
  Result<void> send(const ArrayStatement& statement, std::size_t rows, const Parameters& parameters) override;
  Result<const PGresult*> ask(std::string_view sql, const Parameters& parameters) override;
  Result<const PGresult*> ask(const ArrayStatement& statement, std::size_t rows, const Parameters& parameters) override;
  Result<void> ask_at_commit(const ArrayStatement& statement, std::size_t rows, const Parameters& parameters,
                             std::function<void(const PGresult*)> read) override;
  Result<void> connect();
  /// Not `reusable`: planned anew each time.
  Result<void> send_own(std::string_view sql, const Parameters& parameters, bool reusable = true, bool keeps = false);
  Result<void> send_rows(const ArrayStatement& statement, std::size_t rows, const Parameters& parameters, bool keeps);
  /// Waits for what was sent last.
  Result<const PGresult*> answer_to(const Result<void>& sent);
  Result<void> send_effect(std::string_view sql, const Parameters& parameters);
  Result<void> make_room(std::span<const Record> records);
  Result<std::vector<ReadRecord>> read_claimed();
  Result<std::vector<std::optional<Record>>> match(std::span<const RecordId> ids, std::span<const ReadRecord> claimed);
  Result<std::int64_t> counted();

  Error fail(Error error) override;
  Error fail_effect(Error error);
  Error fail(const Breakdown& breakdown);
  Error meaning_of(const Breakdown& breakdown) const;

  const Options& options_;
  const Statements& statements_;
  std::unique_ptr<Connection> connection_;
  bool open_ = false;
  std::optional<Error> failure_;
  std::optional<std::size_t> mark_;
  std::optional<std::size_t> failed_mark_;
  std::vector<RecordDigest> expired_;  ///< what `claim` met past its time and the purge has not come to yet
  std::function<void(const PGresult*)> read_at_commit_;
  const std::unique_ptr<Ledger> ledger_ = make_ledger(*this, statements_.ledger);
  const std::unique_ptr<Outbox> outbox_ = make_outbox(*this, statements_.outbox);
};

const Parameters no_parameters;

Result<void> LaneSession::usable() const {
  if (!open_) return fix_call(ErrorCode::handler_misused, "no transaction is open");
  if (failure_) return *failure_;
  return {};
}

Error LaneSession::fail(Error error) {
  if (!failure_) failure_ = error;
  return error;
}

Error LaneSession::fail_effect(Error error) {
  if (!failure_) failed_mark_ = mark_;
  return fail(std::move(error));
}

Error LaneSession::fail(const Breakdown& breakdown) {
  if (!failure_) failed_mark_ = breakdown.lost ? std::nullopt : breakdown.mark;
  // A new connection knows no outdated statements.
  if (breakdown.lost || breakdown.complaint.is_about_an_outdated_statement()) connection_.reset();
  return fail(meaning_of(breakdown));
}

/// Before COMMIT was sent: nothing of the transaction can have been applied.
Error LaneSession::meaning_of(const Breakdown& breakdown) const {
  const auto& complaint = breakdown.complaint;
  if (breakdown.lost) return lost_connection(complaint, false);
  if (breakdown.purpose == Purpose::effect) return translate(complaint);
  // A standby says this of READ WRITE.
  if (breakdown.purpose == Purpose::begin && complaint.sqlstate == "0A000")
    return retry_later(ErrorCode::store_read_only, "PostgreSQL: " + complaint.message + " (a replica)");
  // By the table: a user's constraint may fail with the same code.
  constexpr std::array tables{"records", "intents", "outbox", "queue"};
  if (complaint.sqlstate == "23505" && complaint.schema == options_.schema &&
      std::ranges::find(tables, complaint.table) != tables.end())
    return {Remedy::reread, Certainty::not_applied, ErrorCode::lost_race,
            "another transaction put the same id into " + complaint.table};
  // Only LedgerStatements::change_all reads a number from text.
  if (complaint.sqlstate == "22P02")
    return {Remedy::reread, Certainty::not_applied, ErrorCode::lost_race, "an intent has moved on"};
  return translate_own(complaint);
}

Result<void> LaneSession::connect() {
  if (connection_ && !connection_->alive()) connection_.reset();
  if (!connection_) {
    auto connected = Connection::connect(options_);
    if (!connected) return connected.error();
    connection_ = *std::move(connected);
  }
  const bool replica = connection_->reported("in_hot_standby") == "on";
  if (!replica && connection_->reported("default_transaction_read_only") != "on") return {};
  // Not kept: the next attempt may find the primary.
  connection_.reset();
  return retry_later(ErrorCode::store_read_only, replica ? "the server is a replica; it may lack what the primary has"
                                                         : "default_transaction_read_only is on");
}

Result<void> LaneSession::begin() {
  if (open_) return fix_call(ErrorCode::handler_misused, "a transaction is open already");
  if (auto connected = connect(); !connected) return connected;
  failure_.reset();
  failed_mark_.reset();
  mark_.reset();
  expired_.clear();
  read_at_commit_ = nullptr;
  open_ = true;
  auto breakdown = connection_->send({.purpose = Purpose::begin, .sql = begin_sql, .parameters = no_parameters});
  if (!breakdown && !options_.prepared_statements)
    breakdown = connection_->send({.purpose = Purpose::own,
                                   .sql = settings_sql(options_, SettingsLast::transaction),
                                   .parameters = no_parameters});
  if (!breakdown) return {};
  auto error = fail(*breakdown);
  rollback();
  return error;
}

Result<void> LaneSession::send_own(std::string_view sql, const Parameters& parameters, bool reusable, bool keeps) {
  const auto breakdown = connection_->send({.purpose = Purpose::own,
                                            .sql = sql,
                                            .parameters = parameters,
                                            .reusable = reusable,
                                            .binary_result = true,
                                            .keeps_result = keeps});
  return breakdown ? Result<void>(fail(*breakdown)) : Result<void>();
}

Result<void> LaneSession::send(const ArrayStatement& statement, std::size_t rows, const Parameters& parameters) {
  return send_rows(statement, rows, parameters, false);
}

Result<void> LaneSession::send_rows(const ArrayStatement& statement, std::size_t rows, const Parameters& parameters,
                                    bool keeps) {
  if (rows == 1) return send_own(statement.of_one, parameters.first_elements(), true, keeps);
  return send_own(statement.of_many, parameters, statement.many == ArrayStatement::Many::kept, keeps);
}

Result<const PGresult*> LaneSession::ask(std::string_view sql, const Parameters& parameters) {
  if (auto ready = usable(); !ready) return ready.error();
  return answer_to(send_own(sql, parameters, false));
}

Result<const PGresult*> LaneSession::ask(const ArrayStatement& statement, std::size_t rows,
                                         const Parameters& parameters) {
  if (auto ready = usable(); !ready) return ready.error();
  return answer_to(send(statement, rows, parameters));
}

Result<const PGresult*> LaneSession::answer_to(const Result<void>& sent) {
  if (!sent) return sent.error();
  if (auto done = synchronise(); !done) return done.error();
  return connection_->last();
}

Result<void> LaneSession::ask_at_commit(const ArrayStatement& statement, std::size_t rows, const Parameters& parameters,
                                        std::function<void(const PGresult*)> read) {
  if (auto ready = usable(); !ready) return ready;
  read_at_commit_ = std::move(read);
  return send_rows(statement, rows, parameters, true);
}

Result<void> LaneSession::send_effect(std::string_view sql, const Parameters& parameters) {
  if (sql.find('\0') != sql.npos)
    return fail_effect(fix_call(ErrorCode::bad_statement, "the statement has a NUL byte"));
  if (auto reason = reason_to_refuse(sql)) return fail_effect(fix_call(ErrorCode::handler_misused, *reason));
  const auto breakdown =
      connection_->send({.purpose = Purpose::effect, .sql = sql, .parameters = parameters, .mark = mark_});
  return breakdown ? Result<void>(fail(*breakdown)) : Result<void>();
}

Result<void> LaneSession::synchronise() {
  if (auto ready = usable(); !ready) return ready;
  if (const auto breakdown = connection_->finish()) return fail(*breakdown);
  // The second line of defence, see reason_to_refuse.
  if (!connection_->in_transaction())
    return fail(Error{Remedy::fix_call, Certainty::unknown, ErrorCode::handler_misused,
                      "the transaction was ended from inside"});
  return {};
}

Result<std::vector<std::optional<Record>>> LaneSession::claim(std::span<const RecordId> ids) {
  if (auto ready = usable(); !ready) return ready.error();
  std::vector<RecordDigest> digests;
  for (const auto& id : ids) digests.push_back(record_digest(id.scope, id.key));
  if (auto asked = ask(statements_.claim, ids.size(), digest_parameters(digests)); !asked) return asked.error();
  auto claimed = read_claimed();
  auto found = claimed ? match(ids, *claimed) : std::move(claimed).error();
  return found ? found : fail(found.error());
}

Result<std::vector<ReadRecord>> LaneSession::read_claimed() {
  std::vector<ReadRecord> claimed;
  std::vector<RecordDigest> past;
  for (int row = 0; row < PQntuples(connection_->last()); ++row) {
    auto read = read_record(BinaryRow(connection_->last(), row));
    if (!read) return read.error();
    if (read->expired) past.push_back(read->digest);
    claimed.push_back(*std::move(read));
  }
  if (past.empty()) return claimed;
  const auto needed = ask(statements_.still_needed, past.size(), digest_parameters(past));
  if (!needed) return needed.error();
  std::unordered_set<std::string> ids;
  for (int row = 0; row < PQntuples(*needed); ++row) ids.insert(BinaryRow(*needed, row).bytes(0));
  for (auto& read : claimed) {
    read.expired = read.expired && !ids.contains(std::string(read.digest.view()));
    if (read.expired) expired_.push_back(read.digest);
  }
  return claimed;
}

/// The digest only finds a row; that it is the one meant, its whole id says.
Result<std::vector<std::optional<Record>>> LaneSession::match(std::span<const RecordId> ids,
                                                              std::span<const ReadRecord> claimed) {
  std::unordered_map<RecordDigest, const Record*, DigestHash> by_digest;
  for (const auto& read : claimed)
    if (!read.expired) by_digest.emplace(read.digest, &read.record);
  std::vector<std::optional<Record>> found;
  for (const auto& id : ids) {
    const auto hit = by_digest.find(record_digest(id.scope, id.key));
    if (hit == by_digest.end()) {
      found.emplace_back();
      continue;
    }
    if (hit->second->scope != id.scope || hit->second->key != id.key) return digest_collision(id);
    found.emplace_back(*hit->second);
  }
  return found;
}

/// Records are never updated: what is in the way of a new one goes first.
Result<void> LaneSession::make_room(std::span<const Record> records) {
  std::vector<RecordDigest> rejected;
  for (const auto& record : records)
    if (record.replaces_rejection) rejected.push_back(record_digest(record.scope, record.key));
  std::vector<RecordDigest> expired;
  if (!expired_.empty())
    for (const auto& record : records) {
      const auto digest = record_digest(record.scope, record.key);
      if (std::find(expired_.begin(), expired_.end(), digest) != expired_.end()) expired.push_back(digest);
    }
  if (rejected.empty() && expired.empty()) return {};
  return send_own(statements_.make_room, room_parameters(expired, rejected));
}

Result<void> LaneSession::record(std::span<const Record> records) {
  if (auto ready = usable(); !ready || records.empty()) return ready;
  if (auto made = make_room(records); !made) return made;
  return send(statements_.record, records.size(), record_parameters(records));
}

Result<void> LaneSession::set_aside(std::span<const DeadLetter> letters) {
  if (auto ready = usable(); !ready || letters.empty()) return ready;
  return send_own(statements_.set_aside, letter_parameters(letters));
}

Result<void> LaneSession::commit() {
  if (auto ready = usable(); !ready) return ready;
  if (!connection_->alive()) return fail(Breakdown{.purpose = Purpose::own, .mark = {}, .complaint = {}, .lost = true});
  // From here on the server may have committed, until it says that it has not.
  auto breakdown = connection_->send({.purpose = Purpose::commit, .sql = "COMMIT", .parameters = no_parameters});
  if (!breakdown) breakdown = connection_->finish();
  if (breakdown && breakdown->lost) {
    connection_.reset();
    return fail(lost_connection(breakdown->complaint, true));
  }
  if (breakdown) return fail(*breakdown);
  // A failed transaction answers COMMIT with ROLLBACK.
  if (std::string_view(PQcmdStatus(const_cast<PGresult*>(connection_->last()))) != "COMMIT")
    return fail(Error{Remedy::reread, Certainty::not_applied, ErrorCode::serialization_failure,
                      "PostgreSQL rolled the transaction back instead of committing it"});
  open_ = false;
  if (read_at_commit_ && connection_->kept()) read_at_commit_(connection_->kept());
  return {};
}

void LaneSession::rollback() noexcept {
  open_ = false;
  if (!connection_) return;
  // What is queued ends first, or its failure would make the server skip the ROLLBACK.
  auto breakdown = connection_->finish();
  if ((!breakdown || !breakdown->lost) && connection_->in_transaction()) {
    breakdown = connection_->send(
        {.purpose = Purpose::rollback, .sql = "ROLLBACK", .parameters = no_parameters, .reusable = false});
    if (!breakdown) breakdown = connection_->finish();
    if (!breakdown && !connection_->in_transaction()) return;
    connection_.reset();
  } else if (breakdown && breakdown->lost) {
    connection_.reset();
  }
}

Result<void> LaneSession::execute(std::string_view sql, std::span<const Value> values) {
  if (auto ready = usable(); !ready) return ready;
  const auto parameters = parameters_of(values);
  if (!parameters) return fail_effect(parameters.error());
  return send_effect(sql, *parameters);
}

Result<std::int64_t> LaneSession::execute_counted(std::string_view sql, std::span<const Value> parameters) {
  if (auto sent = execute(sql, parameters); !sent) return sent.error();
  return counted();
}

Result<std::int64_t> LaneSession::counted() {
  if (auto done = synchronise(); !done) return done.error();
  return rows_affected(connection_->last());
}

Result<Rows> LaneSession::query(std::string_view sql, std::span<const Value> parameters) {
  if (auto sent = execute(sql, parameters); !sent) return sent.error();
  if (auto done = synchronise(); !done) return done.error();
  return rows_of(connection_->last());
}

Result<std::int64_t> LaneSession::execute_set(std::string_view sql, std::span<const std::vector<Value>> columns) {
  if (auto ready = usable(); !ready) return ready.error();
  Parameters parameters;
  for (const auto& column : columns) {
    if (column.size() != columns.front().size())
      return fail_effect(fix_call(ErrorCode::bad_value, "the columns of a set-based write differ in length"));
    auto array = array_text(column);
    if (!array) return fail_effect(array.error());
    parameters.add_text(*std::move(array));
  }
  if (auto sent = send_effect(sql, parameters); !sent) return sent.error();
  return counted();
}

}  // namespace

std::unique_ptr<SqlSession> make_session(const Options& options, const Statements& statements) {
  return std::make_unique<LaneSession>(options, statements);
}

}  // namespace semel::postgres
