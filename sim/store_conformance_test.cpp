// The simulated store against the contract of stores, with every fault off: what a simulation shows is worth what its
// store is.
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>

#include "store.hpp"
#include "testing/store_conformance_gtest.hpp"

namespace semel::sim {
namespace {

/// Real threads, one in the store at a time.
class Room : public Surroundings {
 public:
  milliseconds now() const override {
    return std::chrono::duration_cast<milliseconds>(std::chrono::system_clock::now().time_since_epoch());
  }
  void later(std::function<void()> action) override { action(); }
  void ended() override { ended_.notify_all(); }

  std::mutex mutex;
  std::condition_variable ended_;
};

class ThreadHost : public Host {
 public:
  explicit ThreadHost(Room& room) : room_(room) {}
  void enter() override { room_.mutex.lock(); }
  void enter_quietly() noexcept override { room_.mutex.lock(); }
  void leave() noexcept override { room_.mutex.unlock(); }
  bool wait(milliseconds time, const std::function<bool()>& ready) override {
    std::unique_lock lock(room_.mutex, std::adopt_lock);
    const bool done = room_.ended_.wait_for(lock, time, ready);
    lock.release();
    return done;
  }

 private:
  Room& room_;
};

class SimulatedTestDatabase : public testing::TestDatabase {
 public:
  std::unique_ptr<Store> open() override { return std::make_unique<SimulatedStore>(database_, host_); }
  std::unique_ptr<Store> open_unsafe(bool) override { return nullptr; }
  std::string migrations_table() const override { return "semel_migrations"; }

 private:
  Room room_;
  ThreadHost host_{room_};
  Database database_{room_};
};

testing::StoreUnderTest simulated_store() {
  return {.make_database = [] { return std::make_unique<SimulatedTestDatabase>(); }};
}

}  // namespace
}  // namespace semel::sim

SEMEL_STORE_CONFORMANCE(Simulated, semel::sim::simulated_store);
