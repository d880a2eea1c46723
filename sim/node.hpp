// One process with the real engine in it: lanes, clerk, relay and janitor, each turned by a simulated thread.
#pragma once

#include <memory>
#include <semel/consumer.hpp>
#include <vector>

#include "engine/clerk.hpp"
#include "engine/janitor.hpp"
#include "engine/lane.hpp"
#include "engine/relay.hpp"
#include "oracle.hpp"
#include "outside.hpp"
#include "store.hpp"

namespace semel::sim {

/// A process's view of the simulated database.
class ProcessHost : public Host {
 public:
  ProcessHost(World& world, Process& process) : world_(world), process_(process) {}

  void enter() override { world_.step(process_); }
  bool is_gone() const override { return process_.dead; }
  bool wait(milliseconds time, const std::function<bool()>& ready) override {
    return world_.wait(process_, time, ready);
  }
  bool strikes(Fault fault) override { return world_.strikes(fault); }
  milliseconds skew() const override { return std::chrono::duration_cast<milliseconds>(process_.clock_offset); }
  /// Operators' tools are sound.
  bool has(Mutant mutant) const override { return world_.has(mutant) && process_.may_fail; }
  const void* owner() const override { return &process_; }
  void cover(const std::string& place) override { world_.cover(place); }
  void say(const std::function<std::string()>& text) override { world_.say(&process_, text); }

 private:
  World& world_;
  Process& process_;
};

/// What the processes of one run have in common.
struct Town {
  World& world;
  const Scenario& scenario;
  Database& database;
  Oracle& oracle;
  Broker& broker;
  Callers& callers;
  Provider& provider;
  Mailbox& mailbox;
  std::int64_t runs = 0;  ///< of handlers
};

class Node {
 public:
  Node(Town& town, int number, int life);
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  Process& process() { return process_; }
  /// Lanes take no more; what is open is finished, for a while; then the process ends, and is heard of as crashed.
  void stop();

 private:
  struct Post {
    Doorbell bell;
    std::unique_ptr<engine::Lane> lane;
    std::unique_ptr<engine::Clerk> clerk;
    std::unique_ptr<engine::Relay> relay;
    std::unique_ptr<engine::Janitor> janitor;
    bool stopped = false;
    int circles = 0;  ///< turns in a row that did nothing and did not wait
  };

  void add_handler();
  void add_outside();
  Post& add_post(const std::string& name);
  std::unique_ptr<Session> session() { return store_.open_session().value(); }
  void turn_until_finished(Post& post);
  engine::Turn turn(Post& post);
  void one_finished();

  Town& town_;
  Process process_;
  ProcessHost host_;
  ProcessClock clock_;
  WorldProbe probe_;
  SimulatedStore store_;
  // Beside each other: the engine has sets of performers by their addresses, which must not depend on the heap.
  SimulatedPerformer performers_[2];
  ConsumerOptions options_;
  std::vector<engine::Handler> handlers_;
  engine::Handlers handler_options_;
  engine::AfterCommit after_commit_;
  std::vector<std::unique_ptr<Post>> posts_;
  bool stopping_ = false;
  int running_ = 0;  ///< posts but for the janitor's
};

}  // namespace semel::sim
