#include "engine/transaction.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "engine/guarded.hpp"
#include "engine/letters.hpp"

namespace semel::engine {

using protocol::Conflict;
using protocol::Fresh;
using protocol::InProgress;
using protocol::Replay;

namespace {

Error misused(const HandlerOptions& options) {
  return fix_call(ErrorCode::handler_misused,
                  "handler \"" + options.name +
                      "\" has the guard `unique` or `version` but ran no guarding statement "
                      "(Work::apply, BatchWork::execute_set)");
}

bool needs_guarding_write(Guard guard) { return guard == Guard::unique || guard == Guard::version; }

const Answer& answer_of(const Outcome& outcome) {
  if (const auto* rejection = std::get_if<Rejection>(&outcome)) return rejection->answer;
  return std::get<Answer>(outcome);
}

/// `own`: to the caller who has waited for it, it is the first answer.
Fate replay_of(const std::optional<Answer>& kept, bool own) {
  return {Done{kept.value_or(Answer{}), !own, kept.has_value()}, own ? Decision::fresh : Decision::replay};
}

Error conflict_error(const Task& task) {
  return fix_call(ErrorCode::conflict, "key \"" + task.key->text() + "\" of handler \"" + task.options().name +
                                           "\" was used before for another message (the fingerprints differ)");
}

Error open_error(const Task& task, bool ambiguous) {
  const auto key = "key \"" + task.key->text() + "\" of handler \"" + task.options().name + "\"";
  if (ambiguous)
    return {Remedy::ask_operator, Certainty::not_applied, ErrorCode::ambiguous,
            key + ": the outcome of an outside call is not known"};
  return retry_later(ErrorCode::in_progress, key + ": an outside call is not settled yet");
}

/// How often the store is asked whether another process has settled what a caller here waits for.
constexpr std::chrono::milliseconds ask_interval(500);

}  // namespace

Transaction::Transaction(Session& session, std::span<Task* const> tasks, AfterCommit& after_commit,
                         const ConsumerOptions& options)
    : session_(session),
      tasks_(tasks),
      slots_(tasks.size()),
      after_commit_(after_commit),
      options_(options),
      clock_(*options.clock),
      probe_(*options.probe) {}

Attempt Transaction::run() {
  const auto start = clock_.now();
  if (auto begun = session_.begin(); !begun) return fail(begun.error());
  probe_.reached(Step::begun);
  if (auto claimed = claim(); !claimed) return fail(claimed.error());
  probe_.reached(Step::claimed);
  const auto claimed_at = clock_.now();
  if (auto handled = run_handlers(); !handled) return fail(handled.error());
  probe_.reached(Step::handled);
  const auto handled_at = clock_.now();
  if (undo_needed()) {
    session_.rollback();
    probe_.reached(Step::rolled_back);
    return {.rejected = true};
  }
  if (auto written = write_down(); !written) return fail(written.error());
  if (auto committed = session_.commit(); !committed) return fail(committed.error());
  probe_.reached(Step::committed);
  decide_fates();
  options_.observer->batch({tasks_.size(), claimed_at - start, handled_at - claimed_at, clock_.now() - handled_at});
  return committed(start);
}

Attempt Transaction::committed(std::chrono::steady_clock::time_point since) {
  Attempt attempt;
  for (auto& slot : slots_) {
    for (std::size_t i = 0; i < slot.wanted.intents.size(); ++i)
      attempt.intended.push_back({std::move(slot.wanted.intents[i]), std::move(slot.wanted.credentials[i]), since});
    attempt.published = attempt.published || !slot.wanted.messages.empty();
  }
  return attempt;
}

Attempt Transaction::fail(Error error) {
  auto at_fault = session_.failed_mark();
  if (!at_fault) at_fault = running_;
  if (at_fault && *at_fault >= tasks_.size()) at_fault.reset();
  session_.rollback();
  for (const auto& slot : slots_) after_commit_.handover.let_go(slot.wanted.intents);
  probe_.reached(Step::rolled_back);
  return {.error = std::move(error), .at_fault = at_fault};
}

bool Transaction::claims(std::size_t number) const {
  return !tasks_[number]->set_aside && tasks_[number]->options().guard == Guard::record;
}

bool Transaction::is_fresh(std::size_t number) const {
  return !tasks_[number]->set_aside && !slots_[number].leader && std::holds_alternative<Fresh>(slots_[number].claim);
}

Result<void> Transaction::claim() {
  std::map<RecordId, std::vector<std::size_t>> wanted;  // sorted: two batches ask, and later record, in the same order
  for (std::size_t i = 0; i < tasks_.size(); ++i)
    if (claims(i)) wanted[tasks_[i]->id()].push_back(i);
  if (wanted.empty()) return {};
  std::vector<RecordId> ids;
  for (const auto& [id, numbers] : wanted) ids.push_back(id);
  auto found = session_.claim(ids);
  if (!found) return std::move(found).error();
  auto record = found->begin();
  for (const auto& [id, numbers] : wanted) {
    for (const auto i : numbers) {
      slots_[i].claim = protocol::decide(*record, tasks_[i]->fingerprint, tasks_[i]->in_flight->resends_rejection);
      if (i != numbers.front() && std::holds_alternative<Fresh>(slots_[i].claim)) slots_[i].leader = numbers.front();
    }
    ++record;
  }
  return {};
}

std::optional<Conflict> Transaction::conflict_of(std::size_t number) const {
  if (const auto* conflict = std::get_if<Conflict>(&slots_[number].claim)) return *conflict;
  const auto& leader = slots_[number].leader;
  if (leader && tasks_[*leader]->fingerprint.contradicts(tasks_[number]->fingerprint))
    return Conflict{tasks_[*leader]->fingerprint};
  return std::nullopt;
}

Result<void> Transaction::run_handlers() {
  for (std::size_t i = 0; i < tasks_.size(); ++i) {
    if (!is_fresh(i)) continue;
    if (tasks_[i]->rejection) {
      slots_[i].outcome = *tasks_[i]->rejection;
    } else if (tasks_[i]->handler->run) {
      if (auto done = run_one(i); !done) return done;
    }
  }
  if (auto done = run_batches(); !done) return done;
  session_.mark(tasks_.size());  // what follows is no single message's
  return {};
}

Result<void> Transaction::run_one(std::size_t number) {
  const Task& task = *tasks_[number];
  Slot& slot = slots_[number];
  const auto& reading = task.in_flight->reading;
  const Message message(task.in_flight->delivery, reading.document ? &*reading.document : nullptr, *task.key);
  WorkLog log;
  session_.mark(number);
  running_ = number;
  auto done = guarded([&] { slot.outcome = task.handler->run(message, session_, log); });
  if (!done) return done;
  if (needs_guarding_write(task.options().guard) && std::holds_alternative<Answer>(*slot.outcome)) {
    if (!log.applied) return misused(task.options());
    slot.applied = *log.applied;
  }
  if (auto noted = note_wishes(number, std::move(log)); !noted) return noted;
  running_.reset();
  return {};
}

/// What a rejected message wished for is undone with it.
Result<void> Transaction::note_wishes(std::size_t number, WorkLog log) {
  Slot& slot = slots_[number];
  const Task& task = *tasks_[number];
  slot.log = std::move(log);
  if (slot.log.intentions.empty() && slot.log.publications.empty()) return {};
  if (std::holds_alternative<Rejection>(*slot.outcome)) return {};
  if (task.options().guard != Guard::record)
    return fix_call(ErrorCode::handler_misused,
                    "handler \"" + task.options().name + "\" intends or publishes, which needs the guard `record`");
  const auto message = stored_message(task.in_flight->delivery);
  return write_out(slot.log, {.record = task.id(), .message = message}, after_commit_.outside, slot.wanted);
}

Result<void> Transaction::run_batches() {
  std::map<const Handler*, std::vector<std::size_t>> waiting;
  std::vector<const Handler*> order;
  for (std::size_t i = 0; i < tasks_.size(); ++i) {
    const Handler* handler = tasks_[i]->handler;
    if (!is_fresh(i) || slots_[i].outcome || !handler->run_batch) continue;
    if (waiting[handler].empty()) order.push_back(handler);
    waiting[handler].push_back(i);
  }
  for (const Handler* handler : order) {
    auto rest = std::move(waiting[handler]);
    while (!rest.empty()) {
      // One statement must not meet one key twice; a key's later messages go into a round of their own, in order.
      std::vector<std::size_t> round;
      std::vector<std::size_t> later;
      std::set<RecordId> seen;
      for (const auto i : rest) (seen.insert(tasks_[i]->id()).second ? round : later).push_back(i);
      if (auto done = run_round(*handler, round); !done) return done;
      rest = std::move(later);
    }
  }
  return {};
}

Result<void> Transaction::run_round(const Handler& handler, std::span<const std::size_t> numbers) {
  std::vector<Message> messages;
  for (const auto i : numbers) {
    const auto& in_flight = *tasks_[i]->in_flight;
    messages.emplace_back(in_flight.delivery, in_flight.reading.document ? &*in_flight.reading.document : nullptr,
                          *tasks_[i]->key);
  }
  session_.mark(numbers.size() == 1 ? numbers.front() : tasks_.size());
  std::optional<std::int64_t> applied;
  std::vector<Outcome> outcomes;
  std::vector<WorkLog> logs(numbers.size());
  auto done = guarded([&] { outcomes = handler.run_batch(messages, session_, applied, logs); });
  if (!done) {
    if (numbers.size() == 1) running_ = numbers.front();
    return done;
  }
  if (outcomes.empty()) outcomes.resize(numbers.size(), Answer{});
  if (outcomes.size() != numbers.size())
    return fix_call(ErrorCode::handler_misused, "batch handler \"" + handler.options.name + "\" returned " +
                                                    std::to_string(outcomes.size()) + " outcomes for " +
                                                    std::to_string(numbers.size()) + " messages");
  if (needs_guarding_write(handler.options.guard) && !applied) return misused(handler.options);
  // A set-based statement tells how many rows it changed, not which: the counts are right, the names are not known.
  auto changed =
      applied && needs_guarding_write(handler.options.guard) ? *applied : static_cast<std::int64_t>(numbers.size());
  for (std::size_t k = 0; k < numbers.size(); ++k) {
    Slot& slot = slots_[numbers[k]];
    slot.outcome = std::move(outcomes[k]);
    logs[k].wrote = true;
    slot.applied = changed-- > 0;
    if (auto noted = note_wishes(numbers[k], std::move(logs[k])); !noted) {
      running_ = numbers[k];
      return noted;
    }
  }
  return {};
}

bool Transaction::undo_needed() {
  bool undo = false;
  for (std::size_t i = 0; i < tasks_.size(); ++i) {
    const auto& slot = slots_[i];
    const auto* rejection = slot.outcome ? std::get_if<Rejection>(&*slot.outcome) : nullptr;
    if (!rejection || tasks_[i]->rejection || !slot.log.wrote) continue;
    tasks_[i]->rejection = *rejection;
    undo = true;
  }
  return undo;
}

std::vector<Record> Transaction::records() const {
  std::vector<Record> records;
  for (std::size_t i = 0; i < tasks_.size(); ++i) {
    if (!claims(i) || !is_fresh(i)) continue;
    const Task& task = *tasks_[i];
    const auto& delivery = task.in_flight->delivery;
    const bool rejected = std::holds_alternative<Rejection>(*slots_[i].outcome);
    records.push_back({.scope = task.scope(),
                       .key = *task.key,
                       .fingerprint = task.fingerprint,
                       .state = rejected                           ? RecordState::rejected
                                : slots_[i].wanted.intents.empty() ? RecordState::completed
                                                                   : RecordState::in_progress,
                       .answer = answer_to_keep(task.options(), answer_of(*slots_[i].outcome)),
                       .source = delivery.source,
                       .transport_id = delivery.transport_id,
                       .retention = task.options().retention,
                       .replaces_rejection = std::get<Fresh>(slots_[i].claim).replaces_rejection,
                       .recorded_at = {},
                       .expires_at = {}});
  }
  // Sorted, so that two batches that share keys wait for each other in one direction only and cannot deadlock.
  std::sort(records.begin(), records.end(),
            [](const Record& a, const Record& b) { return std::tie(a.scope, a.key) < std::tie(b.scope, b.key); });
  return records;
}

std::vector<DeadLetter> Transaction::letters() const {
  std::vector<DeadLetter> letters;
  for (std::size_t i = 0; i < tasks_.size(); ++i) {
    const Task& task = *tasks_[i];
    if (task.set_aside) {
      letters.push_back(write_letter(task, task.set_aside->reason, task.set_aside->error));
    } else if (const auto conflict = conflict_of(i); conflict && task.in_flight->delivery.sender == Sender::message) {
      letters.push_back(write_letter(task, SetAsideReason::conflict, conflict_error(task)));
      letters.back().recorded_fingerprint = conflict->recorded;
    } else if (is_fresh(i) && std::holds_alternative<Rejection>(*slots_[i].outcome)) {
      const auto& reason = std::get<Rejection>(*slots_[i].outcome).reason;
      letters.push_back(write_letter(task, SetAsideReason::rejected, fix_call(ErrorCode::rejected, reason)));
    }
  }
  return letters;
}

Result<void> Transaction::write_down() {
  if (const auto to_record = records(); !to_record.empty()) {
    if (auto recorded = session_.record(to_record); !recorded) return recorded;
    probe_.reached(Step::recorded);
  }
  if (auto written = write_wishes(); !written) return written;
  if (const auto to_set_aside = letters(); !to_set_aside.empty()) {
    if (auto written = session_.set_aside(to_set_aside); !written) return written;
    probe_.reached(Step::set_aside);
  }
  return {};
}

Result<void> Transaction::write_wishes() {
  std::vector<Intent> intents;
  std::vector<OutboxMessage> messages;
  for (const auto& slot : slots_) {
    intents.insert(intents.end(), slot.wanted.intents.begin(), slot.wanted.intents.end());
    messages.insert(messages.end(), slot.wanted.messages.begin(), slot.wanted.messages.end());
  }
  if (intents.empty() && messages.empty()) return {};
  if (!intents.empty())
    if (auto written = session_.ledger().intend(intents); !written) return written;
  if (!messages.empty())
    if (auto written = session_.outbox().publish(messages); !written) return written;
  probe_.reached(Step::intended);
  after_commit_.handover.expect(intents);
  return {};
}

void Transaction::decide_fates() {
  for (std::size_t i = 0; i < tasks_.size(); ++i) {
    tasks_[i]->fate = fate_of(i);
    if (!tasks_[i]->fate) await(*tasks_[i], is_fresh(i));
  }
}

void Transaction::await(Task& task, bool first) const {
  const auto now = clock_.now();
  if (!task.awaiting) task.await_until = now + task.options().waiting.deadline;
  task.awaiting = true;
  task.own = task.own || first;
  task.ask_at = now + ask_interval;
}

/// Nothing: its caller waits.
std::optional<Fate> Transaction::fate_of_open(const Task& task, bool first, bool ambiguous) const {
  const auto decision = first ? Decision::fresh : ambiguous ? Decision::ambiguous : Decision::in_progress;
  // What is left to be done is durable: nobody needs the message any more.
  if (task.in_flight->delivery.sender == Sender::message) return Fate{Done{Answer{}, !first, true}, decision};
  if (!ambiguous && (first || task.awaiting || task.options().waiting.wait_again)) return std::nullopt;
  return Fate{Refused{open_error(task, ambiguous)}, decision};
}

Fate Transaction::conflict_fate(const Task& task) const {
  auto error = conflict_error(task);
  if (task.in_flight->delivery.sender == Sender::caller) return {Refused{std::move(error)}, Decision::conflict};
  return {SetAside{std::move(error)}, Decision::conflict};
}

std::optional<Fate> Transaction::fate_of(std::size_t number) const {
  const Task& task = *tasks_[number];
  if (task.set_aside) {
    const auto reason = task.set_aside->reason;
    const auto decision = reason == SetAsideReason::no_key      ? Decision::no_key
                          : reason == SetAsideReason::malformed ? Decision::malformed
                                                                : Decision::exhausted;
    return Fate{SetAside{task.set_aside->error}, decision};
  }
  if (conflict_of(number)) return conflict_fate(task);
  if (const auto* open = std::get_if<InProgress>(&slots_[number].claim))
    return fate_of_open(task, false, open->ambiguous);
  if (const auto* replay = std::get_if<Replay>(&slots_[number].claim)) return replay_of(replay->answer, task.own);
  // Answered as the record will answer the next one: a cookie, for one, is the first caller's alone.
  if (const auto& leader = slots_[number].leader) {
    if (!slots_[*leader].wanted.intents.empty()) return fate_of_open(task, false, false);
    return replay_of(answer_to_keep(task.options(), answer_of(*slots_[*leader].outcome)), false);
  }
  const auto& slot = slots_[number];
  if (const auto* rejection = std::get_if<Rejection>(&*slot.outcome)) {
    // Nobody waits for the answer of a dead letter that is sent again, and it did not get through.
    if (!task.in_flight->letter_id.empty())
      return Fate{SetAside{fix_call(ErrorCode::rejected, rejection->reason)}, Decision::rejected};
    return Fate{Done{rejection->answer, false, true}, Decision::rejected};
  }
  if (!slot.wanted.intents.empty()) return fate_of_open(task, true, false);
  return Fate{Done{answer_of(*slot.outcome), !slot.applied, true}, slot.applied ? Decision::fresh : Decision::replay};
}

}  // namespace semel::engine
