// Promises 20 to 22, and what operators see and do of publications (24): kept whole, sent in order, leased by a token.
#include <algorithm>
#include <array>
#include <future>
#include <map>
#include <mutex>

#include "testing/store_scene.hpp"

namespace semel::testing {
namespace {

using namespace std::chrono_literals;
using namespace std::string_literals;

const std::array targets{"mails"s};
constexpr std::size_t many = 1000;

OutboxMessage message(int ordinal, const std::string& order_key = "") {
  auto made = message_of("a", ordinal);
  made.publication.order_key = order_key;
  return made;
}

void publish(Session& session, std::span<const OutboxMessage> messages) {
  must(session.outbox().publish(messages), "publish");
}

void publish(Scene& scene, const std::vector<OutboxMessage>& messages) {
  in_one_go(*scene.session(), [&](Session& session) { publish(session, messages); });
}

std::vector<OutboxMessage> take(Session& session, std::size_t count_max = many, std::chrono::milliseconds lease = 1h) {
  return in_one_go(session, [&](Session& one) { return must(one.outbox().take(targets, count_max, lease), "take"); });
}

std::vector<OutboxMessage> take(Scene& scene, std::size_t count_max = many, std::chrono::milliseconds lease = 1h) {
  return take(*scene.session(), count_max, lease);
}

void finish(Scene& scene, const OutboxResult& result) {
  in_one_go(*scene.session(), [&](Session& session) { must(session.outbox().finish({&result, 1}), "finish"); });
}

OutboxResult sent(const OutboxMessage& taken) { return {.id = taken.id, .attempt = taken.attempt, .sent = true}; }

OutboxResult unsent(const OutboxMessage& taken, std::chrono::milliseconds due_in) {
  return {.id = taken.id, .attempt = taken.attempt, .due_in = due_in, .error = "no answer"};
}

std::vector<std::string> bodies(const std::vector<OutboxMessage>& messages) {
  std::vector<std::string> all;
  for (const auto& one : messages) all.push_back(one.publication.body);
  return all;
}

using Bodies = std::vector<std::string>;

std::vector<OutboxMessage> list(Scene& scene, const OutboxQuery& query = {}) {
  return must(scene.database().open()->outbox(query), "outbox");
}

void require_same(const OutboxMessage& given, const OutboxMessage& kept) {
  require(kept.id == given.id && kept.record == given.record, "a message came back under another id or record");
  require(kept.publication.to == given.publication.to && kept.publication.order_key == given.publication.order_key,
          "a message came back with another target or order key");
  require(kept.publication.body == given.publication.body, "a message's body came back as other bytes");
  require(kept.publication.attributes.entries() == given.publication.attributes.entries(),
          "a message's attributes came back as other bytes");
}

void keeps_every_byte(const StoreUnderTest& store) {
  Scene scene(store);
  auto full = message_of("k\0\xff"s);
  full.record.scope = {"h", "p\0\xe9"s};
  full.publication = {.to = "mails",
                      .body = "{\"a\":\0\xff}\r\n\0"s,
                      .attributes = {{"x", "\0\xff"s}, {"x", ""}, {"", "no name"}},
                      .order_key = "\0order\xff"s};
  auto empty = message_of("empty");
  empty.publication.body.clear();
  const std::vector given{full, empty};
  publish(scene, given);
  const auto listed = list(scene);
  const auto taken = take(scene);
  require(listed.size() == 2 && taken.size() == 2, "two messages that were published are not two");
  for (std::size_t at = 0; at < given.size(); ++at) {
    require_same(given[at], listed[at]);
    require_same(given[at], taken[at]);
    require(listed[at].attempt == 0 && listed[at].failures == 0 && listed[at].last_error.empty() && !listed[at].held,
            "a new message has been tried, or is held");
    require(taken[at].attempt == 1, "a message that was taken for the first time is not at its first attempt");
    require(taken[at].published_at > std::chrono::system_clock::time_point(), "a message does not say when it came");
  }
}

void is_of_the_transaction(const StoreUnderTest& store) {
  Scene scene(store);
  const auto session = scene.session();
  const std::array one{message(1)};
  begin(*session);
  publish(*session, one);
  must(session->synchronise(), "synchronise");
  require(list(scene).empty(), "a message was seen from outside before its commit");
  session->rollback();
  require(list(scene).empty() && take(scene).empty(), "a message was kept through a rollback");
}

void a_taken_id_is_a_lost_race(const StoreUnderTest& store) {
  Scene scene(store);
  for (const bool queued : {false, true}) {
    auto first = message(queued ? 1 : 2);
    first.queued = queued;
    publish(scene, {first});
    const auto session = scene.session();
    begin(*session);
    auto published = session->outbox().publish({&first, 1});
    if (published) published = session->synchronise();
    const auto error = must_fail(published, "publishing an id that is there");
    require(error.code == ErrorCode::lost_race && error.remedy == Remedy::reread &&
                error.certainty == Certainty::not_applied,
            "a message's id that is there already is a lost race, to be read again, and not applied");
    must_fail(session->commit(), "commit after a lost race");
  }
  require(list(scene).size() == 1, "a message was published twice");
}

void takes_in_the_order_published(const StoreUnderTest& store) {
  Scene scene(store);
  std::vector<OutboxMessage> messages;
  for (int ordinal = 1; ordinal <= 30; ++ordinal) messages.push_back(message(ordinal, ordinal % 2 ? "k" : ""));
  publish(scene, {messages.begin(), messages.begin() + 20});
  publish(scene, {messages.begin() + 20, messages.end()});
  require(bodies(list(scene)) == bodies(messages), "the outbox is not listed in the order published");
  require(take(scene, 0).empty(), "take gives more than it was asked for");
  const auto first = take(scene, 7);
  require(bodies(first) == bodies({messages.begin(), messages.begin() + 7}),
          "take does not give the oldest, in the order published, or more than it was asked for");
  for (const auto& one : first) finish(scene, sent(one));
  require(bodies(take(scene)) == bodies({messages.begin() + 7, messages.end()}),
          "take does not give the rest in the order published");
}

void takes_for_the_targets_asked_for(const StoreUnderTest& store) {
  Scene scene(store);
  auto other = message(2);
  other.publication.to = "Mails";
  publish(scene, {message(1), other});
  require(bodies(take(scene)) == Bodies{"a-1"}, "take gives messages to a target that was not asked for");
  const auto session = scene.session();
  begin(*session);
  require(must(session->outbox().take({}, many, 1h), "take").empty(), "take gives messages where no target was asked");
  const std::array both{"mails"s, "Mails"s};
  require(bodies(must(session->outbox().take(both, many, 1h), "take")) == Bodies{"a-2"},
          "take does not give all targets asked for");
}

void a_lease_keeps_others_away(const StoreUnderTest& store) {
  Scene scene(store);
  publish(scene, {message(1)});
  const auto first = take(scene);
  require(first.size() == 1, "take does not give a message that is due");
  require(take(scene).empty(), "a message was given to two while its lease runs");
  finish(scene, unsent(first.front(), 0ms));
  const auto second = take(scene, many, 0ms);
  require(second.size() == 1 && second.front().attempt > first.front().attempt,
          "a message that was taken again has no higher attempt");
  const auto third = take(scene);
  require(third.size() == 1, "a message stayed taken when its lease had run out");
  require(third.front().attempt > second.front().attempt,
          "a message whose lease ran out was taken again with no higher attempt");
}

void a_lease_that_is_rolled_back_is_none(const StoreUnderTest& store) {
  Scene scene(store);
  publish(scene, {message(1)});
  const auto session = scene.session();
  begin(*session);
  require(must(session->outbox().take(targets, many, 1h), "take").size() == 1, "take does not give what is due");
  session->rollback();
  require(take(scene).size() == 1, "a lease outlived the rollback of its transaction");
}

/// What lies before messages that went out already: it waited, or was committed later.
void finds_what_lies_behind(const StoreUnderTest& store) {
  Scene scene(store);
  const auto session = scene.session();
  publish(scene, {message(1), message(2)});
  const auto first = take(*session);
  require(first.size() == 2, "take does not give what is due");
  finish(scene, sent(first[1]));
  finish(scene, unsent(first[0], 0ms));
  const auto again = take(*session);
  require(bodies(again) == Bodies{"a-1"}, "take misses a message behind one that was sent");
  finish(scene, sent(again[0]));
  if (scene.store().traits().single_writer) return;
  const auto slow = scene.session();
  const std::array early{message(3)};
  begin(*slow);
  publish(*slow, early);
  must(slow->synchronise(), "synchronise");
  publish(scene, {message(4)});
  const auto seen = take(*session);
  require(bodies(seen) == Bodies{"a-4"}, "take gives what is not committed, or waits for it");
  finish(scene, sent(seen[0]));
  commit(*slow);
  require(bodies(take(*session)) == Bodies{"a-3"}, "take misses a message that was committed after a later one");
}

void what_waits_holds_back_its_key(const StoreUnderTest& store) {
  Scene scene(store);
  publish(scene, {message(1, "k"), message(2, "k"), message(3, "other"), message(4), message(5, "k")});
  auto first = take(scene, 1);
  require(bodies(first) == Bodies{"a-1"}, "take does not begin with the oldest");
  auto rest = take(scene);
  require(bodies(rest) == Bodies{"a-3", "a-4"}, "what is under way does not hold back its key, or holds back another");
  finish(scene, unsent(first[0], 1h));
  require(take(scene).empty(), "what waits to be tried again does not hold back its key");
  finish(scene, {.id = first[0].id, .attempt = first[0].attempt, .error = "no", .hold = true});
  require(take(scene).empty(), "what is held does not hold back its key");
  require(must(scene.store().release(first[0].id), "release"), "a held message was not released");
  first = take(scene);
  require(bodies(first) == Bodies{"a-1", "a-2", "a-5"}, "what is ready in one key does not go out together");
  finish(scene, sent(first[0]));
  finish(scene, unsent(first[1], 1h));
  finish(scene, unsent(first[2], 0ms));
  require(take(scene).empty(), "a message was given before its predecessor, which waits, was sent");
  finish(scene, sent(first[1]));
  require(bodies(take(scene)) == Bodies{"a-5"}, "a message whose predecessors are sent is still held back");
}

void a_target_holds_back_its_own(const StoreUnderTest& store) {
  Scene scene(store);
  auto other = message(2, "k");
  other.publication.to = "letters";
  publish(scene, {other, message(1, "k")});
  require(bodies(take(scene)) == Bodies{"a-1"}, "one target's message holds back another's of the same order key");
}

/// Takes, sends and finishes until nothing is left; the bodies in the order sent, in `log`.
void relay(TestDatabase& database, std::size_t expected, std::vector<std::string>& log, std::mutex& mutex) {
  const auto store = database.open();
  const auto session = open_sql_session(*store);
  for (int attempts = 0; attempts < 2'000; ++attempts) {
    auto done = session->begin();
    std::vector<OutboxResult> results;
    if (done) {
      const auto taken = session->outbox().take(targets, 3, 1h);
      done = taken ? session->commit() : Result<void>(taken.error());
      if (done)
        for (const auto& one : *taken) {
          const std::lock_guard lock(mutex);
          log.push_back(one.publication.body);
          results.push_back(sent(one));
        }
    }
    if (!done) session->rollback();
    while (!results.empty()) {
      done = session->begin();
      if (done) done = session->outbox().finish(results);
      if (done) done = session->commit();
      if (done) break;
      session->rollback();
    }
    const std::lock_guard lock(mutex);
    if (log.size() >= expected) return;
  }
  throw Broken("two relays did not come to an end");
}

void two_relays_keep_the_order(const StoreUnderTest& store) {
  Scene scene(store);
  std::vector<OutboxMessage> messages;
  for (int ordinal = 1; ordinal <= 40; ++ordinal)
    messages.push_back(message(ordinal, "k" + std::to_string(ordinal % 3)));
  publish(scene, messages);
  std::vector<std::string> log;
  std::mutex mutex;
  std::vector<std::future<void>> relays;
  for (int number = 0; number < 3; ++number)
    relays.push_back(std::async(std::launch::async, [&] { relay(scene.database(), messages.size(), log, mutex); }));
  for (auto& one : relays) one.get();
  require(log.size() == messages.size(), "relays side by side sent another number of messages than there were");
  std::map<int, int> last;
  for (const auto& body : log) {
    const int ordinal = std::stoi(body.substr(2));
    require(last[ordinal % 3] < ordinal, "relays side by side sent messages of one key out of order, or twice");
    last[ordinal % 3] = ordinal;
  }
}

void finish_needs_the_current_attempt(const StoreUnderTest& store) {
  Scene scene(store);
  publish(scene, {message(1)});
  const auto first = take(scene, many, 0ms).at(0);
  const auto second = take(scene).at(0);
  finish(scene, sent(first));
  finish(scene, unsent(first, 0ms));
  finish(scene, {.id = first.id, .attempt = first.attempt, .error = "x", .hold = true});
  const auto listed = list(scene);
  require(listed.size() == 1, "an attempt that is over took out a message");
  require(listed[0].failures == 0 && listed[0].last_error.empty() && !listed[0].held && take(scene).empty(),
          "an attempt that is over changed a message");
  finish(scene, sent(second));
  require(list(scene).empty(), "a message that was sent did not leave");
  finish(scene, sent(second));
}

void a_failed_message_waits(const StoreUnderTest& store) {
  Scene scene(store);
  publish(scene, {message(1)});
  finish(scene, unsent(take(scene).at(0), 0ms));
  auto again = take(scene).at(0);
  require(again.failures == 1 && again.last_error == "no answer", "a failure was not counted, or lost its reason");
  auto failed = unsent(again, 1h);
  failed.error = "\0gone\xff"s;
  finish(scene, failed);
  require(take(scene).empty(), "a message was given before its pause was over");
  auto listed = list(scene).at(0);
  require(listed.failures == 2 && listed.last_error == failed.error, "a failure was not counted, or lost its reason");
  finish(scene, {.id = again.id, .attempt = again.attempt});
  listed = list(scene).at(0);
  require(listed.failures == 2 && listed.last_error == failed.error,
          "a message that was given back untried counts as failed");
  require(take(scene).size() == 1, "a message that was given back is not given out again");
}

void a_held_message_waits_for_an_operator(const StoreUnderTest& store) {
  Scene scene(store);
  publish(scene, {message(1), message(2), message(3)});
  const auto taken = take(scene);
  require(!must(scene.store().release(taken[0].id), "release") && !must(scene.store().drop(taken[0].id), "drop"),
          "a message that is not held was released or dropped");
  for (const auto& one : {taken[0], taken[1]})
    finish(scene, {.id = one.id, .attempt = one.attempt, .error = "no", .hold = true});
  require(take(scene).empty(), "a held message was given out");
  const auto held = list(scene, {.held_only = true});
  require(bodies(held) == Bodies{"a-1", "a-2"} && held[0].held, "held messages are not listed as such");
  require(must(scene.store().release(taken[0].id), "release"), "a held message was not released");
  require(!must(scene.store().release(taken[0].id), "release"), "a message was released twice");
  require(bodies(take(scene)) == Bodies{"a-1"}, "a released message is not given out at once");
  require(must(scene.store().drop(taken[1].id), "drop"), "a held message was not dropped");
  require(!must(scene.store().drop(taken[1].id), "drop"), "a message was dropped twice");
  require(!must(scene.store().drop("no id"), "drop"), "a message was dropped that is not there");
  require(bodies(list(scene)) == Bodies{"a-1", "a-3"}, "a dropped message is still there, or another one went");
}

void pages_and_counts(const StoreUnderTest& store) {
  Scene scene(store);
  auto counts = must(scene.store().outbox_counts(), "outbox_counts");
  require(counts.waiting == 0 && counts.held == 0 && !counts.oldest, "messages are counted where there are none");
  std::vector<OutboxMessage> messages;
  for (int ordinal = 1; ordinal <= 7; ++ordinal) messages.push_back(message(ordinal));
  messages[2].publication.to = "letters";
  publish(scene, messages);
  for (const std::size_t size : {1u, 3u, 7u, 8u}) {
    OutboxQuery query{.count_max = size};
    std::vector<OutboxMessage> all;
    for (bool more = true; more;) {
      const auto page = list(scene, query);
      require(page.size() <= size, "a page is longer than it was asked for");
      all.insert(all.end(), page.begin(), page.end());
      require(all.size() <= many, "pages have no end");
      more = page.size() == size;
      if (more) query.after_id = page.back().id;
    }
    require(bodies(all) == bodies(messages), "the outbox is not listed oldest first, each once");
  }
  require(bodies(list(scene, {.to = "letters"})) == Bodies{"a-3"}, "the outbox is not listed by target");
  const auto taken = take(scene, 1).at(0);
  finish(scene, {.id = taken.id, .attempt = taken.attempt, .error = "no", .hold = true});
  counts = must(scene.store().outbox_counts(), "outbox_counts");
  require(counts.waiting == 6 && counts.held == 1 && counts.oldest, "messages are not counted once each");
}

constexpr std::array promises{
    Promise{20, "a_message_is_kept_byte_for_byte", keeps_every_byte},
    Promise{20, "a_message_is_of_its_transaction", is_of_the_transaction},
    Promise{20, "a_message_that_is_there_is_a_lost_race", a_taken_id_is_a_lost_race},
    Promise{21, "messages_go_in_the_order_published", takes_in_the_order_published},
    Promise{21, "messages_go_to_the_targets_asked_for", takes_for_the_targets_asked_for},
    Promise{21, "a_lease_keeps_others_away_until_it_has_run_out", a_lease_keeps_others_away},
    Promise{21, "a_lease_goes_with_its_transaction", a_lease_that_is_rolled_back_is_none},
    Promise{21, "what_lies_behind_is_found", finds_what_lies_behind},
    Promise{21, "what_waits_holds_back_its_order_key", what_waits_holds_back_its_key},
    Promise{21, "a_target_holds_back_its_own_only", a_target_holds_back_its_own},
    Promise{21, "relays_side_by_side_keep_the_order", two_relays_keep_the_order},
    Promise{22, "finish_needs_the_current_attempt", finish_needs_the_current_attempt},
    Promise{22, "a_message_that_was_not_sent_waits", a_failed_message_waits},
    Promise{24, "a_held_message_is_released_or_dropped_once", a_held_message_waits_for_an_operator},
    Promise{24, "the_outbox_is_listed_and_counted_once", pages_and_counts},
};

}  // namespace

std::span<const Promise> outbox_promises() { return promises; }

}  // namespace semel::testing
