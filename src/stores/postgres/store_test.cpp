// Promises of the PostgreSQL store beyond the conformance suite, on a live server.
#include <algorithm>
#include <array>
#include <future>
#include <limits>
#include <set>
#include <span>

#include "base/embedded.hpp"
#include "base/encoding.hpp"
#include "stores/postgres/live_server.hpp"
#include "stores/postgres/rows.hpp"
#include "testing/lease_units_gtest.hpp"
#include "values/stored_form.hpp"

namespace semel::postgres {

namespace migrations {
std::span<const EmbeddedFile> embedded_files();
}

namespace {

using namespace std::string_literals;

class PostgresStore : public LiveServer {
 protected:
  PostgresStore() : store_(migrated()), session_(session_of(*store_)), table_(in_schema("effects")) {
    bystander_.run("CREATE TABLE " + table_ + " (id text PRIMARY KEY, cents bigint, note bytea)");
  }

  Result<void> add(SqlSession& session, const std::string& name) {
    return session.execute("INSERT INTO " + table_ + " (id) VALUES ($1)", std::array{Value{name}});
  }

  /// One whole transaction: claim, an effect, a record. False where it was a replay.
  Result<bool> run_once(SqlSession& session, const std::string& key) {
    const std::vector ids{id(key)};
    const std::vector records{fresh(ids[0])};
    if (auto begun = session.begin(); !begun) return begun.error();
    const auto found = session.claim(ids);
    if (!found) return found.error();
    if (!(*found)[0]) {
      if (auto sent = add(session, key); !sent) return sent.error();
      if (auto sent = session.record(records); !sent) return sent.error();
    }
    if (auto committed = session.commit(); !committed) return committed.error();
    return !(*found)[0];
  }

  static Result<void> record_one(SqlSession& session, const Record& record) { return session.record({&record, 1}); }

  /// The first value of what `session` reads.
  static Value read(SqlSession& session, const std::string& sql, std::span<const Value> values = {}) {
    return session.query(sql, values).value().rows.at(0).at(0);
  }

  std::unique_ptr<Store> store_;
  std::unique_ptr<SqlSession> session_;
  std::string table_;
};

TEST_F(PostgresStore, MakesOneEffectOfTwoDeliveries) {
  EXPECT_TRUE(run_once(*session_, "k").value());
  EXPECT_FALSE(run_once(*session_, "k").value());
  EXPECT_EQ(count("effects"), "1");
  const auto record = store_->find_record(id("k")).value();
  ASSERT_TRUE(record.has_value());
  EXPECT_EQ(record->answer->body, "done");
  EXPECT_EQ(record->retention, std::chrono::hours(1));
}

TEST_F(PostgresStore, ReadsAgainAfterALostRaceAndFindsTheWinnersRecord) {
  const auto other = session_of(*store_);
  session_->begin().value();
  EXPECT_FALSE(session_->claim(std::vector{id("k")}).value()[0]);
  EXPECT_TRUE(run_once(*other, "k").value());
  record_one(*session_, fresh(id("k"))).value();
  const auto lost = session_->commit();
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().code, ErrorCode::lost_race);
  EXPECT_EQ(lost.error().remedy, Remedy::reread);
  EXPECT_EQ(lost.error().certainty, Certainty::not_applied);
  session_->rollback();
  EXPECT_FALSE(run_once(*session_, "k").value());
}

TEST_F(PostgresStore, KeepsItsIsolationUnderStricterDefaultsOfTheDatabase) {
  options_.connection += "?options=-cdefault_transaction_isolation%3Dserializable";
  const auto strict = opened(options_);
  const auto session = session_of(*strict);
  session->begin().value();
  EXPECT_EQ(read(*session, "SHOW transaction_isolation"), Value{"read committed"s});
  EXPECT_TRUE(run_once(*session_, "k").value());
  // Under a snapshot taken by the first statement the record could not be seen.
  EXPECT_TRUE(session->claim(std::vector{id("k")}).value()[0].has_value());
  session->commit().value();
}

TEST_F(PostgresStore, AttributesAUniqueViolationToItsMessageAndTellsItFromALostRace) {
  session_->begin().value();
  for (std::size_t number = 0; number < 5; ++number) {
    session_->mark(number);
    add(*session_, number == 3 ? "name0" : "name" + std::to_string(number)).value();
  }
  record_one(*session_, fresh(id("k"))).value();
  const auto failed = session_->commit();
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, ErrorCode::constraint_violated);
  EXPECT_EQ(failed.error().remedy, Remedy::fix_call);
  EXPECT_EQ(failed.error().certainty, Certainty::not_applied);
  EXPECT_EQ(session_->failed_mark(), 3u);
  session_->rollback();
  EXPECT_EQ(count("effects"), "0");
  EXPECT_EQ(count("records"), "0");
}

