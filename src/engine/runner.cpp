// The engine behind Consumer: checks, opens lanes, runs them, adds up.

#include <algorithm>
#include <atomic>
#include <deque>
#include <mutex>
#include <random>
#include <semel/consumer.hpp>
#include <set>
#include <thread>

#include "base/process_name.hpp"
#include "engine/clerk.hpp"
#include "engine/janitor.hpp"
#include "engine/lane.hpp"
#include "engine/letters.hpp"
#include "engine/relay.hpp"

namespace semel::engine {

namespace {

/// A thread with the duties that it turns and the doorbell that wakes it.
struct Post {
  Doorbell bell;
  std::vector<Source*> sources;
  std::unique_ptr<Lane> lane;
  std::unique_ptr<Clerk> clerk;
  std::unique_ptr<Relay> relay;
  std::thread thread;

  void end(Ending how) {
    if (clerk) clerk->end(how);
    if (relay) relay->end(how);
  }
};

constexpr std::chrono::milliseconds longest_wait(1'000);

Error misuse(std::string message) { return fix_call(ErrorCode::handler_misused, std::move(message)); }

Result<void> check_options(const HandlerOptions& options, std::set<std::string>& names) {
  if (options.name.empty() || options.name.size() > 128) return misuse("a handler's name has 1 to 128 bytes");
  if (!names.insert(options.name).second) return misuse("two handlers are named \"" + options.name + "\"");
  if (options.key.parts().empty()) return misuse("handler \"" + options.name + "\" has no key");
  if (options.retention.count() <= 0) return misuse("handler \"" + options.name + "\": retention must be positive");
  if (options.retry.attempts_max < 1)
    return misuse("handler \"" + options.name + "\": attempts_max must be at least 1");
  return {};
}

void add_up(Summary& sum, const Summary& part) {
  sum.received += part.received;
  sum.fresh += part.fresh;
  sum.replays += part.replays;
  sum.set_aside += part.set_aside;
  sum.refused += part.refused;
  sum.handed_back += part.handed_back;
  sum.unmatched += part.unmatched;
}

/// What is said of effects and targets, before it is checked.
struct Said {
  std::vector<Effect> effects;
  std::map<std::string, decltype(Effect::settle)> settles;
  std::vector<Target> targets;
};

Result<Outside> outside_of(const Said& said) {
  Outside outside;
  std::set<const Performer*> calling;
  for (const auto& effect : said.effects) {
    const auto& name = effect.options.name;
    if (name.empty() || name.size() > 128) return misuse("an effect's name has 1 to 128 bytes");
    if (effect.options.lease.count() <= 0 || effect.options.timeout.count() <= 0)
      return misuse("effect \"" + name + "\": lease and timeout must be positive");
    if (!outside.effects.emplace(name, effect).second) return misuse("two effects are named \"" + name + "\"");
    calling.insert(effect.performer);
  }
  for (const auto& [name, settle] : said.settles) {
    const auto effect = outside.effects.find(name);
    if (effect == outside.effects.end()) return misuse("effect \"" + name + "\" is settled, but nobody performs it");
    effect->second.settle = settle;
  }
  for (const auto& target : said.targets) {
    if (calling.contains(target.performer)) return misuse("a performer makes calls or sends publications, not both");
    if (target.options.name.empty() || target.options.name.size() > 128)
      return misuse("a target's name has 1 to 128 bytes");
    if (!outside.targets.emplace(target.options.name, target).second)
      return misuse("two targets are named \"" + target.options.name + "\"");
  }
  return outside;
}

}  // namespace

struct Runner::State {
  Store& store;
  ConsumerOptions options;
  Said said{};
  std::deque<Handler> added{};
  std::vector<Handler> handlers{};
  Handlers handler_options{};
  std::vector<Source*> sources{};
  AfterCommit after_commit{};
  std::atomic<bool> stopping{false};
  std::atomic<bool> lanes_finished{false};
  std::mutex posts_mutex{};
  std::vector<std::unique_ptr<Post>> posts{};
  Post outside_post{};  ///< clerk and relay, on a thread of their own unless the store has one writer

