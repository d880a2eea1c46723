// A stand for one lane: real SQLite, a scripted source, a clock that is set by hand. No threads, so every run is the
// same.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <deque>
#include <filesystem>
#include <functional>
#include <semel/consumer.hpp>
#include <semel/stores/sqlite.hpp>
#include <string>
#include <vector>

#include "engine/lane.hpp"

namespace semel::engine {

class ManualClock : public Clock {
 public:
  std::chrono::steady_clock::time_point now() const override { return now_; }
  void advance(std::chrono::milliseconds time) { now_ += time; }

 private:
  std::chrono::steady_clock::time_point now_{std::chrono::hours(1)};
};

inline std::string names_of(const Attributes& headers) {
  std::string names;
  for (const auto& [name, value] : headers.entries()) names += " " + name;
  return names;
}

/// What a message became: "done 200 Header body", "replay 200 body", "set aside CODE", "refused CODE", "handed back
/// CODE".
inline std::string describe(const Settlement& settlement) {
  return std::visit(
      [](const auto& v) -> std::string {
        using V = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<V, Done>)
          return (v.replayed ? "replay " : "done ") + std::to_string(v.answer.status) + names_of(v.answer.headers) +
                 (v.answer.body.empty() ? "" : " " + v.answer.body) + (v.answer_kept ? "" : " (not kept)");
        else if constexpr (std::is_same_v<V, SetAside>)
          return "set aside " + code_name(v.why.code);
        else if constexpr (std::is_same_v<V, Refused>)
          return "refused " + code_name(v.why.code);
        else
          return "handed back " + code_name(v.why.code);
      },
      settlement.verdict);
}

/// Delivers what it is told to, and remembers what became of it by the order of delivery.
class Script {
 public:
  struct Line {
    std::string body;
    Sender sender = Sender::message;
    std::string transport_id{};
    std::string source = "script";
  };

  void deliver(Line line) { waiting_.push_back({std::move(line), verdicts.size()}), verdicts.emplace_back(); }
  void deliver(std::string body) { deliver(Line{std::move(body)}); }

  std::vector<std::string> verdicts;
  bool stopped = false;

  std::unique_ptr<Receiver> receiver() { return std::make_unique<End>(*this); }

 private:
  class End : public Receiver {
   public:
    explicit End(Script& script) : script_(script) {}
    Result<Batch> receive(std::size_t count_max) override {
      Batch batch;
      for (; count_max > 0 && !script_.waiting_.empty(); --count_max) {
        auto [line, number] = std::move(script_.waiting_.front());
        script_.waiting_.pop_front();
        batch.deliveries.push_back({.receipt = Receipt(number),
                                    .source = line.source,
                                    .sender = line.sender,
                                    .body = line.body,
                                    .problem = "",
                                    .attributes = {},
                                    .transport_id = line.transport_id,
                                    .principal = "",
                                    .receive_count = {},
                                    .sent_at = {}});
      }
      return batch;
    }
    void settle(std::vector<Settlement> settlements) override {
      for (const auto& s : settlements) {
        auto& verdict = script_.verdicts.at(s.receipt.token());
        EXPECT_EQ(verdict, "") << "settled twice";
        verdict = describe(s);
      }
    }
    void stop() override { script_.stopped = true; }

   private:
    Script& script_;
  };

  std::deque<std::pair<Line, std::size_t>> waiting_;
};

/// A session that fails where it is told to, before or after the real call.
class FaultySession : public SqlSession {
 public:
  struct Faults {
    std::deque<std::optional<Error>> begin, commit_before, commit_after;
    /// Says what the commit fails with, by what the transaction has written.
    std::function<std::optional<Error>(SqlSession&)> commit_if;
  };

  FaultySession(std::unique_ptr<Session> inner, Faults& faults)
      : inner_(std::move(inner)), sql_(dynamic_cast<SqlSession&>(*inner_)), faults_(faults) {}

  Result<void> begin() override {
    if (auto error = next(faults_.begin)) return *error;
    return inner_->begin();
  }
  Result<std::vector<std::optional<Record>>> claim(std::span<const RecordId> ids) override {
    return inner_->claim(ids);
  }
  Result<void> record(std::span<const Record> records) override { return inner_->record(records); }
  Result<void> set_aside(std::span<const DeadLetter> letters) override { return inner_->set_aside(letters); }
  Result<void> commit() override {
    if (auto error = next(faults_.commit_before)) return *error;
    if (faults_.commit_if)
      if (auto error = faults_.commit_if(sql_)) return *error;
    auto committed = inner_->commit();
    if (auto error = next(faults_.commit_after)) return *error;
    return committed;
  }
  void rollback() noexcept override { inner_->rollback(); }
  void mark(std::size_t number) override { inner_->mark(number); }
  Result<void> synchronise() override { return inner_->synchronise(); }
  std::optional<std::size_t> failed_mark() const override { return inner_->failed_mark(); }
  Ledger& ledger() override { return inner_->ledger(); }
  Outbox& outbox() override { return inner_->outbox(); }
  Result<void> execute(std::string_view sql, std::span<const Value> p) override { return sql_.execute(sql, p); }
  Result<std::int64_t> execute_counted(std::string_view sql, std::span<const Value> p) override {
    return sql_.execute_counted(sql, p);
  }
  Result<Rows> query(std::string_view sql, std::span<const Value> p) override { return sql_.query(sql, p); }
  Result<std::int64_t> execute_set(std::string_view sql, std::span<const std::vector<Value>> c) override {
    return sql_.execute_set(sql, c);
  }

