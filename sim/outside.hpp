// What is outside of the database in the simulated world: the broker, callers, a payment provider, and whoever receives
// publications.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <semel/performer.hpp>
#include <semel/source.hpp>
#include <set>
#include <string>
#include <vector>

#include "scenario.hpp"
#include "world.hpp"

namespace semel::sim {

class Oracle;

/// What a telling ends with, as its teller sees it.
struct Told {
  std::size_t telling;
  const Settlement* settlement;
};

/// Takes messages and gives them out until they are acknowledged; sometimes to two at once, sometimes again.
class Broker {
 public:
  Broker(World& world, const Scenario& scenario, Oracle& oracle)
      : world_(world), scenario_(scenario), oracle_(oracle) {}

  void put(std::size_t telling);
  bool is_empty() const { return waiting_ == 0; }
  std::unique_ptr<Receiver> open(Process& process, Doorbell& bell);

 private:
  class End;
  struct Message {
    std::size_t telling;
    microseconds visible_at{0};
    int receive_count = 0;
    bool gone = false;
  };

  Batch give(std::size_t count_max);
  void settle(const Settlement& settlement);
  void appear(std::size_t number, microseconds delay);

  World& world_;
  const Scenario& scenario_;
  Oracle& oracle_;
  std::vector<Message> messages_;
  std::map<std::uint64_t, std::size_t> receipts_;  ///< message by receipt
  std::uint64_t next_receipt_ = 0;
  std::size_t waiting_ = 0;
  std::set<std::pair<int, Doorbell*>> bells_;
};

/// Ask, and ask again until they have an answer.
class Callers {
 public:
  Callers(World& world, const Scenario& scenario, Oracle& oracle)
      : world_(world), scenario_(scenario), oracle_(oracle) {}

  void call(std::size_t telling);
  bool all_answered() const { return waiting_ == 0; }
  /// Of those who wait, how many were told that an operator is asked.
  bool wait_for_operators_only() const;
  std::unique_ptr<Receiver> open(Process& process, Doorbell& bell);

 private:
  class End;
  struct Desk {
    Process* process;
    Doorbell* bell;
    std::deque<Delivery> inbox;
  };
  struct Caller {
    std::size_t telling;
    std::uint64_t asking = 0;  ///< the receipt of the request that is under way
    bool answered = false;
    bool told_ambiguous = false;
    int questions = 0;
    int repeats = 0;  ///< asks again though answered
  };

  void ask(std::size_t caller);
  void ask_later(std::size_t caller, microseconds delay);
  void answer(const Settlement& settlement);

  World& world_;
  const Scenario& scenario_;
  Oracle& oracle_;
  std::vector<Caller> callers_;
  std::vector<Desk*> desks_;
  std::uint64_t next_receipt_ = 0;
  std::map<std::uint64_t, std::size_t> asked_;
  std::size_t waiting_ = 0;
};

/// A call on its way: whoever answers it does so at most once.
using Answering = std::function<void(CallReport)>;

/// Charges cards.
class Provider {
 public:
  struct Charge {
    std::string intent;
    std::string effect;
    std::string reference;
    std::string id;
    microseconds at;
  };

  explicit Provider(World& world) : world_(world) {}

  void receive(const Call& call, Answering answer);
  const std::vector<Charge>& charges() const { return charges_; }
  std::int64_t calls() const { return calls_; }
  bool is_idle() const { return under_way_ == 0; }

 private:
  struct Known {
    microseconds since;
    std::optional<CallReport> answer;
  };

  void arrive(const Call& call, const Answering& answer);
  void look_up(const Call& call, const Answering& answer);
  void carry_out(const Call& call, bool declines, bool fails_before, bool fails_after, const Answering& answer);

  World& world_;
  std::map<std::string, Known> known_;
  std::vector<Charge> charges_;
  std::int64_t calls_ = 0;
  int under_way_ = 0;
};

/// Receives publications.
class Mailbox {
 public:
  struct Mail {
    std::string id;
    std::string body;
    std::string order_key;
  };

  explicit Mailbox(World& world) : world_(world) {}

  void receive(const Call& call, Answering answer);
  const std::vector<Mail>& mails() const { return mails_; }

 private:
  World& world_;
  std::vector<Mail> mails_;
};

/// A process's end of a connection to the outside.
class SimulatedPerformer : public Performer {
 public:
  /// `heard`: told of each report that the process is handed.
  SimulatedPerformer(World& world, Process& process, std::size_t room,
                     std::function<void(const Call&, Answering)> receiver,
                     std::function<void(const Call&, const CallReport&)> heard);
  ~SimulatedPerformer() override;

  void open(Doorbell& bell) override;
  void close() override;
  std::size_t room() const override;
  void begin(Call call) override;
  std::vector<Performed> collect() override;

 private:
  struct Line {
    bool hung_up = false;
    Doorbell* bell = nullptr;
    std::map<std::uint64_t, Call> under_way;
    std::vector<std::pair<Call, CallReport>> reports;
  };

  World& world_;
  Process& process_;
  std::size_t room_;
  std::function<void(const Call&, Answering)> receiver_;
  std::function<void(const Call&, const CallReport&)> heard_;
  std::shared_ptr<Line> line_ = std::make_shared<Line>();
  std::uint64_t next_ = 0;
};

}  // namespace semel::sim
