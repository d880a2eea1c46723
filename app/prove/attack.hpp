// The attacks of `semel prove`, as data: what a client, a network or a crash does to one event, step by step. Pure.
#pragma once

#include <chrono>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace semel::prove {

/// What happens once. "Asks" means: as often as it takes to be answered.
struct Step {
  enum class Kind {
    send,             ///< a client asks
    together,         ///< `count` clients ask at the same moment
    cut,              ///< the effect is there, no reply was read, and the connection is reset
    lose_reply,       ///< the reply comes, and the connection is reset before anybody reads it
    hang_up,          ///< the client goes away as soon as its request is out
    hang_up_halfway,  ///< the client goes away in the middle of its request
    kill,             ///< the target is killed a while after the request is out, and started again
    wait,             ///< nothing, for the time of a late replay
  };
  Kind kind = Kind::send;
  int event = 1;         ///< which of the plan's events, from 1: an event has a key of its own
  bool changed = false;  ///< the same key with other content
  int count = 1;
  double moment = 0;  ///< of a kill: as a share of the time that a request takes
};

using Plan = std::vector<Step>;

/// What a broken promise looks like.
enum class Symptom { none, unanswered, changed_accepted, answers_differ, lost, repeated };

enum class Needs { nothing, start, reply, changed };

struct Attack {
  std::string_view name;
  std::string_view what;  ///< for people
  Needs needs;            ///< what the file must have for it
  bool by_chance;         ///< tried many times, since it depends on moments
  Plan plan;
};

/// `clients`: how many ask at once.
std::vector<Attack> all_attacks(int clients);

/// The attack's plan with the moments of its kills drawn anew.
Plan with_moments(Plan plan, std::mt19937_64& chance);

/// Plans that are simpler than this one by one thing, the simplest first.
std::vector<Plan> simpler(const Plan& plan);

/// Nothing but one event after the other, each as it should be.
bool only_sends(const Plan& plan);

bool has_event(const Plan& plan, int event);
/// What an event's plan allows: at most one effect, and none only where no client of it was answered.
int events_of(const Plan& plan);
bool must_happen(const Plan& plan, int event);

std::string_view symptom_text(Symptom symptom);
/// What to do about it, in one sentence.
std::string_view advice(std::string_view attack, Symptom symptom, const Plan& shortest);

}  // namespace semel::prove
