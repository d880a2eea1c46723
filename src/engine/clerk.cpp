#include "engine/clerk.hpp"

#include <algorithm>
#include <utility>

#include "engine/reconciler.hpp"
#include "protocol/next_step.hpp"

namespace semel::engine {

namespace {

using namespace std::chrono_literals;

constexpr std::size_t take_max = 64;
constexpr auto take_interval = 1'000ms;   ///< how often the ledger is asked for what nobody here knows of
constexpr auto dues_apart = 10ms;         ///< what is due within it is asked for at once
constexpr std::size_t items_max = 1'000;  ///< past it, intents wait in the ledger
constexpr int settle_failures_until_flagged = 5;
constexpr auto settle_delay_first = 1'000ms;
constexpr auto settle_delay_max = 300'000ms;

/// Whether a transaction of one intent would have failed by that intent's own doing, and would again: as for messages.
/// Anything else passes. `attributed`: it came from its settle step.
bool is_its_own(const Error& error, bool attributed) {
  return protocol::next_step({error, attributed, true, protocol::decide_again_max}) ==
         protocol::NextStep::count_failure;
}

}  // namespace

Clerk::Clerk(std::unique_ptr<Session> session, const Handlers& handlers, const ConsumerOptions& options,
             AfterCommit& after_commit, Doorbell& bell, std::uint64_t seed)
    : session_(std::move(session)),
      handlers_(handlers),
      options_(options),
      after_commit_(after_commit),
      jitter_(seed),
      process_(options.process_name) {
  for (const auto& [name, effect] : after_commit.outside.effects) {
    effects_.push_back(name);
    throttles_.try_emplace(effect.options.provider_name(), effect.options.limits);
    if (performers_.insert(effect.performer).second) effect.performer->open(bell);
  }
  after_commit_.handover.listen(&bell);
}

Clerk::~Clerk() {
  for (auto* performer : performers_) performer->close();
  after_commit_.handover.listen(nullptr);
}

Turn Clerk::turn() {
  const auto now = options_.clock->now();
  collect();
  take_over();
  drop_late();
  if (const auto until = store_away_.until(now)) return {.wake_at = until};
  if (ending_ == Ending::stop) drop_ready();
  measure_rooms();
  const bool writes = something_to_write();
  if (writes) write();
  begin_calls();
  // What came while this turn wrote is for the next one, at once.
  const bool away = store_away_.until(options_.clock->now()).has_value();
  return {.worked = writes && !away && something_to_write(), .finished = finished(), .wake_at = next_due()};
}

void Clerk::end(Ending ending) {
  ending_ = ending;
  patience_until_ = options_.clock->now() + options_.shutdown_deadline * 3 / 4;
}

bool Clerk::finished() const {
  if (!ending_) return false;
  if (options_.clock->now() >= patience_until_ && (ending_ == Ending::stop || items_.empty())) return true;
  return items_.empty() && (ending_ == Ending::stop || (!took_any_ && known_due_.empty()));
}

std::optional<Clerk::TimePoint> Clerk::next_due() const {
  auto next = ending_ == Ending::stop ? patience_until_ : take_at_;
  if (ending_) next = std::min(next, patience_until_);
  if (ending_ == Ending::stop) return next;
  if (!known_due_.empty()) next = std::min(next, *known_due_.begin());
  for (const auto& [id, item] : items_)
    if (item.renews() || item.stage == Item::Stage::ready)
      next = std::min(next, item.renews() ? item.renew_at : item.leased_until);
  return next;
}

void Clerk::note_due(std::chrono::milliseconds due_in) {
  const auto at = options_.clock->now() + due_in;
  const auto next = known_due_.lower_bound(at);
  if (next == known_due_.end() || *next - at > dues_apart) known_due_.insert(at);
}

void Clerk::collect() {
  bool any = false;
  for (auto* performer : performers_) {
    for (auto& performed : performer->collect()) {
      const auto found = items_.find(performed.id);
      if (found == items_.end()) continue;
      auto& item = found->second;
      item.report = std::move(performed.report);
      item.stage = Item::Stage::reported;
      throttles_.at(item.effect->options.provider_name()).ended(options_.clock->now(), !is_unanswered(item.report));
      any = true;
    }
  }
  if (any) options_.probe->reached(Step::reported);
}

void Clerk::take_over() {
  for (auto& handed_over : after_commit_.handover.take()) adopt(std::move(handed_over));
  after_commit_.outside.calls_here = !ending_ && items_.size() < items_max;
}

void Clerk::adopt(HandedOver handed_over) {
  const Effect* effect = after_commit_.outside.effect(handed_over.intent.effect);
  const bool started = handed_over.intent.status.state == IntentState::started;
  // It is in the ledger, and is found there.
  if (!effect || (!started && items_.size() >= items_max)) return note_due(0ms);
  const auto now = options_.clock->now();
  const auto id = handed_over.intent.id.hex;
  if (items_.contains(id)) return;  // found in the ledger before
  Item item{.intent = std::move(handed_over.intent),
            .credentials = std::move(handed_over.credentials),
            .effect = effect,
            .stage = started ? Item::Stage::ready : Item::Stage::to_start,
            .known_at = now,
            .leased_until = handed_over.since + effect->options.lease,
            .renew_at = now + effect->options.lease / 3};
  items_.insert_or_assign(id, std::move(item));
}

/// Known to have called nobody.
void Clerk::not_called(Item& item, const char* why) {
  item.report = {.verdict = item.looks_up ? CallVerdict::unknown : CallVerdict::not_done};
  item.report.outcome.detail = why;
  item.stage = Item::Stage::reported;
}

/// This process stood still between the start and the call: the intent may be somebody else's by now, and a call that
/// went out all the same could be the second one.
void Clerk::drop_late() {
  const auto now = options_.clock->now();
  for (auto& [id, item] : items_)
    if (item.stage == Item::Stage::ready && now >= item.leased_until)
      not_called(item, "the lease ran out before the call");
}

void Clerk::drop_ready() {
  for (auto& [id, item] : items_)
    if (item.stage == Item::Stage::ready) not_called(item, "the process stopped before the call");
  std::erase_if(items_, [](const auto& entry) { return entry.second.stage == Item::Stage::to_start; });
}

/// What may begin now, less what is ready to begin.
void Clerk::measure_rooms() {
  const auto now = options_.clock->now();
  provider_rooms_.clear();
  performer_rooms_.clear();
  for (auto& [provider, throttle] : throttles_) provider_rooms_[provider] = throttle.room(now);
  for (auto* performer : performers_) performer_rooms_[performer] = performer->room();
  for (const auto& [id, item] : items_)
    if (item.stage == Item::Stage::ready) reserve(*item.effect);
}

bool Clerk::has_room(const Effect& effect) const {
  return provider_rooms_.at(effect.options.provider_name()) > 0 && performer_rooms_.at(effect.performer) > 0;
}

bool Clerk::reserve(const Effect& effect) {
  if (!has_room(effect)) return false;
  --provider_rooms_.at(effect.options.provider_name());
  --performer_rooms_.at(effect.performer);
  return true;
}

std::chrono::milliseconds Clerk::pause_of(const Effect& effect) {
  return std::max(throttles_.at(effect.options.provider_name()).wait(options_.clock->now()).value_or(100ms), 100ms);
}

bool Clerk::takes_at(TimePoint now) const {
  return now >= take_at_ || (!known_due_.empty() && now >= *known_due_.begin());
}

bool Clerk::something_to_write() const {
  const auto now = options_.clock->now();
  if (ending_ != Ending::stop && takes_at(now)) return true;
  return std::any_of(items_.begin(), items_.end(), [&](const auto& entry) {
    const Item& item = entry.second;
    if (item.stage == Item::Stage::reported) return true;
    if (item.stage == Item::Stage::to_start) return has_room(*item.effect);
    return item.renews() && now >= item.renew_at && ending_ != Ending::stop;
  });
}

/// Asks the ledger for what is due, and decides what is to be done with it.
Result<std::vector<Entry>> Clerk::take_due() {
  std::vector<Entry> taken;
  const auto now = options_.clock->now();
  if (ending_ == Ending::stop || items_.size() >= items_max || !takes_at(now)) return taken;
  take_at_ = now + take_interval;
  const auto found = session_->ledger().take(effects_, take_max);
  if (!found) return found.error();
  known_due_.erase(known_due_.begin(), known_due_.upper_bound(now));
  took_any_ = false;
  for (const auto& intent : *found) {
    // Its call is under way here, or it is about to be handed over.
    if (items_.contains(intent.id.hex) || after_commit_.handover.comes(intent.id)) continue;
    const Effect& effect = *after_commit_.outside.effect(intent.effect);
    auto entry = plan_for(intent, effect, has_room(effect), pause_of(effect), process_);
    if (!entry) continue;
    took_any_ = true;
    if (entry->calls) reserve(effect);
    if (withheld_.contains(intent.id.hex)) without_settling(*entry);
    taken.push_back(*std::move(entry));
  }
  // There may be more behind them.
  if (found->size() == take_max) known_due_.insert(now);
  return taken;
}

protocol::Ages Clerk::ages_of(const Item& item) const {
  auto ages = protocol::ages_of(item.intent);
  // A lookup tells of the moment at which it was asked, however late its answer is written down.
  const auto at = item.looks_up ? std::max(item.begun_at, item.known_at) : options_.clock->now();
  const auto since = std::chrono::duration_cast<std::chrono::milliseconds>(at - item.known_at);
  ages.intended += since;
  ages.since_started = ages.since_started.value_or(0ms) + since;
  if (ages.since_doubtful) *ages.since_doubtful += since;
  return ages;
}

Entry Clerk::close(const Item& item) {
  const auto& options = item.effect->options;
  const auto pause = jitter_.backoff(item.intent.failures + 1, options.delay_first, options.delay_max);
  auto entry = entry_for_report(item.intent, *item.effect, item.report, item.looks_up, ages_of(item), pause, process_);
  if (entry.settles && withheld_.contains(item.intent.id.hex)) without_settling(entry);
  return entry;
}

/// The outcome is kept; what is to be written because of it is tried again later.
void Clerk::without_settling(Entry& entry) const {
  if (!entry.settles) return;
  entry.settles = false;
  entry.to.settled = false;
  ++entry.failures;
  entry.to.flagged = entry.to.flagged || entry.failures >= settle_failures_until_flagged;
  entry.due_in = backoff(entry.failures, settle_delay_first, settle_delay_max, 1.0);
  if (entry.event->kind == "settled") entry.event->kind = "settle_failed";
  entry.event->detail = "settle step failed: " + withheld_.at(entry.intent.id.hex);
}

/// Everything that is to change, sorted by id.
std::vector<Entry> Clerk::plan(std::vector<Entry> entries) {
  for (auto& [id, item] : items_) {
    if (item.stage == Item::Stage::reported) entries.push_back(close(item));
    if (item.stage != Item::Stage::to_start || !reserve(*item.effect)) continue;
    if (auto entry = plan_for(item.intent, *item.effect, true, 0ms, process_)) entries.push_back(*std::move(entry));
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.intent.id < b.intent.id; });
  return entries;
}

