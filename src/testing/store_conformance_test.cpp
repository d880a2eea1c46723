// The suite itself under test: stores with one planted fault each, and the promises that must catch it.
#include <semel/testing/store_conformance.hpp>

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <functional>
#include <semel/sql.hpp>
#include <set>
#include <string>
#include <vector>

#include "stores/sqlite/test_database.hpp"

namespace semel::testing {
namespace {

using ::testing::Contains;
using ::testing::UnorderedElementsAreArray;

/// A session that passes everything on; a fault overrides what it gets wrong.
class FaultySession : public SqlSession {
 public:
  explicit FaultySession(std::unique_ptr<Session> real) : real_(dynamic_cast<SqlSession*>(real.release())) {}

  Result<void> begin() override { return real_->begin(); }
  Result<std::vector<std::optional<Record>>> claim(std::span<const RecordId> ids) override { return real_->claim(ids); }
  Result<void> record(std::span<const Record> records) override { return real_->record(records); }
  Result<void> set_aside(std::span<const DeadLetter> letters) override { return real_->set_aside(letters); }
  Result<void> commit() override { return real_->commit(); }
  void rollback() noexcept override { real_->rollback(); }
  void mark(std::size_t number) override { real_->mark(number); }
  Result<void> synchronise() override { return real_->synchronise(); }
  std::optional<std::size_t> failed_mark() const override { return real_->failed_mark(); }
  Result<void> execute(std::string_view sql, std::span<const Value> values) override {
    return real_->execute(sql, values);
  }
  Result<std::int64_t> execute_counted(std::string_view sql, std::span<const Value> values) override {
    return real_->execute_counted(sql, values);
  }
  Result<Rows> query(std::string_view sql, std::span<const Value> values) override { return real_->query(sql, values); }
  Result<std::int64_t> execute_set(std::string_view sql, std::span<const std::vector<Value>> columns) override {
    return real_->execute_set(sql, columns);
  }
  Ledger& ledger() override { return real_->ledger(); }
  Outbox& outbox() override { return real_->outbox(); }

 protected:
  /// The records that nobody has committed, as far as a look shows: a check that is no claim.
  std::vector<Record> unrecorded(std::span<const Record> records) {
    std::vector<Record> free;
    for (const Record& record : records) {
      const RecordId id{record.scope, record.key};
      const auto found = real_->claim({&id, 1});
      if (found && (!found->front() || record.replaces_rejection)) free.push_back(record);
    }
    return free;
  }

  std::unique_ptr<SqlSession> real_;
};

/// A store that passes everything on, but for its sessions and what a fault overrides.
class FaultyStore : public Store {
 public:
  explicit FaultyStore(std::unique_ptr<Store> real) : real_(std::move(real)) {}

  StoreTraits traits() const override { return real_->traits(); }
  Result<std::vector<Finding>> check() override { return real_->check(); }
  Result<std::vector<int>> migrate() override { return real_->migrate(); }
  Result<std::unique_ptr<Session>> open_session() override { return real_->open_session(); }
  Result<std::size_t> purge(std::size_t count_max) override { return real_->purge(count_max); }
  Result<std::optional<Record>> find_record(const RecordId& id) override { return real_->find_record(id); }
  Result<std::vector<DeadLetter>> dead_letters(const DeadLetterQuery& query) override {
    return real_->dead_letters(query);
  }
  Result<std::optional<DeadLetter>> dead_letter(const std::string& id) override { return real_->dead_letter(id); }
  Result<bool> resolve(const std::string& id, std::string_view resolution) override {
    return real_->resolve(id, resolution);
  }
  Result<std::vector<Intent>> intents(const IntentQuery& query) override { return real_->intents(query); }
  Result<std::vector<IntentEvent>> intent_history(const IntentId& id) override { return real_->intent_history(id); }
  Result<IntentCounts> intent_counts() override { return real_->intent_counts(); }
  Result<std::vector<OutboxMessage>> outbox(const OutboxQuery& query) override { return real_->outbox(query); }
  Result<OutboxCounts> outbox_counts() override { return real_->outbox_counts(); }
  Result<bool> release(const std::string& id) override { return real_->release(id); }
  Result<bool> drop(const std::string& id) override { return real_->drop(id); }
  Result<std::vector<QueuedMessage>> take_queued(const std::string& queue, std::size_t count_max,
                                                 std::chrono::milliseconds lease) override {
    return real_->take_queued(queue, count_max, lease);
  }
  Result<void> end_queued(const std::string& queue, std::span<const QueueEnd> ends) override {
    return real_->end_queued(queue, ends);
  }

 protected:
  std::unique_ptr<Store> real_;
};

/// A store whose sessions are `S`.
template <class S>
class WithSession : public FaultyStore {
 public:
  using FaultyStore::FaultyStore;
  Result<std::unique_ptr<Session>> open_session() override {
    auto real = real_->open_session();
    if (!real) return std::move(real).error();
    return std::unique_ptr<Session>(std::make_unique<S>(std::move(*real)));
  }
};

template <class S>
class FaultyDatabase : public TestDatabase {
 public:
  std::unique_ptr<Store> open() override { return std::make_unique<S>(file_.open()); }
  std::unique_ptr<Store> open_unsafe(bool allowed) override { return std::make_unique<S>(file_.open_unsafe(allowed)); }
  std::string migrations_table() const override { return file_.migrations_table(); }

