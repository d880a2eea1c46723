#include "session.hpp"

#include "rows.hpp"
#include "sql.hpp"

namespace semel::sim {
namespace {

Error lost_race(std::string message) {
  return {Remedy::reread, Certainty::not_applied, ErrorCode::lost_race, std::move(message)};
}

/// The row of a record that is free, or may be replaced. Errors: lost_race, lock_timeout.
Result<void> insert_record(Database& database, const Writer& writer, const Record& record) {
  const RecordId id{record.scope, record.key};
  auto slot = database.records.lock(id, writer);
  if (!slot) return slot.error();
  auto& row = **slot;
  if (row) {
    const bool expired = database.counts_as_expired(*row);
    const bool rejection = record.replaces_rejection && row->rejected && row->open == 0;
    if (!expired && !rejection) return lost_race("another transaction recorded this key");
    if (expired)
      if (auto removed = database.remove_intents_of(id, writer); !removed) return removed;
  }
  row = make_record_row(record, database.now());
  return {};
}

Result<void> put_letter(Database& database, const Writer& writer, const DeadLetter& letter) {
  auto kept = letter;
  if (kept.id.empty()) kept.id = "letter-" + std::to_string(database.next_number());
  auto slot = database.letters.lock(kept.id, writer);
  if (!slot) return slot.error();
  auto& row = **slot;
  if (row) {
    ++row->letter.times;
    row->letter.resolution.clear();
    return {};
  }
  kept.times = 1;
  kept.resolution.clear();
  kept.set_aside_at = time_of(database.now());
  row = LetterRow{.letter = std::move(kept), .number = database.next_number()};
  return {};
}

}  // namespace

Connection::~Connection() { rollback(); }

Result<void> Connection::begin() {
  const Visit visit(host_);
  if (writer_) database_.end(writer_, false);
  writer_.reset();
  error_.reset();
  mark_.reset();
  failed_mark_.reset();
  writes_.clear();
  if (host_.strikes(Fault::connection_lost)) return retry_later(ErrorCode::store_unreachable, "planted: no connection");
  writer_ = database_.begin(host_, lock_timeout_);
  return {};
}

Result<void> Connection::check(std::string_view what) {
  if (error_) return *error_;
  if (!writer_) return fix_call(ErrorCode::handler_misused, "no transaction is open");
  if (host_.strikes(Fault::connection_lost)) return lose(what);
  if (host_.strikes(Fault::serialization_failure)) {
    fail({Remedy::reread, Certainty::not_applied, ErrorCode::serialization_failure, "planted: cannot serialize"},
         false);
    return *error_;
  }
  host_.say([&] { return std::string(what); });
  return {};
}

void Connection::fail(const Error& error, bool marks) {
  error_ = error;
  if (marks) failed_mark_ = mark_;
}

/// The server finds out later, and holds the transaction's rows so long.
Error Connection::lose(std::string_view what) {
  host_.say([&] { return "loses its connection: " + std::string(what); });
  database_.orphan(writer_, false);
  writer_.reset();
  fail(retry_later(ErrorCode::connection_lost, "planted: the connection is lost"), false);
  return *error_;
}

Result<void> Connection::lose_commit(bool commits, bool late) {
  host_.say([&] {
    return std::string("loses the reply to its commit, which is ") + (late      ? "late"
                                                                      : commits ? "applied"
                                                                                : "not applied");
  });
  if (commits && !late) {
    database_.end(writer_, true);
  } else {
    database_.orphan(writer_, commits);
  }
  writer_.reset();
  return Error{Remedy::retry_later, Certainty::unknown, ErrorCode::commit_unknown, "planted: no reply to the commit"};
}

Result<void> Connection::commit() {
  const Visit visit(host_);
  if (error_) return *error_;
  if (!writer_) return fix_call(ErrorCode::handler_misused, "no transaction is open");
  if (host_.strikes(Fault::commit_lost_undone)) return lose_commit(false, false);
  if (host_.strikes(Fault::commit_lost_applied)) {
    if (!host_.has(Mutant::commit_repeated_blindly)) return lose_commit(true, false);
    (void)lose_commit(true, false);
    writer_ = database_.begin(host_, lock_timeout_);
    for (const auto& write : writes_) write(writer_);
  }
  if (host_.strikes(Fault::commit_late)) return lose_commit(true, true);
  database_.end(writer_, true);
  writer_.reset();
  host_.say([] { return std::string("commits"); });
  host_.leave();
  host_.enter();  // applied, and nobody has been told
  return {};
}

void Connection::rollback() noexcept {
  error_.reset();
  if (!writer_ || host_.is_gone()) return;
  host_.enter_quietly();
  database_.end(writer_, false);
  host_.leave();
  writer_.reset();
}

Result<void> SimulatedSession::begin() { return connection_.begin(); }

Result<std::vector<std::optional<Record>>> SimulatedSession::claim(std::span<const RecordId> ids) {
  auto& database = connection_.database();
  return connection_.run("claim", [&](const Writer& writer) -> Result<std::vector<std::optional<Record>>> {
    std::vector<std::optional<Record>> found;
    for (const auto& id : ids) {
      const auto* row = database.records.find(id, writer);
      found.emplace_back();
      if (!row || database.counts_as_expired(*row)) continue;
      found.back() = read_record(*row);
      if (connection_.host().has(Mutant::fingerprint_skipped_while_open) && row->open)
        found.back()->fingerprint = Fingerprint();
    }
    return found;
  });
}

Result<void> SimulatedSession::record(std::span<const Record> records) {
  auto& database = connection_.database();
  auto& host = connection_.host();
  return connection_.run("record", [&](const Writer& writer) -> Result<void> {
    for (auto record : records) {
      if (host.has(Mutant::answer_not_stored)) record.answer.reset();
      if (host.has(Mutant::check_instead_of_claim)) {
        // Looks whether it is there, and takes a row that another one has not committed yet for none.
        const auto* there = database.records.find({record.scope, record.key}, writer);
        if (!there && database.records.is_locked_by_another({record.scope, record.key}, writer)) continue;
      }
      if (host.has(Mutant::claim_in_its_own_transaction)) {
        const auto own = database.begin(host, milliseconds(300));
        auto done = insert_record(database, own, record);
        database.end(own, done.has_value());
        if (!done) return done;
        continue;
      }
      if (auto done = insert_record(database, writer, record); !done) return done;
    }
    return {};
  });
}

Result<void> SimulatedSession::set_aside(std::span<const DeadLetter> letters) {
  return connection_.run("set aside", [&](const Writer& writer) -> Result<void> {
    for (const auto& letter : letters)
      if (auto put = put_letter(connection_.database(), writer, letter); !put) return put;
    return {};
  });
}

Result<void> SimulatedSession::commit() { return connection_.commit(); }

Result<void> SimulatedSession::synchronise() {
  return connection_.run("synchronise", [](const Writer&) -> Result<void> { return {}; });
}

Result<void> SimulatedSession::execute(std::string_view sql, std::span<const Value> parameters) {
  auto counted = execute_counted(sql, parameters);
  return counted ? Result<void>() : Result<void>(counted.error());
}

Result<std::int64_t> SimulatedSession::execute_counted(std::string_view sql, std::span<const Value> parameters) {
  return connection_.run(sql, [&](const Writer& writer) -> Result<std::int64_t> {
    if (connection_.host().has(Mutant::commit_repeated_blindly))
      connection_.repeats([this, sql = std::string(sql), values = std::vector(parameters.begin(), parameters.end())](
                              const Writer& again) { (void)run_sql(connection_.database(), again, sql, values); });
    const auto outcome = run_sql(connection_.database(), writer, sql, parameters);
    if (!outcome) return outcome.error();
    return outcome->changed;
  });
}

Result<Rows> SimulatedSession::query(std::string_view sql, std::span<const Value> parameters) {
  return connection_.run(sql, [&](const Writer& writer) -> Result<Rows> {
    auto outcome = run_sql(connection_.database(), writer, sql, parameters);
    if (!outcome) return outcome.error();
    return std::move(outcome->rows);
  });
}

Result<std::int64_t> SimulatedSession::execute_set(std::string_view sql, std::span<const std::vector<Value>> columns) {
  std::int64_t changed = 0;
  for (std::size_t row = 0; row < (columns.empty() ? 0 : columns.front().size()); ++row) {
    std::vector<Value> values;
    for (const auto& column : columns) values.push_back(column[row]);
    const auto one = execute_counted(sql, values);
    if (!one) return one;
    changed += *one;
  }
  return changed;
}

}  // namespace semel::sim