Result<void> Clerk::renew() {
  const auto now = options_.clock->now();
  std::map<std::chrono::milliseconds, std::vector<std::pair<IntentId, int>>> due;  // by the length of the lease
  for (auto& [id, item] : items_) {
    if (!item.renews() || now < item.renew_at || ending_ == Ending::stop) continue;
    due[item.effect->options.lease].emplace_back(item.intent.id, item.intent.status.attempt);
  }
  for (const auto& [lease, attempts] : due) {
    const auto renewed = session_->ledger().renew(attempts, lease);
    if (!renewed) return renewed.error();
    for (std::size_t i = 0; i < attempts.size(); ++i) {
      const auto& id = attempts[i].first.hex;
      if ((*renewed)[i])
        renewed_.emplace_back(id, lease);
      else
        items_.at(id).lease_lost = true;
    }
  }
  return {};
}

/// Not before the commit: a lease that is believed to be longer than it is lets a call go out beside another's.
void Clerk::after_renewal() {
  for (const auto& [id, lease] : renewed_) {
    const auto found = items_.find(id);
    if (found == items_.end()) continue;
    found->second.leased_until = written_at_ + lease;
    found->second.renew_at = written_at_ + lease / 3;
  }
}

void Clerk::write() {
  written_at_ = options_.clock->now();
  renewed_.clear();
  auto ready = session_->begin();
  if (ready) ready = renew();
  auto taken = ready ? take_due() : Result<std::vector<Entry>>(ready.error());
  if (!taken) {
    session_->rollback();
    return store_failed(taken.error());
  }
  write_entries(plan(*std::move(taken)));
}