TEST_F(PostgresStore, IsUsableAfterAFailedStatement) {
  session_->begin().value();
  session_->mark(0);
  EXPECT_FALSE(session_->query("SELECT nonsense", {}));
  // The server would say 25P02 now; the session keeps saying what really failed.
  const auto later = session_->query("SELECT 1", {});
  ASSERT_FALSE(later);
  EXPECT_EQ(later.error().code, ErrorCode::bad_statement);
  EXPECT_FALSE(session_->commit());
  session_->rollback();
  EXPECT_TRUE(run_once(*session_, "k").value());
}

TEST_F(PostgresStore, TakesKeysInOneOrderWhateverTheOrderOfTheBatch) {
  std::vector<Record> records;
  for (int i = 0; i < 50; ++i) records.push_back(fresh(id("key" + std::to_string(i))));
  session_->begin().value();
  session_->record(records).value();
  session_->commit().value();
  // Rows lie in the order in which they were inserted.
  EXPECT_EQ(
      bystander_.run("SELECT array_agg(id ORDER BY ctid) = array_agg(id ORDER BY id) FROM " + in_schema("records")),
      "t");
}

TEST_F(PostgresStore, DoesNotDeadlockWhereTwoBatchesHaveTheirKeysInOppositeOrder) {
  const auto batch = [&](bool backwards) {
    std::vector<Record> records;
    for (int i = 0; i < 50; ++i) records.push_back(fresh(id("key" + std::to_string(i))));
    if (backwards) std::reverse(records.begin(), records.end());
    return records;
  };
  const auto run = [&](bool backwards) {
    const auto session = session_of(*store_);
    const auto records = batch(backwards);
    session->begin().value();
    session->synchronise().value();
    session->record(records).value();
    return session->commit();
  };
  for (int round = 0; round < 20; ++round) {
    auto other = std::async(std::launch::async, [&] { return run(true); });
    const auto here = run(false);
    const auto there = other.get();
    EXPECT_NE(here.has_value(), there.has_value());
    const auto& error = here ? there.error() : here.error();
    EXPECT_EQ(error.code, ErrorCode::lost_race) << error.message;
    EXPECT_EQ(count("records"), "50");
    bystander_.run("DELETE FROM " + in_schema("records"));
  }
}

TEST_F(PostgresStore, CountsTwoLettersOfOneIdInOneCallAsOne) {
  DeadLetter letter;
  letter.id = "same";
  letter.body = "a\0b"s;
  const std::vector letters{letter, letter};
  session_->begin().value();
  session_->set_aside(letters).value();
  session_->commit().value();
  EXPECT_EQ(store_->dead_letter("same").value()->times, 2);
  EXPECT_EQ(store_->dead_letter("same").value()->body, "a\0b"s);
}

