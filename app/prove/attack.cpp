#include "prove/attack.hpp"

#include <algorithm>

namespace semel::prove {
namespace {

using Kind = Step::Kind;

/// Kills fall up to here, in shares of the time that a request takes: behind the reply too.
constexpr double latest_moment = 1.5;

}  // namespace

std::vector<Attack> all_attacks(int clients) {
  const Step first{.kind = Kind::send};
  const Step second{.kind = Kind::send, .event = 2};
  return {
      {"repeat", "the same event twice in a row", Needs::nothing, false, {first, first}},
      {"at-once",
       "the same event from several clients at one moment",
       Needs::nothing,
       true,
       {{.kind = Kind::together, .count = clients}}},
      {"cut",
       "the connection is cut right after the effect, before the reply; then again",
       Needs::reply,
       true,
       {{.kind = Kind::cut}, first, first}},
      {"reply-lost", "the reply is lost; then again", Needs::reply, false, {{.kind = Kind::lose_reply}, first, first}},
      {"kill",
       "the target is killed between request and reply, started, and asked again",
       Needs::start,
       true,
       {{.kind = Kind::kill}, first, first}},
      {"late", "the same event again after a while", Needs::nothing, false, {first, {.kind = Kind::wait}, first}},
      {"changed",
       "another content under the same key",
       Needs::changed,
       false,
       {first, {.kind = Kind::send, .changed = true}, first}},
      {"reordered", "the second of two events first; then both again", Needs::nothing, false, {second, first, second}},
      {"hang-up",
       "the client goes away in the middle of its request, then right after it; then again",
       Needs::reply,
       true,
       {{.kind = Kind::hang_up_halfway}, {.kind = Kind::hang_up}, first, first}},
  };
}

Plan with_moments(Plan plan, std::mt19937_64& chance) {
  std::uniform_real_distribution<double> moment(0, latest_moment);
  for (auto& step : plan)
    if (step.kind == Kind::kill) step.moment = moment(chance);
  return plan;
}

std::vector<Plan> simpler(const Plan& plan) {
  std::vector<Plan> plans;
  for (std::size_t i = 0; plan.size() > 1 && i < plan.size(); ++i) {
    plans.push_back(plan);
    plans.back().erase(plans.back().begin() + static_cast<std::ptrdiff_t>(i));
  }
  for (std::size_t i = 0; i < plan.size(); ++i) {
    const auto& step = plan[i];
    if (step.kind == Kind::wait || (step.kind == Kind::send && !step.changed)) continue;
    plans.push_back(plan);
    if (step.kind != Kind::together) {
      plans.back()[i] = {.kind = Kind::send, .event = step.event};
      continue;
    }
    // Two in a row are simpler than two at once.
    plans.back()[i] = {.kind = Kind::send, .event = step.event};
    plans.back().insert(plans.back().begin() + static_cast<std::ptrdiff_t>(i), plans.back()[i]);
    for (int count = 2; count < step.count; count *= 2) {
      plans.push_back(plan);
      plans.back()[i].count = count;
    }
  }
  return plans;
}

bool only_sends(const Plan& plan) {
  return std::ranges::all_of(plan, [](const Step& step) { return step.kind == Kind::send && !step.changed; });
}

bool has_event(const Plan& plan, int event) {
  return std::ranges::any_of(plan, [&](const Step& step) { return step.event == event; });
}

int events_of(const Plan& plan) {
  int events = 1;
  for (const auto& step : plan) events = std::max(events, step.event);
  return events;
}

bool must_happen(const Plan& plan, int event) {
  return std::ranges::any_of(plan, [&](const Step& step) {
    return step.event == event && !step.changed && (step.kind == Kind::send || step.kind == Kind::together);
  });
}

std::string_view symptom_text(Symptom symptom) {
  switch (symptom) {
    case Symptom::none:
      return "held";
    case Symptom::unanswered:
      return "no answer in the end";
    case Symptom::changed_accepted:
      return "other content was accepted under a used key";
    case Symptom::answers_differ:
      return "the answers differ";
    case Symptom::lost:
      return "the effect is lost";
    case Symptom::repeated:
      return "the effect was repeated";
  }
  return "";
}

std::string_view advice(std::string_view attack, Symptom symptom, const Plan& shortest) {
  switch (symptom) {
    case Symptom::none:
      return "";
    case Symptom::unanswered:
      return "A client that asks again must be answered in the end: see what the target logged while it was attacked.";
    case Symptom::changed_accepted:
      return "Keep a fingerprint of the request with its key, and refuse another one under that key (422).";
    case Symptom::answers_differ:
      return "Store the answer in the effect's transaction, with the key, and give that one to whoever asks again.";
    case Symptom::lost:
      if (attack == "reordered")
        return "Keep a record of each key; the highest number that was seen says nothing of those below it.";
      return "The key is recorded before the effect and apart from it: write both in one transaction.";
    case Symptom::repeated:
      break;
  }
  if (only_sends(shortest))
    return "Nothing recognises the second one: record the event's own key, not one made for each attempt, in the "
           "effect's transaction, under a unique index.";
  if (attack == "at-once")
    return "Looking first and writing then leaves a gap: let a unique index on the key decide, in the effect's "
           "transaction.";
  if (attack == "kill")
    return "What was done is remembered in the process, or only after the effect: record the key in the effect's "
           "transaction.";
  if (attack == "late") return "Keys are forgotten too soon: keep them longer than anybody repeats himself.";
  return "The key is recorded after the effect, or with the reply: record it in the effect's transaction.";
}

}  // namespace semel::prove
