// The suite itself under test: stores with one planted fault each, and the promises that must catch it.
#include <semel/testing/store_conformance.hpp>

#include <gmock/gmock.h>

#include <algorithm>
#include <functional>
#include <semel/sql.hpp>
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

/// The names of the promises that this kind of store breaks.
template <class S>
std::vector<std::string> broken() {
  const StoreUnderTest store{.make_database = [] { return std::make_unique<FaultyDatabase<S>>(); }};
  std::vector<std::string> names;
  for (const Promise& promise : store_promises()) {
    try {
      promise.hold(store);
    } catch (const std::exception&) {
      names.emplace_back(promise.name);
    }
  }
  return names;
}

TEST(StoreConformance, PassesAStoreThatPassesEverythingOn) {
  EXPECT_THAT(broken<WithSession<FaultySession>>(), ::testing::IsEmpty());
}

TEST(StoreConformance, NamesItsPromisesApart) {
  std::vector<std::string> names;
  for (const Promise& promise : store_promises()) names.emplace_back(promise.name);
  std::ranges::sort(names);
  EXPECT_EQ(std::ranges::adjacent_find(names), names.end());
}

TEST(StoreConformance, HasATestForEveryNumber) {
  for (int number = 1; number <= 13; ++number)
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

}  // namespace
}  // namespace semel::testing