TEST_F(PostgresStore, SaysOnceForAllThatAStatementTouchesARowTwice) {
  session_->begin().value();
  const auto failed = session_->execute_set(
      "INSERT INTO " + table_ + " (id) SELECT unnest($1::text[]) ON CONFLICT (id) DO UPDATE SET cents = 1",
      std::vector<std::vector<Value>>{{"a"s, "a"s}});
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, ErrorCode::bad_statement);
  session_->rollback();
}

TEST_F(PostgresStore, NeverCutsTextAtANulAndKeepsBytesWhole) {
  session_->begin().value();
  session_->mark(4);
  const auto refused = add(*session_, "a\0b"s);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::bad_value);
  EXPECT_EQ(session_->failed_mark(), 4u);
  EXPECT_FALSE(session_->commit());
  session_->rollback();

  session_->begin().value();
  const std::array<Value, 2> values{Value{"k"s}, Blob{"\0\xff'\\x"s}};
  session_->execute("INSERT INTO " + table_ + " (id, note) VALUES ($1, $2)", values).value();
  EXPECT_EQ(read(*session_, "SELECT note FROM " + table_), values[1]);
  session_->commit().value();
}

TEST_F(PostgresStore, TellsKeysApartByTheirBytes) {
  std::vector<std::string> keys{"ab", "AB", "ab ", " ab", "\xc3\xa9", "e\xcc\x81", "a\0b"s, "a", "\xff\xfe", "a\0"s};
  std::sort(keys.begin(), keys.end());
  std::vector<Record> records;
  std::vector<RecordId> ids;
  for (const auto& key : keys) {
    ids.push_back(id(key));
    records.push_back(fresh(ids.back()));
    records.back().transport_id = key;
  }
  session_->begin().value();
  session_->record(records).value();
  session_->commit().value();
  session_->begin().value();
  const auto found = session_->claim(ids).value();
  for (std::size_t i = 0; i < ids.size(); ++i) EXPECT_EQ(found[i]->transport_id, keys[i]);
}

TEST_F(PostgresStore, ScopesKeysByHandlerAndPrincipal) {
  for (const auto& scoped : {id("k", "a", "p"), id("k", "b", "p"), id("k", "a", "q"), id("k", "ap", "")}) {
    session_->begin().value();
    EXPECT_FALSE(session_->claim(std::vector{scoped}).value()[0]);
    record_one(*session_, fresh(scoped)).value();
    session_->commit().value();
  }
  EXPECT_EQ(count("records"), "4");
}

TEST_F(PostgresStore, MergesNoTwoKeysThatShareADigest) {
  EXPECT_TRUE(run_once(*session_, "k").value());
  bystander_.run("UPDATE " + in_schema("records") + " SET key = '\\x016f74686572'");
  session_->begin().value();
  const auto found = session_->claim(std::vector{id("k")});
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, ErrorCode::store_damaged);
  session_->rollback();
  EXPECT_FALSE(store_->find_record(id("k")));
}

TEST_F(PostgresStore, LetsAKeyBeUsedAgainOnceItsRecordHasExpired) {
  auto past = fresh(id("k"));
  past.retention = std::chrono::seconds(0);
  for (int round = 0; round < 3; ++round) {
    session_->begin().value();
    EXPECT_FALSE(session_->claim(std::vector{id("k")}).value()[0]);
    record_one(*session_, past).value();
    session_->commit().value();
  }
  EXPECT_EQ(count("records"), "1");
  EXPECT_FALSE(store_->find_record(id("k")).value().has_value());
}

TEST_F(PostgresStore, GivesAnExpiredKeyToOneOfTwoThatWantIt) {
  auto past = fresh(id("k"));
  past.retention = std::chrono::seconds(0);
  session_->begin().value();
  record_one(*session_, past).value();
  session_->commit().value();
  const auto other = session_of(*store_);
  for (auto* session : {session_.get(), other.get()}) {
    session->begin().value();
    EXPECT_FALSE(session->claim(std::vector{id("k")}).value()[0]);
    record_one(*session, fresh(id("k"))).value();
  }
  session_->commit().value();
  const auto second = other->commit();
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::lost_race);
}