 private:
  sqlite::TestFile file_;
};

/// The names of the promises of these numbers that this kind of store breaks.
template <class S>
std::vector<std::string> broken_of(int first, int last) {
  const StoreUnderTest store{.make_database = [] { return std::make_unique<FaultyDatabase<S>>(); }};
  std::vector<std::string> names;
  for (const Promise& promise : store_promises()) {
    if (promise.number < first || promise.number > last) continue;
    try {
      promise.hold(store);
    } catch (const std::exception&) {
      names.emplace_back(promise.name);
    }
  }
  return names;
}

/// Of records and effects.
template <class S>
std::vector<std::string> broken() {
  return broken_of<S>(1, 13);
}

/// Of intents, publications and queues.
template <class S>
std::vector<std::string> broken_after_commit() {
  return broken_of<S>(14, 25);
}

TEST(StoreConformance, PassesAStoreThatPassesEverythingOn) {
  EXPECT_THAT(broken<WithSession<FaultySession>>(), ::testing::IsEmpty());
  EXPECT_THAT(broken_after_commit<WithSession<FaultySession>>(), ::testing::IsEmpty());
}

TEST(StoreConformance, NamesItsPromisesApart) {
  std::vector<std::string> names;
  for (const Promise& promise : store_promises()) names.emplace_back(promise.name);
  std::ranges::sort(names);
  EXPECT_EQ(std::ranges::adjacent_find(names), names.end());
}

TEST(StoreConformance, HasATestForEveryNumber) {
  for (int number = 1; number <= 25; ++number)
    EXPECT_TRUE(std::ranges::any_of(store_promises(), [&](const Promise& p) { return p.number == number; })) << number;
}

/// Looks whether the key is taken, and keeps quiet where it is: two winners.
struct ChecksBeforeItClaims : FaultySession {
  using FaultySession::FaultySession;
  Result<void> record(std::span<const Record> records) override { return real_->record(unrecorded(records)); }
};

TEST(StoreConformance, CatchesACheckThatIsNoClaim) {
  const auto names = broken<WithSession<ChecksBeforeItClaims>>();
  EXPECT_THAT(names, Contains("the_second_to_record_an_id_loses"));
  EXPECT_THAT(names, Contains("of_two_at_once_one_commits"));
}

/// Commits the effects, then the records.
struct RecordsAfterwards : FaultySession {
  using FaultySession::FaultySession;
  Result<void> begin() override {
    later_.clear();
    return real_->begin();
  }
  Result<void> record(std::span<const Record> records) override {
    later_.insert(later_.end(), records.begin(), records.end());
    return {};
  }
  Result<void> commit() override {
    if (auto effects = real_->commit(); !effects || later_.empty()) return effects;
    if (auto begun = real_->begin(); !begun) return begun;
    if (auto recorded = real_->record(later_); !recorded) return recorded;
    return real_->commit();
  }
  std::vector<Record> later_;
};

TEST(StoreConformance, CatchesRecordsInASecondTransaction) {
  const auto names = broken<WithSession<RecordsAfterwards>>();
  EXPECT_THAT(names, Contains("the_second_to_record_an_id_loses"));
  EXPECT_THAT(names, Contains("nothing_but_a_rejection_is_replaced"));
}

/// Records in a transaction of their own, before the effects.
struct RecordsAtOnce : FaultySession {
  using FaultySession::FaultySession;
  Result<void> record(std::span<const Record> records) override {
    if (auto early = real_->commit(); !early) return early;
    if (auto begun = real_->begin(); !begun) return begun;
    if (auto recorded = real_->record(records); !recorded) return recorded;
    if (auto committed = real_->commit(); !committed) return committed;
    return real_->begin();
  }
};

TEST(StoreConformance, CatchesRecordsInATransactionOfTheirOwn) {
  const auto names = broken<WithSession<RecordsAtOnce>>();
  EXPECT_THAT(names, Contains("nothing_is_seen_from_outside_before_commit"));
  EXPECT_THAT(names, Contains("a_rolled_back_record_frees_its_id"));
  EXPECT_THAT(names, Contains("a_destroyed_session_leaves_nothing"));
}

template <class Change>
struct ChangesRecords : FaultySession {
  using FaultySession::FaultySession;
  Result<void> record(std::span<const Record> records) override {
    std::vector<Record> changed(records.begin(), records.end());
    for (Record& record : changed) Change{}(record);
    return real_->record(changed);
  }
};

struct ForgetAnswer {
  void operator()(Record& record) const { record.answer.reset(); }
};

TEST(StoreConformance, CatchesAForgottenAnswer) {
  const auto names = broken<WithSession<ChangesRecords<ForgetAnswer>>>();
  EXPECT_THAT(names, Contains("a_record_is_kept_byte_for_byte"));
  EXPECT_THAT(names, Contains("an_empty_answer_stays_empty"));
}

struct DropEmptyAnswer {
  void operator()(Record& record) const {
    if (record.answer && record.answer->body.empty()) record.answer.reset();
  }
};

TEST(StoreConformance, CatchesAnEmptyAnswerTakenForNone) {
  EXPECT_THAT(broken<WithSession<ChangesRecords<DropEmptyAnswer>>>(),
              UnorderedElementsAreArray({"an_empty_answer_stays_empty"}));
}

struct ForgetFingerprintOfRejection {
  void operator()(Record& record) const {
    if (record.state == RecordState::rejected) record.fingerprint = Fingerprint();
  }
};

TEST(StoreConformance, CatchesAFingerprintIgnoredOnOnePath) {
  EXPECT_THAT(broken<WithSession<ChangesRecords<ForgetFingerprintOfRejection>>>(),
              UnorderedElementsAreArray({"a_rejection_is_kept_with_fingerprint_and_answer"}));
}

struct FoldCase {
  void operator()(Record& record) const { record.key = folded(record.key); }
  static Key folded(const Key& key) {
    auto bytes = key.bytes();
    for (char& c : bytes)
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    return Key::from_bytes(bytes).value();
  }
};

struct FoldsCase : ChangesRecords<FoldCase> {
  using ChangesRecords::ChangesRecords;
  Result<std::vector<std::optional<Record>>> claim(std::span<const RecordId> ids) override {
    std::vector<RecordId> folded;
    for (const RecordId& id : ids) folded.push_back({id.scope, FoldCase::folded(id.key)});
    return real_->claim(folded);
  }
};

TEST(StoreConformance, CatchesKeysComparedWithoutCase) {
  EXPECT_THAT(broken<WithSession<FoldsCase>>(), Contains("keys_are_compared_as_bytes"));
}

struct CutAtNul {
  void operator()(Record& record) const {
    const auto cut = record.key.bytes().substr(0, record.key.bytes().find('\0'));
    if (!cut.empty()) record.key = Key::from_bytes(cut).value();
  }
};

TEST(StoreConformance, CatchesKeysCutAtNul) {
  EXPECT_THAT(broken<WithSession<ChangesRecords<CutAtNul>>>(), Contains("keys_are_compared_as_bytes"));
}

struct ForgetPrincipal {
  void operator()(Record& record) const { record.scope.principal.clear(); }
};

TEST(StoreConformance, CatchesOnePrincipalGivenAnothersRecord) {
  EXPECT_THAT(broken<WithSession<ChangesRecords<ForgetPrincipal>>>(), Contains("scopes_and_principals_are_apart"));
}

struct NeverExpire {
  void operator()(Record& record) const { record.retention = std::max(record.retention, std::chrono::seconds(3600)); }
};

TEST(StoreConformance, CatchesRecordsThatNeverExpire) {
  const auto names = broken<WithSession<ChangesRecords<NeverExpire>>>();
  EXPECT_THAT(names, Contains("an_expired_record_is_gone_and_its_id_is_free"));
  EXPECT_THAT(names, Contains("purge_removes_what_expired_and_nothing_else"));
}

struct KeepsOnRollback : FaultySession {
  using FaultySession::FaultySession;
  void rollback() noexcept override {
    (void)real_->commit();
    real_->rollback();
  }
};

TEST(StoreConformance, CatchesARollbackThatKeepsEffects) {
  const auto names = broken<WithSession<KeepsOnRollback>>();
  EXPECT_THAT(names, Contains("rollback_undoes_effects_records_and_letters"));
  EXPECT_THAT(names, Contains("a_rolled_back_record_frees_its_id"));
}

struct CommitsWhenDestroyed : FaultySession {
  using FaultySession::FaultySession;
  ~CommitsWhenDestroyed() override { (void)real_->commit(); }
};

TEST(StoreConformance, CatchesASessionThatCommitsWhenDestroyed) {
  EXPECT_THAT(broken<WithSession<CommitsWhenDestroyed>>(), Contains("a_destroyed_session_leaves_nothing"));
}

/// Goes on after an error as if nothing had been written before it.
struct ForgetsErrors : FaultySession {
  using FaultySession::FaultySession;
  Result<void> commit() override {
    if (auto done = real_->commit(); !done) real_->rollback();
    return {};
  }
};

TEST(StoreConformance, CatchesACommitThatHidesAnError) {
  const auto names = broken<WithSession<ForgetsErrors>>();
  EXPECT_THAT(names, Contains("a_failed_write_of_several_leaves_none"));
  EXPECT_THAT(names, Contains("a_session_is_usable_after_every_kind_of_error"));
}

struct MarksTheNext : FaultySession {
  using FaultySession::FaultySession;
  void mark(std::size_t number) override { real_->mark(number + 1); }
};

TEST(StoreConformance, CatchesAFailureGivenToAnotherMessage) {
  const auto names = broken<WithSession<MarksTheNext>>();
  EXPECT_THAT(names, UnorderedElementsAreArray({"a_failed_write_names_its_mark", "a_failed_read_names_its_mark"}));
}

struct CutsLetters : FaultySession {
  using FaultySession::FaultySession;
  Result<void> set_aside(std::span<const DeadLetter> letters) override {
    std::vector<DeadLetter> cut(letters.begin(), letters.end());
    for (DeadLetter& letter : cut) letter.body = letter.body.substr(0, letter.body.find('\0'));
    return real_->set_aside(cut);
  }
};

TEST(StoreConformance, CatchesALetterCutAtNul) {
  EXPECT_THAT(broken<WithSession<CutsLetters>>(), Contains("a_letter_is_kept_byte_for_byte"));
}

struct MixesUpClaims : FaultySession {
  using FaultySession::FaultySession;
  Result<std::vector<std::optional<Record>>> claim(std::span<const RecordId> ids) override {
    auto found = real_->claim(ids);
    if (found)
      std::stable_partition(found->begin(), found->end(), [](const auto& record) { return record.has_value(); });
    return found;
  }
};

TEST(StoreConformance, CatchesClaimsInAnotherOrder) {
  EXPECT_THAT(broken<WithSession<MixesUpClaims>>(), UnorderedElementsAreArray({"claim_answers_in_the_order_asked"}));
}

struct PurgesTheLiving : FaultyStore {
  using FaultyStore::FaultyStore;
  Result<std::size_t> purge(std::size_t count_max) override {
    auto session = real_->open_session().value();
    auto& sql = dynamic_cast<SqlSession&>(*session);
    session->begin().value();
    const Value limit{std::in_place_type<std::int64_t>, static_cast<std::int64_t>(count_max)};
    const auto removed = sql.execute_counted(
        "DELETE FROM semel_records WHERE rowid IN (SELECT rowid FROM semel_records LIMIT $1)", {&limit, 1});
    if (auto committed = session->commit(); !committed) return committed.error();
    return static_cast<std::size_t>(removed.value());
  }
};

TEST(StoreConformance, CatchesAPurgeOfLiveRecords) {
  const auto names = broken<PurgesTheLiving>();
  EXPECT_THAT(names, Contains("purge_removes_what_expired_and_nothing_else"));
}

struct PurgesUnbounded : FaultyStore {
  using FaultyStore::FaultyStore;
  Result<std::size_t> purge(std::size_t) override { return real_->purge(1'000'000); }
};

TEST(StoreConformance, CatchesAPurgeWithoutBound) {
  EXPECT_THAT(broken<PurgesUnbounded>(), Contains("purge_goes_in_bounded_steps"));
}

struct ChecksNothing : FaultyStore {
  using FaultyStore::FaultyStore;
  Result<std::vector<Finding>> check() override { return std::vector<Finding>(); }
};

TEST(StoreConformance, CatchesACheckThatPassesEverything) {
  EXPECT_THAT(broken<ChecksNothing>(),
              UnorderedElementsAreArray({"check_refuses_settings_that_lose_commits", "check_refuses_a_missing_schema",
                                         "check_refuses_an_older_schema", "check_refuses_a_newer_schema"}));
}

struct ResolvesAgain : FaultyStore {
  using FaultyStore::FaultyStore;
  Result<bool> resolve(const std::string& id, std::string_view resolution) override {
    (void)real_->resolve(id, resolution);
    return true;
  }
};

TEST(StoreConformance, CatchesALetterResolvedTwice) {
  EXPECT_THAT(broken<ResolvesAgain>(), UnorderedElementsAreArray({"a_letter_is_resolved_once"}));
}

struct ListsOldestFirst : FaultyStore {
  using FaultyStore::FaultyStore;
  Result<std::vector<DeadLetter>> dead_letters(const DeadLetterQuery& query) override {
    auto letters = real_->dead_letters(query);
    if (letters) std::ranges::reverse(*letters);
    return letters;
  }
};

TEST(StoreConformance, CatchesPagesOutOfOrder) {
  EXPECT_THAT(broken<ListsOldestFirst>(), Contains("pages_go_newest_first_and_miss_none"));
}

/// A ledger that passes everything on to the session's; a fault overrides what it gets wrong.
class FaultyLedger : public Ledger {
 public:
  explicit FaultyLedger(SqlSession& session) : session_(session), real_(session.ledger()) {}
  Result<void> intend(std::span<const Intent> intents) override { return real_.intend(intents); }
  Result<std::vector<Intent>> take(std::span<const std::string> effects, std::size_t count_max) override {
    return real_.take(effects, count_max);
  }
  Result<std::vector<bool>> change(std::span<const IntentChange> changes) override { return real_.change(changes); }
  Result<std::vector<bool>> renew(std::span<const std::pair<IntentId, int>> attempts,
                                  std::chrono::milliseconds lease) override {
    return real_.renew(attempts, lease);
  }
  Result<void> note(const IntentId& id, const IntentEvent& event) override { return real_.note(id, event); }
  Result<std::vector<Intent>> intents_of(const RecordId& record) override { return real_.intents_of(record); }
  Result<std::optional<Intent>> find(const IntentId& id) override { return real_.find(id); }
  Result<std::vector<std::optional<RecordState>>> refresh(std::span<const RecordUpdate> updates) override {
    return real_.refresh(updates);
  }