  Result<void> check_start();
  std::vector<std::vector<Source*>> plan() const;
  Result<void> open(Post& post);
  Result<void> open_outside(Post& post);
  bool has_outside() const { return !after_commit.outside.empty(); }
  void turn_until_finished(Post& post);
  Turn turn(Post& post, bool& lane_finished);
  void wait(Post& post, const Turn& turn);
  Result<Summary> collect();
  Result<Summary> finish();
  void ring_all();
};

Result<void> Runner::State::check_start() {
  std::set<std::string> names;
  handlers.assign(added.begin(), added.end());
  if (handlers.empty()) return misuse("a consumer needs a handler");
  for (const auto& handler : handlers)
    if (auto checked = check_options(handler.options, names); !checked) return checked;
  for (const auto& handler : handlers) handler_options[handler.options.name] = &handler.options;
  auto outside = outside_of(said);
  if (!outside) return std::move(outside).error();
  after_commit.outside = *std::move(outside);
  if (options.process_name.empty()) options.process_name = name_of_this_process();
  if (options.batch_max == 0 || options.lanes_per_source < 1)
    return misuse("batch_max and lanes_per_source must be at least 1");
  auto findings = store.check();
  if (!findings) return std::move(findings).error();
  for (const auto& finding : *findings)
    if (finding.severity == Finding::Severity::refuse)
      return Error{Remedy::ask_operator, Certainty::not_applied, finding.code, finding.message};
  return {};
}

/// Which sources each lane takes from.
std::vector<std::vector<Source*>> Runner::State::plan() const {
  if (sources.empty()) return {};
  if (store.traits().single_writer) return {sources};
  std::vector<std::vector<Source*>> lanes;
  for (Source* source : sources)
    lanes.insert(lanes.end(), source->traits().ordered ? 1u : static_cast<std::size_t>(options.lanes_per_source),
                 {source});
  return lanes;
}

Result<void> Runner::State::open(Post& post) {
  auto session = store.open_session();
  if (!session) return std::move(session).error();
  std::vector<Inlet> inlets;
  for (Source* source : post.sources) {
    auto receiver = source->open(post.bell);
    if (!receiver) return std::move(receiver).error();
    inlets.push_back({*std::move(receiver), source->traits(), dynamic_cast<LetterSource*>(source)});
  }
  post.lane = std::make_unique<Lane>(*std::move(session), std::move(inlets), handlers, options, after_commit, post.bell,
                                     std::random_device{}());
  return {};
}

Result<void> Runner::State::open_outside(Post& post) {
  const auto& outside = after_commit.outside;
  if (!outside.effects.empty()) {
    auto session = store.open_session();
    if (!session) return std::move(session).error();
    post.clerk = std::make_unique<Clerk>(*std::move(session), handler_options, options, after_commit, post.bell,
                                         std::random_device{}());
  }
  const bool relays = std::any_of(outside.targets.begin(), outside.targets.end(),
                                  [](const auto& target) { return target.second.performer != nullptr; });
  if (relays) {
    auto session = store.open_session();
    if (!session) {
      post.clerk.reset();  // its performers are free again
      return std::move(session).error();
    }
    post.relay = std::make_unique<Relay>(*std::move(session), options, after_commit, post.bell, std::random_device{}());
  }
  return {};
}

/// One turn of every duty.
Turn Runner::State::turn(Post& post, bool& lane_finished) {
  Turn all{.worked = false, .finished = true, .wake_at = std::nullopt};
  const auto add = [&all](const Turn& one) {
    all.worked = all.worked || one.worked;
    all.finished = all.finished && one.finished;
    // What has finished waits for nothing.
    if (one.finished || !one.wake_at) return;
    if (!all.wake_at || *one.wake_at < *all.wake_at) all.wake_at = one.wake_at;
  };
  if (post.lane) {
    const auto one = post.lane->turn();
    lane_finished = one.finished;
    add(one);
  }
  if (post.clerk) add(post.clerk->turn());
  if (post.relay) add(post.relay->turn());
  return all;
}

void Runner::State::turn_until_finished(Post& post) {
  bool stopped = false;
  bool ended = false;
  while (true) {
    if (stopping && !stopped && post.lane) {
      post.lane->stop();
      stopped = true;
    }
    bool lane_finished = lanes_finished;
    const auto all = turn(post, lane_finished);
    if (lane_finished && !ended) {
      post.end(stopping ? Ending::stop : Ending::drain);
      ended = true;
      continue;
    }
    if (all.finished) return;
    if (!all.worked) wait(post, all);
  }
}

void Runner::State::wait(Post& post, const Turn& turn) {
  auto time = longest_wait;
  if (turn.wake_at) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*turn.wake_at - options.clock->now());
    time = std::clamp(left, std::chrono::milliseconds(0), longest_wait);
  }
  post.bell.wait(time);
}