TEST_F(PostgresStore, LosesNoKeyBetweenThePurgeAndADuplicate) {
  auto past = fresh(id("k"));
  past.retention = std::chrono::seconds(0);
  session_->begin().value();
  record_one(*session_, past).value();
  session_->commit().value();
  // The purge has deleted the row and not committed; the duplicate must neither be lost nor take the row for granted.
  Bystander cleaner;
  cleaner.run("BEGIN");
  cleaner.run("DELETE FROM " + in_schema("records") + " WHERE expires_at <= now()");
  auto duplicate = std::async(std::launch::async, [&] { return run_once(*session_, "k"); });
  cleaner.run("COMMIT");
  auto done = duplicate.get();
  if (!done) {
    EXPECT_EQ(done.error().certainty, Certainty::not_applied);
    session_->rollback();
    done = run_once(*session_, "k");
  }
  EXPECT_TRUE(done.value());
  EXPECT_EQ(count("records"), "1");
  EXPECT_EQ(count("effects"), "1");
  EXPECT_EQ(store_->purge(10).value(), 0u);
  EXPECT_FALSE(run_once(*session_, "k").value());
}

TEST_F(PostgresStore, ReplacesARejectionInTheTransactionThatSendsItAgain) {
  auto rejected = fresh(id("k"));
  rejected.state = RecordState::rejected;
  session_->begin().value();
  record_one(*session_, rejected).value();
  session_->commit().value();
  auto again = fresh(id("k"));
  again.replaces_rejection = true;
  session_->begin().value();
  EXPECT_EQ(session_->claim(std::vector{id("k")}).value()[0]->state, RecordState::rejected);
  record_one(*session_, again).value();
  session_->commit().value();
  EXPECT_EQ(store_->find_record(id("k")).value()->state, RecordState::completed);
  // A completed one is never replaced.
  session_->begin().value();
  record_one(*session_, again).value();
  EXPECT_EQ(session_->commit().error().code, ErrorCode::lost_race);
}

TEST_F(PostgresStore, RefusesAHandlersOwnTransactionControlBeforeItIsSent) {
  for (const std::string sql : {"COMMIT", "/* x */ ROLLBACK", ";;commit", "BEGIN", "SET search_path TO x"}) {
    session_->begin().value();
    add(*session_, "lost").value();
    const auto refused = session_->execute(sql, {});
    ASSERT_FALSE(refused) << sql;
    EXPECT_EQ(refused.error().code, ErrorCode::handler_misused);
    EXPECT_EQ(refused.error().certainty, Certainty::not_applied);
    EXPECT_FALSE(session_->commit());
    session_->rollback();
    EXPECT_EQ(count("effects"), "0") << sql;
  }
}

TEST_F(PostgresStore, EndsNoTransactionFromInsideAFunctionEither) {
  bystander_.run("CREATE PROCEDURE " + in_schema("p") + "() LANGUAGE plpgsql AS $$ BEGIN COMMIT; END $$");
  for (const std::string& sql : {"CALL " + in_schema("p") + "()", "DO $$ BEGIN COMMIT; END $$"s,
                                 "INSERT INTO " + table_ + " (id) VALUES ('x'); COMMIT"}) {
    session_->begin().value();
    add(*session_, "lost").value();
    auto failed = session_->execute(sql, {});
    if (failed) failed = session_->synchronise();
    EXPECT_FALSE(failed) << sql;
    session_->rollback();
    EXPECT_EQ(count("effects"), "0") << sql;
  }
}

