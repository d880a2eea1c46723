#include "prove/trial.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <barrier>
#include <thread>

#include "output.hpp"

namespace semel::prove {
namespace {

using Kind = Step::Kind;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds first_pause{20};
constexpr std::chrono::milliseconds longest_pause{500};
constexpr std::chrono::milliseconds count_every{2};
constexpr std::size_t body_shown_max = 80;

/// What asks to come again. A conflict is one under another's content, and else says that the first is under way.
bool asks_again(const Reply& reply, bool changed) {
  return reply.status == 0 || (reply.status == 409 && !changed) || reply.status == 425 || reply.status == 429 ||
         reply.status >= 500;
}

bool unanswered(const Reply& reply) { return reply.status != 409 && asks_again(reply, false); }

std::string text_of(const Reply& reply) {
  if (reply.status == 0) return "no answer (" + reply.failure + ")";
  return fmt::format("{} {}", reply.status, app::printable(reply.body.substr(0, body_shown_max)));
}

}  // namespace

/// What is gathered while a plan is carried out.
struct Bench::Run {
  std::vector<std::string> keys;
  std::map<int, std::vector<Reply>> answers{};  ///< of each event, to its own content
  bool unanswered = false;
  bool changed_accepted = false;
  std::vector<std::string> sequence{};

  const std::string& key(const Step& step) const { return keys[static_cast<std::size_t>(step.event - 1)]; }
  void tell(std::string line) { sequence.push_back(std::move(line)); }
};

std::string Bench::new_key() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto time = static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(now).count());
  ++keys_made_;
  // Later ones are greater, as with what a target may take for "seen all up to here".
  if (settings_.keys == Settings::Keys::number) return std::to_string(time * 1'000 + keys_made_ % 1'000);
  std::mt19937_64 chance(seed_ ^ (time << 20) ^ keys_made_);
  return fmt::format("{:08x}-{:04x}-7{:03x}-8{:03x}-{:012x}", (time >> 16) & 0xffffffff, time & 0xffff,
                     keys_made_ & 0xfff, (keys_made_ >> 12) & 0xfff, chance() & 0xffffffffffff);
}

Outgoing Bench::request(const Step& step, const std::string& key) const {
  const auto& wanted = std::get<Request>(settings_.event);
  Outgoing outgoing{.method = wanted.method, .url = with_key(wanted.url, key)};
  for (const auto& [name, value] : wanted.headers) outgoing.headers.emplace_back(name, with_key(value, key));
  outgoing.body = with_key(step.changed ? wanted.changed.value_or("") : wanted.body, key);
  return outgoing;
}

Result<void> Bench::put_message(const Step& step, const std::string& key) {
  const auto& message = std::get<Message>(settings_.event);
  const auto output = output_of(with_key(step.changed ? message.changed.value_or("") : message.command, key));
  if (!output) return output.error();
  return {};
}

Result<Reply> Bench::ask_until_answered(const Step& step, const std::string& key) {
  const auto deadline = Clock::now() + settings_.patience;
  for (auto pause = first_pause;; pause = std::min(pause * 2, longest_pause)) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    auto reply = Exchange(request(step, key), std::max(left, first_pause)).finish();
    if (!asks_again(reply, step.changed) || Clock::now() + pause > deadline) return reply;
    std::this_thread::sleep_for(pause);
  }
}

Result<void> Bench::send(Run& run, const Step& step) {
  const auto& key = run.key(step);
  const auto* what = step.changed ? "other content, " : "";
  if (std::holds_alternative<Message>(settings_.event)) {
    run.tell(fmt::format("the message, {}key {}", what, key));
    return put_message(step, key);
  }
  const auto& wanted = std::get<Request>(settings_.event);
  const auto reply = ask_until_answered(step, key);
  if (!reply) return reply.error();
  run.tell(fmt::format("{} {}, {}key {}: {}", wanted.method, with_key(wanted.url, key), what, key, text_of(*reply)));
  run.unanswered |= unanswered(*reply);
  if (step.changed)
    run.changed_accepted |= reply->status >= 200 && reply->status < 300;
  else
    run.answers[step.event].push_back(*reply);
  return {};
}

Result<void> Bench::together(Run& run, const Step& step) {
  std::vector<Run> runs(static_cast<std::size_t>(step.count), Run{.keys = run.keys});
  std::vector<Result<void>> results(runs.size());
  {
    std::barrier ready(step.count);
    std::vector<std::jthread> clients;
    for (std::size_t i = 0; i < runs.size(); ++i) {
      clients.emplace_back([&, i] {
        ready.arrive_and_wait();
        results[i] = send(runs[i], step);
      });
    }
  }
  run.tell(fmt::format("{} clients at once:", step.count));
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (!results[i]) return results[i];
    run.unanswered |= runs[i].unanswered;
    for (const auto& reply : runs[i].answers[step.event]) run.answers[step.event].push_back(reply);
    run.tell("  " + runs[i].sequence.front());
  }
  return {};
}

Result<void> Bench::wait_for_effect(const std::string& key) {
  const auto deadline = Clock::now() + settings_.settle;
  while (Clock::now() < deadline) {
    const auto counted = counter_.count(key);
    if (!counted) return counted.error();
    if (*counted > 0) return {};
    std::this_thread::sleep_for(count_every);
  }
  return {};
}

