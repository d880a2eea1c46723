// Promises 9 and 13: messages set aside, and what operators see and do of them.
#include <array>
#include <set>

#include "testing/store_scene.hpp"

namespace semel::testing {
namespace {

using namespace std::string_literals;

DeadLetter letter_of(std::string id) {
  DeadLetter letter;
  letter.id = std::move(id);
  letter.reason = SetAsideReason::conflict;
  letter.code = ErrorCode::conflict;
  letter.detail = "another payload, \u00e9";
  letter.scope = {"h", "p\0\xe9"s};
  letter.key = "k\0ey\xff"s;
  letter.fingerprint = Fingerprint::from_bytes("\x01"s + std::string(32, '\0'));
  letter.recorded_fingerprint = Fingerprint::from_bytes("\x01"s + std::string(32, '\xff'));
  letter.source = "orders";
  letter.sender = Sender::caller;
  letter.sender_verified = true;
  letter.transport_id = "t-\xe9"s;
  letter.body = "{\"a\":\0\"\xff\"}\r\n\0"s;
  letter.attributes = {{"Content-Type", "text/plain"}, {"x", "\0\xff"s}, {"x", ""}, {"", "no name"}};
  letter.attempts = 7;
  return letter;
}

DeadLetter found(Scene& scene, const std::string& id) {
  auto letter = must(scene.database().open()->dead_letter(id), "dead_letter");
  require(letter.has_value(), "a dead letter is not found by its id");
  return std::move(*letter);
}

std::vector<DeadLetter> list(Scene& scene, const DeadLetterQuery& query) {
  return must(scene.database().open()->dead_letters(query), "dead_letters");
}

std::vector<std::string> ids_of(const std::vector<DeadLetter>& letters) {
  std::vector<std::string> ids;
  for (const auto& letter : letters) ids.push_back(letter.id);
  return ids;
}

void require_same(const DeadLetter& given, const DeadLetter& kept) {
  require(kept.body == given.body, "a dead letter's body came back as other bytes");
  require(kept.attributes.entries() == given.attributes.entries(), "a dead letter's attributes came back changed");
  require(kept.reason == given.reason && kept.code == given.code && kept.detail == given.detail,
          "a dead letter came back with another reason, code or detail");
  require(kept.scope == given.scope && kept.key == given.key, "a dead letter came back with another scope or key");
  require(kept.fingerprint == given.fingerprint && kept.recorded_fingerprint == given.recorded_fingerprint,
          "a dead letter came back with another fingerprint");
  require(kept.source == given.source && kept.transport_id == given.transport_id && kept.sender == given.sender &&
              kept.sender_verified == given.sender_verified && kept.attempts == given.attempts,
          "a dead letter came back with another origin");
}

void keeps_every_byte(const StoreUnderTest& store) {
  Scene scene(store);
  const auto given = letter_of("one");
  scene.commit(given);
  const auto kept = found(scene, "one");
  require_same(given, kept);
  require(kept.times == 1 && kept.resolution.empty(), "a new dead letter is one, and waits");
  const auto listed = list(scene, {});
  require(listed.size() == 1, "dead_letters does not list the only letter");
  require_same(given, listed.front());
}

void keeps_what_is_empty(const StoreUnderTest& store) {
  Scene scene(store);
  DeadLetter given;
  given.id = "empty";
  given.reason = SetAsideReason::no_key;
  given.code = ErrorCode::no_key;
  scene.commit(given);
  require_same(given, found(scene, "empty"));
}

void keeps_every_reason(const StoreUnderTest& store) {
  Scene scene(store);
  for (const auto reason : {SetAsideReason::no_key, SetAsideReason::malformed, SetAsideReason::conflict,
                            SetAsideReason::rejected, SetAsideReason::exhausted}) {
    auto letter = letter_of(std::string(reason_name(reason)));
    letter.reason = reason;
    scene.commit(letter);
    require(found(scene, letter.id).reason == reason, "a dead letter came back with another reason");
    require(list(scene, {.reason = reason}).size() == 1, "dead_letters does not choose by reason");
  }
}

void is_of_the_transaction(const StoreUnderTest& store) {
  Scene scene(store);
  const auto session = scene.session();
  const auto letter = letter_of("one");
  begin(*session);
  must(session->set_aside({&letter, 1}), "set_aside");
  must(session->synchronise(), "synchronise");
  require(list(scene, {}).empty(), "a dead letter was seen from outside before its commit");
  session->rollback();
  require(list(scene, {}).empty(), "a dead letter was kept through a rollback");
}

void one_id_counts_up(const StoreUnderTest& store) {
  Scene scene(store);
  auto again = letter_of("one");
  again.body = "second";
  const std::array both{letter_of("one"), again};
  const auto session = scene.session();
  begin(*session);
  must(session->set_aside(both), "set_aside of one id twice in a call");
  commit(*session);
  scene.commit(again);
  require(list(scene, {}).size() == 1, "two dead letters of one id are more than one");
  require(found(scene, "one").times == 3, "a dead letter that came three times is not counted so");
  require_same(both[0], found(scene, "one"));
}

void a_resolved_letter_waits_again(const StoreUnderTest& store) {
  Scene scene(store);
  scene.commit(letter_of("one"));
  require(must(scene.store().resolve("one", "dropped"), "resolve"), "a waiting letter could not be resolved");
  scene.commit(letter_of("one"));
  require(found(scene, "one").resolution.empty(), "a resolved letter that came again does not wait");
}

void letters_without_id_stay_apart(const StoreUnderTest& store) {
  Scene scene(store);
  const std::array letters{letter_of(""), letter_of(""), letter_of("")};
  const auto session = scene.session();
  begin(*session);
  must(session->set_aside(letters), "set_aside without ids");
  commit(*session);
  scene.commit(letter_of(""));
  std::set<std::string> ids;
  for (const auto& letter : list(scene, {})) ids.insert(letter.id);
  require(ids.size() == 4 && !ids.contains(""), "dead letters without an id did not get one each");
}

void pages_newest_first(const StoreUnderTest& store) {
  Scene scene(store);
  std::vector<DeadLetter> letters;
  for (int number = 0; number < 25; ++number) letters.push_back(letter_of("letter-" + std::to_string(number)));
  const auto session = scene.session();
  begin(*session);
  must(session->set_aside(std::span(letters).first(10)), "set_aside");
  commit(*session);
  for (std::size_t at = 10; at < letters.size(); ++at) scene.commit(letters[at]);
  std::vector<std::string> expected;
  for (auto letter = letters.rbegin(); letter != letters.rend(); ++letter) expected.push_back(letter->id);
  std::vector<std::string> seen;
  DeadLetterQuery query{.count_max = 10};
  for (;;) {
    const auto page = ids_of(list(scene, query));
    require(page.size() <= 10, "a page is longer than asked");
    if (page.empty()) break;
    seen.insert(seen.end(), page.begin(), page.end());
    require(seen.size() <= expected.size(), "pages repeat a letter");
    query.before_id = page.back();
  }
  require(seen == expected, "pages of dead letters, one after the other, are not all letters, newest first");
}

void chooses(const StoreUnderTest& store) {
  Scene scene(store);
  auto other = letter_of("other");
  other.scope.handler = "H";
  scene.commit(letter_of("one"));
  scene.commit(other);
  scene.commit(letter_of("two"));
  using Ids = std::vector<std::string>;
  require(ids_of(list(scene, {.handler = "h"})) == Ids{"two", "one"}, "dead_letters does not choose by handler");
  require(list(scene, {.reason = SetAsideReason::no_key}).empty(), "dead_letters does not choose by reason");
  must(scene.store().resolve("one", "retried"), "resolve");
  require(ids_of(list(scene, {})) == Ids{"two", "other"}, "a resolved letter is listed among those that wait");
  require(list(scene, {.waiting_only = false}).size() == 3, "a resolved letter is not listed when asked for");
}

void resolves_once(const StoreUnderTest& store) {
  Scene scene(store);
  scene.commit(letter_of("one"));
  require(!must(scene.store().resolve("two", "dropped"), "resolve"), "a letter that is not there was resolved");
  require(must(scene.store().resolve("one", "retried"), "resolve"), "a waiting letter could not be resolved");
  require(!must(scene.database().open()->resolve("one", "dropped"), "resolve"), "a letter was resolved twice");
  require(found(scene, "one").resolution == "retried", "a resolved letter says something else");
  require(!must(scene.store().dead_letter("two"), "dead_letter"), "a letter that is not there was found");
}

constexpr std::array promises{
    Promise{9, "a_letter_is_kept_byte_for_byte", keeps_every_byte},
    Promise{9, "what_is_empty_in_a_letter_stays_empty", keeps_what_is_empty},
    Promise{9, "every_reason_is_kept", keeps_every_reason},
    Promise{9, "a_letter_is_of_its_transaction", is_of_the_transaction},
    Promise{9, "one_id_is_one_letter_that_counts_up", one_id_counts_up},
    Promise{9, "a_resolved_letter_that_comes_again_waits_again", a_resolved_letter_waits_again},
    Promise{9, "letters_without_id_stay_apart", letters_without_id_stay_apart},
    Promise{13, "pages_go_newest_first_and_miss_none", pages_newest_first},
    Promise{13, "letters_are_chosen_by_handler_reason_and_waiting", chooses},
    Promise{13, "a_letter_is_resolved_once", resolves_once},
};

}  // namespace

std::span<const Promise> dead_letter_promises() { return promises; }

}  // namespace semel::testing