TEST_F(PostgresStore, ReadsValuesWithTheirTypes) {
  session_->begin().value();
  const auto rows = session_
                        ->query(
                            "SELECT true, 7::int2, -7::int4, 9223372036854775807::int8, 0.1::float8, "
                            "12345678901234567890.50::numeric, 'text', '\\x00ff'::bytea, NULL, '{\"a\": 1}'::jsonb",
                            {})
                        .value();
  const std::vector<Value> expected{true,
                                    std::int64_t{7},
                                    std::int64_t{-7},
                                    std::numeric_limits<std::int64_t>::max(),
                                    0.1,
                                    Decimal{"12345678901234567890.50"},
                                    "text"s,
                                    Blob{"\0\xff"s},
                                    nullptr,
                                    "{\"a\": 1}"s};
  EXPECT_EQ(rows.rows.at(0), expected);
}

TEST_F(PostgresStore, BindsASetAsArraysWithoutLosingACharacter) {
  const std::vector<std::vector<Value>> columns{
      {"a\"b"s, "c\\d"s, "NULL"s, "{e,f}"s, ""s, " \xc3\xa9\n"s},
      {std::int64_t{1}, nullptr, std::int64_t{-3}, std::int64_t{4}, std::int64_t{5}, std::int64_t{6}},
      {Blob{"\0\\\""s}, Blob{""}, nullptr, Blob{"x"}, Blob{"y"}, Blob{"z"}}};
  session_->begin().value();
  EXPECT_EQ(session_
                ->execute_set("INSERT INTO " + table_ + " SELECT * FROM unnest($1::text[], $2::bigint[], $3::bytea[])",
                              columns)
                .value(),
            6);
  for (std::size_t i = 0; i < 6; ++i) {
    const auto rows =
        session_->query("SELECT cents, note FROM " + table_ + " WHERE id = $1", std::array{columns[0][i]}).value();
    ASSERT_EQ(rows.rows.size(), 1u);
    EXPECT_EQ(rows.rows[0][0], columns[1][i]);
    EXPECT_EQ(rows.rows[0][1], columns[2][i]);
  }
  session_->commit().value();
}