/// After the last thread has ended.
Result<Summary> Runner::State::finish() {
  auto summary = collect();
  const std::lock_guard lock(posts_mutex);
  outside_post.clerk.reset();
  outside_post.relay.reset();
  posts.clear();
  return summary;
}

Result<Summary> Runner::State::collect() {
  Summary sum;
  std::optional<Error> damage;
  for (const auto& post : posts) {
    add_up(sum, post->lane->summary());
    if (!damage) damage = post->lane->damage();
  }
  if (damage) return *damage;
  return sum;
}

void Runner::State::ring_all() {
  const std::lock_guard lock(posts_mutex);
  for (const auto& post : posts) post->bell.ring();
  outside_post.bell.ring();
}

Runner::Runner(Store& store, ConsumerOptions options) : state_(new State{store, std::move(options)}) {}
Runner::~Runner() = default;

void Runner::add(Handler handler) { state_->added.push_back(std::move(handler)); }
void Runner::add(Source& source) { state_->sources.push_back(&source); }
void Runner::add(EffectOptions effect, Performer& performer) {
  state_->said.effects.push_back({std::move(effect), &performer, {}});
}
void Runner::settle(std::string effect,
                    std::function<std::optional<Answer>(const Settled&, Session&, WorkLog&)> handler) {
  state_->said.settles.insert_or_assign(std::move(effect), std::move(handler));
}
void Runner::add(TargetOptions target, Performer* performer) {
  state_->said.targets.push_back({std::move(target), performer});
}

Result<Summary> Runner::run() {
  if (auto checked = state_->check_start(); !checked) return std::move(checked).error();
  std::vector<std::unique_ptr<Post>> opened;
  for (auto& sources : state_->plan()) {
    auto post = std::make_unique<Post>();
    post->sources = std::move(sources);
    if (auto done = state_->open(*post); !done) return std::move(done).error();
    opened.push_back(std::move(post));
  }
  // A store with one writer has one thread that writes: clerk and relay take turns with the lane.
  const bool shared = state_->store.traits().single_writer && !opened.empty();
  Post& outside = shared ? *opened.front() : state_->outside_post;
  if (auto done = state_->open_outside(outside); !done) return std::move(done).error();
  {
    const std::lock_guard lock(state_->posts_mutex);
    state_->posts = std::move(opened);
  }
  state_->options.observer->started();
  const JanitorThread janitor(state_->store, *state_->options.observer, *state_->options.clock);
  for (auto& post : state_->posts) post->thread = std::thread([this, &post] { state_->turn_until_finished(*post); });
  if (!shared && state_->has_outside())
    state_->outside_post.thread = std::thread([this] { state_->turn_until_finished(state_->outside_post); });
  for (auto& post : state_->posts) post->thread.join();
  state_->lanes_finished = true;
  state_->ring_all();
  if (state_->outside_post.thread.joinable()) state_->outside_post.thread.join();
  return state_->finish();
}

Result<Summary> Runner::resend(std::span<const std::string> dead_letter_ids) {
  if (auto checked = state_->check_start(); !checked) return std::move(checked).error();
  std::vector<DeadLetter> letters;
  for (const auto& id : dead_letter_ids) {
    auto letter = state_->store.dead_letter(id);
    if (!letter) return std::move(letter).error();
    if (!*letter) return fix_call(ErrorCode::config_unknown_name, "there is no dead letter \"" + id + "\"");
    letters.push_back(**std::move(letter));
  }
  // Whoever runs all the time makes the calls; nothing here waits for them.
  state_->after_commit.outside.calls_here = false;
  LetterSource source(std::move(letters));
  Post post;
  post.sources = {&source};
  if (auto opened = state_->open(post); !opened) return std::move(opened).error();
  state_->turn_until_finished(post);
  for (const auto& id : source.got_through())
    if (auto resolved = state_->store.resolve(id, "retried"); !resolved) return std::move(resolved).error();
  return post.lane->summary();
}

void Runner::stop() noexcept {
  state_->stopping = true;
  state_->ring_all();
}

}  // namespace semel::engine
