// Simulated callers: see outside.hpp.
#include <algorithm>

#include "oracle.hpp"
#include "outside.hpp"

namespace semel::sim {

using namespace std::chrono_literals;

class Callers::End : public Receiver {
 public:
  End(Callers& callers, Process& process, Doorbell& bell)
      : callers_(callers), process_(process), desk_{&process, &bell, {}} {
    callers_.desks_.push_back(&desk_);
  }
  /// Whoever waits here sees the connection end.
  ~End() override {
    std::erase(callers_.desks_, &desk_);
    for (const auto receipt : open_) {
      const auto caller = callers_.asked_.at(receipt);
      if (callers_.callers_[caller].asking == receipt) callers_.ask_later(caller, 50ms);
    }
  }

  Result<Batch> receive(std::size_t count_max) override {
    callers_.world_.step(process_);
    Batch batch;
    while (!desk_.inbox.empty() && batch.deliveries.size() < count_max) {
      batch.deliveries.push_back(std::move(desk_.inbox.front()));
      desk_.inbox.pop_front();
      open_.insert(batch.deliveries.back().receipt.token());
    }
    return batch;
  }
  void settle(std::vector<Settlement> settlements) override {
    for (const auto& settlement : settlements) {
      callers_.world_.step(process_);
      open_.erase(settlement.receipt.token());
      callers_.answer(settlement);
    }
  }
  void stop() override {}

 private:
  Callers& callers_;
  Process& process_;
  Desk desk_;
  std::set<std::uint64_t> open_;
};

std::unique_ptr<Receiver> Callers::open(Process& process, Doorbell& bell) {
  return std::make_unique<End>(*this, process, bell);
}

void Callers::call(std::size_t telling) {
  callers_.push_back({.telling = telling});
  ++waiting_;
  ask(callers_.size() - 1);
}

bool Callers::wait_for_operators_only() const {
  return std::all_of(callers_.begin(), callers_.end(),
                     [](const Caller& caller) { return caller.answered || caller.told_ambiguous; });
}

void Callers::ask_later(std::size_t caller, microseconds delay) {
  const auto question = ++callers_[caller].questions;
  callers_[caller].asking = 0;
  world_.after(delay, [this, caller, question] {
    if (callers_[caller].questions == question && !callers_[caller].answered) ask(caller);
  });
}

void Callers::ask(std::size_t number) {
  auto& caller = callers_[number];
  if (desks_.empty()) return ask_later(number, 200ms);
  const auto& telling = scenario_.tellings[caller.telling];
  const auto& happening = scenario_.happenings[telling.happening];
  auto& desk = *desks_[world_.random().below(desks_.size())];
  caller.asking = ++next_receipt_;
  const auto question = ++caller.questions;
  asked_.emplace(caller.asking, number);
  desk.inbox.push_back({.receipt = Receipt(caller.asking),
                        .source = "callers",
                        .sender = Sender::caller,
                        .body = happening.body(telling.is_changed ? 1 : 0),
                        .problem = "",
                        .attributes = {},
                        .transport_id = "",
                        .principal = "",
                        .receive_count = std::nullopt,
                        .sent_at = std::nullopt});
  desk.bell->ring();
  world_.say(nullptr, [&] {
    return "caller " + std::to_string(number) + " asks " + desk.process->name + " for " + happening.key +
           (telling.is_changed ? " with another body" : "");
  });
  const bool hangs_up = world_.strikes(Fault::hung_up);
  const auto patience =
      hangs_up ? milliseconds(world_.random().spread(200)) : milliseconds(world_.random().between(7'000, 12'000));
  world_.after(patience, [this, number, question] {
    if (callers_[number].questions == question && !callers_[number].answered) ask_later(number, 10ms);
  });
}

void Callers::answer(const Settlement& settlement) {
  const auto number = asked_.at(settlement.receipt.token());
  auto& caller = callers_[number];
  const auto* done = std::get_if<Done>(&settlement.verdict);
  const auto* refused = std::get_if<Refused>(&settlement.verdict);
  const bool final = (done && done->answer.status != 202) || (refused && refused->why.code == ErrorCode::conflict);
  if (final) oracle_.answered(caller.telling, settlement);
  if (caller.asking != settlement.receipt.token()) return;  // gone, and asking elsewhere
  if (world_.strikes(Fault::reply_lost)) return;
  world_.say(nullptr, [&] {
    return "caller " + std::to_string(number) + " is told " +
           (done      ? std::to_string(done->answer.status) + " " + done->answer.body
            : refused ? code_name(refused->why.code)
                      : std::string("to come again"));
  });
  caller.told_ambiguous = refused && refused->why.code == ErrorCode::ambiguous;
  if (!final) return ask_later(number, caller.told_ambiguous ? 5'000ms : milliseconds(world_.random().spread(1'000)));
  if (caller.repeats < 1 && world_.random().one_in(2)) {
    ++caller.repeats;
    return ask_later(number, milliseconds(world_.random().spread(8'000)));
  }
  caller.answered = true;
  caller.asking = 0;
  --waiting_;
}

}  // namespace semel::sim
