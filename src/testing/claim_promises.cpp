// Promises 2, 3 and 4: what a claim sees, who wins a race, and which keys are the same.
#include <algorithm>
#include <array>
#include <future>

#include "testing/store_scene.hpp"

namespace semel::testing {
namespace {

/// `a` to `b`, in the order that a claim wants.
std::vector<RecordId> ids(std::size_t count) {
  std::vector<RecordId> all;
  for (std::size_t number = 0; number < count; ++number) all.push_back(id_of("key-" + std::to_string(number)));
  std::ranges::sort(all);
  return all;
}

void answers_in_order(const StoreUnderTest& store) {
  Scene scene(store);
  const auto asked = ids(500);
  const auto session = scene.session();
  begin(*session);
  std::vector<Record> every_third;
  for (std::size_t at = 0; at < asked.size(); at += 3) {
    every_third.push_back(record_of(asked[at].key.bytes()));
    every_third.back().transport_id = std::to_string(at);
  }
  must(session->record(every_third), "record");
  commit(*session);
  begin(*session);
  const auto found = must(session->claim(asked), "claim");
  require(found.size() == asked.size(), "claim gave another number of answers than it was asked for");
  for (std::size_t at = 0; at < asked.size(); ++at) {
    require(found[at].has_value() == (at % 3 == 0), "claim's answers are not in the order asked");
    require(!found[at] || found[at]->transport_id == std::to_string(at), "claim gave one id's record for another's");
  }
}

void sees_what_was_committed_before(const StoreUnderTest& store) {
  Scene scene(store);
  const auto early = scene.session();
  const bool side_by_side = !scene.store().traits().single_writer;
  if (side_by_side) {
    begin(*early);
    require(!claim(*early, id_of("other")), "claim found a record that was never committed");
  }
  scene.commit(record_of("a"));
  if (!side_by_side) begin(*early);
  require(claim(*early, id_of("a")).has_value(), "claim missed a record that was committed before it");
}

void the_second_loses(const StoreUnderTest& store) {
  Scene scene(store);
  const auto first = scene.session();
  const auto other_process = scene.database().open();
  const auto second = open_sql_session(*other_process);
  must(apply_blindly(*first, "a", record_of("a")), "the first transaction");
  auto late = record_of("a");
  late.transport_id = "late";
  const auto error = must_fail(apply_blindly(*second, "a", late), "the second transaction to record an id");
  require(error.code == ErrorCode::lost_race && error.remedy == Remedy::reread, "who comes second has lost the race");
  require(error.certainty == Certainty::not_applied, "a lost race is not applied");
  require(scene.effects("a") == 1, "the loser's effect was kept");
  require(scene.find(id_of("a"))->transport_id == "transport-1", "the loser's record replaced the winner's");
  begin(*second);
  require(claim(*second, id_of("a")).has_value(), "after a lost race the claim does not find the winner's record");
}

/// Holds an uncommitted record of "a" while another process tries the same, then ends it. True where the other won.
bool race(Scene& scene, bool holder_commits) {
  const auto holder = scene.session();
  begin(*holder);
  must(add_effect(*holder, "a"), "execute");
  must(record_now(*holder, record_of("a")), "record");
  auto other = std::async(std::launch::async, [&] {
    const auto process = scene.database().open();
    const auto session = open_sql_session(*process);
    return apply_blindly(*session, "a", record_of("a"));
  });
  holder_commits ? commit(*holder) : holder->rollback();
  const auto result = other.get();
  if (result) return true;
  const auto& error = result.error();
  const bool lost = error.code == ErrorCode::lost_race && error.remedy == Remedy::reread;
  const bool late = error.code == ErrorCode::lock_timeout && error.remedy == Remedy::retry_later;
  require(lost || late, "a race ends with lost_race or lock_timeout, not with: " + error.message);
  require(error.certainty == Certainty::not_applied, "who loses a race has applied nothing");
  require(holder_commits || late, "lost a race against a transaction that was rolled back");
  return false;
}

void one_of_two_at_once_commits(const StoreUnderTest& store) {
  Scene scene(store);
  require(!race(scene, true), "two transactions that record one id both committed");
  require(scene.effects("a") == 1, "two transactions that record one id left another number of effects than one");
}

void a_rolled_back_record_frees_its_id(const StoreUnderTest& store) {
  Scene scene(store);
  const bool won = race(scene, false);
  require(scene.effects("a") == (won ? 1 : 0), "a rollback of one and a commit of the other left the wrong effects");
  const auto session = scene.session();
  const auto again = apply_blindly(*session, "a", record_of("a"));
  require(again.has_value() != won, "an id is free exactly while nobody has committed it");
  require(scene.effects("a") == 1, "the effects are not one");
}

void a_held_id_is_not_waited_for_for_ever(const StoreUnderTest& store) {
  Scene scene(store);
  const auto holder = scene.session();
  begin(*holder);
  must(record_now(*holder, record_of("a")), "record");
  const auto other = scene.session();
  const auto error = must_fail(apply_blindly(*other, "a", record_of("a")), "recording an id that another one holds");
  require(error.code == ErrorCode::lock_timeout && error.remedy == Remedy::retry_later &&
              error.certainty == Certainty::not_applied,
          "past the lock timeout a transaction fails with lock_timeout, to be retried later");
  commit(*holder);
  require(scene.effects("a") == 0, "a transaction past its lock timeout left an effect");
}

/// One process that delivers every message until each has had its effect, by whomever. The number that it applied.
int deliver_all(TestDatabase& database, const std::vector<RecordId>& messages) {
  constexpr int attempts_max = 10'000;
  const auto store = database.open();
  const auto session = open_sql_session(*store);
  int applied = 0;
  int attempts = 0;
  const auto settled = [&](const RecordId& id) {
    if (!session->begin()) return false;
    const auto found = session->claim({&id, 1});
    if (!found) return false;
    if (found->front()) return session->rollback(), true;
    const auto record = record_of(id.key.bytes());
    const bool committed = add_effect(*session, id.key.bytes()) && session->record({&record, 1}) && session->commit();
    applied += committed;
    return committed;
  };
  for (const RecordId& id : messages)
    while (!settled(id)) {
      session->rollback();
      require(++attempts < attempts_max, "a message could not be settled, however often it was tried");
    }
  return applied;
}

void many_at_once_have_one_effect(const StoreUnderTest& store) {
  Scene scene(store);
  const auto messages = ids(12);
  std::vector<std::future<int>> processes;
  for (int number = 0; number < 8; ++number)
    processes.push_back(std::async(std::launch::async, [&] { return deliver_all(scene.database(), messages); }));
  int applied = 0;
  for (auto& process : processes) applied += process.get();
  require(applied == static_cast<int>(messages.size()),
          "processes together committed another number than the messages");
  for (const RecordId& id : messages)
    require(scene.effects(id.key.bytes()) == 1, "a message delivered by eight processes had another number of effects");
}

/// All different as bytes; each pair is the same to some collation, trimming, normalising or C string.
std::vector<std::string> look_alikes() {
  using namespace std::string_literals;
  return {"ab",
          "AB",
          "Ab",
          "ab ",
          " ab",
          "ab\t",
          "ab\n",
          "ab\0"s,
          "ab\0c"s,
          "\0"s,
          "\0\0"s,
          "1",
          "01",
          "1.0",
          "\u00e9",
          "e\u0301",
          "\xe9",
          "\u00c9",
          "\u00df",
          "ss",
          "\u212b",
          "\u00c5",
          "i",
          "I",
          "\u0130",
          "\u0131",
          "null",
          "NULL",
          "'",
          "\"",
          "\\",
          "\\x00",
          "%",
          "_",
          "\xff",
          "\xc0\x80",
          "\xed\xa0\x80",
          std::string(1024, 'a'),
          std::string(1023, 'a'),
          std::string(1023, 'a') + "b",
          std::string(1023, 'a') + "A",
          std::string(1024, '\xff')};
}

void keys_are_bytes(const StoreUnderTest& store) {
  Scene scene(store);
  const auto session = scene.session();
  const auto keys = look_alikes();
  for (std::size_t number = 0; number < keys.size(); ++number) {
    auto record = record_of(keys[number]);
    record.transport_id = std::to_string(number);
    begin(*session);
    require(!claim(*session, id_of(record)), "key " + std::to_string(number) + " was taken for one before it");
    must(record_now(*session, record), "record of key " + std::to_string(number));
    commit(*session);
  }
  begin(*session);
  for (std::size_t number = 0; number < keys.size(); ++number) {
    const auto found = claim(*session, id_of(keys[number]));
    require(found && found->transport_id == std::to_string(number), "a key found another one's record, or none");
    require(found->key.bytes() == keys[number], "a key came back as other bytes");
  }
}

void scopes_are_apart(const StoreUnderTest& store) {
  using namespace std::string_literals;
  Scene scene(store);
  const std::vector<Scope> scopes{{"h", ""},       {"H", ""},
                                  {"h", "p"},      {"h", "P"},
                                  {"h", "p "},     {"hp", ""},
                                  {"h2", ""},      {"h", "2"},
                                  {"h", "p\0"s},   {"h", "\0p"s},
                                  {"p", "h"},      {"h", "\xe9"},
                                  {"h", "\u00e9"}, {"h", std::string(300, 'p')}};
  const auto session = scene.session();
  for (std::size_t number = 0; number < scopes.size(); ++number) {
    auto record = record_of("same");
    record.scope = scopes[number];
    record.transport_id = std::to_string(number);
    begin(*session);
    require(!claim(*session, id_of(record)), "one scope's or principal's record was found in another's");
    must(record_now(*session, record), "record of one key in another scope");
    commit(*session);
  }
  begin(*session);
  for (std::size_t number = 0; number < scopes.size(); ++number) {
    const auto found = claim(*session, {scopes[number], id_of("same").key});
    require(found && found->transport_id == std::to_string(number) && found->scope == scopes[number],
            "one scope's or principal's record was given to another");
  }
}

constexpr std::array promises{
    Promise{2, "claim_answers_in_the_order_asked", answers_in_order},
    Promise{2, "claim_sees_what_was_committed_before_it", sees_what_was_committed_before},
    Promise{3, "the_second_to_record_an_id_loses", the_second_loses},
    Promise{3, "of_two_at_once_one_commits", one_of_two_at_once_commits},
    Promise{3, "a_rolled_back_record_frees_its_id", a_rolled_back_record_frees_its_id},
    Promise{3, "a_held_id_is_not_waited_for_for_ever", a_held_id_is_not_waited_for_for_ever},
    Promise{3, "many_at_once_have_one_effect_each", many_at_once_have_one_effect},
    Promise{4, "keys_are_compared_as_bytes", keys_are_bytes},
    Promise{4, "scopes_and_principals_are_apart", scopes_are_apart},
};

}  // namespace

std::span<const Promise> claim_promises() { return promises; }

}  // namespace semel::testing
