#include "engine/lane.hpp"

#include <algorithm>
#include <map>

#include "engine/letters.hpp"
#include "protocol/next_step.hpp"
#include "protocol/split.hpp"

namespace semel::engine {

namespace {

constexpr RetryPolicy postpone_policy{
    .attempts_max = 0, .delay_first = std::chrono::milliseconds(50), .delay_max = std::chrono::milliseconds(2'000)};

/// Callers who wait for outside calls on one lane; past it, it takes no more.
constexpr std::size_t awaiting_max = 10'000;

/// What keeps a handler's messages of one key in order.
using Sequence = std::tuple<const Handler*, std::string, Key>;

std::optional<Sequence> sequence_of(const Task& task) {
  if (!task.key) return std::nullopt;
  return Sequence{task.handler, task.in_flight->delivery.principal, *task.key};
}

/// The delivery's one verdict: something to be tried again outweighs all, and a caller's problem outweighs an effect.
std::size_t weight(const Fate& fate) {
  switch (fate.verdict.index()) {
    case 0:
      return 1;  // Done
    case 1:
      return 0;  // SetAside
    case 2:
      return 2;  // Refused
    default:
      return 3;  // HandedBack
  }
}

/// A message that no handler wants is done; a letter of a handler that is gone, or that has narrowed what it takes,
/// still waits.
decltype(Fate::verdict) verdict_of_unmatched(const InFlight& in_flight) {
  if (in_flight.letter_id.empty()) return Done{};
  return HandedBack{fix_call(ErrorCode::config_unknown_name, "no handler takes this letter any more")};
}

}  // namespace

bool InFlight::finished() const {
  return std::all_of(tasks.begin(), tasks.end(), [](const auto& task) { return task->fate.has_value(); });
}

Lane::Lane(std::unique_ptr<Session> session, std::vector<Inlet> inlets, std::span<const Handler> handlers,
           const ConsumerOptions& options, AfterCommit& after_commit, Doorbell& bell, std::uint64_t seed)
    : session_(std::move(session)),
      inlets_(std::move(inlets)),
      handlers_(handlers),
      options_(options),
      after_commit_(after_commit),
      bell_(bell),
      jitter_(seed) {}

Lane::~Lane() {
  for (Task* task : awaiting_) after_commit_.waiting_room.leave(task->id(), bell_);
}

Turn Lane::turn() {
  if (const auto until = store_away_.until(options_.clock->now())) return {.wake_at = until};
  receive();
  auto tasks = due();
  look_after_waiting(tasks);
  tasks.insert(tasks.end(), arrived_.begin(), arrived_.end());
  arrived_.clear();
  const bool worked = !tasks.empty() || !in_flight_.empty();
  if (!tasks.empty()) process(std::move(tasks));
  const auto before = in_flight_.size() - awaiting_.size();
  settle();
  const bool ended = std::all_of(inlets_.begin(), inlets_.end(), [](const Inlet& inlet) { return inlet.ended; });
  return {.worked = worked && in_flight_.size() - awaiting_.size() < before,
          .finished = ended && in_flight_.empty(),
          .wake_at = next_due()};
}

void Lane::stop() {
  for (auto& inlet : inlets_) {
    inlet.receiver->stop();
    inlet.ended = true;
  }
  store_away_.forget_pause();
  const auto patience = options_.clock->now() + options_.shutdown_deadline / 2;
  for (Task* task : awaiting_) task->await_until = std::min(task->await_until, patience);
  const auto stopping = retry_later(ErrorCode::overloaded, "the consumer is stopping");
  for (Task* task : held_) task->fate = Fate{HandedBack{stopping}, Decision::handed_back};
  held_.clear();
}

void Lane::receive() {
  for (std::size_t n = 0; n < inlets_.size(); ++n) {
    const auto index = (first_inlet_ + n) % inlets_.size();
    Inlet& inlet = inlets_[index];
    // Those who wait for outside calls cost no transaction, and keep nobody out.
    const auto busy = in_flight_.size() - awaiting_.size();
    const auto room = awaiting_.size() < awaiting_max ? options_.batch_max - std::min(options_.batch_max, busy) : 0;
    if (inlet.ended || room == 0) continue;
    // Those after it get their share of the batch too.
    const auto share = std::max<std::size_t>(1, room / (inlets_.size() - n));
    auto batch = inlet.receiver->receive(share);
    if (!batch) {
      options_.observer->trouble(batch.error());
      if (batch.error().remedy == Remedy::retry_later) continue;
      inlet.ended = true;
      if (!damage_) damage_ = batch.error();
      continue;
    }
    inlet.ended = batch->ended;
    for (auto& delivery : batch->deliveries) take(std::move(delivery), index);
  }
  if (!inlets_.empty()) first_inlet_ = (first_inlet_ + 1) % inlets_.size();
  if (!arrived_.empty()) options_.probe->reached(Step::received);
}

void Lane::take(Delivery delivery, std::size_t inlet_index) {
  ++summary_.received;
  const Inlet& inlet = inlets_[inlet_index];
  auto reading = protocol::read(delivery);
  const DeadLetter* letter = inlet.letters ? &inlet.letters->letter(delivery.receipt) : nullptr;
  auto& in_flight =
      in_flight_.emplace_back(InFlight{.delivery = std::move(delivery),
                                       .reading = std::move(reading),
                                       .receiver = inlet_index,
                                       .redelivers = inlet.traits.redelivers,
                                       .letter_id = letter ? letter->id : std::string(),
                                       .resends_rejection = letter && letter->reason == SetAsideReason::rejected});
  for (const auto& handler : handlers_)
    if (!letter || handler.options.name == letter->scope.handler) add_task(in_flight, handler);
  if (in_flight.tasks.empty()) {
    count(Decision::unmatched);
    options_.observer->message({.handler = {}, .delivery = in_flight.delivery, .decision = Decision::unmatched});
  }
}

void Lane::add_task(InFlight& in_flight, const Handler& handler) {
  auto intake = protocol::intake(handler.options, in_flight.delivery, in_flight.reading);
  if (std::holds_alternative<protocol::NotForUs>(intake)) return;
  auto& task =
      *in_flight.tasks.emplace_back(std::make_unique<Task>(Task{.in_flight = &in_flight, .handler = &handler}));
  if (auto* claimable = std::get_if<protocol::Claimable>(&intake)) {
    task.key = std::move(claimable->key);
    task.fingerprint = std::move(claimable->fingerprint);
  } else {
    auto& unusable = std::get<protocol::Unusable>(intake);
    if (in_flight.delivery.sender == Sender::caller) {
      const auto decision = unusable.reason == SetAsideReason::no_key ? Decision::no_key : Decision::malformed;
      task.fate = Fate{Refused{std::move(unusable.error)}, decision};
      return;
    }
    task.set_aside = std::move(unusable);
  }
  arrived_.push_back(&task);
}

std::vector<Task*> Lane::due() {
  const auto now = options_.clock->now();
  std::vector<Task*> due;
  std::vector<Task*> waiting;
  std::set<Sequence> blocked;
  for (Task* task : held_) {
    const auto sequence = sequence_of(*task);
    if (task->not_before <= now && !(sequence && blocked.contains(*sequence))) {
      due.push_back(task);
    } else {
      if (sequence) blocked.insert(*sequence);
      waiting.push_back(task);
    }
  }
  held_ = std::move(waiting);
  return due;
}

void Lane::process(std::vector<Task*> tasks) {
  parts_.push_back({std::move(tasks)});
  while (!parts_.empty()) {
    auto part = std::move(parts_.back());
    parts_.pop_back();
    part.tasks = withhold_blocked(std::move(part.tasks));
    if (part.tasks.empty()) continue;
    auto attempt = Transaction(*session_, part.tasks, after_commit_, options_).run();
    if (attempt.rejected) {
      parts_.push_back(std::move(part));
    } else if (attempt.error) {
      after_failure(attempt, std::move(part.tasks), part.decided_again);
    } else {
      after_commit(std::move(attempt), part.tasks);
    }
  }
}

void Lane::after_commit(Attempt attempt, std::span<Task* const> part) {
  if (store_away_.recovered()) options_.observer->recovered();
  // A seat first: the clerk may be done before the next line.
  for (Task* task : part) {
    if (task->fate || !task->awaiting) continue;
    after_commit_.waiting_room.enter(task->id(), bell_);
    awaiting_.push_back(task);
  }
  if (!attempt.intended.empty()) after_commit_.handover.put(std::move(attempt.intended));
  if (attempt.published) after_commit_.tell_relay();
}

void Lane::look_after_waiting(std::vector<Task*>& due) {
  const auto now = options_.clock->now();
  std::vector<Task*> still;
  for (Task* task : std::exchange(awaiting_, {})) {
    const auto word = after_commit_.waiting_room.ask(task->id());
    task->fate = fate_of_waiting(*task, word, now);
    if (!task->fate && !word && now < task->ask_at) {
      still.push_back(task);
      continue;
    }
    after_commit_.waiting_room.leave(task->id(), bell_);
    if (!task->fate) due.push_back(task);
  }
  awaiting_ = std::move(still);
}

std::optional<Fate> Lane::fate_of_waiting(const Task& task, const std::optional<WaitingRoom::Word>& word,
                                          TimePoint now) {
  const auto decision = task.own ? Decision::fresh : Decision::in_progress;
  if (word && word->answer)
    return Fate{Done{*word->answer, !task.own, true}, task.own ? Decision::fresh : Decision::replay};
  if (now < task.await_until) return std::nullopt;
  if (!task.options().waiting.accepted_when_late)
    return Fate{Refused{retry_later(ErrorCode::in_progress, "an outside call is not settled yet")}, decision};
  return Fate{Done{Answer{.status = 202,
                          .headers = {{"Content-Type", "application/json"}, {"Retry-After", "2"}},
                          .body = R"({"state":"in_progress"})"},
                   !task.own, true},
              decision};
}

/// A message waits while an earlier one of its key is to be tried again.
std::vector<Task*> Lane::withhold_blocked(std::vector<Task*> part) {
  if (held_.empty()) return part;
  std::map<Sequence, TimePoint> blocked;
  for (const Task* task : held_)
    if (auto sequence = sequence_of(*task)) blocked.insert_or_assign(*std::move(sequence), task->not_before);
  std::vector<Task*> free;
  for (Task* task : part) {
    const auto sequence = sequence_of(*task);
    const auto blocker = sequence && !task->in_flight->redelivers ? blocked.find(*sequence) : blocked.end();
    if (blocker == blocked.end()) {
      free.push_back(task);
    } else {
      hold(*task, blocker->second);
    }
  }
  return free;
}

void Lane::after_failure(const Attempt& attempt, std::vector<Task*> part, int decided_again) {
  using protocol::NextStep;
  const auto& error = *attempt.error;
  const bool alone = part.size() == 1;
  switch (protocol::next_step({error, attempt.at_fault.has_value(), alone, decided_again})) {
    case NextStep::decide_again:
      parts_.push_back({std::move(part), decided_again + 1});
      return;
    case NextStep::isolate: {
      const auto ranges = protocol::split(part.size(), attempt.at_fault);
      for (auto range = ranges.rbegin(); range != ranges.rend(); ++range) {
        const auto begin = part.begin() + static_cast<std::ptrdiff_t>(range->begin);
        const auto end = part.begin() + static_cast<std::ptrdiff_t>(range->end);
        parts_.push_back({std::vector<Task*>(begin, end)});
      }
      return;
    }
    case NextStep::postpone:
      return postpone(*part.front(), error);
    case NextStep::count_failure:
      return count_failure(*part.front(), error);
    case NextStep::wait_for_store:
      for (auto rest = parts_.rbegin(); rest != parts_.rend(); ++rest)
        part.insert(part.end(), rest->tasks.begin(), rest->tasks.end());
      parts_.clear();
      return wait_for_store(part, error);
  }
}

void Lane::count_failure(Task& task, const Error& error) {
  if (task.set_aside) return postpone(task, error);  // the letter itself cannot be written: kept, and tried again
  ++task.failures;
  const auto& policy = task.options().retry;
  if (task.in_flight->redelivers) {
    task.fate = Fate{HandedBack{error, backoff(policy, task.failures)}, Decision::handed_back};
  } else if (task.failures >= policy.attempts_max) {
    task.set_aside = protocol::Unusable{SetAsideReason::exhausted, error};
    parts_.push_back({{&task}});
  } else {
    hold(task, options_.clock->now() + backoff(policy, task.failures));
  }
}

void Lane::postpone(Task& task, const Error& error) {
  const auto delay = backoff(postpone_policy, ++task.postponed);
  options_.observer->trouble(error);
  if (task.in_flight->redelivers) {
    task.fate = Fate{HandedBack{error, delay}, Decision::handed_back};
  } else {
    hold(task, options_.clock->now() + delay);
  }
}

void Lane::wait_for_store(std::span<Task* const> tasks, const Error& error) {
  options_.observer->trouble(error);
  const auto now = options_.clock->now();
  const auto delay = store_away_.failed(now, jitter_);
  for (Task* task : tasks) {
    if (task->in_flight->redelivers) {
      task->fate = Fate{HandedBack{error, delay}, Decision::handed_back};
    } else {
      hold(*task, now + delay);
    }
  }
}

void Lane::hold(Task& task, TimePoint until) {
  task.not_before = until;
  held_.push_back(&task);
}

std::chrono::milliseconds Lane::backoff(const RetryPolicy& policy, int failures) {
  return jitter_.backoff(failures, policy.delay_first, policy.delay_max);
}

void Lane::settle() {
  std::vector<std::vector<Settlement>> settlements(inlets_.size());
  for (auto it = in_flight_.begin(); it != in_flight_.end();) {
    if (!it->finished()) {
      ++it;
      continue;
    }
    const Fate* verdict = nullptr;
    for (const auto& task : it->tasks) {
      report(*task);
      if (!verdict || weight(*task->fate) > weight(*verdict)) verdict = &*task->fate;
    }
    settlements[it->receiver].push_back(
        {std::move(it->delivery.receipt), verdict ? verdict->verdict : verdict_of_unmatched(*it)});
    it = in_flight_.erase(it);
  }
  bool any = false;
  for (std::size_t i = 0; i < inlets_.size(); ++i) {
    if (settlements[i].empty()) continue;
    any = true;
    inlets_[i].receiver->settle(std::move(settlements[i]));
  }
  if (any) options_.probe->reached(Step::settled);
}

void Lane::report(const Task& task) {
  const auto& verdict = task.fate->verdict;
  const Error* error = nullptr;
  if (const auto* v = std::get_if<SetAside>(&verdict)) error = &v->why;
  if (const auto* v = std::get_if<Refused>(&verdict)) error = &v->why;
  if (const auto* v = std::get_if<HandedBack>(&verdict)) error = &v->why;
  if (std::holds_alternative<Refused>(verdict)) {
    ++summary_.refused;
  } else {
    count(task.fate->decision);
  }
  options_.observer->message({.handler = task.options().name,
                              .delivery = task.in_flight->delivery,
                              .key = task.key ? &*task.key : nullptr,
                              .decision = task.fate->decision,
                              .error = error});
}

void Lane::count(Decision decision) {
  switch (decision) {
    case Decision::fresh:
      ++summary_.fresh;
      break;
    case Decision::replay:
      ++summary_.replays;
      break;
    case Decision::handed_back:
      ++summary_.handed_back;
      break;
    case Decision::unmatched:
      ++summary_.unmatched;
      break;
    case Decision::in_progress:
    case Decision::ambiguous:
      ++summary_.replays;
      break;
    default:
      ++summary_.set_aside;
      break;
  }
}

std::optional<Lane::TimePoint> Lane::next_poll() const {
  std::optional<TimePoint> next;
  for (const auto& inlet : inlets_) {
    if (inlet.ended || inlet.traits.poll_every.count() == 0) continue;
    const auto at = options_.clock->now() + inlet.traits.poll_every;
    if (!next || at < *next) next = at;
  }
  return next;
}

std::optional<Lane::TimePoint> Lane::next_due() {
  if (const auto until = store_away_.until(options_.clock->now())) return until;
  std::optional<TimePoint> next = next_poll();
  for (const Task* task : held_)
    if (!next || task->not_before < *next) next = task->not_before;
  for (const Task* task : awaiting_) {
    const auto at = std::min(task->ask_at, task->await_until);
    if (!next || at < *next) next = at;
  }
  return next;
}

}  // namespace semel::engine
