// What the two transactions of a guarded call cost: the one that records the request and starts its call, and the one
// that writes its outcome and the answer. Each is divided by a single-row INSERT that commits by itself, on the same
// PostgreSQL in the same seconds. The three take turns, call by call. Prints a table in Markdown. --quick: three
// rounds.

#include <fmt/format.h>
#include <libpq-fe.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <semel/semel.hpp>
#include <semel/stores/postgres.hpp>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace semel;
using Clock = std::chrono::steady_clock;

/// Delivers a message when it is told to, and not before.
class OneByOne : public Source {
 public:
  const std::string& name() const override { return name_; }
  SourceTraits traits() const override { return {.redelivers = true, .ends = true, .ordered = true}; }
  Result<std::unique_ptr<Receiver>> open(Doorbell& bell) override {
    const std::lock_guard lock(mutex_);
    bell_ = &bell;
    return std::unique_ptr<Receiver>(std::make_unique<Hand>(*this));
  }

  void deliver(std::string body) {
    tell([&] { body_ = std::move(body); });
  }
  void end() {
    tell([&] { ended_ = true; });
  }

 private:
  class Hand : public Receiver {
   public:
    explicit Hand(OneByOne& source) : source_(source) {}
    Result<Batch> receive(std::size_t) override { return source_.take(); }
    void settle(std::vector<Settlement>) override {}
    void stop() override {}

   private:
    OneByOne& source_;
  };

  template <class Change>
  void tell(Change change) {
    const std::lock_guard lock(mutex_);
    change();
    if (bell_) bell_->ring();  // else nobody has opened it yet, and will look
  }

  Batch take() {
    const std::lock_guard lock(mutex_);
    Batch batch{.ended = ended_};
    if (!body_.empty())
      batch.deliveries.push_back(
          {.receipt = Receipt(1), .source = name_, .body = std::exchange(body_, {}), .transport_id = "t"});
    return batch;
  }

  std::string name_ = "one by one";
  Doorbell* bell_ = nullptr;
  std::mutex mutex_;
  std::string body_;
  bool ended_ = false;
};

/// Notes when the two transactions of a call began and ended.
class Stopwatch : public Probe {
 public:
  void reached(Step step) override {
    const std::lock_guard lock(mutex_);
    at_[static_cast<std::size_t>(step)] = Clock::now();
    if (step != Step::closed) return;
    closed_ = true;
    changed_.notify_all();
  }

  void wait_until_closed() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return std::exchange(closed_, false); });
  }

  double ms(Step from, Step to) {
    const std::lock_guard lock(mutex_);
    return std::chrono::duration<double, std::milli>(at_[static_cast<std::size_t>(to)] -
                                                     at_[static_cast<std::size_t>(from)])
        .count();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::array<Clock::time_point, all_steps.size()> at_{};
  bool closed_ = false;
};

/// A connection with nothing of ours around it.
class Inserter {
 public:
  explicit Inserter(const std::string& connection) : handle_(PQconnectdb(connection.c_str())) {
    run("CREATE TABLE single (id bigserial PRIMARY KEY, note text)");
  }
  ~Inserter() {
    run("DROP TABLE single");
    PQfinish(handle_);
  }
  Inserter(const Inserter&) = delete;
  Inserter& operator=(const Inserter&) = delete;

  double insert_ms() {
    const auto begun = Clock::now();
    run("INSERT INTO single (note) VALUES ('a note of forty-eight characters, as a body has')");
    return std::chrono::duration<double, std::milli>(Clock::now() - begun).count();
  }

  void run(const std::string& sql) {
    PGresult* result = PQexec(handle_, sql.c_str());
    const bool done = PQresultStatus(result) == PGRES_COMMAND_OK;
    PQclear(result);
    if (!done) throw std::runtime_error(sql + ": " + PQerrorMessage(handle_));
  }

 private:
  PGconn* handle_;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

std::string ratio(std::vector<double> values) {
  const auto [lowest, highest] = std::minmax_element(values.begin(), values.end());
  return fmt::format("{:.2f} ({:.2f} to {:.2f})", median(values), *lowest, *highest);
}

void measure(OneByOne& source, Stopwatch& stopwatch, Inserter& inserter, int rounds, int calls) {
  std::vector<double> first, second, insert, first_ratio, second_ratio;
  for (int round = 0; round <= rounds; ++round) {
    std::vector<double> firsts, seconds, inserts;
    for (int call = 0; call < calls; ++call) {
      source.deliver(fmt::format(R"({{"id":"{}-{}","cents":1250}})", round, call));
      stopwatch.wait_until_closed();
      firsts.push_back(stopwatch.ms(Step::received, Step::committed));
      seconds.push_back(stopwatch.ms(Step::reported, Step::closed));
      inserts.push_back(inserter.insert_ms());
    }
    if (round == 0) continue;  // warm
    first.push_back(median(firsts));
    second.push_back(median(seconds));
    insert.push_back(median(inserts));
    first_ratio.push_back(first.back() / insert.back());
    second_ratio.push_back(second.back() / insert.back());
  }
  fmt::print("| transaction | ÷ one INSERT: median (min to max) | ms | one INSERT, ms |\n|---|---|---|---|\n");
  fmt::print("| record and start | {} | {:.3f} | {:.3f} |\n", ratio(first_ratio), median(first), median(insert));
  fmt::print("| outcome and answer | {} | {:.3f} | {:.3f} |\n", ratio(second_ratio), median(second), median(insert));
}

}  // namespace

int main(int argc, char** argv) {
  const bool quick = argc > 1 && std::strcmp(argv[1], "--quick") == 0;
  const char* connection = std::getenv("SEMEL_TEST_POSTGRES");
  if (!connection) {
    fmt::print(stderr, "SEMEL_TEST_POSTGRES is not set: run this under script/with-postgres\n");
    return 1;
  }
  const auto schema = "guarded_call_" + std::to_string(getpid());
  Inserter inserter(connection);
  {
    const auto store = postgres::open({.connection = connection, .schema = schema}).value();
    store->migrate().value();
    const auto performer =
        later_performer([](const Call&, Reply reply) { std::move(reply).report({.verdict = CallVerdict::succeeded}); });
    Stopwatch stopwatch;
    OneByOne source;
    Consumer consumer(*store, {.lanes_per_source = 1, .probe = &stopwatch});
    consumer.handle({.name = "pay", .key = KeyExpression::body("/id")}, [](const Message& payment, auto& work) {
      work.intend({.effect = "call", .request = payment.text("/id")});
    });
    consumer.perform({.name = "call", .start_at_once = true}, *performer);
    consumer.settle("call", [](const Settled&, auto&) { return Answer{.status = 201, .body = R"({"paid":1250})"}; });
    consumer.consume(source);
    std::thread running([&] { consumer.run().value(); });
    measure(source, stopwatch, inserter, quick ? 3 : 7, quick ? 300 : 1'000);
    source.end();
    running.join();
  }
  inserter.run("SET client_min_messages = warning; DROP SCHEMA " + schema + " CASCADE");
}
