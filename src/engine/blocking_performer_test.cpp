// Performers made of a function.
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <future>
#include <mutex>
#include <semel/performer.hpp>
#include <set>
#include <thread>

namespace semel {
namespace {

using namespace std::chrono_literals;

Call call_of(std::string id, std::chrono::milliseconds timeout = 1h) {
  Call call{.id = std::move(id)};
  call.timeout = timeout;
  return call;
}

CallReport report_of(CallVerdict verdict) { return {.verdict = verdict}; }

/// Waits until `count` calls have ended, or for ever (which fails by the test's time limit).
std::vector<Performed> collect(Performer& performer, Doorbell& bell, std::size_t count) {
  std::vector<Performed> all;
  while (true) {
    for (auto& one : performer.collect()) all.push_back(std::move(one));
    if (all.size() >= count) return all;
    bell.wait(1h);
  }
}

TEST(BlockingPerformer, ReportsWhatTheFunctionSaid) {
  Doorbell bell;
  const auto performer = blocking_performer([](const Call& call) {
    auto report = report_of(CallVerdict::succeeded);
    report.outcome.reference = "of " + call.id;
    return report;
  });
  performer->open(bell);
  Call call = call_of("a");
  call.attempt = 7;
  performer->begin(std::move(call));
  const auto ended = collect(*performer, bell, 1);
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_EQ(ended[0].id, "a");
  EXPECT_EQ(ended[0].attempt, 7);
  EXPECT_EQ(ended[0].report.verdict, CallVerdict::succeeded);
  EXPECT_EQ(ended[0].report.outcome.reference, "of a");
  EXPECT_TRUE(performer->collect().empty()) << "once";
}

TEST(BlockingPerformer, MakesAsManyCallsAtATimeAsItHasThreads) {
  Doorbell bell;
  std::mutex mutex;
  std::condition_variable met;
  int inside = 0;  // the test itself is the fourth
  const auto enter = [&] {
    std::unique_lock lock(mutex);
    ++inside;
    met.notify_all();
    met.wait(lock, [&] { return inside == 4; });  // returns only where all are inside at once
  };
  const auto performer = blocking_performer(
      [&](const Call&) {
        enter();
        return report_of(CallVerdict::succeeded);
      },
      3);
  performer->open(bell);
  for (const char* id : {"a", "b", "c"}) {
    EXPECT_GT(performer->room(), 0u);
    performer->begin(call_of(id));
  }
  EXPECT_EQ(performer->room(), 0u);
  enter();
  EXPECT_EQ(collect(*performer, bell, 3).size(), 3u);
  EXPECT_EQ(performer->room(), 3u);
}

TEST(BlockingPerformer, ThreadsAreUsedAgain) {
  Doorbell bell;
  std::mutex mutex;
  std::set<std::thread::id> threads;
  const auto performer = blocking_performer(
      [&](const Call&) {
        const std::lock_guard lock(mutex);
        threads.insert(std::this_thread::get_id());
        return report_of(CallVerdict::failed);
      },
      2);
  performer->open(bell);
  for (int i = 0; i < 50; ++i) {
    performer->begin(call_of(std::to_string(i)));
    collect(*performer, bell, 1);
  }
  EXPECT_LE(threads.size(), 2u);
}

struct Thrown {
  const char* what;
  std::function<void()> thrower;
  CallVerdict verdict;
};

TEST(BlockingPerformer, WhatItThrowsIsUnknownUnlessAFailureIsSureThatNothingHappened) {
  const Thrown cases[] = {
      {"an exception", [] { throw std::runtime_error("no idea"); }, CallVerdict::unknown},
      {"anything", [] { throw 7; }, CallVerdict::unknown},
      {"not applied", [] { throw Failure(retry_later(ErrorCode::store_unreachable, "away")); }, CallVerdict::not_done},
      {"cannot work", [] { throw Failure(fix_call(ErrorCode::bad_value, "wrong")); }, CallVerdict::failed},
      {"a failure that does not know",
       [] {
         throw Failure({Remedy::retry_later, Certainty::unknown, ErrorCode::connection_lost, "lost"});
       },
       CallVerdict::unknown},
  };
  for (const auto& one : cases) {
    Doorbell bell;
    const auto performer = blocking_performer([&](const Call&) {
      one.thrower();
      return report_of(CallVerdict::succeeded);
    });
    performer->open(bell);
    performer->begin(call_of("a"));
    const auto ended = collect(*performer, bell, 1);
    EXPECT_EQ(ended[0].report.verdict, one.verdict) << one.what;
    EXPECT_EQ(ended[0].report.outcome.answer.status, 0) << one.what;
    EXPECT_FALSE(ended[0].report.outcome.detail.empty()) << one.what;
  }
}

TEST(BlockingPerformer, ItsDestructionWaitsForTheFunctionAndForgetsWhatItSays) {
  Doorbell bell;
  std::promise<void> entered;
  std::promise<void> leave;
  std::atomic<bool> left = false;
  auto performer = blocking_performer([&](const Call&) {
    entered.set_value();
    leave.get_future().wait();
    left = true;
    return report_of(CallVerdict::succeeded);
  });
  performer->open(bell);
  performer->begin(call_of("a"));
  entered.get_future().wait();
  std::thread destroyer([&] { performer.reset(); });
  leave.set_value();
  destroyer.join();
  EXPECT_TRUE(left) << "the function may use what its caller owns";
}

TEST(BlockingPerformer, ItsCloseWaitsForNobodyAndNothingOfThatUseIsTouchedOrToldAgain) {
  std::promise<void> entered;
  std::promise<void> leave;
  const auto performer = blocking_performer(
      [&](const Call& call) {
        if (call.id == "abandoned") {
          entered.set_value();
          leave.get_future().wait();
        }
        return report_of(CallVerdict::succeeded);
      },
      2);
  auto first = std::make_unique<Doorbell>();
  performer->open(*first);
  performer->begin(call_of("abandoned"));
  entered.get_future().wait();
  performer->close();
  first.reset();
  Doorbell second;
  performer->open(second);
  EXPECT_EQ(performer->room(), 1u) << "it is still in the function";
  leave.set_value();
  while (performer->room() < 2) std::this_thread::yield();
  EXPECT_TRUE(performer->collect().empty());
  performer->begin(call_of("next"));
  EXPECT_EQ(collect(*performer, second, 1)[0].id, "next");
}

TEST(BlockingPerformer, WhatWasNotCollectedIsGoneWithItsUse) {
  const auto performer = blocking_performer([&](const Call&) { return report_of(CallVerdict::succeeded); });
  Doorbell first;
  performer->open(first);
  performer->begin(call_of("a"));
  first.wait(1h);
  performer->close();
  performer->close();
  Doorbell second;
  performer->open(second);
  EXPECT_TRUE(performer->collect().empty());
}

TEST(LaterPerformer, ReportsWhenTheReplyIsUsedFromAnyThread) {
  Doorbell bell;
  std::optional<Reply> kept;
  const auto performer = later_performer([&](Call, Reply reply) { kept.emplace(std::move(reply)); });
  performer->open(bell);
  performer->begin(call_of("a"));
  EXPECT_TRUE(performer->collect().empty());
  std::thread([&] { std::move(*kept).report(report_of(CallVerdict::succeeded)); }).join();
  const auto ended = collect(*performer, bell, 1);
  EXPECT_EQ(ended[0].id, "a");
  EXPECT_EQ(ended[0].report.verdict, CallVerdict::succeeded);
}

TEST(LaterPerformer, AReplyThatIsDroppedIsUnknown) {
  Doorbell bell;
  const auto performer = later_performer([](Call, Reply) {});
  performer->open(bell);
  performer->begin(call_of("dropped"));
  EXPECT_EQ(collect(*performer, bell, 1)[0].report.verdict, CallVerdict::unknown);
}

TEST(LaterPerformer, WhatItThrowsIsUnknownAndSaidOnce) {
  Doorbell bell;
  const auto performer = later_performer([](Call, const Reply&) { throw std::runtime_error("no"); });
  performer->open(bell);
  performer->begin(call_of("thrown"));
  EXPECT_EQ(collect(*performer, bell, 1)[0].report.verdict, CallVerdict::unknown);
  EXPECT_TRUE(performer->collect().empty());
}

TEST(LaterPerformer, TheRoomIsWhatIsNotAwaited) {
  Doorbell bell;
  std::vector<Reply> kept;
  const auto performer = later_performer([&](Call, Reply reply) { kept.push_back(std::move(reply)); }, 2);
  performer->open(bell);
  performer->begin(call_of("a"));
  performer->begin(call_of("b"));
  EXPECT_EQ(performer->room(), 0u);
  std::move(kept[0]).report({});
  EXPECT_EQ(performer->room(), 1u);
}

TEST(LaterPerformer, NoReportWithinTheTimeoutIsUnknownAndALaterOneComesToNothing) {
  Doorbell bell;
  std::optional<Reply> kept;
  const auto performer = later_performer([&](Call, Reply reply) { kept.emplace(std::move(reply)); });
  performer->open(bell);
  performer->begin(call_of("late", 1ms));
  EXPECT_EQ(collect(*performer, bell, 1)[0].report.verdict, CallVerdict::unknown);
  EXPECT_EQ(performer->room(), 256u);
  std::move(*kept).report(report_of(CallVerdict::succeeded));
  EXPECT_TRUE(performer->collect().empty());
}

TEST(LaterPerformer, AfterItsCloseNothingOfThatUseIsTouchedOrToldAgain) {
  std::vector<Reply> kept;
  const auto performer = later_performer([&](Call, Reply reply) { kept.push_back(std::move(reply)); }, 3);
  auto first = std::make_unique<Doorbell>();
  performer->open(*first);
  for (const char* id : {"reported", "early", "late"}) performer->begin(call_of(id));
  std::move(kept[0]).report(report_of(CallVerdict::succeeded));
  performer->close();
  first.reset();
  std::move(kept[1]).report(report_of(CallVerdict::succeeded));
  Doorbell second;
  performer->open(second);
  EXPECT_EQ(performer->room(), 3u);
  std::move(kept[2]).report(report_of(CallVerdict::succeeded));
  EXPECT_TRUE(performer->collect().empty());
  performer->begin(call_of("next"));
  std::move(kept[3]).report(report_of(CallVerdict::failed));
  EXPECT_EQ(collect(*performer, second, 1)[0].id, "next");
}

TEST(LaterPerformer, AReplyMayOutliveIt) {
  std::optional<Reply> kept;
  {
    Doorbell bell;
    const auto performer = later_performer([&](Call, Reply reply) { kept.emplace(std::move(reply)); });
    performer->open(bell);
    performer->begin(call_of("a"));
  }
  std::move(*kept).report(report_of(CallVerdict::succeeded));
}

}  // namespace
}  // namespace semel
