// The consumer with its real threads: lanes, doorbells, stopping; two consumers as two processes would be, on both
// stores.

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <future>
#include <map>
#include <mutex>
#include <semel/semel.hpp>
#include <semel/sources/queue.hpp>
#include <semel/stores/postgres.hpp>
#include <semel/stores/sqlite.hpp>
#include <thread>

namespace semel {
namespace {

/// Delivers its bodies to whichever lane asks, then either ends or stays open.
class ListSource : public Source {
 public:
  ListSource(std::vector<std::string> bodies, SourceTraits traits) : bodies_(std::move(bodies)), traits_(traits) {}
  const std::string& name() const override { return name_; }
  SourceTraits traits() const override { return traits_; }
  Result<std::unique_ptr<Receiver>> open(Doorbell&) override { return std::unique_ptr<Receiver>(new End(*this)); }

  std::size_t opened = 0;
  std::atomic<std::size_t> done{0};

 private:
  class End : public Receiver {
   public:
    explicit End(ListSource& source) : source_(source) { ++source.opened; }
    Result<Batch> receive(std::size_t count_max) override {
      Batch batch;
      for (; count_max > 0; --count_max) {
        const auto number = source_.next_++;
        if (number >= source_.bodies_.size()) break;
        batch.deliveries.push_back({.receipt = Receipt(number),
                                    .source = source_.name_,
                                    .body = source_.bodies_[number],
                                    .problem = "",
                                    .attributes = {},
                                    .transport_id = "",
                                    .principal = "",
                                    .receive_count = {},
                                    .sent_at = {}});
      }
      batch.ended = stopped_ || (source_.traits_.ends && source_.next_ >= source_.bodies_.size());
      return batch;
    }
    void settle(std::vector<Settlement> settlements) override {
      for (const auto& settlement : settlements)
        if (std::holds_alternative<Done>(settlement.verdict)) ++source_.done;
    }
    void stop() override { stopped_ = true; }

   private:
    ListSource& source_;
    bool stopped_ = false;
  };

  std::string name_ = "list";
  std::vector<std::string> bodies_;
  std::atomic<std::size_t> next_{0};
  SourceTraits traits_;
};

/// Stops a consumer from another thread at the first settled batch.
class StopAtSettled : public Probe {
 public:
  void reached(Step step) override {
    if (step == Step::settled && stop) stop();
  }
  std::function<void()> stop;
};

struct Sqlite {
  using Store = sqlite::Store;
  std::filesystem::path folder = std::filesystem::temp_directory_path() / ("semel-runner-" + std::to_string(getpid()));
  Sqlite() { std::filesystem::create_directories(folder); }
  ~Sqlite() { std::filesystem::remove_all(folder); }
  std::unique_ptr<Store> open() { return sqlite::open({.path = (folder / "test.db").string()}).value(); }
  std::string effects = "effects";
};

struct Postgres {
  using Store = postgres::Store;
  Postgres() {
    const char* uri = std::getenv("SEMEL_TEST_POSTGRES");
    if (!uri) throw std::runtime_error("SEMEL_TEST_POSTGRES is not set: run this under script/with-postgres");
    connection = uri;
  }
  ~Postgres() {
    const auto store = open();
    auto session = store->open_session().value();
    session->begin().value();
    for (const auto& sql : {"DROP SCHEMA " + schema + " CASCADE", "DROP TABLE " + effects})
      dynamic_cast<SqlSession&>(*session).execute(sql, {}).value();
    session->commit().value();
  }
  std::unique_ptr<Store> open() { return postgres::open({.connection = connection, .schema = schema}).value(); }
  std::string connection;
  std::string schema = "runner_" + std::to_string(getpid());
  std::string effects = "effects_" + std::to_string(getpid());
};

template <class Database>
class Runner : public testing::Test {
 protected:
  void SetUp() override {
    store_ = database_.open();
    store_->migrate().value();
    sql("CREATE TABLE " + database_.effects + " (id text, cents bigint)");
  }