 private:
  static std::optional<Error> next(std::deque<std::optional<Error>>& faults) {
    if (faults.empty()) return std::nullopt;
    auto error = std::move(faults.front());
    faults.pop_front();
    return error;
  }
  std::unique_ptr<Session> inner_;
  SqlSession& sql_;
  Faults& faults_;
};

class LaneStand : public testing::Test {
 protected:
  void SetUp() override {
    directory_ =
        std::filesystem::temp_directory_path() / ("semel-lane-" + std::to_string(getpid()) + "-" +
                                                  testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(directory_);
    store_ = sqlite::open({.path = (directory_ / "test.db").string()}).value();
    store_->migrate().value();
    sql("CREATE TABLE effects (id TEXT, cents INTEGER, n INTEGER PRIMARY KEY AUTOINCREMENT)");
    options_.clock = &clock_;
  }
  void TearDown() override {
    lane_.reset();
    store_.reset();
    std::filesystem::remove_all(directory_);
  }

  using Work = semel::Work<SqlSession>;
  using BatchWork = semel::BatchWork<SqlSession>;

  static HandlerOptions pay(Guard guard = Guard::record) {
    return {.name = "pay", .key = KeyExpression::body("/id"), .guard = guard};
  }
  void handle(HandlerOptions options, std::function<Outcome(const Message&, Work&)> f) {
    handlers_.push_back({std::move(options),
                         [f](const Message& m, Session& s, WorkLog& log) {
                           Work work(dynamic_cast<SqlSession&>(s), log);
                           return f(m, work);
                         },
                         {}});
  }
  void handle_batch(HandlerOptions options,
                    std::function<std::vector<Outcome>(std::span<const Message>, BatchWork&)> f) {
    handlers_.push_back(
        {std::move(options),
         {},
         [f](std::span<const Message> m, Session& s, std::optional<std::int64_t>& applied, std::span<WorkLog> logs) {
           BatchWork work(dynamic_cast<SqlSession&>(s), applied, logs);
           return f(m, work);
         }});
  }
  /// The handler most tests use: one row, and an answer that differs at every run.
  void handle_payments(HandlerOptions options = pay()) {
    handle(std::move(options), [this](const Message& m, Work& work) {
      ++runs_;
      work.execute("INSERT INTO effects (id, cents) VALUES ($1, $2)", m.text("/id"), m.at("/cents"));
      if (broken_.contains(m.text("/id"))) throw std::runtime_error("broken");
      return Answer{.status = 201, .body = "run " + std::to_string(runs_)};
    });
  }

  Lane& lane() {
    if (!lane_) {
      std::vector<Inlet> inlets;
      inlets.push_back({script_.receiver(), traits_, nullptr, false});
      lane_ = std::make_unique<Lane>(std::make_unique<FaultySession>(store_->open_session().value(), faults_),
                                     std::move(inlets), handlers_, options_, after_commit_, bell_, 1);
    }
    return *lane_;
  }
  /// Turns the lane until nothing is left to do, moving the clock on to whatever is due.
  void run() {
    for (int turns = 0; turns < 1'000; ++turns) {
      const auto turn = lane().turn();
      if (turn.worked) continue;
      if (!turn.wake_at) return;
      clock_.advance(std::chrono::ceil<std::chrono::milliseconds>(*turn.wake_at - clock_.now()));
    }
    FAIL() << "the lane does not come to rest";
  }

  Rows sql(std::string_view statement) {
    auto session = store_->open_session().value();
    session->begin().value();
    auto rows = dynamic_cast<SqlSession&>(*session).query(statement, {}).value();
    session->commit().value();
    return rows;
  }
  /// "a:1 b:2": the effects in the order in which they were written.
  std::string effects() {
    std::string text;
    for (const auto& row : sql("SELECT id, cents FROM effects ORDER BY n").rows)
      text +=
          (text.empty() ? "" : " ") + std::get<std::string>(row[0]) +
          (std::holds_alternative<std::int64_t>(row[1]) ? ":" + std::to_string(std::get<std::int64_t>(row[1])) : "");
    return text;
  }
  std::vector<DeadLetter> letters() { return store_->dead_letters({}).value(); }
  static Error error(Remedy remedy, Certainty certainty, ErrorCode code) {
    return {remedy, certainty, code, "planted"};
  }

  std::filesystem::path directory_;
  std::unique_ptr<sqlite::Store> store_;
  ManualClock clock_;
  ConsumerOptions options_;
  Script script_;
  SourceTraits traits_;
  std::vector<Handler> handlers_;
  FaultySession::Faults faults_;
  AfterCommit after_commit_;
  Doorbell bell_;
  std::unique_ptr<Lane> lane_;
  int runs_ = 0;
  std::set<std::string> broken_;
};

}  // namespace semel::engine
