// A performer that says what the test tells it to.
#pragma once

#include <semel/performer.hpp>
#include <string>
#include <utility>
#include <vector>

namespace semel::engine {

/// Remembers the calls that were begun; the test reports them.
class ToldPerformer : public Performer {
 public:
  void open(Doorbell&) override { opened = true; }
  void close() override { opened = false; }
  std::size_t room() const override { return room_; }
  void begin(Call call) override { begun.push_back(std::move(call)); }
  std::vector<Performed> collect() override { return std::exchange(finished_, {}); }

  void report(std::size_t number, CallReport report) {
    finished_.push_back({begun.at(number).id, begun.at(number).attempt, std::move(report)});
  }
  void report_last(CallVerdict verdict, std::string reference = "") {
    report(begun.size() - 1, {.verdict = verdict,
                              .outcome = {.reference = std::move(reference), .answer = {.status = 200, .body = "ok"}}});
  }
  void set_room(std::size_t room) { room_ = room; }

  std::vector<Call> begun;
  bool opened = false;

 private:
  std::vector<Performed> finished_;
  std::size_t room_ = 100;
};

}  // namespace semel::engine