TEST_F(PostgresStore, SendsManyAndLongStatementsWithoutWaitingForEver) {
  session_->begin().value();
  const std::string sql = "INSERT INTO " + table_ + " (id, note) VALUES ($1, $2) RETURNING id, note";
  for (int i = 0; i < 3'000; ++i) {
    session_->mark(static_cast<std::size_t>(i));
    session_->execute(sql, std::array{Value{std::to_string(i)}, Value{Blob{std::string(10'000, 'x')}}}).value();
  }
  session_->commit().value();
  EXPECT_EQ(count("effects"), "3000");
}

TEST_F(PostgresStore, KeepsABoundedNumberOfPreparedStatements) {
  session_->begin().value();
  for (int i = 0; i < 1'000; ++i) session_->execute("SELECT " + std::to_string(i), {}).value();
  const auto held = std::get<std::int64_t>(read(*session_, "SELECT count(*) FROM pg_prepared_statements"));
  EXPECT_LE(held, 256);
  EXPECT_GT(held, 100);
  session_->commit().value();
}

/// However the commands before it fall into pipelines: past a number of them one ends by itself, before the COMMIT too.
TEST_F(PostgresStore, WhatIsAskedAtTheCommitIsKnownAfterIt) {
  const RecordUpdate update{.id = {{"h", ""}, Key::from_bytes("gone").value()}};
  for (int commands = 985; commands < 1'005; ++commands) {
    std::vector<std::optional<RecordState>> states;
    session_->begin().value();
    for (int i = 0; i < commands; ++i) session_->execute("SELECT 1", {}).value();
    session_->ledger().refresh_at_commit({&update, 1}, states).value();
    session_->commit().value();
    EXPECT_EQ(states.size(), 1u) << commands;
  }
}

TEST_F(PostgresStore, PreparesAnewWhatWasUsedOften) {
  const std::string sql = "SELECT 'a statement used often'";
  std::set<std::string> names;
  session_->begin().value();
  for (int use = 0; use < 64; ++use) {
    session_->execute(sql, {}).value();
    const auto held =
        session_->query("SELECT name FROM pg_prepared_statements WHERE statement = $1", std::array{Value{sql}});
    ASSERT_EQ(held->rows.size(), 1u);
    names.insert(std::get<std::string>(held->rows[0][0]));
  }
  EXPECT_EQ(names.size(), 3u) << "planned at uses 1, 17 and 49";
  session_->commit().value();
}

TEST_F(PostgresStore, PreparesAnewAfterAFailureInTheSamePipeline) {
  for (int round = 0; round < 2; ++round) {
    session_->begin().value();
    session_->execute("INSERT INTO nowhere VALUES (1)", {}).value();
    add(*session_, "k").value();  // prepared behind a failure: the server never saw it
    EXPECT_FALSE(session_->synchronise());
    session_->rollback();
  }
  EXPECT_TRUE(run_once(*session_, "k").value());
}

TEST_F(PostgresStore, ReadsAnewWhereATableGotAnotherColumn) {
  const auto read_all = [&] { return session_->query("SELECT * FROM " + table_, {}); };
  session_->begin().value();
  read_all().value();
  session_->commit().value();
  bystander_.run("ALTER TABLE " + table_ + " ADD COLUMN more text");
  session_->begin().value();
  auto rows = read_all();
  ASSERT_FALSE(rows);
  EXPECT_EQ(rows.error().remedy, Remedy::retry_later) << rows.error().message;
  session_->rollback();
  session_->begin().value();
  rows = read_all();
  ASSERT_TRUE(rows);
  EXPECT_EQ(rows->columns.size(), 4u);
}

TEST_F(PostgresStore, WaitsForAHeldKeyNoLongerThanTheLockTimeout) {
  const auto other = session_of(*store_);
  session_->begin().value();
  record_one(*session_, fresh(id("k"))).value();
  session_->synchronise().value();
  other->begin().value();
  record_one(*other, fresh(id("k"))).value();
  const auto late = other->commit();
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, ErrorCode::lock_timeout);
  EXPECT_EQ(late.error().remedy, Remedy::retry_later);
  EXPECT_EQ(late.error().certainty, Certainty::not_applied);
}

TEST_F(PostgresStore, RefusesADeferredConstraintAtCommitAsNotApplied) {
  bystander_.run("CREATE TABLE " + in_schema("deferred") + " (id int UNIQUE DEFERRABLE INITIALLY DEFERRED)");
  session_->begin().value();
  for (int i = 0; i < 2; ++i) session_->execute("INSERT INTO " + in_schema("deferred") + " VALUES (1)", {}).value();
  session_->synchronise().value();
  const auto failed = session_->commit();
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, ErrorCode::constraint_violated);
  EXPECT_EQ(failed.error().certainty, Certainty::not_applied);
  session_->rollback();
  EXPECT_TRUE(run_once(*session_, "k").value());
}

TEST_F(PostgresStore, TellsAUsersTableNamedRecordsFromItsOwn) {
  bystander_.run("CREATE SCHEMA users_own; CREATE TABLE users_own.records (id int UNIQUE)");
  session_->begin().value();
  session_->mark(9);
  session_->execute("INSERT INTO users_own.records VALUES (1), (1)", {}).value();
  EXPECT_EQ(session_->synchronise().error().code, ErrorCode::constraint_violated);
  EXPECT_EQ(session_->failed_mark(), 9u);
  session_->rollback();
  bystander_.run("DROP SCHEMA users_own CASCADE");
}

TEST_F(PostgresStore, WorksInASchemaWhoseNameNeedsQuotes) {
  options_.schema = "We\"ird Näme; DROP";
  const auto store = migrated();
  const auto session = session_of(*store);
  EXPECT_TRUE(run_once(*session, "k").value());
  EXPECT_FALSE(run_once(*session, "k").value());
  session->begin().value();
  record_one(*session, fresh(id("k"))).value();
  EXPECT_EQ(session->commit().error().code, ErrorCode::lost_race);
}

/// A schema as version 1 left it, with a record and a dead letter in it.
class OldPostgresSchema : public LiveServer {
 protected:
  OldPostgresSchema() {
    bystander_.run("CREATE SCHEMA " + quoted_identifier(options_.schema) + "; SET search_path TO " +
                   quoted_identifier(options_.schema));
    bystander_.run(std::string(migrations::embedded_files()[0].text));
    bystander_.run("INSERT INTO migrations (version) VALUES (1)");
    const auto digest = hex_encode(record_digest(id("old").scope, id("old").key).view());
    bystander_.run("INSERT INTO records SELECT '" + digest +
                   "', 'h', '', '\\x01' || 'old'::bytea, 'f', 2, NULL, 'src', 't', now(), now() + interval '1 h'");
    bystander_.run(
        "INSERT INTO dead_letters (id, reason, code, detail, handler, principal, key, fingerprint, "
        "recorded_fingerprint, source, caller, sender_verified, transport_id, body, attributes, attempts) VALUES ('l', "
        "'rejected', 106, '', 'h', '', 'old', '', '', 'src', false, false, 't', 'body', '\\x0100000000', 1)");
  }
};

TEST_F(OldPostgresSchema, IsRefusedThenMigratedWithItsRows) {
  const auto store = opened(options_);
  const auto findings = store->check().value();
  EXPECT_TRUE(std::ranges::any_of(findings, [](const Finding& f) { return f.code == ErrorCode::schema_missing; }));
  EXPECT_EQ(store->migrate().value(), std::vector{2});
  const auto old = store->find_record(id("old")).value();
  ASSERT_TRUE(old.has_value());
  EXPECT_EQ(old->state, RecordState::rejected);
  EXPECT_EQ(store->dead_letter("l").value()->body, "body");
  const auto session = session_of(*store);
  auto open = fresh(id("new"));
  open.state = RecordState::in_progress;
  ASSERT_TRUE(record_in_one_go(*session, open));
  EXPECT_EQ(store->find_record(id("new")).value()->state, RecordState::in_progress);
  EXPECT_EQ(store->purge(10).value(), 0U);
}

TEST_F(PostgresStore, KeepsALeaseAsLongAsItWasAsked) {
  testing::LeaseUnits(*store_, *session_,
                      {.now = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint",
                       .due_at = "(extract(epoch FROM due_at) * 1000000)::bigint",
                       .intents = in_schema("intents"),
                       .outbox = in_schema("outbox"),
                       .queue = in_schema("queue")})
      .expect_kept();
}

/// What the comment above the table promises to other SQL clients.
TEST_F(PostgresStore, LetsAnySqlClientTakeFromAQueue) {
  session_->begin().value();
  std::vector<OutboxMessage> messages;
  for (const int ordinal : {1, 2}) {
    messages.push_back({.id = derive_publication_id(id("k"), "", ordinal), .record = id("k")});
    messages.back().publication = {.to = "mails", .body = std::to_string(ordinal)};
    messages.back().queued = true;
  }
  session_->outbox().publish(messages).value();
  session_->commit().value();
  const auto take = "SELECT number FROM " + in_schema("queue") +
                    " WHERE queue = 'mails' AND due_at <= now() ORDER BY number LIMIT 1 FOR UPDATE SKIP LOCKED";
  bystander_.run("BEGIN");
  const auto first = bystander_.run(take);
  const auto taken = store_->take_queued("mails", 10, std::chrono::hours(1)).value();
  ASSERT_EQ(taken.size(), 1U) << "a row that another transaction has locked is passed over";
  EXPECT_EQ(taken[0].body, "2");
  bystander_.run("DELETE FROM " + in_schema("queue") + " WHERE number = " + first);
  EXPECT_EQ(bystander_.run(take), "") << "a client that looks at due_at leaves leased messages alone";
  bystander_.run("COMMIT");
  EXPECT_EQ(count("queue"), "1");
}

/// Two sessions that meet at one row: the second is known to wait for the first when the first commits.
class PostgresMeeting : public PostgresStore {
 protected:
  PostgresMeeting() {
    options_.lock_timeout = std::chrono::seconds(30);
    patient_ = opened(options_);
    second_ = session_of(*patient_);
    for (const int ordinal : {1, 2}) {
      intents_.push_back({.id = derive_intent_id(id("k"), std::nullopt, ordinal), .record = id("k"), .effect = "e"});
      messages_.push_back({.id = derive_publication_id(id("k"), "", ordinal), .record = id("k")});
      messages_.back().publication = {.to = "mails", .body = std::to_string(ordinal), .order_key = "o"};
    }
    auto open = fresh(id("k"));
    open.state = RecordState::in_progress;
    session_->begin().value();
    session_->record({&open, 1}).value();
    session_->ledger().intend(intents_).value();
    session_->outbox().publish(messages_).value();
    session_->commit().value();
  }

  /// What `use()` gives, which is on `second_` and has to wait for `session_` to commit.
  template <class Use>
  auto after_waiting(Use use) {
    auto waiting = std::async(std::launch::async, use);
    while (bystander_.run("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND "
                          "wait_event_type = 'Lock'") == "0" &&
           waiting.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
    }
    session_->commit().value();
    return waiting.get();
  }

  static IntentChange settle(const Intent& intent) {
    return {.id = intent.id,
            .expected_states = {IntentState::pending},
            .to = {.state = IntentState::succeeded, .attempt = 1, .settled = true}};
  }

  std::vector<Intent> intents_;
  std::vector<OutboxMessage> messages_;
  std::unique_ptr<Store> patient_;
  std::unique_ptr<SqlSession> second_;
};

TEST_F(PostgresMeeting, OfTwoChangesTheLaterSeesTheEarlier) {
  const auto change = settle(intents_[0]);
  session_->begin().value();
  EXPECT_TRUE(session_->ledger().change({&change, 1}).value().at(0));
  second_->begin().value();
  EXPECT_FALSE(after_waiting([&]() -> bool { return second_->ledger().change({&change, 1}).value().at(0); }));
}

TEST_F(PostgresMeeting, OfTwoRefreshesTheLaterSeesTheEarlier) {
  const RecordUpdate update{.id = id("k"), .retention = std::chrono::hours(1)};
  const auto settle_one = [&](SqlSession& session, const Intent& intent) {
    const auto change = settle(intent);
    session.begin().value();
    EXPECT_TRUE(session.ledger().change({&change, 1}).value().at(0));
    return session.ledger().refresh({&update, 1}).value().at(0);
  };
  EXPECT_EQ(settle_one(*session_, intents_[0]), RecordState::in_progress);
  EXPECT_EQ(after_waiting([&] { return settle_one(*second_, intents_[1]); }), RecordState::completed);
}

TEST_F(PostgresMeeting, KeepsTheOrderOfAKeyWhileALeaseEnds) {
  const std::vector<std::string> targets{"mails"};
  session_->begin().value();
  const auto taken = session_->outbox().take(targets, 1, std::chrono::milliseconds(0)).value();
  session_->commit().value();
  ASSERT_EQ(taken.size(), 1U);
  session_->begin().value();
  const OutboxResult waits{
      .id = taken[0].id, .attempt = taken[0].attempt, .due_in = std::chrono::hours(1), .error = "no"};
  session_->outbox().finish({&waits, 1}).value();
  session_->synchronise().value();
  second_->begin().value();
  const auto rest =
      after_waiting([&] { return second_->outbox().take(targets, 9, std::chrono::hours(1)).value().size(); });
  EXPECT_EQ(rest, 0U) << "the second message went out before the first";
}

}  // namespace
}  // namespace semel::postgres
