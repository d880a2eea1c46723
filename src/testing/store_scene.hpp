// What every promise of the store suite starts from: a fresh, migrated database with two small tables in it.
#pragma once

#include <chrono>
#include <memory>
#include <semel/sql.hpp>
#include <semel/testing/store_conformance.hpp>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace semel::testing {

/// Throws Broken with `sentence` where `holds` is false.
void require(bool holds, std::string_view sentence);

/// The value; Broken where there is an error.
template <class T>
T must(Result<T> result, std::string_view doing) {
  if (!result) throw Broken(std::string(doing) + " failed: " + result.error().message);
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

/// The error, which lives as long as `result`; Broken where there is none.
template <class T>
const Error& must_fail(const Result<T>& result, std::string_view doing) {
  if (result) throw Broken(std::string(doing) + " should have failed, and did not");
  return result.error();
}

/// A record of handler "h" with an answer, kept for an hour.
Record record_of(std::string key);
RecordId id_of(const Record& record);
RecordId id_of(std::string key);

/// The tables: `effects (name, amount)`, which takes anything, and `once (name PRIMARY KEY)`.
class Scene {
 public:
  explicit Scene(const StoreUnderTest& store);

  TestDatabase& database() { return *database_; }
  Store& store() { return *store_; }
  std::unique_ptr<SqlSession> session();

  /// How many rows `effects` has under this name, counted on a handle of its own.
  std::int64_t effects(const std::string& name);
  /// What another handle finds of this id.
  std::optional<Record> find(const RecordId& id);

  /// Commits `record` in a transaction of its own.
  void commit(const Record& record);
  void commit(const DeadLetter& letter);

 private:
  std::unique_ptr<TestDatabase> database_;
  std::unique_ptr<Store> store_;
};

std::unique_ptr<SqlSession> open_sql_session(Store& store);

void begin(Session& session);
void commit(Session& session);
std::optional<Record> claim(Session& session, const RecordId& id);
/// Inserts one row of this name into `effects`.
Result<void> add_effect(SqlSession& session, const std::string& name);
Result<void> add_once(SqlSession& session, const std::string& name);
/// Records and waits until it is certain that the write went through or did not.
Result<void> record_now(Session& session, const Record& record);

/// An effect and its record in one transaction, from begin to commit, without a claim before it: what the guard alone
/// decides. Rolled back on error.
Result<void> apply_blindly(SqlSession& session, const std::string& effect, const Record& record);

/// What `use(session)` gives, in a transaction that is committed then.
template <class Use>
auto in_one_go(Session& session, Use use) {
  begin(session);
  if constexpr (std::is_void_v<decltype(use(session))>) {
    use(session);
    commit(session);
  } else {
    auto result = use(session);
    commit(session);
    return result;
  }
}

/// A record that waits for its intents.
Record open_record_of(std::string key);
/// An intent of that record, pending, with the effect "charge".
Intent intent_of(const std::string& key, int ordinal = 1);
/// A publication of that record to the target "mails", in no order.
OutboxMessage message_of(const std::string& key, int ordinal = 1);

/// A change that expects `intent` as it is.
IntentChange change_of(const Intent& intent, IntentStatus to);
/// Changes one intent inside the transaction; whether it applied.
bool change(Session& session, const IntentChange& change);
std::optional<RecordState> refresh(Session& session, const std::string& key);

std::span<const Promise> transaction_promises();
std::span<const Promise> claim_promises();
std::span<const Promise> record_promises();
std::span<const Promise> dead_letter_promises();
std::span<const Promise> operator_promises();
std::span<const Promise> ledger_promises();
std::span<const Promise> outbox_promises();
std::span<const Promise> queue_promises();

}  // namespace semel::testing
