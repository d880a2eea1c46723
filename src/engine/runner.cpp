// The engine behind Consumer: checks, opens lanes, runs them, adds up.

#include <algorithm>
#include <atomic>
#include <deque>
#include <mutex>
#include <random>
#include <semel/consumer.hpp>
#include <set>
#include <thread>

#include "engine/janitor.hpp"
#include "engine/lane.hpp"
#include "engine/letters.hpp"

namespace semel::engine {

namespace {

/// A lane with the doorbell that wakes it and the thread that turns it.
struct Post {
  Doorbell bell;
  std::vector<Source*> sources;
  std::unique_ptr<Lane> lane;
  std::thread thread;
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

}  // namespace

struct Runner::State {
  Store& store;
  ConsumerOptions options;
  std::deque<Handler> added{};
  std::vector<Handler> handlers{};
  std::vector<Source*> sources{};
  std::atomic<bool> stopping{false};
  std::mutex posts_mutex{};
  std::vector<std::unique_ptr<Post>> posts{};

  Result<void> check_start();
  std::vector<std::vector<Source*>> plan() const;
  Result<void> open(Post& post);
  void turn_until_finished(Post& post);
  Result<Summary> collect();
  void ring_all();
};

Result<void> Runner::State::check_start() {
  std::set<std::string> names;
  handlers.assign(added.begin(), added.end());
  if (handlers.empty()) return misuse("a consumer needs a handler");
  for (const auto& handler : handlers)
    if (auto checked = check_options(handler.options, names); !checked) return checked;
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
  post.lane = std::make_unique<Lane>(*std::move(session), std::move(inlets), handlers, options, std::random_device{}());
  return {};
}

void Runner::State::turn_until_finished(Post& post) {
  bool stopped = false;
  while (true) {
    if (stopping && !stopped) {
      post.lane->stop();
      stopped = true;
    }
    const auto turn = post.lane->turn();
    if (turn.finished) return;
    if (turn.worked) continue;
    auto wait = longest_wait;
    if (turn.wake_at) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(*turn.wake_at - options.clock->now());
      wait = std::clamp(left, std::chrono::milliseconds(0), longest_wait);
    }
    post.bell.wait(wait);
  }
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
}

Runner::Runner(Store& store, ConsumerOptions options) : state_(new State{store, std::move(options)}) {}
Runner::~Runner() = default;

void Runner::add(Handler handler) { state_->added.push_back(std::move(handler)); }
void Runner::add(Source& source) { state_->sources.push_back(&source); }

Result<Summary> Runner::run() {
  if (auto checked = state_->check_start(); !checked) return std::move(checked).error();
  std::vector<std::unique_ptr<Post>> opened;
  for (auto& sources : state_->plan()) {
    auto post = std::make_unique<Post>();
    post->sources = std::move(sources);
    if (auto done = state_->open(*post); !done) return std::move(done).error();
    opened.push_back(std::move(post));
  }
  {
    const std::lock_guard lock(state_->posts_mutex);
    state_->posts = std::move(opened);
  }
  state_->options.observer->started();
  const Janitor janitor(state_->store, *state_->options.observer);
  for (auto& post : state_->posts) post->thread = std::thread([this, &post] { state_->turn_until_finished(*post); });
  for (auto& post : state_->posts) post->thread.join();
  auto summary = state_->collect();
  const std::lock_guard lock(state_->posts_mutex);
  state_->posts.clear();
  return summary;
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
