#include "engine/booking.hpp"

#include <algorithm>

#include "engine/guarded.hpp"
#include "protocol/intent.hpp"

namespace semel::engine {

namespace {

IntentChange change_of(const Entry& entry) {
  return {.id = entry.intent.id,
          .expected_attempt = entry.intent.status.attempt,
          .expected_states = {entry.intent.status.state},
          .to = entry.to,
          .lease = entry.lease,
          .due_in = entry.due_in,
          .failures = entry.failures,
          .outcome = entry.outcome,
          .compensation = std::nullopt,
          .event = entry.event};
}

/// Whether the record's state may be another one now.
bool concerns_record(const Entry& entry) {
  const auto& to = entry.to;
  return entry.applied && (!is_open(to.state) || to.state == IntentState::ambiguous || to.flagged ||
                           entry.intent.status.state == IntentState::ambiguous);
}

constexpr std::chrono::hours retention_of_unknown_handlers(24 * 30);

}  // namespace

Booking::Booking(Session& session, std::span<Entry> entries, const Outside& outside, const Handlers& handlers,
                 Probe& probe)
    : session_(session), entries_(entries), outside_(outside), handlers_(handlers), probe_(probe) {}

Booked Booking::run(bool believed) {
  auto written = change(believed);
  if (written) written = settle();
  if (written) written = write_wanted();
  if (written) written = refresh();
  if (written) {
    const auto is_news = [](const Entry& entry) { return entry.settles || entry.report; };
    if (std::any_of(entries_.begin(), entries_.end(), is_news)) probe_.reached(Step::settling);
    written = session_.commit();
  }
  if (!written) {
    auto at_fault = session_.failed_mark();
    if (!at_fault) at_fault = running_;
    if (at_fault && *at_fault >= entries_.size()) at_fault.reset();
    session_.rollback();
    return {.error = std::move(written).error(), .at_fault = at_fault};
  }
  Booked booked;
  for (std::size_t i = 0; i < wanted_.intents.size(); ++i)
    booked.intended.push_back(
        {.intent = std::move(wanted_.intents[i]), .credentials = std::move(wanted_.credentials[i])});
  booked.published = !wanted_.messages.empty();
  for (std::size_t i = 0; i < refreshed_.size(); ++i)
    if (states_.at(i)) booked.records.emplace(std::move(refreshed_[i]), *states_[i]);
  return booked;
}

Result<void> Booking::change(bool believed) {
  session_.mark(entries_.size());  // no single settle step's
  std::vector<IntentChange> changes;
  for (const auto& entry : entries_) changes.push_back(change_of(entry));
  if (changes.empty()) return {};
  if (believed) {
    for (auto& entry : entries_) entry.applied = true;
    return session_.ledger().change_all(changes);
  }
  const auto applied = session_.ledger().change(changes);
  if (!applied) return applied.error();
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    entries_[i].applied = (*applied)[i];
    if (entries_[i].applied || !entries_[i].report) continue;
    if (auto judged = judge_anew(entries_[i]); !judged) return judged;
  }
  return {};
}

/// The intent is not where this process left it: another one took it for dead, or an operator has resolved it.
Result<void> Booking::judge_anew(Entry& entry) {
  const auto found = session_.ledger().find(entry.intent.id);
  if (!found) return found.error();
  if (!*found) return {};
  const auto attempt = entry.intent.status.attempt;
  const auto& now = **found;
  auto ages = protocol::ages_of(now);
  if (entry.looked_up) ages.since_doubtful = entry.asked_since_doubtful;
  const auto reported = protocol::after_report({now.status, attempt, entry.looked_up, *entry.report, now.outcome},
                                               entry.effect->options, ages);
  if (reported.effect != protocol::Reported::Effect::applied) entry.event->evidence = entry.outcome;
  if (reported.effect == protocol::Reported::Effect::evidence) {
    entry.event->kind = "late";
    return session_.ledger().note(now.id, *entry.event);
  }
  const bool applies = reported.effect == protocol::Reported::Effect::applied;
  // Whether it is to be given up was judged by what it was.
  entry.event->kind = applies ? call_verdict_name(entry.report->verdict) : "contradicts";
  entry.intent = now;
  entry.to = reported.to;
  entry.lease.reset();
  entry.settles = applies && !is_open(entry.to.state);
  if (entry.settles) entry.to.settled = true;
  if (!applies || is_open(entry.to.state)) {
    entry.outcome.reset();
  } else if (!entry.outcome) {
    entry.outcome = entry.event->evidence;
  }
  auto again = change_of(entry);
  // A started intent stays in the hands of whoever has it.
  if (entry.to.state == IntentState::started) again.lease = entry.effect->options.lease;
  const auto applied = session_.ledger().change(std::span(&again, 1));
  if (!applied) return applied.error();
  entry.applied = applied->front();
  return {};
}