  HandlerOptions pay() const { return {.name = "pay", .key = KeyExpression::body("/id")}; }
  template <class ConsumerT>
  void handle_payments(ConsumerT& consumer) {
    consumer.handle(pay(),
                    [insert = "INSERT INTO " + database_.effects + " VALUES ($1, $2)"](const Message& m, auto& work) {
                      work.execute(insert, m.text("/id"), m.integer("/cents"));
                    });
  }
  static std::vector<std::string> bodies(int from, int count) {
    std::vector<std::string> bodies;
    for (int i = from; i < from + count; ++i) bodies.push_back(R"({"id":"p)" + std::to_string(i) + R"(","cents":1})");
    return bodies;
  }
  Rows sql(const std::string& statement) {
    auto session = store_->open_session().value();
    session->begin().value();
    auto rows = dynamic_cast<SqlSession&>(*session).query(statement, {}).value();
    session->commit().value();
    return rows;
  }
  /// (rows, distinct ids)
  std::pair<std::int64_t, std::int64_t> effects() {
    const auto rows = sql("SELECT count(*), count(DISTINCT id) FROM " + database_.effects);
    return {std::get<std::int64_t>(rows.rows[0][0]), std::get<std::int64_t>(rows.rows[0][1])};
  }

  Database database_;
  std::unique_ptr<typename Database::Store> store_;
};

struct DatabaseNames {
  template <class T>
  static std::string GetName(int) {
    return std::is_same_v<T, Sqlite> ? "Sqlite" : "Postgres";
  }
};
using Databases = testing::Types<Sqlite, Postgres>;
TYPED_TEST_SUITE(Runner, Databases, DatabaseNames);

constexpr SourceTraits ending{.redelivers = true, .ends = true, .ordered = false};
constexpr SourceTraits open_ended{.redelivers = true, .ends = false, .ordered = false};

TYPED_TEST(Runner, EveryMessageOfEverySourceHasItsEffectOnce) {
  Consumer consumer(*this->store_, {.batch_max = 16, .lanes_per_source = 3});
  this->handle_payments(consumer);
  ListSource first(this->bodies(0, 500), ending);
  ListSource second(this->bodies(250, 500), ending);  // half of them again
  consumer.consume(first);
  consumer.consume(second);
  const auto summary = consumer.run().value();
  EXPECT_EQ(summary.received, 1000u);
  EXPECT_EQ(summary.fresh, 750u);
  EXPECT_EQ(summary.replays, 250u);
  EXPECT_EQ(this->effects(), (std::pair<std::int64_t, std::int64_t>{750, 750}));
  EXPECT_EQ(first.opened, this->store_->traits().single_writer ? 1u : 3u);
}

TYPED_TEST(Runner, TwoConsumersWithTheSameMessagesHaveOneEffectEach) {
  auto other_store = this->database_.open();
  ListSource list(this->bodies(0, 400), ending);
  ListSource same(this->bodies(0, 400), ending);
  std::uint64_t fresh[2] = {0, 0};
  const auto run = [&](auto& store, ListSource& source, std::uint64_t& count) {
    Consumer consumer(store, {.batch_max = 7, .lanes_per_source = 2});
    this->handle_payments(consumer);
    consumer.consume(source);
    const auto summary = consumer.run().value();
    EXPECT_EQ(summary.handed_back, 0u);
    count = summary.fresh;
  };
  std::thread other([&] { run(*other_store, same, fresh[1]); });
  run(*this->store_, list, fresh[0]);
  other.join();
  EXPECT_EQ(fresh[0] + fresh[1], 400u);
  EXPECT_EQ(list.done + same.done, 800u);
  EXPECT_EQ(this->effects(), (std::pair<std::int64_t, std::int64_t>{400, 400}));
}

TYPED_TEST(Runner, StopLetsRunReturnAndWhatWasDoneStays) {
  StopAtSettled probe;
  Consumer consumer(*this->store_, {.batch_max = 5, .probe = &probe});
  this->handle_payments(consumer);
  ListSource source(this->bodies(0, 100'000), open_ended);
  consumer.consume(source);
  probe.stop = [&] { consumer.stop(); };
  const auto summary = consumer.run().value();
  EXPECT_GE(summary.fresh, 5u);
  EXPECT_LT(summary.fresh, 100'000u);
  EXPECT_EQ(summary.fresh, source.done);
  EXPECT_EQ(this->effects().first, static_cast<std::int64_t>(summary.fresh));
}

TYPED_TEST(Runner, StopBeforeRunIsNotForgotten) {
  Consumer consumer(*this->store_);
  this->handle_payments(consumer);
  ListSource source({}, open_ended);
  consumer.consume(source);
  consumer.stop();
  EXPECT_EQ(consumer.run().value().received, 0u);
}

TYPED_TEST(Runner, RefusesWhatCannotBeMeant) {
  const auto error_of = [&](std::vector<HandlerOptions> handlers) {
    Consumer consumer(*this->store_);
    for (auto& options : handlers) consumer.handle(options, [](const Message&, auto&) {});
    const auto ran = consumer.run();
    return ran ? std::string("ran") : ran.error().message;
  };
  EXPECT_EQ(error_of({}), "a consumer needs a handler");
  EXPECT_EQ(error_of({this->pay(), this->pay()}), "two handlers are named \"pay\"");
  EXPECT_EQ(error_of({{.name = "pay"}}), "handler \"pay\" has no key");
  auto forgetful = this->pay();
  forgetful.retention = std::chrono::seconds(0);
  EXPECT_EQ(error_of({forgetful}), "handler \"pay\": retention must be positive");
}

TYPED_TEST(Runner, ADeadLetterSentAgainIsDoneOnceAndMarked) {
  bool broken = true;
  Consumer consumer(*this->store_);
  auto options = this->pay();
  options.retry = {.attempts_max = 1};
  consumer.handle(options, [&](const Message& m, auto& work) -> Outcome {
    if (broken) return Rejection{"not open yet"};
    work.execute("INSERT INTO " + this->database_.effects + " VALUES ($1, $2)", m.text("/id"), m.integer("/cents"));
    return Answer{};
  });
  ListSource source(this->bodies(0, 3), ending);
  consumer.consume(source);
  consumer.run().value();
  const auto letters = this->store_->dead_letters({}).value();
  ASSERT_EQ(letters.size(), 3u);
  std::vector<std::string> ids;
  for (const auto& letter : letters) ids.push_back(letter.id);

  consumer.resend(ids).value();  // still rejected: they wait on
  EXPECT_EQ(this->store_->dead_letters({}).value().size(), 3u);
  broken = false;
  EXPECT_EQ(consumer.resend(ids).value().fresh, 3u);
  EXPECT_EQ(consumer.resend(ids).value().fresh, 0u);
  EXPECT_TRUE(this->store_->dead_letters({}).value().empty());
  EXPECT_EQ(this->effects(), (std::pair<std::int64_t, std::int64_t>{3, 3}));
}

TYPED_TEST(Runner, ADeadLetterThatNoHandlerTakesAnyMoreWaitsOn) {
  Consumer consumer(*this->store_);
  auto options = this->pay();
  options.retry = {.attempts_max = 1};
  consumer.handle(options, [](const Message&, auto&) -> Outcome { return Rejection{"not open yet"}; });
  ListSource source(this->bodies(0, 1), ending);
  consumer.consume(source);
  consumer.run().value();
  const std::vector<std::string> ids = {this->store_->dead_letters({}).value().at(0).id};

  const auto takes = [](const Message&, auto&) { return Answer{}; };
  Consumer renamed(*this->store_);
  options.name = "renamed";
  renamed.handle(options, takes);
  EXPECT_EQ(renamed.resend(ids).value().unmatched, 1u);
  EXPECT_EQ(this->store_->dead_letters({}).value().size(), 1u);

  Consumer narrowed(*this->store_);
  options = this->pay();
  options.from = {"another"};
  narrowed.handle(options, takes);
  EXPECT_EQ(narrowed.resend(ids).value().unmatched, 1u);
  EXPECT_EQ(this->store_->dead_letters({}).value().size(), 1u);
}

/// Charges, and counts the charges of each key.
class Provider {
 public:
  CallReport charge(const Call& call) {
    const std::lock_guard lock(mutex_);
    const auto times = ++charges_[call.idempotency_key];
    return {.verdict = CallVerdict::succeeded, .outcome = {.reference = "ch_" + std::to_string(times)}};
  }
  /// (keys, charges)
  std::pair<std::size_t, int> counted() const {
    int sum = 0;
    for (const auto& [key, times] : charges_) sum += times;
    return {charges_.size(), sum};
  }

 private:
  std::mutex mutex_;
  std::map<std::string, int> charges_;
};

TYPED_TEST(Runner, EveryIntentIsPerformedOnceAndSettledOnce) {
  Provider provider;
  const auto performer = blocking_performer([&](const Call& call) { return provider.charge(call); });
  Consumer consumer(*this->store_, {.batch_max = 16, .lanes_per_source = 2});
  consumer.handle(this->pay(), [](const Message& m, auto& work) {
    work.intend({.effect = "charge", .request = m.text("/id")});
    return Answer{.status = 202};
  });
  consumer.perform({.name = "charge"}, *performer);
  consumer.settle("charge", [&](const Settled& settled, auto& work) {
    work.execute("INSERT INTO " + this->database_.effects + " VALUES ($1, 1)", settled.message().text("/id"));
  });
  ListSource source(this->bodies(0, 300), ending);
  ListSource again(this->bodies(0, 300), ending);
  consumer.consume(source);
  consumer.consume(again);
  EXPECT_EQ(consumer.run().value().fresh, 300u);
  EXPECT_EQ(provider.counted(), (std::pair<std::size_t, int>{300, 300}));
  EXPECT_EQ(this->effects(), (std::pair<std::int64_t, std::int64_t>{300, 300}));
  EXPECT_TRUE(this->store_->intent_counts().value().by_state.empty());
}

TYPED_TEST(Runner, APerformerOutlivesItsConsumerAndWorksForTheNextOne) {
  std::promise<void> leave;
  std::function<void()> stop;
  std::atomic<int> calls = 0;
  const auto performer = blocking_performer([&](const Call&) {
    if (++calls == 1) {
      stop();
      leave.get_future().wait();
    }
    return CallReport{.verdict = CallVerdict::succeeded};
  });
  const auto run = [&](int from, SourceTraits traits) {
    Consumer consumer(*this->store_, {.shutdown_deadline = std::chrono::milliseconds(0)});
    consumer.handle(this->pay(), [](const Message&, auto& work) { work.intend({.effect = "charge"}); });
    consumer.perform({.name = "charge"}, *performer);
    ListSource source(this->bodies(from, 1), traits);
    consumer.consume(source);
    stop = [&] { consumer.stop(); };
    consumer.run().value();
  };
  run(0, open_ended);
  leave.set_value();  // the consumer is gone, and the call's end rings nobody
  while (performer->room() < 8) std::this_thread::yield();
  run(1, ending);
  EXPECT_EQ(calls, 2);
  const auto intents = this->store_->intents({}).value();
  ASSERT_EQ(intents.size(), 2u);
  EXPECT_EQ(std::ranges::count(intents, IntentState::succeeded, [](const Intent& one) { return one.status.state; }), 1)
      << "of the abandoned call nobody knows";
}

TYPED_TEST(Runner, TwoConsumersOnOneStorePerformEachIntentOnce) {
  Provider provider;
  auto other_store = this->database_.open();
  const auto run = [&](auto& store, int from) {
    const auto performer = blocking_performer([&](const Call& call) { return provider.charge(call); });
    Consumer consumer(store, {.batch_max = 5, .lanes_per_source = 1});
    consumer.handle(this->pay(), [](const Message&, auto& work) { work.intend({.effect = "charge"}); });
    consumer.perform({.name = "charge", .limits = {.calls_max = 4}}, *performer);
    consumer.settle("charge", [&](const Settled& settled, auto& work) {
      work.execute("INSERT INTO " + this->database_.effects + " VALUES ($1, 1)", settled.message().text("/id"));
    });
    ListSource source(this->bodies(from, 100), ending);
    consumer.consume(source);
    consumer.run().value();
  };
  std::thread other([&] { run(*other_store, 50); });
  run(*this->store_, 0);
  other.join();
  EXPECT_EQ(provider.counted(), (std::pair<std::size_t, int>{150, 150}));
  EXPECT_EQ(this->effects(), (std::pair<std::int64_t, std::int64_t>{150, 150}));
}

TYPED_TEST(Runner, WhatOneHandlerPublishesToAQueueAnotherOneTakesInOrder) {
  std::vector<std::string> taken;
  Consumer consumer(*this->store_, {.batch_max = 8});
  auto publish = this->pay();
  publish.from = {"list"};
  consumer.handle(publish,
                  [](const Message& m, auto& work) { work.publish({.to = "jobs", .body = m.delivery().body}); });
  consumer.publish_to_queue("jobs");
  HandlerOptions take{.name = "take", .from = {"jobs"}, .key = KeyExpression::transport_id()};
  consumer.handle(take, [&](const Message& m, auto& work) {
    work.execute("INSERT INTO " + this->database_.effects + " VALUES ($1, 1)", m.text("/id"));
    taken.push_back(m.text("/id"));
    if (taken.size() == 50) consumer.stop();
  });
  ListSource source(this->bodies(0, 50), {.redelivers = true, .ends = true, .ordered = true});
  const auto jobs = queue::open(*this->store_, {.name = "jobs", .poll_every = std::chrono::milliseconds(10)}).value();
  consumer.consume(source);
  consumer.consume(*jobs);
  consumer.run().value();
  ASSERT_EQ(taken.size(), 50u);
  for (std::size_t i = 0; i < taken.size(); ++i) EXPECT_EQ(taken[i], "p" + std::to_string(i));
  EXPECT_EQ(this->effects(), (std::pair<std::int64_t, std::int64_t>{50, 50}));
  EXPECT_TRUE(this->store_->take_queued("jobs", 10, std::chrono::seconds(1)).value().empty());
}

TYPED_TEST(Runner, RefusesEffectsThatCannotBeMeant) {
  const auto performer = blocking_performer([](const Call&) { return CallReport{}; });
  const auto error_of = [&](auto&& say) {
    Consumer consumer(*this->store_);
    this->handle_payments(consumer);
    say(consumer);
    const auto ran = consumer.run();
    return ran ? std::string("ran") : ran.error().message;
  };
  EXPECT_EQ(error_of([](auto& consumer) { consumer.settle("charge", [](const Settled&, auto&) {}); }),
            "effect \"charge\" is settled, but nobody performs it");
  EXPECT_EQ(error_of([&](auto& consumer) {
              consumer.perform({.name = "charge"}, *performer);
              consumer.perform({.name = "charge"}, *performer);
            }),
            "two effects are named \"charge\"");
  EXPECT_EQ(error_of([&](auto& consumer) {
              consumer.perform({.name = "charge"}, *performer);
              consumer.publish_to({.name = "events"}, *performer);
            }),
            "a performer makes calls or sends publications, not both");
}

}  // namespace
}  // namespace semel
