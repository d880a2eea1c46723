// The oracle: what must hold in the simulated world, whatever the engine does. It knows the happenings, reads the
// databases, and has never heard of attempts, leases or lanes.
#pragma once

#include <map>
#include <optional>
#include <semel/source.hpp>
#include <set>
#include <string>
#include <vector>

#include "database.hpp"
#include "outside.hpp"
#include "scenario.hpp"

namespace semel::sim {

class Oracle {
 public:
  Oracle(World& world, const Scenario& scenario, Database& database)
      : world_(world), scenario_(scenario), database_(database) {}

  /// The broker takes an acknowledgement for done.
  void acknowledged(std::size_t telling, const Settlement& settlement);
  /// A caller has an answer, for good.
  void answered(std::size_t telling, const Settlement& settlement);
  /// A live process was handed this outcome.
  void heard(const Process& process, const Call& call, const CallReport& report);
  void vanished(const Process& process);

  /// What is left to do that nobody waits for a person with: nothing at rest.
  bool is_at_rest() const;
  bool waits_for_operator() const;
  /// What is not at rest, for people.
  std::string unfinished() const;
  /// Once everything is at rest.
  /// That nothing was forgotten which a living process has heard.
  void look_at_evidence();
  void look_at_the_end(const Provider& provider, const Mailbox& mailbox);

  void accuse(std::string broken);
  /// The first promise that was broken.
  const std::optional<std::string>& broken() const { return broken_; }

 private:
  struct Heard {
    const Process* process;
    std::string intent;
    std::string reference;
  };

  const Happening& happening_of(std::size_t telling) const {
    return scenario_.happenings[scenario_.tellings[telling].happening];
  }
  std::vector<std::vector<Value>> rows_of(const std::string& table, const std::string& key) const;
  bool has_letter(const Happening& happening) const;
  std::string own_cents(std::size_t telling) const;
  void look_at(const Happening& happening, const Provider& provider);
  std::optional<std::string> look_at_step(const Provider& provider, const std::string& reference, bool is_refund);
  void look_at_chain(const Happening& happening, const Provider& provider);
  void look_at_intents();
  void look_at_mails(const Mailbox& mailbox);
  void look_at_a_calm_day(const Provider& provider);

  World& world_;
  const Scenario& scenario_;
  Database& database_;
  std::optional<std::string> broken_;
  std::map<std::string, std::string> answers_;  ///< the first one, by key
  std::vector<Heard> heard_;
};

}  // namespace semel::sim