Result<void> Booking::settle() {
  for (std::size_t i = 0; i < entries_.size(); ++i)
    if (entries_[i].applied && entries_[i].settles)
      if (auto settled = settle_one(i); !settled) return settled;
  session_.mark(entries_.size());
  return {};
}

Result<void> Booking::settle_one(std::size_t number) {
  Entry& entry = entries_[number];
  session_.mark(number);
  running_ = number;
  entry.intent.status = entry.to;
  if (entry.effect->settle) {
    const auto delivery = delivery_of(entry.intent);
    const auto document = Document::parse(delivery.body);
    const Message message(delivery, document ? &*document : nullptr, entry.intent.record.key);
    // As it came, where it has just come: what is stored of it has no cookies, and a bounded body.
    const auto outcome = entry.report ? entry.report->outcome : entry.intent.outcome.value_or(CallOutcome{});
    const Settled settled(message, entry.intent, outcome);
    WorkLog log;
    auto done = guarded([&] { entry.answer = entry.effect->settle(settled, session_, log); });
    if (!done) return done;
    entry.forgets = log.forget;
    const Origin origin{.record = entry.intent.record, .message = entry.intent.message, .parent = &entry.intent};
    if (auto written = write_out(log, origin, outside_, wanted_); !written) return written;
    if (log.compensation)
      if (auto kept = keep_compensation(entry, *std::move(log.compensation)); !kept) return kept;
  }
  if (auto undone = compensate(entry); !undone) return undone;
  running_.reset();
  return {};
}

Result<void> Booking::keep_compensation(Entry& entry, Compensation compensation) {
  if (!outside_.effect(compensation.effect))
    return fix_call(ErrorCode::effect_unknown, "no effect is named \"" + compensation.effect + "\"");
  const IntentChange change{.id = entry.intent.id,
                            .expected_attempt = entry.to.attempt,
                            .expected_states = {entry.to.state},
                            .to = entry.to,
                            .compensation = std::move(compensation)};
  const auto applied = session_.ledger().change(std::span(&change, 1));
  return applied ? Result<void>() : Result<void>(applied.error());
}

/// Where a step of a chain has failed for good, what came before it is undone, last first: each compensation is an
/// intent, and the next one is intended when it is settled.
Result<void> Booking::compensate(const Entry& entry) {
  const bool begins = entry.to.state == IntentState::failed && !entry.intent.compensates;
  if (!begins && !entry.intent.compensates) return {};
  const auto all = session_.ledger().intents_of(entry.intent.record);
  if (!all) return all.error();
  const auto by_id = [&](const IntentId& id) {
    return std::find_if(all->begin(), all->end(), [&](const Intent& one) { return one.id == id; });
  };
  const auto undone = [&](const IntentId& id) {
    return std::any_of(all->begin(), all->end(), [&](const Intent& one) { return one.compensates == id; });
  };
  auto step = by_id(begins ? entry.intent.id : *entry.intent.compensates);
  while (step != all->end() && step->parent) {
    step = by_id(*step->parent);
    if (step == all->end()) break;
    if (step->status.state != IntentState::succeeded || !step->compensation || undone(step->id)) continue;
    auto intent = compensation_of(*step, outside_);
    if (!intent) return std::move(intent).error();
    wanted_.intents.push_back(*std::move(intent));
    wanted_.credentials.emplace_back();
    return {};
  }
  return {};
}

Result<void> Booking::write_wanted() {
  if (!wanted_.intents.empty())
    if (auto written = session_.ledger().intend(wanted_.intents); !written) return written;
  if (!wanted_.messages.empty())
    if (auto written = session_.outbox().publish(wanted_.messages); !written) return written;
  return {};
}

const HandlerOptions* Booking::handler_of(const Intent& intent) const {
  const auto found = handlers_.find(intent.record.scope.handler);
  return found == handlers_.end() ? nullptr : found->second;
}

Result<void> Booking::refresh() {
  std::map<RecordId, RecordUpdate> updates;  // sorted: two bookings lock records in one order
  for (const auto& entry : entries_) {
    if (!concerns_record(entry)) continue;
    const auto* options = handler_of(entry.intent);
    auto& update = updates.try_emplace(entry.intent.record, RecordUpdate{.id = entry.intent.record}).first->second;
    update.retention = options ? options->retention : retention_of_unknown_handlers;
    if (entry.forgets) update.retention = std::chrono::seconds(0);
    if (!entry.answer) continue;
    update.answer = options ? answer_to_keep(*options, *entry.answer) : entry.answer;
    update.answer_dropped = !update.answer;
  }
  if (updates.empty()) return {};
  std::vector<RecordUpdate> sorted;
  for (auto& [id, update] : updates) sorted.push_back(std::move(update));
  for (const auto& update : sorted) refreshed_.push_back(update.id);
  return session_.ledger().refresh_at_commit(sorted, states_);
}

}  // namespace semel::engine
