#include "node.hpp"

#include <algorithm>

namespace semel::sim {

using namespace std::chrono_literals;

namespace {

using Work = semel::Work<SqlSession>;

/// Publishes one mail with the next number of its order key, which the user's own rows remember.
void send_mail(Work& work, const std::string& order_key) {
  work.execute("UPDATE counters SET n = n + 1 WHERE name = $1", order_key);
  const auto rows = work.query("SELECT n FROM counters WHERE name = $1", order_key);
  const auto place = std::get<std::int64_t>(rows.rows.at(0).at(0));
  work.execute("INSERT INTO mails (name, n) VALUES ($1, $2)", order_key, place);
  work.publish({.to = "mails", .body = order_key + std::to_string(place), .order_key = order_key});
}

/// What the provider gets; it declines a request that ends with x.
std::string request_of(const std::string& key, bool to_be_declined) { return key + (to_be_declined ? "x" : "}"); }

Outcome handle(const Message& message, Work& work, std::int64_t run) {
  const auto key = message.text("/id");
  const auto kind = message.text("/kind");
  const auto cents = message.integer("/cents");
  const auto answer = key + ":" + std::to_string(cents) + ":" + std::to_string(run);
  work.execute("INSERT INTO effects (name, cents) VALUES ($1, $2)", key, cents);
  if (kind == "reject") return Rejection{.reason = "no", .answer = {.status = 422, .body = answer}};
  if (kind == "publish")
    for (std::int64_t n = 0; n < message.integer("/count"); ++n) send_mail(work, message.text("/order"));
  if (kind == "charge")
    work.intend({.effect = message.text("/effect"), .request = request_of(key, cents % 4 == 0), .reference = key});
  if (kind == "chain")
    work.intend({.effect = message.text("/effect"),
                 .request = request_of(key, false),
                 .reference = key,
                 .compensation = Compensation{.effect = "refund", .request = request_of(key, false)}});
  return Answer{.status = 201, .body = answer};
}

Answer settle(const Settled& settled, Work& work) {
  const auto key = settled.message().text("/id");
  const auto state = std::string(intent_state_name(settled.intent().status.state));
  const auto& intent = settled.intent();
  const auto step = intent.compensates ? key + "/undone" : intent.reference;
  work.execute("INSERT INTO settlements (name, state) VALUES ($1, $2)", step, state);
  if (settled.message().text("/kind") == "chain" && settled.succeeded() && intent.reference == key &&
      !intent.compensates)
    work.intend({.effect = "idempotent",
                 .request = request_of(key, settled.message().integer("/cents") % 2 == 0),
                 .reference = key + "/2"});
  send_mail(work, settled.message().text("/order"));
  return {.status = settled.succeeded() ? 200 : 402,
          .body = key + ":" + std::to_string(settled.message().integer("/cents")) + ":" + settled.outcome().reference};
}

}  // namespace

Node::Node(Town& town, int number, int life)
    : town_(town),
      process_{.number = number, .name = "host-" + std::to_string(number) + "." + std::to_string(life)},
      host_(town.world, process_),
      clock_(town.world, process_),
      probe_(town.world, process_),
      store_(town.database, host_),
      performers_{{town.world, process_, town.scenario.performer_room,
                   [this](const Call& call, Answering answer) { town_.provider.receive(call, std::move(answer)); },
                   [this](const Call& call, const CallReport& said) { town_.oracle.heard(process_, call, said); }},
                  {town.world, process_, 8,
                   [this](const Call& call, Answering answer) { town_.mailbox.receive(call, std::move(answer)); },
                   [](const Call&, const CallReport&) {}}} {
  process_.clock_offset = town.scenario.clock_offsets[static_cast<std::size_t>(number)];
  options_.batch_max = town.scenario.batch_max;
  options_.process_name = process_.name;
  options_.clock = &clock_;
  options_.probe = &probe_;
  add_handler();
  add_outside();
  auto& random = town.world.random();
  for (int i = 0; i <= town.scenario.lanes; ++i) {
    const bool callers = i == town.scenario.lanes;
    auto& post = add_post(callers ? "callers" : "lane " + std::to_string(i));
    std::vector<engine::Inlet> inlets;
    inlets.push_back(
        {.receiver = callers ? town.callers.open(process_, post.bell) : town.broker.open(process_, post.bell),
         .traits = {.redelivers = !callers}});
    post.lane = std::make_unique<engine::Lane>(session(), std::move(inlets), handlers_, options_, after_commit_,
                                               post.bell, random.next());
  }
  auto& outside = add_post("outside");
  outside.clerk = std::make_unique<engine::Clerk>(session(), handler_options_, options_, after_commit_, outside.bell,
                                                  random.next());
  outside.relay = std::make_unique<engine::Relay>(session(), options_, after_commit_, outside.bell, random.next());
  add_post("janitor").janitor = std::make_unique<engine::Janitor>(store_, *options_.observer, clock_);
}

void Node::add_handler() {
  engine::Handler handler{.options = {.name = "work", .key = KeyExpression::body("/id")}, .run = {}, .run_batch = {}};
  handler.options.retention = std::chrono::minutes(10);
  handler.options.waiting = {.deadline = 5s,
                             .accepted_when_late = town_.scenario.accepted_when_late,
                             .wait_again = town_.scenario.waits_again};
  handler.run = [this](const Message& message, Session& session, WorkLog& log) {
    Work work(static_cast<SqlSession&>(session), log);
    return handle(message, work, ++town_.runs);
  };
  handlers_.push_back(std::move(handler));
  handler_options_["work"] = &handlers_.front().options;
}

void Node::add_outside() {
  auto& outside = after_commit_.outside;
  for (auto options : simulated_effects(town_.scenario)) {
    if (town_.world.has(Mutant::lookup_trusted_too_early)) options.policy.visibility_delay = 0s;
    if (town_.world.has(Mutant::repeat_after_key_lifetime)) options.policy.key_lifetime = 24h;
    engine::Effect effect{.options = options, .performer = &performers_[0], .settle = {}};
    effect.settle = [](const Settled& settled, Session& session, WorkLog& log) -> std::optional<Answer> {
      Work work(static_cast<SqlSession&>(session), log);
      return settle(settled, work);
    };
    outside.effects.emplace(options.name, std::move(effect));
  }
  outside.targets.emplace("mails", engine::Target{.options = {.name = "mails", .timeout = 3s, .delay_max = 3s},
                                                  .performer = &performers_[1]});
}

Node::Post& Node::add_post(const std::string& name) {
  posts_.push_back(std::make_unique<Post>());
  auto& post = *posts_.back();
  running_ += name != "janitor";
  town_.world.start(process_, name, [this, &post] { turn_until_finished(post); });
  return post;
}

void Node::stop() {
  if (stopping_ || process_.dead) return;
  town_.world.say(&process_, [] { return std::string("is told to stop"); });
  stopping_ = true;
  for (auto& post : posts_) post->bell.ring();
}

/// Lanes end first; then clerk and relay are told.
void Node::one_finished() {
  if (--running_ == 0) return town_.world.crash(process_);
  for (auto& post : posts_) post->bell.ring();
}

engine::Turn Node::turn(Post& post) {
  engine::Turn all{.worked = false, .finished = true, .wake_at = std::nullopt};
  const auto add = [&all](const engine::Turn& one) {
    all.worked = all.worked || one.worked;
    all.finished = all.finished && one.finished;
    // What has finished waits for nothing.
    if (one.finished || !one.wake_at) return;
    if (!all.wake_at || *one.wake_at < *all.wake_at) all.wake_at = one.wake_at;
  };
  if (post.lane) add(post.lane->turn());
  if (post.clerk) add(post.clerk->turn());
  if (post.relay) add(post.relay->turn());
  if (post.janitor) add(post.janitor->turn());
  return all;
}

/// As the consumer's threads do.
void Node::turn_until_finished(Post& post) {
  for (;;) {
    if (stopping_ && !post.stopped && post.lane) {
      post.lane->stop();
      post.stopped = true;
    }
    if (stopping_ && !post.stopped && post.clerk && running_ == 1) {
      post.clerk->end(engine::Ending::stop);
      post.relay->end(engine::Ending::stop);
      post.stopped = true;
    }
    const auto all = turn(post);
    if (post.stopped && all.finished) return one_finished();
    if (all.worked) continue;
    auto wake = clock_.now() + std::chrono::hours(1);
    if (all.wake_at) wake = std::min(wake, *all.wake_at);
    const auto left = std::chrono::ceil<microseconds>(wake - clock_.now());
    post.circles = left > 0us ? 0 : post.circles + 1;
    if (post.circles > 1'000) town_.oracle.accuse("a thread turns in circles, and waits for nothing");
    town_.world.sleep(process_, post.bell, town_.world.now() + left);
  }
}

}  // namespace semel::sim
