// Promises 10, 11 and 12: what a store checks before it is used, its schema, and the purge.
#include <algorithm>
#include <array>
#include <future>

#include "testing/store_scene.hpp"

namespace semel::testing {
namespace {

bool refuses(Store& store, ErrorCode code) {
  const auto findings = must(store.check(), "check");
  return std::ranges::any_of(findings, [&](const Finding& finding) {
    return finding.severity == Finding::Severity::refuse && finding.code == code && !finding.message.empty();
  });
}

bool refuses(Store& store) {
  const auto findings = must(store.check(), "check");
  return std::ranges::any_of(findings, [](const Finding& f) { return f.severity == Finding::Severity::refuse; });
}

void set_version(Scene& scene, const std::string& sql) {
  const auto session = scene.session();
  begin(*session);
  must(session->execute(sql, {}), sql);
  commit(*session);
}

void a_safe_store_passes(const StoreUnderTest& store) {
  Scene scene(store);
  require(!refuses(scene.store()), "check refuses a store that was migrated and has safe settings");
}

void refuses_unsafe_settings(const StoreUnderTest& store) {
  Scene scene(store);
  const auto unsafe = scene.database().open_unsafe(false);
  if (!unsafe) return;
  require(refuses(*unsafe, ErrorCode::unsafe_durability), "check passes settings that can lose an acknowledged commit");
  const auto allowed = scene.database().open_unsafe(true);
  require(!refuses(*allowed), "check refuses unsafe settings that were allowed by name");
  require(!must(allowed->check(), "check").empty(), "check says nothing of unsafe settings that were allowed");
}

void refuses_a_missing_schema(const StoreUnderTest& store) {
  const auto database = store.make_database();
  const auto fresh = database->open();
  require(refuses(*fresh, ErrorCode::schema_missing), "check passes a database without a schema");
  must(fresh->migrate(), "migrate");
  require(!refuses(*fresh), "check refuses a schema that was just migrated");
}

void refuses_an_older_schema(const StoreUnderTest& store) {
  Scene scene(store);
  set_version(scene, "DELETE FROM " + scene.database().migrations_table());
  require(refuses(scene.store(), ErrorCode::schema_missing), "check passes a schema older than this release's");
}

void refuses_a_newer_schema(const StoreUnderTest& store) {
  Scene scene(store);
  set_version(scene, "INSERT INTO " + scene.database().migrations_table() + " (version) VALUES (9999)");
  require(refuses(scene.store(), ErrorCode::schema_newer), "check passes a schema newer than this release's");
  const auto error = must_fail(scene.store().migrate(), "migrating a schema newer than this release's");
  require(error.code == ErrorCode::schema_newer, "a newer schema has the code schema_newer");
}

void migrates_once(const StoreUnderTest& store) {
  const auto database = store.make_database();
  const auto fresh = database->open();
  const auto first = must(fresh->migrate(), "migrate");
  require(!first.empty() && std::ranges::is_sorted(first), "migrate does not say what it applied, oldest first");
  require(must(fresh->migrate(), "migrate again").empty(), "migrate applied something to the newest schema");
  require(must(database->open()->migrate(), "migrate elsewhere").empty(), "migrate applied something twice");
}

void two_migrate_at_once(const StoreUnderTest& store) {
  const auto database = store.make_database();
  const auto migrate = [&] {
    const auto handle = database->open();
    for (;;) {
      auto applied = handle->migrate();
      if (applied || applied.error().remedy != Remedy::retry_later) return must(std::move(applied), "migrate").size();
    }
  };
  auto other = std::async(std::launch::async, migrate);
  const auto here = migrate();
  const auto there = other.get();
  require((here == 0) != (there == 0), "of two that migrate at once, one applies everything and the other nothing");
  require(!refuses(*database->open()), "check refuses a schema that two migrated at once");
}

void migrating_keeps_records(const StoreUnderTest& store) {
  Scene scene(store);
  scene.commit(record_of("a"));
  must(scene.store().migrate(), "migrate");
  require(scene.find(id_of("a")).has_value(), "migrate removed a record");
}

void commit_numbered(Scene& scene, int first, int last, std::chrono::seconds retention) {
  const auto session = scene.session();
  begin(*session);
  std::vector<Record> records;
  for (int number = first; number <= last; ++number) records.push_back(record_of("key-" + std::to_string(number)));
  for (auto& record : records) record.retention = retention;
  std::ranges::sort(records, {}, [](const Record& record) { return id_of(record); });
  must(session->record(records), "record");
  commit(*session);
}

/// Purges until nothing is removed.
std::size_t purge_all(Store& store, std::size_t count_max) {
  std::size_t removed = 0;
  for (;;) {
    const auto step = must(store.purge(count_max), "purge");
    require(step <= count_max, "purge removed more than it was allowed to");
    if (step == 0) return removed;
    removed += step;
  }
}

void purges_what_expired(const StoreUnderTest& store) {
  Scene scene(store);
  commit_numbered(scene, 1, 20, std::chrono::hours(1));
  commit_numbered(scene, 21, 45, std::chrono::seconds(0));
  commit_numbered(scene, 46, 50, std::chrono::hours(1));
  commit_numbered(scene, 51, 53, std::chrono::seconds(-9));
  require(purge_all(scene.store(), 10) == 28, "purge does not remove exactly the records that have expired");
  for (int number = 1; number <= 53; ++number) {
    const bool lives = number <= 20 || (number >= 46 && number <= 50);
    require(scene.find(id_of("key-" + std::to_string(number))).has_value() == lives,
            "purge removed a record that had not expired, or left one that had");
  }
}

void purges_in_bounded_steps(const StoreUnderTest& store) {
  Scene scene(store);
  commit_numbered(scene, 1, 9, std::chrono::seconds(0));
  require(must(scene.store().purge(0), "purge") == 0, "purge removed more than it was allowed to");
  require(must(scene.store().purge(4), "purge") == 4, "purge removed less than it could");
  require(purge_all(scene.store(), 4) == 5, "purge does not come to all that have expired");
  commit_numbered(scene, 1, 3, std::chrono::seconds(0));
  require(purge_all(scene.store(), 4) == 3, "purge does not come back to what expired behind it");
}

void purges_beside_a_transaction(const StoreUnderTest& store) {
  Scene scene(store);
  commit_numbered(scene, 1, 9, std::chrono::hours(1));
  const auto session = scene.session();
  begin(*session);
  auto expired = record_of("uncommitted");
  expired.retention = std::chrono::seconds(0);
  must(record_now(*session, expired), "record");
  require(must(scene.store().purge(10), "purge beside an open transaction") == 0,
          "purge removed what is not committed");
  commit(*session);
  require(must(scene.store().purge(10), "purge") == 1, "purge does not see what expired since");
}

constexpr std::array promises{
    Promise{10, "check_passes_a_safe_store", a_safe_store_passes},
    Promise{10, "check_refuses_settings_that_lose_commits", refuses_unsafe_settings},
    Promise{10, "check_refuses_a_missing_schema", refuses_a_missing_schema},
    Promise{10, "check_refuses_an_older_schema", refuses_an_older_schema},
    Promise{10, "check_refuses_a_newer_schema", refuses_a_newer_schema},
    Promise{11, "migrate_applies_each_version_once", migrates_once},
    Promise{11, "two_may_migrate_at_once", two_migrate_at_once},
    Promise{11, "migrate_keeps_records", migrating_keeps_records},
    Promise{12, "purge_removes_what_expired_and_nothing_else", purges_what_expired},
    Promise{12, "purge_goes_in_bounded_steps", purges_in_bounded_steps},
    Promise{12, "purge_works_beside_a_transaction", purges_beside_a_transaction},
};

}  // namespace

std::span<const Promise> operator_promises() { return promises; }

}  // namespace semel::testing