/// The next one in turn, so that none of them keeps the others from theirs; all again where each has had its turn.
void Clerk::leave_one(std::vector<Entry>& entries) {
  const auto next =
      std::find_if(entries.begin(), entries.end(), [this](const Entry& entry) { return *alone_ < entry.intent.id; });
  if (next == entries.end()) return alone_.reset();
  auto one = std::move(*next);
  alone_ = one.intent.id;
  note_due(0ms);  // the others, at once
  entries.clear();
  entries.push_back(std::move(one));
}

void Clerk::write_entries(std::vector<Entry> entries) {
  if (alone_) leave_one(entries);
  Booking booking(*session_, entries, after_commit_.outside, handlers_, *options_.probe);
  const bool believed = !alone_ && !std::exchange(doubts_, false);
  auto booked = booking.run(believed);
  if (believed && booked.error && booked.error->code == ErrorCode::lost_race) {
    doubts_ = true;
    return note_due(0ms);
  }
  if (booked.error) return after_failure(booked, entries);
  after_renewal();
  if (store_away_.recovered()) options_.observer->recovered();
  const bool any_start =
      std::any_of(entries.begin(), entries.end(), [](const Entry& entry) { return entry.applied && entry.calls; });
  if (any_start) options_.probe->reached(Step::started);
  after_booking(booked, entries);
}