 protected:
  SqlSession& session_;
  Ledger& real_;
};

/// An outbox that passes everything on to the session's; a fault overrides what it gets wrong.
class FaultyOutbox : public Outbox {
 public:
  explicit FaultyOutbox(SqlSession& session) : session_(session), real_(session.outbox()) {}
  Result<void> publish(std::span<const OutboxMessage> messages) override { return real_.publish(messages); }
  Result<std::vector<OutboxMessage>> take(std::span<const std::string> targets, std::size_t count_max,
                                          std::chrono::milliseconds lease) override {
    return real_.take(targets, count_max, lease);
  }
  Result<void> finish(std::span<const OutboxResult> results) override { return real_.finish(results); }

 protected:
  SqlSession& session_;
  Outbox& real_;
};

template <class L>
struct WithLedgerSession : FaultySession {
  explicit WithLedgerSession(std::unique_ptr<Session> real) : FaultySession(std::move(real)), ledger_(*real_) {}
  Ledger& ledger() override { return ledger_; }
  L ledger_;
};
template <class L>
using WithLedger = WithSession<WithLedgerSession<L>>;

template <class O>
struct WithOutboxSession : FaultySession {
  explicit WithOutboxSession(std::unique_ptr<Session> real) : FaultySession(std::move(real)), outbox_(*real_) {}
  Outbox& outbox() override { return outbox_; }
  O outbox_;
};
template <class O>
using WithOutbox = WithSession<WithOutboxSession<O>>;

struct CutsRequests : FaultyLedger {
  using FaultyLedger::FaultyLedger;
  Result<void> intend(std::span<const Intent> intents) override {
    std::vector<Intent> cut(intents.begin(), intents.end());
    for (Intent& intent : cut) intent.request = intent.request.substr(0, intent.request.find('\0'));
    return real_.intend(cut);
  }
};

TEST(StoreConformance, CatchesARequestCutAtNul) {
  EXPECT_THAT(broken_after_commit<WithLedger<CutsRequests>>(),
              UnorderedElementsAreArray({"an_intent_is_kept_byte_for_byte"}));
}

/// An id that is there is kept quiet about: two transactions believe that the call is theirs.
struct IntendsAgain : FaultyLedger {
  using FaultyLedger::FaultyLedger;
  Result<void> intend(std::span<const Intent> intents) override {
    std::vector<Intent> free;
    for (const Intent& intent : intents)
      if (!real_.find(intent.id).value()) free.push_back(intent);
    return real_.intend(free);
  }
};

TEST(StoreConformance, CatchesAnIntentThatIsTwoTransactions) {
  EXPECT_THAT(broken_after_commit<WithLedger<IntendsAgain>>(),
              UnorderedElementsAreArray({"an_intent_that_is_there_is_a_lost_race"}));
}

/// Whatever is open needs something, whoever has it.
struct IgnoresLeases : FaultyLedger {
  using FaultyLedger::FaultyLedger;
  Result<std::vector<Intent>> take(std::span<const std::string> effects, std::size_t count_max) override {
    if (auto done = session_.execute("UPDATE semel_intents SET due_at = 0 WHERE state = 2", {}); !done)
      return done.error();
    return real_.take(effects, count_max);
  }
};

TEST(StoreConformance, CatchesAnIntentGivenOutInItsLease) {
  const auto names = broken_after_commit<WithLedger<IgnoresLeases>>();
  EXPECT_THAT(names, Contains("take_gives_what_needs_something_and_nothing_else"));
  EXPECT_THAT(names, Contains("an_intent_may_be_intended_as_started"));
}

/// A dead attempt is never found.
struct LeasesForEver : FaultyLedger {
  using FaultyLedger::FaultyLedger;
  Result<std::vector<Intent>> take(std::span<const std::string> effects, std::size_t count_max) override {
    auto taken = real_.take(effects, count_max);
    if (taken) std::erase_if(*taken, [](const Intent& i) { return i.status.state == IntentState::started; });
    return taken;
  }
};

TEST(StoreConformance, CatchesALeaseThatNeverRunsOut) {
  EXPECT_THAT(broken_after_commit<WithLedger<LeasesForEver>>(),
              Contains("take_gives_what_needs_something_and_nothing_else"));
}

struct TakesInAnyOrder : FaultyLedger {
  using FaultyLedger::FaultyLedger;
  Result<std::vector<Intent>> take(std::span<const std::string> effects, std::size_t count_max) override {
    auto taken = real_.take(effects, count_max);
    if (taken) std::ranges::reverse(*taken);
    return taken;
  }
};

TEST(StoreConformance, CatchesTheNewestTakenFirst) {
  EXPECT_THAT(broken_after_commit<WithLedger<TakesInAnyOrder>>(),
              UnorderedElementsAreArray({"take_gives_the_oldest_due_first"}));
}

struct TakesEveryEffect : FaultyLedger {
  using FaultyLedger::FaultyLedger;
  Result<std::vector<Intent>> take(std::span<const std::string>, std::size_t count_max) override {
    const std::array all{std::string("charge"), std::string("Charge")};
    return real_.take(all, count_max);
  }
};

TEST(StoreConformance, CatchesEffectsThatNobodyAskedFor) {
  EXPECT_THAT(broken_after_commit<WithLedger<TakesEveryEffect>>(),
              UnorderedElementsAreArray({"take_gives_the_effects_asked_for"}));
}

/// Each change made by `Change` into what expects less.
template <class Change>
struct ExpectsLess : FaultyLedger {
  using FaultyLedger::FaultyLedger;
  Result<std::vector<bool>> change(std::span<const IntentChange> changes) override {
    std::vector<IntentChange> all(changes.begin(), changes.end());
    for (IntentChange& one : all)
      if (const auto now = real_.find(one.id).value()) Change{}(one, *now);
    return real_.change(all);
  }
};

struct AnyAttempt {
  void operator()(IntentChange& change, const Intent& now) const { change.expected_attempt = now.status.attempt; }
};

TEST(StoreConformance, CatchesAChangeThatIgnoresTheAttempt) {
  const auto names = broken_after_commit<WithLedger<ExpectsLess<AnyAttempt>>>();
  EXPECT_THAT(names,
              UnorderedElementsAreArray({"change_applies_to_what_is_expected_only", "change_answers_each_change"}));
}

struct AnyState {
  void operator()(IntentChange& change, const Intent&) const {
    change.expected_states.assign(all_intent_states.begin(), all_intent_states.end());
  }
};

TEST(StoreConformance, CatchesAChangeThatIgnoresTheState) {
  EXPECT_THAT(broken_after_commit<WithLedger<ExpectsLess<AnyState>>>(),
              UnorderedElementsAreArray({"change_applies_to_what_is_expected_only"}));
}

/// The attempt is checked, but not raised: of two workers both believe that it is theirs.
struct NeverRaises {
  void operator()(IntentChange& change, const Intent& now) const {
    change.to.attempt = now.status.attempt;
    change.expected_states.push_back(IntentState::started);
  }
};

TEST(StoreConformance, CatchesTwoChangesOfOneAttempt) {
  EXPECT_THAT(broken_after_commit<WithLedger<ExpectsLess<NeverRaises>>>(),
              Contains("of_two_changes_of_one_attempt_one_applies"));
}

/// What a change does not name is written all the same.
struct ForgetsOutcome {
  void operator()(IntentChange& change, const Intent&) const {
    if (!change.outcome) change.outcome = CallOutcome{};
  }
};

TEST(StoreConformance, CatchesAnOutcomeThatIsLost) {
  EXPECT_THAT(broken_after_commit<WithLedger<ExpectsLess<ForgetsOutcome>>>(),
              Contains("change_keeps_what_it_does_not_name"));
}

struct ForgetsEvents {
  void operator()(IntentChange& change, const Intent&) const { change.event.reset(); }
};

TEST(StoreConformance, CatchesAChangeWithoutHistory) {
  EXPECT_THAT(broken_after_commit<WithLedger<ExpectsLess<ForgetsEvents>>>(),
              UnorderedElementsAreArray({"change_answers_each_change", "change_all_applies_all_or_fails"}));
}

/// Where one change does not apply, the others are kept and nobody is told.
struct KeepsAPart : FaultyLedger {
  using FaultyLedger::FaultyLedger;
  Result<void> change_all(std::span<const IntentChange> changes) override {
    const auto applied = real_.change(changes);
    return applied ? Result<void>() : Result<void>(applied.error());
  }
};

TEST(StoreConformance, CatchesAChangeOfAllThatKeepsAPart) {
  EXPECT_THAT(broken_after_commit<WithLedger<KeepsAPart>>(),
              UnorderedElementsAreArray({"change_all_applies_all_or_fails"}));
}

/// A worker renews by name, whatever its attempt.
struct RenewsAnyAttempt : FaultyLedger {
  using FaultyLedger::FaultyLedger;
  Result<std::vector<bool>> renew(std::span<const std::pair<IntentId, int>> attempts,
                                  std::chrono::milliseconds lease) override {
    std::vector<std::pair<IntentId, int>> current;
    for (const auto& [id, attempt] : attempts) current.emplace_back(id, real_.find(id).value()->status.attempt);
    return real_.renew(current, lease);
  }
};

TEST(StoreConformance, CatchesARenewalOfAnotherAttempt) {
  EXPECT_THAT(broken_after_commit<WithLedger<RenewsAnyAttempt>>(),
              UnorderedElementsAreArray({"renew_prolongs_the_current_attempt_only"}));
}

/// What comes after the outcome is thrown away.
struct DropsLateNotes : FaultyLedger {
  using FaultyLedger::FaultyLedger;
  Result<void> note(const IntentId& id, const IntentEvent& event) override {
    const auto now = real_.find(id).value();
    return now && !is_open(now->status.state) ? Result<void>() : real_.note(id, event);
  }
};

TEST(StoreConformance, CatchesLateEvidenceThatIsDropped) {
  EXPECT_THAT(broken_after_commit<WithLedger<DropsLateNotes>>(), Contains("note_is_kept_in_every_state"));
}

/// The first settled intent closes the record.
struct ClosesTooEarly : FaultyLedger {
  using FaultyLedger::FaultyLedger;
  Result<std::vector<std::optional<RecordState>>> refresh(std::span<const RecordUpdate> updates) override {
    auto states = real_.refresh(updates);
    if (!states) return states;
    constexpr auto close = "UPDATE semel_records SET open = 0, expires_at = recorded_at + 3600000 WHERE open = 1";
    if (auto done = session_.execute(close, {}); !done) return done.error();
    for (auto& state : *states)
      if (state == RecordState::in_progress) state = RecordState::completed;
    return states;
  }
};

TEST(StoreConformance, CatchesARecordClosedTooEarly) {
  const auto names = broken_after_commit<WithLedger<ClosesTooEarly>>();
  EXPECT_THAT(names, Contains("refresh_follows_the_intents"));
  EXPECT_THAT(names, Contains("of_two_refreshes_at_once_the_later_sees_the_earlier"));
}

struct ForgetsNewAnswer : FaultyLedger {
  using FaultyLedger::FaultyLedger;
  Result<std::vector<std::optional<RecordState>>> refresh(std::span<const RecordUpdate> updates) override {
    std::vector<RecordUpdate> all(updates.begin(), updates.end());
    for (RecordUpdate& one : all) one.answer.reset();
    return real_.refresh(all);
  }
};

TEST(StoreConformance, CatchesASettledAnswerThatIsLost) {
  EXPECT_THAT(broken_after_commit<WithLedger<ForgetsNewAnswer>>(),
              UnorderedElementsAreArray({"refresh_answers_and_begins_the_retention"}));
}

/// The retention runs from the record's beginning, so that a call that took long leaves nothing of it.
struct KeepsFromTheBeginning : FaultyLedger {
  using FaultyLedger::FaultyLedger;
  Result<std::vector<std::optional<RecordState>>> refresh(std::span<const RecordUpdate> updates) override {
    auto states = real_.refresh(updates);
    constexpr auto early = "UPDATE semel_records SET expires_at = recorded_at WHERE open = 0";
    if (auto done = session_.execute(early, {}); !done) return done.error();
    return states;
  }
};

TEST(StoreConformance, CatchesARetentionThatBeginsTooEarly) {
  EXPECT_THAT(broken_after_commit<WithLedger<KeepsFromTheBeginning>>(),
              Contains("refresh_answers_and_begins_the_retention"));
}

/// Runs `sql` in a transaction of its own, then purges.
template <class Sql>
struct PurgesAfter : FaultyStore {
  using FaultyStore::FaultyStore;
  Result<std::size_t> purge(std::size_t count_max) override {
    auto session = real_->open_session().value();
    if (auto begun = session->begin(); !begun) return begun.error();
    dynamic_cast<SqlSession&>(*session).execute(Sql::text, {}).value();
    if (auto committed = session->commit(); !committed) return committed.error();
    return real_->purge(count_max);
  }
};

struct ExpireOpenRecords {
  static constexpr auto text = "UPDATE semel_records SET expires_at = 0 WHERE open > 0";
};

TEST(StoreConformance, CatchesAPurgeOfOpenRecords) {
  EXPECT_THAT(broken_after_commit<PurgesAfter<ExpireOpenRecords>>(),
              UnorderedElementsAreArray({"an_open_record_neither_expires_nor_goes"}));
}

struct ForgetUnsent {
  static constexpr auto text = "UPDATE semel_outbox SET record = x'00'";
};

TEST(StoreConformance, CatchesAPurgeOfRecordsWithUnsentPublications) {
  EXPECT_THAT(broken_after_commit<PurgesAfter<ForgetUnsent>>(),
              UnorderedElementsAreArray({"unsent_publications_keep_their_record"}));
}

struct LeaveIntents {
  static constexpr auto text = "UPDATE semel_intents SET record = x'00'";
};

TEST(StoreConformance, CatchesIntentsThatOutliveTheirRecord) {
  EXPECT_THAT(broken_after_commit<PurgesAfter<LeaveIntents>>(),
              UnorderedElementsAreArray({"an_intent_goes_with_its_record", "a_record_with_a_flagged_intent_stays"}));
}

/// Reads on from the last number that it has seen.
struct ReadsByCursor : FaultyOutbox {
  using FaultyOutbox::FaultyOutbox;
  Result<std::vector<OutboxMessage>> take(std::span<const std::string> targets, std::size_t count_max,
                                          std::chrono::milliseconds lease) override {
    auto taken = real_.take(targets, count_max, lease);
    if (!taken) return taken;
    std::erase_if(*taken, [&](const OutboxMessage& m) { return !seen_.insert(m.id).second; });
    return taken;
  }
  std::set<std::string> seen_;
};

TEST(StoreConformance, CatchesAnOutboxReadByACursor) {
  EXPECT_THAT(broken_after_commit<WithOutbox<ReadsByCursor>>(),
              UnorderedElementsAreArray({"what_lies_behind_is_found"}));
}

/// Runs a statement before each take, or after it.
template <class Sql>
struct TakesBeside : FaultyOutbox {
  using FaultyOutbox::FaultyOutbox;
  Result<std::vector<OutboxMessage>> take(std::span<const std::string> targets, std::size_t count_max,
                                          std::chrono::milliseconds lease) override {
    if (auto done = session_.execute(Sql::before, {}); !done) return done.error();
    auto taken = real_.take(targets, count_max, lease);
    if (auto done = session_.execute(Sql::after, {}); !done) return done.error();
    return taken;
  }
};

struct WithoutOrder {
  static constexpr auto before = "UPDATE semel_outbox SET order_key = x''";
  static constexpr auto after = before;
};

TEST(StoreConformance, CatchesAnOrderThatIsBroken) {
  const auto names = broken_after_commit<WithOutbox<TakesBeside<WithoutOrder>>>();
  EXPECT_THAT(names, Contains("what_waits_holds_back_its_order_key"));
}

struct OneOrderForAll {
  static constexpr auto before = "UPDATE semel_outbox SET target = 'mails' WHERE target = 'letters'";
  static constexpr auto after = before;
};

TEST(StoreConformance, CatchesATargetThatHoldsBackAnother) {
  EXPECT_THAT(broken_after_commit<WithOutbox<TakesBeside<OneOrderForAll>>>(),
              Contains("a_target_holds_back_its_own_only"));
}

struct WithoutLease {
  static constexpr auto before = "UPDATE semel_outbox SET due_at = 0";
  static constexpr auto after = before;
};

TEST(StoreConformance, CatchesALeaseThatIsIgnored) {
  const auto names = broken_after_commit<WithOutbox<TakesBeside<WithoutLease>>>();
  EXPECT_THAT(names, Contains("a_lease_keeps_others_away_until_it_has_run_out"));
}

struct LeaseOfTheDead {
  static constexpr auto before = "UPDATE semel_outbox SET due_at = due_at + 3600000 WHERE attempt > 1";
  static constexpr auto after = before;
};

TEST(StoreConformance, CatchesALeaseThatOutlivesItsTaker) {
  EXPECT_THAT(broken_after_commit<WithOutbox<TakesBeside<LeaseOfTheDead>>>(),
              Contains("a_lease_keeps_others_away_until_it_has_run_out"));
}

struct Newest : FaultyOutbox {
  using FaultyOutbox::FaultyOutbox;
  Result<std::vector<OutboxMessage>> take(std::span<const std::string> targets, std::size_t count_max,
                                          std::chrono::milliseconds lease) override {
    auto taken = real_.take(targets, count_max, lease);
    if (taken) std::ranges::reverse(*taken);
    return taken;
  }
};

TEST(StoreConformance, CatchesMessagesInAnotherOrder) {
  EXPECT_THAT(broken_after_commit<WithOutbox<Newest>>(), Contains("messages_go_in_the_order_published"));
}

/// Results by `Change`.
template <class Change>
struct ChangesResults : FaultyOutbox {
  using FaultyOutbox::FaultyOutbox;
  Result<void> finish(std::span<const OutboxResult> results) override {
    std::vector<OutboxResult> changed(results.begin(), results.end());
    for (OutboxResult& result : changed) Change{}(result, session_);
    return real_.finish(changed);
  }
};

/// A relay that has lost its lease overwrites what the next one has written.
struct FinishAnyAttempt {
  void operator()(OutboxResult& result, SqlSession& session) const {
    const auto rows = session.query("SELECT attempt FROM semel_outbox", {}).value().rows;
    if (!rows.empty()) result.attempt = static_cast<int>(std::get<std::int64_t>(rows.front().front()));
  }
};

TEST(StoreConformance, CatchesAResultOfAnAttemptThatIsOver) {
  EXPECT_THAT(broken_after_commit<WithOutbox<ChangesResults<FinishAnyAttempt>>>(),
              Contains("finish_needs_the_current_attempt"));
}

struct TryAgainAtOnce {
  void operator()(OutboxResult& result, SqlSession&) const { result.due_in = {}; }
};

TEST(StoreConformance, CatchesAPauseThatIsIgnored) {
  const auto names = broken_after_commit<WithOutbox<ChangesResults<TryAgainAtOnce>>>();
  EXPECT_THAT(names, Contains("a_message_that_was_not_sent_waits"));
}

struct NeverHold {
  void operator()(OutboxResult& result, SqlSession&) const { result.hold = false; }
};

TEST(StoreConformance, CatchesAHoldThatIsIgnored) {
  EXPECT_THAT(broken_after_commit<WithOutbox<ChangesResults<NeverHold>>>(),
              Contains("a_held_message_is_released_or_dropped_once"));
}

struct RelaysQueues : FaultyOutbox {
  using FaultyOutbox::FaultyOutbox;
  Result<void> publish(std::span<const OutboxMessage> messages) override {
    std::vector<OutboxMessage> all(messages.begin(), messages.end());
    for (OutboxMessage& message : all) message.queued = false;
    return real_.publish(all);
  }
};

TEST(StoreConformance, CatchesAQueueThatIsRelayed) {
  const auto names = broken_after_commit<WithOutbox<RelaysQueues>>();
  EXPECT_THAT(names, Contains("nothing_queued_is_relayed"));
  EXPECT_THAT(names, Contains("a_queued_message_is_there_with_the_commit"));
}

struct QueueWithoutLease : FaultyStore {
  using FaultyStore::FaultyStore;
  Result<std::vector<QueuedMessage>> take_queued(const std::string& queue, std::size_t count_max,
                                                 std::chrono::milliseconds) override {
    return real_->take_queued(queue, count_max, {});
  }
};

TEST(StoreConformance, CatchesAQueueWithoutLeases) {
  const auto names = broken_after_commit<QueueWithoutLease>();
  EXPECT_THAT(names, Contains("a_queue_gives_the_oldest_first"));
  EXPECT_THAT(names, Contains("a_queued_message_comes_again_until_it_is_ended"));
}

/// Ends what it is told, whoever has it now.
struct EndsAnyReceipt : FaultyStore {
  using FaultyStore::FaultyStore;
  Result<void> end_queued(const std::string& queue, std::span<const QueueEnd> ends) override {
    std::vector<QueueEnd> all;
    for (const QueueEnd& end : ends)
      for (int count = 1; count <= 3; ++count) all.push_back({end.id, count, end.due_in});
    return real_->end_queued(queue, all);
  }
};

TEST(StoreConformance, CatchesAnEndOfAReceiptThatIsOver) {
  EXPECT_THAT(broken_after_commit<EndsAnyReceipt>(),
              UnorderedElementsAreArray({"a_queued_message_ends_with_its_receive_count"}));
}

struct ReleasesAgain : FaultyStore {
  using FaultyStore::FaultyStore;
  Result<bool> release(const std::string& id) override {
    if (auto released = real_->release(id); !released) return released;
    return true;
  }
};

TEST(StoreConformance, CatchesAMessageReleasedTwice) {
  EXPECT_THAT(broken_after_commit<ReleasesAgain>(),
              UnorderedElementsAreArray({"a_held_message_is_released_or_dropped_once"}));
}

struct ListsNewestFirst : FaultyStore {
  using FaultyStore::FaultyStore;
  Result<std::vector<Intent>> intents(const IntentQuery& query) override {
    auto page = real_->intents(query);
    if (page) std::ranges::reverse(*page);
    return page;
  }
  Result<std::vector<OutboxMessage>> outbox(const OutboxQuery& query) override {
    auto page = real_->outbox(query);
    if (page) std::ranges::reverse(*page);
    return page;
  }
};

TEST(StoreConformance, CatchesIntentsAndMessagesListedNewestFirst) {
  const auto names = broken_after_commit<ListsNewestFirst>();
  EXPECT_THAT(names, Contains("intents_come_oldest_first_each_once"));
  EXPECT_THAT(names, Contains("the_outbox_is_listed_and_counted_once"));
}

struct CountsTwice : FaultyStore {
  using FaultyStore::FaultyStore;
  Result<IntentCounts> intent_counts() override {
    auto counts = real_->intent_counts();
    if (counts) counts->waiting_for_operator *= 2;
    return counts;
  }
  Result<OutboxCounts> outbox_counts() override {
    auto counts = real_->outbox_counts();
    if (counts) counts->waiting += counts->held;
    return counts;
  }
};

TEST(StoreConformance, CatchesWhatIsCountedTwice) {
  EXPECT_THAT(broken_after_commit<CountsTwice>(),
              UnorderedElementsAreArray({"intents_are_counted_once", "the_outbox_is_listed_and_counted_once"}));
}

}  // namespace
}  // namespace semel::testing
