// Promise 5: a record comes back as it was given, until it has expired.
#include <array>

#include "testing/store_scene.hpp"

namespace semel::testing {
namespace {

std::string all_bytes() {
  std::string bytes;
  for (int byte = 0; byte < 256; ++byte) bytes += static_cast<char>(byte);
  return bytes;
}

bool same_answer(const std::optional<Answer>& a, const std::optional<Answer>& b) {
  if (!a || !b) return !a && !b;
  return a->status == b->status && a->body == b->body && a->headers.entries() == b->headers.entries();
}

void require_same(const Record& given, const Record& found) {
  require(found.scope == given.scope && found.key == given.key, "a record came back under another id");
  require(found.state == given.state, "a record came back in another state");
  require(found.fingerprint == given.fingerprint, "a record came back with another fingerprint");
  require(same_answer(found.answer, given.answer), "a record came back with another answer");
  require(found.source == given.source && found.transport_id == given.transport_id,
          "a record came back with another source or transport id");
}

/// Commits `given`, and reads it back both ways.
void keeps(const StoreUnderTest& store, const Record& given) {
  Scene scene(store);
  scene.commit(given);
  const auto session = scene.session();
  begin(*session);
  const auto claimed = claim(*session, id_of(given));
  session->rollback();
  require(claimed.has_value(), "claim does not find a committed record");
  require_same(given, *claimed);
  const auto found = scene.find(id_of(given));
  require(found.has_value(), "find_record does not find a committed record");
  require_same(given, *found);
  require(found->expires_at - found->recorded_at == given.retention,
          "a record expires at another time than it was given");
}

void keeps_every_byte(const StoreUnderTest& store) {
  auto record = record_of(all_bytes());
  record.answer = Answer{.status = 299,
                         .headers = {{"content-type", "application/json"}, {"link", "<\xe9>"}, {"link", ""}},
                         .body = all_bytes() + all_bytes()};
  record.fingerprint = Fingerprint::from_bytes("\x01" + all_bytes().substr(0, 32));
  record.source = "orders";
  record.transport_id = "id-\xe9\x01";
  keeps(store, record);
}

void keeps_an_absent_answer(const StoreUnderTest& store) {
  auto record = record_of("a");
  record.answer.reset();
  keeps(store, record);
}

void keeps_an_empty_answer(const StoreUnderTest& store) {
  auto record = record_of("a");
  record.answer = Answer{.status = 204, .headers = {}, .body = ""};
  keeps(store, record);
  record.answer->body = std::string(1, '\0');
  keeps(store, record);
}

void keeps_the_largest_answer(const StoreUnderTest& store) {
  auto record = record_of("a");
  record.answer->body.clear();
  while (record.answer->body.size() < Answer::body_size_max) record.answer->body += all_bytes();
  keeps(store, record);
}

void keeps_an_empty_fingerprint(const StoreUnderTest& store) {
  auto record = record_of("a");
  record.fingerprint = Fingerprint();
  record.source = "";
  record.transport_id = "";
  keeps(store, record);
}

void keeps_a_rejection(const StoreUnderTest& store) {
  auto record = record_of("a");
  record.state = RecordState::rejected;
  record.answer = Answer{.status = 422, .headers = {}, .body = "no"};
  keeps(store, record);
}

void replaces_a_rejection(const StoreUnderTest& store) {
  Scene scene(store);
  auto old = record_of("a");
  old.state = RecordState::rejected;
  scene.commit(old);
  auto next = record_of("a");
  next.replaces_rejection = true;
  next.answer->body = "after all";
  const auto session = scene.session();
  begin(*session);
  require(claim(*session, id_of(next)).has_value(), "claim does not find a rejection");
  must(record_now(*session, next), "replacing a rejection");
  session->rollback();
  require(scene.find(id_of(old))->state == RecordState::rejected, "a rollback did not bring the rejection back");
  must(apply_blindly(*session, "a", next), "replacing a rejection");
  require_same(next, *scene.find(id_of(next)));
}

void replaces_nothing_but_a_rejection(const StoreUnderTest& store) {
  Scene scene(store);
  scene.commit(record_of("a"));
  auto next = record_of("a");
  next.replaces_rejection = true;
  const auto session = scene.session();
  const auto error =
      must_fail(apply_blindly(*session, "a", next), "replacing a completed record as if it were a rejection");
  require(error.code == ErrorCode::lost_race, "who finds the rejection settled by another has lost the race");
  require(scene.effects("a") == 0, "a second effect was committed over a completed record");
}

void expired_is_gone(const StoreUnderTest& store) {
  Scene scene(store);
  for (const auto retention : {std::chrono::seconds(0), std::chrono::seconds(-5)}) {
    auto record = record_of("kept for " + std::to_string(retention.count()));
    record.retention = retention;
    scene.commit(record);
    require(!scene.find(id_of(record)), "find_record gave a record that has expired");
    const auto session = scene.session();
    begin(*session);
    require(!claim(*session, id_of(record)), "claim gave a record that has expired");
    record.retention = std::chrono::seconds(-5);
    must(record_now(*session, record), "recording an id whose record has expired");
    commit(*session);
  }
}

void lives_for_its_retention(const StoreUnderTest& store) {
  for (const auto retention : {std::chrono::seconds(60), std::chrono::seconds(std::chrono::years(100))}) {
    auto record = record_of("a");
    record.retention = retention;
    keeps(store, record);
  }
  Scene scene(store);
  auto record = record_of("a");
  record.retention = std::chrono::seconds::max();
  scene.commit(record);
  require(scene.find(id_of(record)).has_value(), "a record that is kept for ever was not found");
}

constexpr std::array promises{
    Promise{5, "a_record_is_kept_byte_for_byte", keeps_every_byte},
    Promise{5, "an_answer_that_is_not_kept_stays_absent", keeps_an_absent_answer},
    Promise{5, "an_empty_answer_stays_empty", keeps_an_empty_answer},
    Promise{5, "an_answer_of_the_largest_size_is_kept", keeps_the_largest_answer},
    Promise{5, "an_empty_fingerprint_stays_empty", keeps_an_empty_fingerprint},
    Promise{5, "a_rejection_is_kept_with_fingerprint_and_answer", keeps_a_rejection},
    Promise{5, "a_rejection_is_replaced_within_one_transaction", replaces_a_rejection},
    Promise{5, "nothing_but_a_rejection_is_replaced", replaces_nothing_but_a_rejection},
    Promise{5, "an_expired_record_is_gone_and_its_id_is_free", expired_is_gone},
    Promise{5, "a_record_lives_for_its_retention", lives_for_its_retention},
};

}  // namespace

std::span<const Promise> record_promises() { return promises; }

}  // namespace semel::testing
