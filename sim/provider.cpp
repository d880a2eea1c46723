// The simulated provider, the receiver of publications, and the ends of the lines to them: see outside.hpp.
#include <algorithm>

#include "outside.hpp"

namespace semel::sim {

using namespace std::chrono_literals;

namespace {

constexpr auto memory = 24h;
constexpr auto short_memory = 30s;
constexpr auto visible_after_max = 2s;

microseconds travel(World& world) { return milliseconds(world.random().between(1, 40)); }

bool takes_keys(const Call& call) { return call.effect != "lookup" && call.effect != "neither"; }

CallReport report(CallVerdict verdict, int status, std::string detail, std::string reference = {}) {
  return {.verdict = verdict,
          .outcome = {.reference = std::move(reference), .answer = {.status = status}, .detail = std::move(detail)}};
}

std::string short_of(const Call& call) {
  return call.id.substr(0, 6) + " attempt " + std::to_string(call.attempt) + (call.look_up ? " (lookup)" : "");
}

}  // namespace

void Provider::receive(const Call& call, Answering answer) {
  ++calls_;
  if (world_.strikes(Fault::call_refused)) {
    world_.after(5ms, [answer] { answer(report(CallVerdict::not_done, 200, "connection refused")); });
    return;
  }
  if (world_.strikes(Fault::call_lost)) return;
  ++under_way_;
  world_.after(travel(world_), [this, call, answer] {
    --under_way_;
    arrive(call, answer);
  });
}

void Provider::arrive(const Call& call, const Answering& answer) {
  world_.say(nullptr, [&] { return "provider gets " + call.effect + " " + short_of(call); });
  if (world_.strikes(Fault::busy)) {
    auto busy = report(CallVerdict::not_done, 429, "too many requests");
    busy.retry_after = 500ms;
    return answer(std::move(busy));
  }
  if (call.look_up) return look_up(call, answer);
  const bool declines = call.request.back() == 'x';
  const bool fails_before = world_.strikes(Fault::error_before);
  const bool fails_after = world_.strikes(Fault::error_after);
  if (takes_keys(call)) {
    const auto lifetime = call.effect == "short-memory" ? microseconds(short_memory) : microseconds(memory);
    auto known = known_.find(call.idempotency_key);
    if (known != known_.end() && known->second.since + lifetime <= world_.now()) {
      known_.erase(known);
      known = known_.end();
    }
    if (known != known_.end()) {
      if (known->second.answer) return answer(*known->second.answer);
      return answer(report(CallVerdict::unfinished, 409, "in flight under the same key"));
    }
    known_[call.idempotency_key] = {world_.now(), std::nullopt};
  }
  const bool slow = world_.strikes(Fault::call_slow);
  const auto time =
      slow ? milliseconds(world_.random().between(1'000, 7'300)) : milliseconds(world_.random().between(2, 250));
  ++under_way_;
  world_.after(time, [this, call, declines, fails_before, fails_after, answer] {
    --under_way_;
    carry_out(call, declines, fails_before, fails_after, answer);
  });
}

void Provider::carry_out(const Call& call, bool declines, bool fails_before, bool fails_after,
                         const Answering& answer) {
  if (fails_before) {
    known_.erase(call.idempotency_key);
    return answer(report(CallVerdict::unknown, 500, "an error before anything was done"));
  }
  auto said = report(CallVerdict::failed, 402, "declined");
  if (!declines) {
    const auto id = "ch_" + std::to_string(charges_.size() + 1);
    charges_.push_back({call.id, call.effect, call.reference, id, world_.now()});
    world_.say(nullptr, [&] { return "provider charges for " + call.reference + ": " + id; });
    said = report(CallVerdict::succeeded, 201, "charged", id);
  }
  if (takes_keys(call))
    if (const auto known = known_.find(call.idempotency_key); known != known_.end()) known->second.answer = said;
  if (fails_after) return answer(report(CallVerdict::unknown, 500, "an error after all was done"));
  if (world_.strikes(Fault::answer_lost)) return;
  ++under_way_;
  world_.after(travel(world_), [this, said, answer] {
    --under_way_;
    answer(said);
  });
}

void Provider::look_up(const Call& call, const Answering& answer) {
  for (const auto& charge : charges_) {
    // Visible after a while: each charge after its own.
    const auto visible = milliseconds(charge.at.count() % milliseconds(visible_after_max).count());
    if (charge.reference == call.reference && charge.effect == call.effect && charge.at + visible <= world_.now())
      return answer(report(CallVerdict::succeeded, 200, "found", charge.id));
  }
  answer(report(CallVerdict::not_found, 404, "none"));
}

void Mailbox::receive(const Call& call, Answering answer) {
  if (world_.strikes(Fault::publication_lost)) return;
  const bool refused = world_.strikes(Fault::publication_refused);
  world_.after(travel(world_), [this, call, refused, answer] {
    if (refused) return answer(report(CallVerdict::not_done, 503, "come again"));
    mails_.push_back({call.id, call.request, call.order_key});
    world_.say(nullptr, [&] { return "mailbox gets " + call.request; });
    if (world_.strikes(Fault::confirmation_lost)) return;
    world_.after(travel(world_), [answer] { answer(report(CallVerdict::succeeded, 200, "received")); });
  });
}

SimulatedPerformer::SimulatedPerformer(World& world, Process& process, std::size_t room,
                                       std::function<void(const Call&, Answering)> receiver,
                                       std::function<void(const Call&, const CallReport&)> heard)
    : world_(world), process_(process), room_(room), receiver_(std::move(receiver)), heard_(std::move(heard)) {}

SimulatedPerformer::~SimulatedPerformer() { SimulatedPerformer::close(); }

void SimulatedPerformer::open(Doorbell& bell) { line_->bell = &bell; }

void SimulatedPerformer::close() {
  line_->hung_up = true;
  line_ = std::make_shared<Line>();
}

std::size_t SimulatedPerformer::room() const {
  const auto busy = line_->under_way.size() + line_->reports.size();
  return room_ - std::min(room_, busy);
}

void SimulatedPerformer::begin(Call call) {
  if (process_.dead) throw Vanished();
  if (world_.has(Mutant::key_made_per_attempt)) call.idempotency_key += "-" + std::to_string(call.attempt);
  const auto number = ++next_;
  line_->under_way.emplace(number, call);
  const Answering answer = [this_line = line_, number, &world = world_](CallReport said) {
    if (this_line->hung_up || !this_line->under_way.contains(number)) return;
    auto node = this_line->under_way.extract(number);
    if (world.has(Mutant::retry_of_an_unknown_outcome) && said.verdict == CallVerdict::unknown)
      said.verdict = CallVerdict::not_done;
    this_line->reports.emplace_back(std::move(node.mapped()), std::move(said));
    this_line->bell->ring();
  };
  world_.say(&process_, [&] { return "calls " + call.effect + " " + short_of(call); });
  world_.after(call.timeout, [answer] { answer(report(CallVerdict::unknown, 200, "no answer in time")); });
  receiver_(call, answer);
  if (world_.strikes(Fault::freeze_in_call)) world_.freeze(process_);
  world_.step(process_);
}

std::vector<Performed> SimulatedPerformer::collect() {
  if (process_.dead) throw Vanished();
  std::vector<Performed> performed;
  for (auto& report : std::exchange(line_->reports, {})) {
    const auto& call = report.first;
    auto& said = report.second;
    world_.say(&process_, [&] {
      return "hears of " + short_of(call) + ": " + std::string(call_verdict_name(said.verdict)) + " " +
             said.outcome.reference;
    });
    heard_(call, said);
    performed.push_back({.id = call.id, .attempt = call.attempt, .report = std::move(said)});
  }
  return performed;
}

}  // namespace semel::sim