void Clerk::after_booking(const Booked& booked, std::vector<Entry>& entries) {
  const bool closed = std::any_of(entries.begin(), entries.end(), [](const Entry& entry) { return entry.settles; });
  if (closed) options_.probe->reached(Step::closed);
  std::map<RecordId, Answer> answers;
  for (const auto& entry : entries) {
    if (entry.applied && entry.answer) answers.insert_or_assign(entry.intent.record, *entry.answer);
    after_entry(entry);
  }
  for (const auto& [record, state] : booked.records) {
    if (state == RecordState::in_progress) continue;
    const auto answer = answers.find(record);
    WaitingRoom::Word word;
    if (answer != answers.end() && state == RecordState::completed) word.answer = answer->second;
    after_commit_.waiting_room.tell(record, std::move(word));
  }
  for (auto intended : booked.intended) {
    intended.since = written_at_;
    adopt(std::move(intended));
  }
  if (booked.published) after_commit_.tell_relay();
}

/// What an operator is asked from now on.
void Clerk::tell_operator(const Entry& entry) const {
  const bool ambiguous = entry.to.state == IntentState::ambiguous;
  const bool flagged = entry.to.flagged && !entry.was_flagged;
  if (!entry.applied || !(ambiguous || flagged)) return;
  const auto name = "intent " + entry.intent.id.hex + " (" + entry.intent.effect + ")";
  if (ambiguous)
    options_.observer->trouble({Remedy::ask_operator, Certainty::unknown, ErrorCode::ambiguous,
                                name + ": nobody can tell whether it happened"});
  if (!flagged) return;
  const bool compensation = entry.intent.compensates && entry.to.state == IntentState::failed;
  options_.observer->trouble(
      {Remedy::ask_operator, Certainty::not_applied, ErrorCode::outcome_contradicted,
       name + (compensation ? ": a compensation has failed for good" : ": what is known of it needs a look")});
}

