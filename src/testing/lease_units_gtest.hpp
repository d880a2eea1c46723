// A lease is as long as it was asked to be: a unit that is mistaken somewhere between a duration and a column makes it
// a thousand times too short, or too long. Seen in the store's own tables, by the store's own clock.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <semel/store.hpp>
#include <string>
#include <vector>

namespace semel::testing {

/// How a store is asked for its times, all in microseconds since one point in time.
struct LeaseSql {
  std::string now;
  std::string due_at;  ///< what a row's `due_at` is
  std::string intents, outbox, queue;
};

class LeaseUnits {
 public:
  LeaseUnits(Store& store, SqlSession& session, LeaseSql sql)
      : store_(store), session_(session), sql_(std::move(sql)) {}

  /// On both sides of a second, and a whole one; then as long as leases are.
  void expect_kept() {
    using namespace std::chrono_literals;
    for (const std::chrono::milliseconds lease : {1ms, 999ms, 1'000ms, 1'001ms, 15'000ms, 90'000ms}) {
      ++number_;
      intend_and_renew(lease);
      publish_and_take(lease);
    }
  }

 private:
  RecordId record() const {
    return {.scope = {.handler = "h", .principal = ""}, .key = Key::from_bytes(std::to_string(number_)).value()};
  }

  Record one_record(RecordState state = RecordState::completed) const {
    return {.scope = record().scope,
            .key = record().key,
            .fingerprint = {},
            .state = state,
            .answer = {},
            .source = "s",
            .transport_id = "",
            .retention = std::chrono::hours(1),
            .replaces_rejection = false,
            .recorded_at = {},
            .expires_at = {}};
  }

  /// Where no transaction is open, in one of its own: others are to write meanwhile.
  std::int64_t read(const std::string& what) {
    if (!inside_) session_.begin().value();
    const auto value = std::get<std::int64_t>(session_.query("SELECT " + what, {}).value().rows.at(0).at(0));
    if (!inside_) session_.rollback();
    return value;
  }

  void begin() {
    session_.begin().value();
    inside_ = true;
  }

  std::int64_t due_in(const std::string& table) { return read(sql_.due_at + " FROM " + table); }

  /// `act` leases a row of `table`, which holds no other, from some moment of its own.
  template <class Act>
  void expect_lease(const std::string& table, std::chrono::milliseconds lease, Act act) {
    const auto before = read(sql_.now);
    act();
    const auto after = read(sql_.now);
    const auto from = due_in(table) - std::chrono::microseconds(lease).count();
    EXPECT_LE(before, from + tick) << table << ", a lease of " << lease.count() << " ms";
    EXPECT_GE(after, from - tick) << table << ", a lease of " << lease.count() << " ms";
  }

  void intend_and_renew(std::chrono::milliseconds lease) {
    begin();
    const auto open = one_record(RecordState::in_progress);
    session_.record({&open, 1}).value();
    Intent intent{.id = derive_intent_id(record(), std::nullopt, 1), .record = record(), .effect = "e"};
    intent.status = {.state = IntentState::started, .attempt = 1};
    intent.lease = lease;
    expect_lease(sql_.intents, lease, [&] {
      session_.ledger().intend({&intent, 1}).value();
      session_.synchronise().value();
    });
    IntentChange again{.id = intent.id, .expected_attempt = 1, .expected_states = {IntentState::started}};
    again.to = {.state = IntentState::started, .attempt = 2};
    again.lease = lease * 2;
    expect_lease(sql_.intents, lease * 2, [&] { session_.ledger().change({&again, 1}).value(); });
    const std::array attempts{std::pair{intent.id, 2}};
    expect_lease(sql_.intents, lease * 3, [&] { session_.ledger().renew(attempts, lease * 3).value(); });
    session_.rollback();
    inside_ = false;
  }

  void publish_and_take(std::chrono::milliseconds lease) {
    begin();
    std::vector<OutboxMessage> messages;
    for (const bool queued : {false, true}) {
      messages.push_back({.id = derive_publication_id(record(), "", queued), .record = record()});
      messages.back().publication.to = "t";
      messages.back().queued = queued;
    }
    const auto done = one_record();
    session_.record({&done, 1}).value();
    session_.outbox().publish(messages).value();
    session_.synchronise().value();
    const std::array targets{std::string("t")};
    expect_lease(sql_.outbox, lease, [&] { ASSERT_EQ(session_.outbox().take(targets, 9, lease).value().size(), 1u); });
    session_.commit().value();
    inside_ = false;
    expect_lease(sql_.queue, lease, [&] { ASSERT_EQ(store_.take_queued("t", 9, lease).value().size(), 1u); });
    session_.begin().value();
    for (const auto& table : {sql_.outbox, sql_.queue}) session_.execute("DELETE FROM " + table, {}).value();
    session_.commit().value();
  }

  static constexpr std::int64_t tick = 1'000;  ///< a store may keep whole milliseconds
  Store& store_;
  SqlSession& session_;
  const LeaseSql sql_;
  int number_ = 0;
  bool inside_ = false;  ///< a transaction is open
};

}  // namespace semel::testing
