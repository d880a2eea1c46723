// A performer at work, and a provider that does as it is told. Tests only.
#pragma once

#include <gtest/gtest.h>

#include <condition_variable>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <semel/performer.hpp>
#include <vector>

#include "net/raw_server_for_tests.hpp"

namespace semel {

/// Opens a performer and waits for what it reports.
class AtWork {
 public:
  explicit AtWork(std::unique_ptr<Performer> performer) : performer_(std::move(performer)) { performer_->open(bell_); }
  Performer& operator*() { return *performer_; }
  /// Waits until `count` calls have ended; for ever otherwise, which fails by the test's time limit.
  std::vector<Performed> collect(std::size_t count) {
    std::vector<Performed> all;
    while (true) {
      for (auto& one : performer_->collect()) all.push_back(std::move(one));
      if (all.size() >= count) return all;
      bell_.wait(std::chrono::hours(1));
    }
  }
  CallReport perform(Call call) {
    performer_->begin(std::move(call));
    return collect(1).at(0).report;
  }

 private:
  Doorbell bell_;
  std::unique_ptr<Performer> performer_;
};

/// Answers each request with what `answer` says of it, and keeps it.
class TestProvider {
 public:
  using Answer = std::function<std::string(const std::string& request)>;
  explicit TestProvider(Answer answer)
      : server_([this, answer = std::move(answer)](net::RawConnection& connection) {
          {
            const std::lock_guard lock(mutex_);
            ++connections_;
          }
          for (auto request = connection.read_request(); !request.empty(); request = connection.read_request()) {
            {
              const std::lock_guard lock(mutex_);
              requests_.push_back(request);
            }
            connection.send(answer(request));
          }
        }) {}
  std::string url(std::string_view target = "/") const { return server_.url(target); }
  std::vector<std::string> requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }
  int connections() const {
    const std::lock_guard lock(mutex_);
    return connections_;
  }

 private:
  mutable std::mutex mutex_{};
  std::vector<std::string> requests_{};
  int connections_ = 0;
  net::RawServer server_;
};

/// A provider that never answers its first caller.
class SilentProvider {
 public:
  std::string url() const { return server_.url(); }
  void wait_for_call() { came_.get_future().wait(); }
  void wait_until_given_up() { given_up_.get_future().wait(); }

 private:
  std::promise<void> came_{};
  std::promise<void> given_up_{};
  net::RawServer server_{[this](net::RawConnection& connection) {
    connection.read_request();
    if (connection.number() > 1) return connection.send(net::raw_answer(200));
    came_.set_value();
    connection.read_request();  // there is none: the client has closed
    given_up_.set_value();
  }};
};

/// Closes a performer while `provider` is at its call, and uses it anew.
inline void expect_that_close_ends_a_use(Performer& performer, SilentProvider& provider, Call call) {
  auto first = std::make_unique<Doorbell>();
  performer.open(*first);
  const auto room = performer.room();
  call.attempt = 1;
  performer.begin(call);
  provider.wait_for_call();
  performer.close();
  first.reset();
  provider.wait_until_given_up();
  Doorbell second;
  performer.open(second);
  EXPECT_EQ(performer.room(), room);
  call.attempt = 2;
  performer.begin(call);
  std::vector<Performed> ended;
  for (; ended.empty(); ended = performer.collect()) second.wait(std::chrono::hours(1));
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_EQ(ended[0].attempt, 2);
  EXPECT_EQ(ended[0].report.verdict, CallVerdict::succeeded);
  performer.close();
}

}  // namespace semel