void Clerk::after_entry(const Entry& entry) {
  tell_operator(entry);
  const auto id = entry.intent.id.hex;
  const auto found = items_.find(id);
  withheld_.erase(id);
  if (entry.report) {
    if (found != items_.end()) {
      report(found->second, entry);
      keep_credentials(found->second, entry);
    }
    items_.erase(id);
    return note_open(entry);
  }
  if (!entry.calls || !entry.applied) {
    items_.erase(id);
    return note_open(entry);
  }
  const auto now = options_.clock->now();
  Item item{.intent = entry.intent};
  if (found != items_.end()) item.credentials = std::move(found->second.credentials);
  item.intent.status = entry.to;
  item.effect = entry.effect;
  item.looks_up = entry.looked_up;
  item.fresh = found != items_.end();
  if (auto kept = credentials_.extract(id)) item.credentials = std::move(kept.mapped()), item.fresh = true;
  if (entry.to.doubtful && !item.intent.since_doubtful) item.intent.since_doubtful = 0ms;
  item.known_at = now;
  item.leased_until = written_at_ + entry.effect->options.lease;
  item.renew_at = now + entry.effect->options.lease / 3;
  item.stage = Item::Stage::ready;
  items_.insert_or_assign(id, std::move(item));
}

/// What is to be gone on with later: an end does not come before it where there is time.
void Clerk::note_open(const Entry& entry) {
  const auto& to = entry.to;
  if (entry.applied && (to.state == IntentState::pending || (!is_open(to.state) && !to.settled)))
    note_due(entry.due_in);
}

/// For the next attempt, which this process may make too.
void Clerk::keep_credentials(Item& item, const Entry& entry) {
  if (item.credentials.entries().empty() || !entry.applied || entry.to.state != IntentState::pending) return;
  if (credentials_.size() < items_max) credentials_.insert_or_assign(item.intent.id.hex, std::move(item.credentials));
}

void Clerk::report(const Item& item, const Entry& entry) {
  options_.observer->called({.effect = item.intent.effect,
                             .provider = item.intent.provider,
                             .intent = item.intent.id.hex,
                             .attempt = item.intent.status.attempt,
                             .looked_up = item.looks_up,
                             .verdict = item.report.verdict,
                             .state = entry.applied ? entry.to.state : item.intent.status.state,
                             .duration = options_.clock->now() - item.begun_at,
                             .detail = item.report.outcome.detail});
}

void Clerk::after_failure(const Booked& booked, std::vector<Entry>& entries) {
  const auto& error = *booked.error;
  const bool attributed = booked.at_fault && entries[*booked.at_fault].settles;
  if (!is_its_own(error, attributed)) return store_failed(error);
  if (attributed) return withhold(entries[*booked.at_fault], error);
  // Nobody can be told apart: each by itself.
  if (entries.size() > 1) {
    alone_ = IntentId{};
    return note_due(0ms);
  }
  if (!entries.empty() && entries.front().settles) return withhold(entries.front(), error);
  store_failed(error);
}

void Clerk::withhold(const Entry& entry, const Error& error) {
  options_.observer->trouble(fix_call(
      ErrorCode::settle_failed, "intent " + entry.intent.id.hex + " (" + entry.intent.effect + "): " + error.message));
  withheld_.insert_or_assign(entry.intent.id.hex, error.message);
}

void Clerk::store_failed(const Error& error) {
  options_.observer->trouble(error);
  const auto now = options_.clock->now();
  take_at_ = std::min(take_at_, now + store_away_.failed(now, jitter_));
}

void Clerk::begin_calls() {
  if (ending_ == Ending::stop) return;
  for (auto& [id, item] : items_) {
    if (item.stage != Item::Stage::ready) continue;
    auto& throttle = throttles_.at(item.effect->options.provider_name());
    const auto now = options_.clock->now();
    if (now >= item.leased_until) {
      note_due(0ms);  // see drop_late
      continue;
    }
    if (throttle.room(now) == 0 || item.effect->performer->room() == 0) {
      if (const auto wait = throttle.wait(now)) note_due(*wait);
      continue;
    }
    throttle.began(now);
    begin(item);
  }
}

void Clerk::begin(Item& item) {
  const auto& intent = item.intent;
  item.stage = Item::Stage::calling;
  item.begun_at = options_.clock->now();
  item.effect->performer->begin({.id = intent.id.hex,
                                 .effect = intent.effect,
                                 .attempt = intent.status.attempt,
                                 .look_up = item.looks_up,
                                 .idempotency_key = intent.idempotency_key,
                                 .request = intent.request,
                                 .reference = intent.reference,
                                 .credentials = item.credentials,
                                 .fresh = item.fresh,
                                 .timeout = item.effect->options.timeout});
  options_.probe->reached(Step::called);
}

}  // namespace semel::engine
