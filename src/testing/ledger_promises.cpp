// Promises 14 to 19, and what operators see of intents (24): kept whole, given to one at a time, changed by their
// token, and gone no sooner than their record.
#include <algorithm>
#include <array>
#include <future>
#include <set>

#include "testing/store_scene.hpp"

namespace semel::testing {
namespace {

using namespace std::chrono_literals;
using namespace std::string_literals;
using State = IntentState;

const std::array effects{"charge"s};
constexpr std::size_t many = 1000;

/// Records "a" and intends its first call, in a state of the caller's choice.
Intent intend(Scene& scene, IntentStatus status = {}, std::chrono::milliseconds lease = 1h) {
  auto intent = intent_of("a");
  intent.status = status;
  intent.lease = lease;
  in_one_go(*scene.session(), [&](Session& session) {
    const auto record = open_record_of("a");
    must(session.record({&record, 1}), "record");
    must(session.ledger().intend({&intent, 1}), "intend");
  });
  return intent;
}

std::optional<Intent> find(Scene& scene, const IntentId& id) {
  const auto session = scene.session();
  begin(*session);
  auto found = must(session->ledger().find(id), "find");
  session->rollback();
  return found;
}

Intent found(Scene& scene, const Intent& intent) {
  auto there = find(scene, intent.id);
  require(there.has_value(), "an intent is not found by its id");
  return std::move(*there);
}

std::vector<IntentEvent> history(Scene& scene, const Intent& intent) {
  return must(scene.database().open()->intent_history(intent.id), "intent_history");
}

std::vector<std::string> ids_of(const std::vector<Intent>& intents) {
  std::vector<std::string> ids;
  for (const auto& intent : intents) ids.push_back(intent.id.hex);
  return ids;
}

std::vector<std::string> take(Scene& scene, std::size_t count_max = many) {
  const auto session = scene.session();
  begin(*session);
  auto taken = ids_of(must(session->ledger().take(effects, count_max), "take"));
  session->rollback();
  return taken;
}

bool apply(Scene& scene, const IntentChange& wanted) {
  return in_one_go(*scene.session(), [&](Session& session) { return change(session, wanted); });
}

const CallOutcome outcome{.reference = "ch_1\0\xff"s,
                          .answer = {.status = 402, .headers = {{"x", "\0\xff"s}}, .body = "\0no\xff"s},
                          .detail = "declined \xe9"};
const CallOutcome other_outcome{.reference = "ch_2", .answer = {.status = 200, .headers = {}, .body = "yes"}};

bool same(const std::optional<CallOutcome>& a, const std::optional<CallOutcome>& b) {
  if (!a || !b) return !a && !b;
  return a->reference == b->reference && a->detail == b->detail && a->answer.status == b->answer.status &&
         a->answer.body == b->answer.body && a->answer.headers.entries() == b->answer.headers.entries();
}

void require_same(const Intent& given, const Intent& kept) {
  require(kept.id == given.id && kept.record == given.record, "an intent came back under another id or record");
  require(kept.parent == given.parent && kept.compensates == given.compensates && kept.step == given.step,
          "an intent came back in another place of its chain");
  require(kept.effect == given.effect && kept.provider == given.provider, "an intent came back with another effect");
  require(kept.reference == given.reference && kept.idempotency_key == given.idempotency_key,
          "an intent came back with another reference or idempotency key");
  require(kept.request == given.request, "an intent's request came back as other bytes");
  require(kept.compensation == given.compensation, "an intent came back with another compensation");
  const auto& was = given.message;
  const auto& is = kept.message;
  require(is.body == was.body && is.attributes.entries() == was.attributes.entries(),
          "an intent's message came back as other bytes");
  require(is.source == was.source && is.sender == was.sender && is.sender_verified == was.sender_verified &&
              is.transport_id == was.transport_id,
          "an intent's message came back with another origin");
  require(kept.status == given.status && kept.failures == given.failures, "an intent came back in another status");
  require(same(kept.outcome, given.outcome), "an intent came back with another outcome");
}

/// With something in every field, in any bytes.
Intent full_intent() {
  auto intent = intent_of("a\0\xff"s);
  intent.record.scope = {"h", "p\0\xe9"s};
  intent.parent = derive_intent_id(intent.record, std::nullopt, 8);
  intent.compensates = derive_intent_id(intent.record, std::nullopt, 9);
  intent.step = 7;
  intent.effect = "charge \u00e9";
  intent.provider = "bank";
  intent.reference = "order \0\xff"s;
  intent.idempotency_key = "\0key\xe9"s;
  intent.request = "{\"a\":\0\xff}\r\n\0"s;
  intent.compensation = Compensation{.effect = "refund", .request = "\0\xff"s};
  intent.message = {.source = "hooks",
                    .sender = Sender::caller,
                    .sender_verified = true,
                    .transport_id = "t\0\xff"s,
                    .body = "body\0\xff"s,
                    .attributes = {{"x", "\0\xff"s}, {"x", ""}, {"", "no name"}}};
  intent.status = {.state = State::succeeded, .attempt = 3, .doubtful = true, .settled = true, .flagged = true};
  intent.outcome = outcome;
  intent.failures = 5;
  return intent;
}

void keeps_every_byte(const StoreUnderTest& store) {
  Scene scene(store);
  std::vector<Intent> given{full_intent(), intent_of("b")};
  for (const State state : all_intent_states) {
    given.push_back(intent_of(std::string(intent_state_name(state))));
    given.back().status.state = state;
  }
  in_one_go(*scene.session(), [&](Session& session) { must(session.ledger().intend(given), "intend"); });
  for (const auto& intent : given) {
    require_same(intent, found(scene, intent));
    const auto session = scene.session();
    begin(*session);
    const auto of_record = must(session->ledger().intents_of(intent.record), "intents_of");
    session->rollback();
    require(of_record.size() == 1, "intents_of does not give a record's intents, and those alone");
    require_same(intent, of_record.front());
  }
  require(!find(scene, {"00000000000000000000000000000000"}) && !find(scene, {"no id"}),
          "find gives an intent for an id that none has");
}

void is_of_the_transaction(const StoreUnderTest& store) {
  Scene scene(store);
  const auto session = scene.session();
  const auto intent = intent_of("a");
  begin(*session);
  must(session->ledger().intend({&intent, 1}), "intend");
  must(session->synchronise(), "synchronise");
  require(must(scene.store().intents({}), "intents").empty(), "an intent was seen from outside before its commit");
  session->rollback();
  require(!find(scene, intent.id), "an intent was kept through a rollback");
}

void a_taken_id_is_a_lost_race(const StoreUnderTest& store) {
  Scene scene(store);
  const auto intent = intend(scene);
  const auto session = scene.session();
  begin(*session);
  auto late = intent;
  late.request = "late";
  auto intended = session->ledger().intend({&late, 1});
  if (intended) intended = session->synchronise();
  const auto error = must_fail(intended, "intending an id that is there");
  require(
      error.code == ErrorCode::lost_race && error.remedy == Remedy::reread && error.certainty == Certainty::not_applied,
      "an intent's id that is there already is a lost race, to be read again, and not applied");
  must_fail(session->commit(), "commit after a lost race");
  session->rollback();
  require(found(scene, intent).request.empty(), "an intent was overwritten");
}

struct Need {
  IntentStatus status;
  std::chrono::milliseconds wait;  ///< the lease of a started one, else the time until it is due
  bool needs;
};

/// Each state, due and not due, settled and not.
const std::array needs{
    Need{{.state = State::pending}, 0ms, true},
    Need{{.state = State::pending}, 1h, false},
    Need{{.state = State::pending, .doubtful = true}, 0ms, true},
    Need{{.state = State::started}, 0ms, true},
    Need{{.state = State::started}, 1h, false},
    Need{{.state = State::succeeded}, 0ms, true},
    Need{{.state = State::succeeded}, 1h, false},
    Need{{.state = State::succeeded, .settled = true}, 0ms, false},
    Need{{.state = State::failed}, 0ms, true},
    Need{{.state = State::failed, .settled = true}, 0ms, false},
    Need{{.state = State::failed, .settled = true, .flagged = true}, 0ms, false},
    Need{{.state = State::abandoned}, 0ms, true},
    Need{{.state = State::abandoned, .settled = true}, 0ms, false},
    Need{{.state = State::ambiguous}, 0ms, false},
    Need{{.state = State::ambiguous, .flagged = true}, 0ms, false},
};

void takes_what_needs_something(const StoreUnderTest& store) {
  Scene scene(store);
  std::set<std::string> expected;
  in_one_go(*scene.session(), [&](Session& session) {
    for (std::size_t number = 0; number < needs.size(); ++number) {
      const Need& need = needs[number];
      const auto intent = intent_of("key-" + std::to_string(number));
      must(session.ledger().intend({&intent, 1}), "intend");
      auto wanted = change_of(intent, need.status);
      wanted.lease = need.wait;
      wanted.due_in = need.wait;
      require(change(session, wanted), "a change did not apply to an intent that was as expected");
      if (need.needs) expected.insert(intent.id.hex);
    }
  });
  const auto taken = take(scene);
  require(taken.size() == expected.size(), "take gives another number of intents than those that need something");
  for (const auto& id : taken) require(expected.contains(id), "take gives an intent that needs nothing");
  const auto session = scene.session();
  begin(*session);
  for (const auto& intent : must(session->ledger().take(effects, many), "take"))
    require(intent.lease_ran_out == (intent.status.state == State::started),
            "whether a lease ran out is not told as it is");
  commit(*session);
  require(take(scene) == taken, "take changes what it gives");
}

void intended_as_started_has_its_lease(const StoreUnderTest& store) {
  Scene scene(store);
  const auto intent = intend(scene, {.state = State::started, .attempt = 1}, 1h);
  require(take(scene).empty(), "take gives an intent that was intended as started, and whose lease runs");
  require(!found(scene, intent).lease_ran_out, "the lease of an intent that was intended as started has run out");
  require(found(scene, intent).since_started.has_value(), "an intent that was intended as started never started");
}

void takes_the_oldest_due_first(const StoreUnderTest& store) {
  Scene scene(store);
  std::vector<std::string> expected(4);
  in_one_go(*scene.session(), [&](Session& session) {
    constexpr std::array order{2, 0, 3, 1};
    for (const int place : order) {
      const auto intent = intent_of("a", place + 1);
      must(session.ledger().intend({&intent, 1}), "intend");
      auto wanted = change_of(intent, {});
      wanted.due_in = 1h * (place - 10);
      require(change(session, wanted), "a change did not apply");
      expected[static_cast<std::size_t>(place)] = intent.id.hex;
    }
  });
  require(take(scene) == expected, "take does not give the oldest due first");
  require(take(scene, 2) == std::vector(expected.begin(), expected.begin() + 2),
          "take gives more than it was asked for, or not the oldest");
  require(take(scene, 0).empty(), "take gives more than it was asked for");
}

void takes_the_effects_asked_for(const StoreUnderTest& store) {
  Scene scene(store);
  auto other = intent_of("a", 2);
  other.effect = "Charge";
  const std::array both{intent_of("a", 1), other};
  const auto session = scene.session();
  in_one_go(*session, [&](Session& one) { must(one.ledger().intend(both), "intend"); });
  require(take(scene) == std::vector{both[0].id.hex}, "take gives intents of an effect that was not asked for");
  begin(*session);
  require(must(session->ledger().take({}, many), "take").empty(), "take gives intents where no effect was asked for");
  const std::array names{"charge"s, "Charge"s};
  require(must(session->ledger().take(names, many), "take").size() == 2, "take does not give all effects asked for");
}

void passes_over_what_another_has(const StoreUnderTest& store) {
  Scene scene(store);
  if (scene.store().traits().single_writer) return;  // the other's transaction does not even begin
  const std::array both{intent_of("a", 1), intent_of("a", 2)};
  in_one_go(*scene.session(), [&](Session& session) { must(session.ledger().intend(both), "intend"); });
  const auto process = scene.database().open();
  const auto first = open_sql_session(*process);
  begin(*first);
  const auto mine = ids_of(must(first->ledger().take(effects, 1), "take"));
  const auto yours = take(scene);
  require(mine.size() == 1 && yours.size() == 1 && mine != yours, "an intent was given to two at once");
  first->rollback();
  require(take(scene).size() == 2, "an intent stayed taken after its taker's transaction");
}

void changes_only_what_is_expected(const StoreUnderTest& store) {
  Scene scene(store);
  auto intent = intend(scene);
  const IntentStatus started{.state = State::started, .attempt = 1};
  auto wanted = change_of(intent, started);
  wanted.expected_attempt = 1;
  require(!apply(scene, wanted), "a change applied that expected another attempt");
  wanted = change_of(intent, started);
  wanted.expected_states = {State::started, State::ambiguous};
  require(!apply(scene, wanted), "a change applied that expected another state");
  wanted.expected_states = {};
  require(!apply(scene, wanted), "a change applied that expected no state at all");
  wanted = change_of(intent, started);
  wanted.event = IntentEvent{.kind = "refused"};
  wanted.expected_attempt = 7;
  require(!apply(scene, wanted), "a change applied that expected another attempt");
  require(found(scene, intent).status == intent.status, "a change that did not apply changed something");
  require(history(scene, intent).empty(), "a change that did not apply left a line in the history");
  wanted = change_of(intent, started);
  wanted.id.hex = std::string(32, '0');
  require(!apply(scene, wanted), "a change of an intent that is not there applied");
  wanted = change_of(intent, started);
  wanted.expected_states = {State::ambiguous, State::pending};
  require(apply(scene, wanted), "a change did not apply to an intent that was as expected");
  require(found(scene, intent).status == started, "a change came back as another status");
  require(!apply(scene, wanted), "a change applied twice");
}

void answers_each_change(const StoreUnderTest& store) {
  Scene scene(store);
  std::vector<Intent> intents;
  for (int ordinal = 1; ordinal <= 20; ++ordinal) intents.push_back(intent_of("a", ordinal));
  std::vector<IntentChange> wanted;
  for (const auto& intent : intents) {
    wanted.push_back(change_of(intent, {.state = State::started, .attempt = 1}));
    wanted.back().expected_attempt = intent.step % 3 == 0 ? 4 : 0;
    wanted.back().failures = intent.step;
    wanted.back().event = IntentEvent{.kind = "started", .detail = std::to_string(intent.step)};
  }
  std::ranges::sort(wanted, {}, &IntentChange::id);
  const auto applied = in_one_go(*scene.session(), [&](Session& session) {
    must(session.ledger().intend(intents), "intend");
    return must(session.ledger().change(wanted), "change");
  });
  require(applied.size() == wanted.size(), "change gave another number of answers than it got changes");
  for (std::size_t at = 0; at < wanted.size(); ++at) {
    require(applied[at] == (wanted[at].expected_attempt == 0), "change's answers are not in the order of the changes");
    const auto there = find(scene, wanted[at].id);
    require(there && there->failures == (applied[at] ? wanted[at].failures : 0), "one intent's change went to another");
    require(history(scene, *there).size() == (applied[at] ? 1u : 0u), "one intent's event went to another");
  }
}

void changes_all_or_fails(const StoreUnderTest& store) {
  Scene scene(store);
  std::vector<Intent> intents;
  for (int ordinal = 1; ordinal <= 3; ++ordinal) intents.push_back(intent_of("a", ordinal));
  in_one_go(*scene.session(), [&](Session& session) { must(session.ledger().intend(intents), "intend"); });
  const auto change_all = [&](std::size_t count, int attempt) -> Result<void> {
    std::vector<IntentChange> wanted;
    for (std::size_t at = 0; at < count; ++at) {
      wanted.push_back(change_of(intents[at], {.state = State::started, .attempt = attempt}));
      wanted.back().event = IntentEvent{.kind = "started"};
    }
    std::ranges::sort(wanted, {}, &IntentChange::id);
    const auto session = scene.session();
    begin(*session);
    if (auto changed = session->ledger().change_all(wanted); !changed) return changed;
    return session->commit();
  };
  must(change_all(0, 1), "change_all of nothing");
  must(change_all(1, 1), "change_all");
  const auto refused = change_all(3, 2);  // the first one has moved on
  require(!refused, "change_all kept changes though one did not apply");
  require(refused.error().code == ErrorCode::lost_race && refused.error().remedy == Remedy::reread,
          "change_all failed with: " + refused.error().message);
  for (std::size_t at = 0; at < intents.size(); ++at) {
    require(found(scene, intents[at]).status.attempt == (at == 0 ? 1 : 0), "change_all kept a part of its changes");
    require(history(scene, intents[at]).size() == (at == 0 ? 1u : 0u), "change_all kept a part of its history");
  }
  intents.erase(intents.begin());
  must(change_all(2, 1), "change_all");
  for (const auto& intent : intents) require(found(scene, intent).status.attempt == 1, "change_all left one out");
}

void one_of_two_changes_applies(const StoreUnderTest& store) {
  Scene scene(store);
  const auto intent = intend(scene);
  const auto wanted = change_of(intent, {.state = State::started, .attempt = 1});
  const auto holder = scene.session();
  begin(*holder);
  require(change(*holder, wanted), "a change did not apply to an intent that was as expected");
  auto other = std::async(std::launch::async, [&]() -> Result<bool> {
    const auto process = scene.database().open();
    const auto session = open_sql_session(*process);
    if (auto begun = session->begin(); !begun) return begun.error();
    const auto applied = session->ledger().change({&wanted, 1});
    if (!applied) return applied.error();
    if (auto committed = session->commit(); !committed) return committed.error();
    return applied->front();
  });
  commit(*holder);
  const auto second = other.get();
  if (second)
    require(!*second, "two changes that expect the same attempt both applied");
  else
    require(second.error().code == ErrorCode::lock_timeout, "a change failed with: " + second.error().message);
  require(!apply(scene, wanted), "two changes that expect the same attempt both applied");
  require(found(scene, intent).status.attempt == 1, "an attempt was counted twice");
}

void keeps_what_a_change_does_not_name(const StoreUnderTest& store) {
  Scene scene(store);
  auto intent = intend(scene);
  auto wanted = change_of(intent, {.state = State::succeeded});
  wanted.outcome = outcome;
  wanted.compensation = Compensation{.effect = "refund", .request = "1"};
  require(apply(scene, wanted), "a change did not apply");
  intent = found(scene, intent);
  wanted = change_of(intent, {.state = State::succeeded, .settled = true});
  require(apply(scene, wanted), "a change did not apply");
  require(same(found(scene, intent).outcome, outcome), "a change that names no outcome lost the one that was there");
  require(found(scene, intent).compensation == intent.compensation,
          "a change that names no compensation lost the one that was there");
  wanted = change_of(found(scene, intent), {.state = State::failed});
  wanted.outcome = other_outcome;
  wanted.compensation = Compensation{.effect = "none"};
  require(apply(scene, wanted), "a change did not apply");
  require(same(found(scene, intent).outcome, other_outcome), "a change did not replace the outcome");
  require(found(scene, intent).compensation == wanted.compensation, "a change did not replace the compensation");
}

void remembers_since_when(const StoreUnderTest& store) {
  Scene scene(store);
  auto intent = intend(scene);
  const auto to = [&](IntentStatus status) {
    require(apply(scene, change_of(intent, status)), "a change did not apply");
    intent = found(scene, intent);
  };
  require(!found(scene, intent).since_started && !found(scene, intent).since_doubtful,
          "a new intent has started, or is doubtful");
  to({.state = State::started, .attempt = 1});
  require(intent.since_started && !intent.since_doubtful, "a started intent does not say since when");
  to({.state = State::pending, .attempt = 1});
  require(!intent.since_started, "what is pending again without doubt still counts from its first start");
  to({.state = State::started, .attempt = 2});
  to({.state = State::pending, .attempt = 2, .doubtful = true});
  require(intent.since_started && intent.since_doubtful, "a doubtful intent does not say since when");
  to({.state = State::started, .attempt = 3, .doubtful = true});
  require(intent.since_started && !intent.since_doubtful, "a new attempt is in doubt since the one before it");
  to({.state = State::started, .attempt = 3, .doubtful = true});
  require(intent.since_started && intent.since_doubtful, "an attempt that is asked about does not say since when");
  to({.state = State::succeeded, .attempt = 3});
  require(intent.since_started && !intent.since_doubtful, "an intent with an outcome is still doubtful");
  require(intent.created_at > std::chrono::system_clock::time_point() && intent.age >= *intent.since_started,
          "an intent is younger than its first attempt");
}

void renews_the_current_attempt(const StoreUnderTest& store) {
  Scene scene(store);
  auto intent = intend(scene, {.state = State::started, .attempt = 2}, 0ms);
  const auto renew = [&](int attempt) {
    const std::pair<IntentId, int> one{intent.id, attempt};
    const auto renewed = in_one_go(*scene.session(), [&](Session& s) {
      return must(s.ledger().renew({&one, 1}, 1h), "renew");
    });
    require(renewed.size() == 1, "renew gave another number of answers than it got attempts");
    return renewed.front();
  };
  require(!renew(1) && !renew(3), "another attempt's lease was prolonged");
  require(found(scene, intent).lease_ran_out, "another attempt's renewal prolonged the lease");
  require(renew(2), "the current attempt's lease was not prolonged");
  require(!found(scene, intent).lease_ran_out && take(scene).empty(), "a renewed lease has run out");
  require(apply(scene, change_of(intent, {.state = State::succeeded, .attempt = 2})), "a change did not apply");
  require(!renew(2), "the lease of an intent was prolonged that is not started");
  require(take(scene).size() == 1, "a renewal put off an intent that was not started");
}

void notes_in_every_state(const StoreUnderTest& store) {
  Scene scene(store);
  std::vector<Intent> intents;
  for (const State state : all_intent_states) {
    intents.push_back(intent_of("a", static_cast<int>(intents.size()) + 1));
    intents.back().status = {.state = state, .attempt = 4, .settled = !is_open(state)};
  }
  const IntentEvent late{
      .kind = "late", .attempt = 3, .by = "host-1\0\xff"s, .detail = "\0why\xff"s, .evidence = outcome};
  in_one_go(*scene.session(), [&](Session& session) {
    must(session.ledger().intend(intents), "intend");
    for (const auto& intent : intents) {
      must(session.ledger().note(intent.id, late), "note");
      must(session.ledger().note(intent.id, {.kind = "second"}), "note");
    }
  });
  for (const auto& intent : intents) {
    const auto lines = history(scene, intent);
    require(lines.size() == 2, "a note was lost, or went to another intent's history");
    const auto& line = lines.front();
    require(line.kind == late.kind && line.attempt == 3 && line.by == late.by && line.detail == late.detail &&
                same(line.evidence, late.evidence),
            "a note came back as other bytes");
    require(line.at > std::chrono::system_clock::time_point(), "a note has no time");
    require(lines.back().kind == "second" && !lines.back().evidence, "notes are not in the order of noting");
    require_same(intent, found(scene, intent));
  }
}

struct Refreshed {
  std::vector<IntentStatus> intents;
  RecordState state;
};

const std::array refreshed_states{
    Refreshed{{}, RecordState::completed},
    Refreshed{{{.state = State::pending}}, RecordState::in_progress},
    Refreshed{{{.state = State::started}}, RecordState::in_progress},
    Refreshed{{{.state = State::succeeded}}, RecordState::in_progress},
    Refreshed{{{.state = State::succeeded, .settled = true}}, RecordState::completed},
    Refreshed{{{.state = State::failed, .settled = true}}, RecordState::completed},
    Refreshed{{{.state = State::abandoned, .settled = true}}, RecordState::completed},
    Refreshed{{{.state = State::ambiguous}}, RecordState::ambiguous},
    Refreshed{{{.state = State::pending, .flagged = true}}, RecordState::ambiguous},
    Refreshed{{{.state = State::started, .flagged = true}}, RecordState::ambiguous},
    Refreshed{{{.state = State::succeeded, .flagged = true}}, RecordState::in_progress},
    Refreshed{{{.state = State::succeeded, .settled = true, .flagged = true}}, RecordState::completed},
    Refreshed{{{.state = State::failed, .settled = true, .flagged = true}, {.state = State::pending}},
              RecordState::in_progress},
    Refreshed{{{.state = State::succeeded, .settled = true}, {.state = State::pending}}, RecordState::in_progress},
    Refreshed{{{.state = State::pending}, {.state = State::failed, .settled = true}}, RecordState::in_progress},
    Refreshed{{{.state = State::ambiguous}, {.state = State::pending}}, RecordState::ambiguous},
};

void record_with_intents(Session& session, const std::string& key, std::span<const IntentStatus> statuses) {
  must(record_now(session, open_record_of(key)), "record");
  int step = 0;
  for (const auto& status : statuses) {
    auto intent = intent_of(key, ++step);
    intent.status = status;
    must(session.ledger().intend({&intent, 1}), "intend");
  }
}

void refresh_follows_the_intents(const StoreUnderTest& store) {
  Scene scene(store);
  const auto session = scene.session();
  for (std::size_t number = 0; number < refreshed_states.size(); ++number) {
    const auto& [statuses, state] = refreshed_states[number];
    const auto key = "key-" + std::to_string(number);
    begin(*session);
    record_with_intents(*session, key, statuses);
    require(refresh(*session, key) == state, "refresh says another state than that of the intents, case " + key);
    commit(*session);
    const auto record = scene.find(id_of(key));
    require(record && record->state == state, "refresh left another state than it said, case " + key);
    require(record->answer && record->answer->body == "done", "refresh without an answer lost the one that was there");
  }
  begin(*session);
  require(!refresh(*session, "gone"), "refresh of a record that is not there says a state");
  require(!claim(*session, id_of("gone")), "refresh of a record that is not there made one");
}

/// Of one record, of several, and of one that is gone.
void refresh_at_commit_says_the_same(const StoreUnderTest& store) {
  Scene scene(store);
  const auto session = scene.session();
  std::vector<RecordUpdate> updates;
  std::vector<RecordState> expected;
  for (std::size_t number = 0; number < refreshed_states.size(); ++number) {
    const auto& [statuses, state] = refreshed_states[number];
    const auto key = "key-" + std::string(1, static_cast<char>('a' + number));
    updates.push_back({.id = id_of(key), .retention = std::chrono::hours(1)});
    expected.push_back(state);
    std::vector<std::optional<RecordState>> states;
    begin(*session);
    record_with_intents(*session, key, statuses);
    must(session->ledger().refresh_at_commit({&updates.back(), 1}, states), "refresh");
    commit(*session);
    require(states == std::vector{std::optional(state)}, "refresh_at_commit says another state, case " + key);
    require(scene.find(id_of(key))->state == state, "refresh_at_commit left another state than it said, case " + key);
  }
  updates.push_back({.id = id_of("nobody")});
  std::vector<std::optional<RecordState>> states;
  begin(*session);
  must(session->ledger().refresh_at_commit(updates, states), "refresh");
  commit(*session);
  require(states.size() == updates.size() && !states.back(), "refresh of a record that is gone says a state");
  for (std::size_t i = 0; i < expected.size(); ++i)
    require(states[i] == expected[i], "refresh_at_commit of several says another state");
}

void refresh_answers_and_begins_retention(const StoreUnderTest& store) {
  Scene scene(store);
  auto intent = intend(scene);
  const RecordUpdate update{.id = id_of("a"),
                            .answer = Answer{.status = 402, .headers = {}, .body = "\0no"s},
                            .retention = std::chrono::seconds(7200)};
  const auto refreshed = [&](IntentStatus status) {
    in_one_go(*scene.session(), [&](Session& session) {
      require(change(session, change_of(intent, status)), "a change did not apply");
      must(session.ledger().refresh({&update, 1}), "refresh");
    });
    intent = found(scene, intent);
    auto record = scene.find(id_of("a"));
    require(record.has_value(), "a record went while it was refreshed");
    return std::move(*record);
  };
  const auto open = refreshed({.state = State::succeeded});
  require(open.answer && open.answer->status == 402 && open.answer->body == "\0no"s, "refresh lost its answer");
  const auto closed = refreshed({.state = State::succeeded, .settled = true});
  require(closed.expires_at - closed.recorded_at >= std::chrono::seconds(7200) &&
              closed.expires_at - closed.recorded_at < std::chrono::seconds(7200) + 30min,
          "a closed record's retention does not begin with its close");
  const auto again = refreshed({.state = State::succeeded, .settled = true});
  require(again.expires_at == closed.expires_at, "a record that was closed already began its retention anew");
  const auto flagged = refreshed({.state = State::succeeded, .settled = true, .flagged = true});
  require(flagged.state == RecordState::completed && flagged.expires_at == closed.expires_at,
          "a flag on an intent whose outcome is known opened its record again");
}

/// Settles the first and the second of two intents of one record in two processes at once.
void two_refreshes_see_each_other(const StoreUnderTest& store) {
  Scene scene(store);
  const std::array both{intent_of("a", 1), intent_of("a", 2)};
  in_one_go(*scene.session(), [&](Session& session) {
    const auto record = open_record_of("a");
    must(session.record({&record, 1}), "record");
    must(session.ledger().intend(both), "intend");
  });
  const auto settle = [&](Session& session, const Intent& intent) -> Result<std::optional<RecordState>> {
    if (auto begun = session.begin(); !begun) return begun.error();
    const auto wanted = change_of(intent, {.state = State::succeeded, .settled = true});
    if (const auto changed = session.ledger().change({&wanted, 1}); !changed) return changed.error();
    const RecordUpdate update{.id = id_of("a"), .retention = 1h};
    const auto states = session.ledger().refresh({&update, 1});
    if (!states) return states.error();
    return states->front();
  };
  const auto first = scene.session();
  require(must(settle(*first, both[0]), "settling") == RecordState::in_progress,
          "a record is closed while an intent of it is open");
  auto other = std::async(std::launch::async, [&]() -> Result<std::optional<RecordState>> {
    const auto process = scene.database().open();
    const auto second = open_sql_session(*process);
    for (;;) {
      auto state = settle(*second, both[1]);
      if (state) {
        commit(*second);
        return state;
      }
      second->rollback();
      if (state.error().code != ErrorCode::lock_timeout) return state;
    }
  });
  commit(*first);
  require(must(other.get(), "settling at the same time") == RecordState::completed,
          "of two settlements of one record at once each saw the other's intent as open");
  require(scene.find(id_of("a"))->state == RecordState::completed, "a record stayed open after its last settlement");
}

std::size_t purge_all(Store& store) {
  std::size_t removed = 0;
  while (const auto step = must(store.purge(10), "purge")) removed += step;
  return removed;
}

void an_open_record_stays(const StoreUnderTest& store) {
  Scene scene(store);
  const auto session = scene.session();
  for (const auto state : {RecordState::in_progress, RecordState::ambiguous}) {
    auto record = open_record_of(state == RecordState::ambiguous ? "ambiguous" : "in progress");
    record.state = state;
    record.retention = std::chrono::seconds(-9);
    scene.commit(record);
    require(purge_all(scene.store()) == 0, "an open record was purged");
    begin(*session);
    const auto claimed = claim(*session, id_of(record));
    session->rollback();
    require(claimed && claimed->state == state, "an open record is not found, or in another state");
    require(claimed->answer && claimed->answer->body == "done", "an open record came back without its answer");
    const auto found = scene.find(id_of(record));
    require(found && found->state == state, "an open record is not found, or in another state");
    require(found->expires_at > found->recorded_at + std::chrono::years(100), "an open record has an end");
  }
}

/// Records "a", expired at once when it is closed, with a settled intent that has a history.
Intent close_at_once(Scene& scene) {
  auto intent = intend(scene);
  in_one_go(*scene.session(), [&](Session& session) {
    require(change(session, change_of(intent, {.state = State::succeeded, .settled = true})), "a change did not apply");
    must(session.ledger().note(intent.id, {.kind = "settled"}), "note");
    const RecordUpdate update{.id = id_of("a"), .retention = std::chrono::seconds(0)};
    must(session.ledger().refresh({&update, 1}), "refresh");
  });
  return intent;
}

void intents_go_with_their_record(const StoreUnderTest& store) {
  Scene scene(store);
  const auto kept = intent_of("kept");
  scene.commit(record_of("kept"));
  in_one_go(*scene.session(), [&](Session& session) { must(session.ledger().intend({&kept, 1}), "intend"); });
  const auto intent = close_at_once(scene);
  require(find(scene, intent.id).has_value() && history(scene, intent).size() == 1,
          "an intent went before its record was purged");
  require(purge_all(scene.store()) == 1, "a record was not purged that was closed and has expired");
  require(!find(scene, intent.id) && history(scene, intent).empty(), "an intent outlived its record");
  require(find(scene, kept.id).has_value(), "a purge took another record's intent");
}

void what_is_flagged_stays(const StoreUnderTest& store) {
  Scene scene(store);
  const auto intent = close_at_once(scene);
  const auto flag = [&](bool flagged) {
    const auto now = found(scene, intent);
    in_one_go(*scene.session(), [&](Session& session) {
      const IntentStatus to{.state = State::succeeded, .settled = true, .flagged = flagged};
      require(change(session, change_of(now, to)), "a change did not apply");
    });
  };
  flag(true);
  require(purge_all(scene.store()) == 0, "a record was purged that has a flagged intent");
  in_one_go(*scene.session(), [&](Session& session) {
    require(claim(session, id_of("a")).has_value(), "a record expired that has a flagged intent");
  });
  flag(false);
  require(purge_all(scene.store()) == 1, "a record was not purged that has no flagged intent any more");
}

void a_key_that_expired_is_intended_anew(const StoreUnderTest& store) {
  Scene scene(store);
  const auto intent = close_at_once(scene);
  in_one_go(*scene.session(), [&](Session& session) {
    require(!claim(session, id_of("a")), "claim found a record that has expired");
    const auto record = open_record_of("a");
    must(session.record({&record, 1}), "record");
    must(session.ledger().intend({&intent, 1}), "intending anew what went with an expired record");
  });
  require(found(scene, intent).status == IntentStatus{}, "an expired record's intent was taken for the new one's");
  require(history(scene, intent).empty(), "an expired record's history was taken for the new one's");
}

void unsent_publications_keep_a_record(const StoreUnderTest& store) {
  Scene scene(store);
  auto queued = message_of("queued");
  queued.queued = true;
  const std::array messages{message_of("waiting"), queued};
  const std::array keys{"waiting"s, "queued"s};
  const auto session = scene.session();
  in_one_go(*session, [&](Session& one) {
    for (const auto& key : {"queued"s, "waiting"s}) {
      auto record = record_of(key);
      record.retention = std::chrono::seconds(0);
      must(one.record({&record, 1}), "record");
    }
    must(one.outbox().publish(messages), "publish");
  });
  require(purge_all(scene.store()) == 0, "a record was purged whose publications are not sent");
  for (const auto& key : keys) {
    begin(*session);
    require(claim(*session, id_of(key)).has_value(), "a record expired whose publications are not sent");
    session->rollback();
    require(scene.find(id_of(key)).has_value(), "a record expired whose publications are not sent");
  }
  in_one_go(*session, [&](Session& one) {
    const std::array targets{"mails"s};
    const auto taken = must(one.outbox().take(targets, many, 1h), "take");
    const OutboxResult sent{.id = messages[0].id, .attempt = taken.at(0).attempt, .sent = true};
    must(one.outbox().finish({&sent, 1}), "finish");
  });
  const auto taken = must(scene.store().take_queued("mails", many, 1h), "take_queued");
  const QueueEnd end{.id = queued.id, .receive_count = taken.at(0).receive_count};
  must(scene.store().end_queued("mails", {&end, 1}), "end_queued");
  require(purge_all(scene.store()) == 2, "a record was not purged whose publications are sent");
}

/// Twelve intents of two effects and two providers, one in each state and one flagged, the oldest first.
std::vector<Intent> dozen() {
  std::vector<Intent> intents;
  for (int number = 0; number < 12; ++number) {
    auto& intent = intents.emplace_back(intent_of("a", number + 1));
    intent.effect = number % 2 ? "mail" : "charge";
    intent.provider = number % 3 ? "bank" : "post";
    intent.status.state = all_intent_states[static_cast<std::size_t>(number) % all_intent_states.size()];
    intent.status.settled = number >= 6 && !is_open(intent.status.state);
    intent.status.flagged = number == 8;
  }
  return intents;
}

std::vector<std::string> all_pages(Store& store, IntentQuery query) {
  std::vector<std::string> ids;
  for (;;) {
    const auto page = ids_of(must(store.intents(query), "intents"));
    require(page.size() <= query.count_max, "a page is longer than it was asked for");
    ids.insert(ids.end(), page.begin(), page.end());
    require(ids.size() <= many, "pages have no end");
    if (page.size() < query.count_max) return ids;
    query.after_id = page.back();
  }
}

void lists_oldest_first(const StoreUnderTest& store) {
  Scene scene(store);
  const auto intents = dozen();
  in_one_go(*scene.session(), [&](Session& session) { must(session.ledger().intend(intents), "intend"); });
  const auto expect = [&](const IntentQuery& query, auto chosen, const std::string& what) {
    std::vector<Intent> expected;
    std::ranges::copy_if(intents, std::back_inserter(expected), chosen);
    for (const std::size_t size : {1u, 3u, 100u}) {
      auto paged = query;
      paged.count_max = size;
      require(all_pages(scene.store(), paged) == ids_of(expected),
              "intents are not listed oldest first, each once: " + what);
    }
  };
  expect(
      {}, [](const Intent&) { return true; }, "all");
  expect(
      {.states = {State::failed, State::pending}},
      [](const Intent& i) { return i.status.state == State::failed || i.status.state == State::pending; }, "states");
  expect(
      {.provider = "bank"}, [](const Intent& i) { return i.provider == "bank"; }, "provider");
  expect(
      {.effect = "mail"}, [](const Intent& i) { return i.effect == "mail"; }, "effect");
  expect(
      {.waiting_for_operator = true},
      [](const Intent& i) { return i.status.state == State::ambiguous || i.status.flagged; }, "waiting");
  expect(
      {.older_than = 1h}, [](const Intent&) { return false; }, "older than an hour");
}

void counts_each_intent_once(const StoreUnderTest& store) {
  Scene scene(store);
  require(must(scene.store().intent_counts(), "intent_counts").by_state.empty() &&
              !must(scene.store().intent_counts(), "intent_counts").oldest_open,
          "intents are counted where there are none");
  const auto intents = dozen();
  in_one_go(*scene.session(), [&](Session& session) { must(session.ledger().intend(intents), "intend"); });
  const auto counts = must(scene.store().intent_counts(), "intent_counts");
  for (const State state : all_intent_states) {
    const auto expected =
        std::ranges::count_if(intents, [&](const Intent& i) { return i.status.state == state && !i.status.settled; });
    std::int64_t counted = 0;
    for (const auto& [named, count] : counts.by_state) counted += named == state ? count : 0;
    require(counted == expected, "the intents of a state that are not settled are counted wrongly");
  }
  require(counts.waiting_for_operator == 3, "the intents that wait for an operator are counted wrongly");
  require(counts.oldest_open.has_value(), "the oldest intent without an outcome has no age");
}

constexpr std::array promises{
    Promise{14, "an_intent_is_kept_byte_for_byte", keeps_every_byte},
    Promise{14, "an_intent_is_of_its_transaction", is_of_the_transaction},
    Promise{14, "an_intent_that_is_there_is_a_lost_race", a_taken_id_is_a_lost_race},
    Promise{15, "take_gives_what_needs_something_and_nothing_else", takes_what_needs_something},
    Promise{15, "an_intent_may_be_intended_as_started", intended_as_started_has_its_lease},
    Promise{15, "take_gives_the_oldest_due_first", takes_the_oldest_due_first},
    Promise{15, "take_gives_the_effects_asked_for", takes_the_effects_asked_for},
    Promise{15, "take_passes_over_what_another_has_taken", passes_over_what_another_has},
    Promise{16, "change_applies_to_what_is_expected_only", changes_only_what_is_expected},
    Promise{16, "change_answers_each_change", answers_each_change},
    Promise{16, "change_all_applies_all_or_fails", changes_all_or_fails},
    Promise{16, "of_two_changes_of_one_attempt_one_applies", one_of_two_changes_applies},
    Promise{16, "change_keeps_what_it_does_not_name", keeps_what_a_change_does_not_name},
    Promise{16, "an_intent_knows_since_when", remembers_since_when},
    Promise{16, "renew_prolongs_the_current_attempt_only", renews_the_current_attempt},
    Promise{17, "note_is_kept_in_every_state", notes_in_every_state},
    Promise{18, "refresh_follows_the_intents", refresh_follows_the_intents},
    Promise{18, "refresh_at_commit_says_the_same", refresh_at_commit_says_the_same},
    Promise{18, "refresh_answers_and_begins_the_retention", refresh_answers_and_begins_retention},
    Promise{18, "of_two_refreshes_at_once_the_later_sees_the_earlier", two_refreshes_see_each_other},
    Promise{19, "an_open_record_neither_expires_nor_goes", an_open_record_stays},
    Promise{19, "an_intent_goes_with_its_record", intents_go_with_their_record},
    Promise{19, "a_record_with_a_flagged_intent_stays", what_is_flagged_stays},
    Promise{19, "a_key_that_expired_is_intended_anew", a_key_that_expired_is_intended_anew},
    Promise{19, "unsent_publications_keep_their_record", unsent_publications_keep_a_record},
    Promise{24, "intents_come_oldest_first_each_once", lists_oldest_first},
    Promise{24, "intents_are_counted_once", counts_each_intent_once},
};

}  // namespace

std::span<const Promise> ledger_promises() { return promises; }

}  // namespace semel::testing