Result<void> Bench::go_away(Run& run, const Step& step) {
  const auto& key = run.key(step);
  const auto& wanted = std::get<Request>(settings_.event);
  const bool halfway = step.kind == Kind::hang_up_halfway;
  Exchange exchange(request(step, key), settings_.patience, halfway ? Exchange::Leave::half : Exchange::Leave::nothing);
  exchange.send();
  std::string_view end = "the client hangs up right after it";
  if (halfway) end = "the client hangs up in the middle of it";
  if (step.kind == Kind::lose_reply) {
    exchange.wait_for_reply();
    end = "its reply is lost";
  }
  if (step.kind == Kind::cut) {
    if (auto waited = wait_for_effect(key); !waited) return waited;
    end = "cut once the effect was there, no reply read";
  }
  run.tell(fmt::format("{} {}, key {}: {}", wanted.method, with_key(wanted.url, key), key, end));
  return {};
}

Result<void> Bench::kill(Run& run, const Step& step) {
  const auto& key = run.key(step);
  const auto after = std::chrono::duration_cast<std::chrono::microseconds>(usual_ * step.moment);
  std::unique_ptr<Exchange> exchange;
  std::string what = "the message";
  if (std::holds_alternative<Request>(settings_.event)) {
    const auto& wanted = std::get<Request>(settings_.event);
    exchange = std::make_unique<Exchange>(request(step, key), settings_.patience);
    exchange->send();
    what = wanted.method + " " + with_key(wanted.url, key);
  } else if (auto put = put_message(step, key); !put) {
    return put;
  }
  std::this_thread::sleep_for(after);
  target_.kill();
  run.tell(fmt::format("{}, key {}: the target is killed {} ms after it, and started again", what, key,
                       static_cast<double>(after.count()) / 1'000));
  return target_.bring_up();
}

Result<void> Bench::take(Run& run, const Step& step) {
  switch (step.kind) {
    case Kind::send:
      return send(run, step);
    case Kind::together:
      return together(run, step);
    case Kind::kill:
      return kill(run, step);
    case Kind::cut:
    case Kind::lose_reply:
    case Kind::hang_up:
    case Kind::hang_up_halfway:
      return go_away(run, step);
    case Kind::wait:
      break;
  }
  run.tell(fmt::format("nothing for {} ms", settings_.late.count()));
  std::this_thread::sleep_for(settings_.late);
  return {};
}

Result<long long> Bench::effects_at_rest(const std::string& key, long long expected) {
  const auto deadline = Clock::now() + settings_.settle;
  auto counted = counter_.count(key);
  while (counted && *counted < expected && Clock::now() < deadline) {
    std::this_thread::sleep_for(count_every);
    counted = counter_.count(key);
  }
  for (auto quiet_until = Clock::now() + settings_.quiet; counted && Clock::now() < quiet_until;) {
    std::this_thread::sleep_for(count_every);
    const auto again = counter_.count(key);
    if (!again) return again.error();
    if (*again != *counted) quiet_until = Clock::now() + settings_.quiet;
    counted = again;
  }
  return counted;
}

Result<Seen> Bench::judge(Run& run, const Plan& plan) {
  Seen seen;
  for (int event = 1; event <= events_of(plan); ++event) {
    if (!has_event(plan, event)) continue;
    const long long least = must_happen(plan, event) ? 1 : 0;
    const auto& key = run.keys[static_cast<std::size_t>(event - 1)];
    const auto effects = effects_at_rest(key, least);
    if (!effects) return effects.error();
    run.tell(fmt::format("effects of key {}: {}", key, *effects));
    seen.expected += 1;
    seen.effects += *effects;
    if (*effects > 1) seen.symptom = std::max(seen.symptom, Symptom::repeated);
    if (*effects < least) seen.symptom = std::max(seen.symptom, Symptom::lost);
    const auto& answers = run.answers[event];
    if (!settings_.same_answers || answers.size() < 2) continue;
    const bool same = std::ranges::all_of(answers, [&](const Reply& reply) {
      return reply.status == answers.front().status && reply.body == answers.front().body;
    });
    seen.same_answers = seen.same_answers.value_or(true) && same;
    if (!same) seen.symptom = std::max(seen.symptom, Symptom::answers_differ);
  }
  if (run.changed_accepted) seen.symptom = std::max(seen.symptom, Symptom::changed_accepted);
  if (run.unanswered) seen.symptom = std::max(seen.symptom, Symptom::unanswered);
  seen.sequence = std::move(run.sequence);
  seen.keys = std::move(run.keys);
  return seen;
}

Result<Seen> Bench::carry_out(const Plan& plan) {
  if (stop_.stop_requested()) return fix_call(ErrorCode::source_unreadable, "interrupted: nothing is proved");
  if (auto up = target_.bring_up(); !up) return up.error();
  Run run{};
  for (int event = 1; event <= events_of(plan); ++event) run.keys.push_back(new_key());
  for (const auto& step : plan)
    if (auto taken = take(run, step); !taken) return taken.error();
  return judge(run, plan);
}

Result<Seen> Bench::warm_up() {
  if (auto up = target_.bring_up(); !up) return up.error();
  const auto unused = counter_.count(new_key());
  if (!unused) return unused.error();
  if (*unused != 0)
    return fix_call(ErrorCode::source_unreadable, "a key that was never used has effects already: see `effects`");
  const Step step{};
  Run run{.keys = {new_key()}};
  const auto begin = Clock::now();
  if (auto sent = send(run, step); !sent) return sent.error();
  if (auto waited = wait_for_effect(run.keys.front()); !waited) return waited.error();
  usual_ = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - begin);
  auto seen = judge(run, {step});
  if (seen && seen->effects != 1) {
    return fix_call(ErrorCode::source_unreadable,
                    fmt::format("asked once, the target must have one effect, not {}:\n  {}", seen->effects,
                                fmt::join(seen->sequence, "\n  ")));
  }
  return seen;
}

}  // namespace semel::prove
