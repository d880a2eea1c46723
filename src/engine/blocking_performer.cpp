// Performers made of a function: one that blocks on a pool of threads, one that reports later.
#include <algorithm>
#include <cassert>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <semel/performer.hpp>
#include <thread>

namespace semel {

namespace {

using SteadyTime = std::chrono::steady_clock::time_point;

CallReport report_without_answer(CallVerdict verdict, std::string detail) {
  CallReport report{.verdict = verdict};
  report.outcome.answer.status = 0;
  report.outcome.detail = std::move(detail);
  return report;
}

CallVerdict verdict_of(const Error& error) {
  if (error.certainty != Certainty::not_applied) return CallVerdict::unknown;
  return error.remedy == Remedy::fix_call ? CallVerdict::failed : CallVerdict::not_done;
}

class BlockingPerformer final : public Performer {
 public:
  BlockingPerformer(std::function<CallReport(const Call&)> call, std::size_t threads)
      : call_(std::move(call)), threads_max_(std::max<std::size_t>(threads, 1)) {}
  ~BlockingPerformer() override;

  void open(Doorbell& bell) override;
  void close() override;
  std::size_t room() const override;
  void begin(Call call) override;
  std::vector<Performed> collect() override;

 private:
  void work();
  CallReport perform(const Call& call) const;

  const std::function<CallReport(const Call&)> call_;
  const std::size_t threads_max_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Doorbell* bell_ = nullptr;  ///< null while nobody uses it
  std::uint64_t use_ = 0;     ///< whose calls are reported
  std::deque<Call> waiting_{};
  std::vector<Performed> ended_{};
  std::size_t under_way_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> threads_{};
};

BlockingPerformer::~BlockingPerformer() {
  BlockingPerformer::close();
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (auto& thread : threads_) thread.join();
}

void BlockingPerformer::open(Doorbell& bell) {
  const std::lock_guard lock(mutex_);
  assert(!bell_);
  bell_ = &bell;
}

void BlockingPerformer::close() {
  const std::lock_guard lock(mutex_);
  bell_ = nullptr;
  ++use_;
  under_way_ -= waiting_.size();
  waiting_.clear();
  ended_.clear();
}

std::size_t BlockingPerformer::room() const {
  const std::lock_guard lock(mutex_);
  return threads_max_ - under_way_;
}

void BlockingPerformer::begin(Call call) {
  const std::lock_guard lock(mutex_);
  assert(bell_ && under_way_ < threads_max_);
  ++under_way_;
  waiting_.push_back(std::move(call));
  // Every thread is busy or has a call waiting for it: one more.
  if (threads_.size() < under_way_) threads_.emplace_back([this] { work(); });
  changed_.notify_one();
}

std::vector<Performed> BlockingPerformer::collect() {
  const std::lock_guard lock(mutex_);
  return std::exchange(ended_, {});
}

void BlockingPerformer::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
    if (stopping_) return;
    const Call call = std::move(waiting_.front());
    waiting_.pop_front();
    const auto use = use_;
    lock.unlock();
    Performed performed{call.id, call.attempt, perform(call)};
    lock.lock();
    --under_way_;
    if (use != use_) continue;
    ended_.push_back(std::move(performed));
    bell_->ring();
  }
}

CallReport BlockingPerformer::perform(const Call& call) const {
  try {
    return call_(call);
  } catch (const Failure& failure) {
    return report_without_answer(verdict_of(failure.error()), failure.error().message);
  } catch (const std::exception& thrown) {
    return report_without_answer(CallVerdict::unknown, std::string("the performer threw: ") + thrown.what());
  } catch (...) {
    return report_without_answer(CallVerdict::unknown, "the performer threw something that is no std::exception");
  }
}

/// What a LaterPerformer and the Replies that it gave out share: a Reply may outlive the performer.
struct Pending {
  std::mutex mutex{};
  std::condition_variable changed{};
  Doorbell* bell = nullptr;  ///< null while nobody uses the performer, and once it is gone
  std::uint64_t next_token = 0;
  struct Awaited {
    std::string id;
    int attempt;
    SteadyTime deadline;
  };
  std::map<std::uint64_t, Awaited> awaited{};
  std::vector<Performed> ended{};

  /// With the mutex held. The first report of a call counts, and the others come to nothing.
  void end(std::uint64_t token, CallReport report) {
    const auto found = awaited.find(token);
    if (found == awaited.end() || !bell) return;
    ended.push_back({std::move(found->second.id), found->second.attempt, std::move(report)});
    awaited.erase(found);
    bell->ring();
  }
  void end_overdue(SteadyTime now);
  std::optional<SteadyTime> first_deadline() const;
};

void Pending::end_overdue(SteadyTime now) {
  std::vector<std::uint64_t> overdue;
  for (const auto& [token, one] : awaited)
    if (one.deadline <= now) overdue.push_back(token);
  for (const auto token : overdue)
    end(token, report_without_answer(CallVerdict::unknown, "no report within the call's timeout"));
}

std::optional<SteadyTime> Pending::first_deadline() const {
  std::optional<SteadyTime> first;
  for (const auto& [token, one] : awaited) first = std::min(first.value_or(one.deadline), one.deadline);
  return first;
}

class LaterPerformer final : public Performer {
 public:
  LaterPerformer(std::function<void(Call, Reply)> call, std::size_t calls_max)
      : call_(std::move(call)), calls_max_(calls_max) {}
  ~LaterPerformer() override { LaterPerformer::close(); }

  void open(Doorbell& bell) override;
  void close() override;
  std::size_t room() const override;
  void begin(Call call) override;
  std::vector<Performed> collect() override;

 private:
  void watch();

  const std::function<void(Call, Reply)> call_;
  const std::size_t calls_max_;
  const std::shared_ptr<Pending> pending_ = std::make_shared<Pending>();
  std::thread watch_{};  ///< reports what nobody reported in time
};

void LaterPerformer::open(Doorbell& bell) {
  {
    const std::lock_guard lock(pending_->mutex);
    assert(!pending_->bell);
    pending_->bell = &bell;
  }
  watch_ = std::thread([this] { watch(); });
}

void LaterPerformer::close() {
  {
    const std::lock_guard lock(pending_->mutex);
    pending_->bell = nullptr;
    pending_->awaited.clear();
    pending_->ended.clear();
  }
  pending_->changed.notify_all();
  if (watch_.joinable()) watch_.join();
}

std::size_t LaterPerformer::room() const {
  const std::lock_guard lock(pending_->mutex);
  return calls_max_ - std::min(calls_max_, pending_->awaited.size());
}

void LaterPerformer::begin(Call call) {
  std::uint64_t token = 0;
  {
    const std::lock_guard lock(pending_->mutex);
    assert(pending_->bell && pending_->awaited.size() < calls_max_);
    token = pending_->next_token++;
    pending_->awaited[token] = {call.id, call.attempt, std::chrono::steady_clock::now() + call.timeout};
  }
  pending_->changed.notify_all();
  try {
    call_(std::move(call), Reply([pending = pending_, token](CallReport report) {
            const std::lock_guard lock(pending->mutex);
            pending->end(token, std::move(report));
          }));
  } catch (...) {
    // The Reply went with the exception and has said `unknown`.
  }
}

std::vector<Performed> LaterPerformer::collect() {
  const std::lock_guard lock(pending_->mutex);
  return std::exchange(pending_->ended, {});
}

void LaterPerformer::watch() {
  std::unique_lock lock(pending_->mutex);
  while (pending_->bell) {
    pending_->end_overdue(std::chrono::steady_clock::now());
    if (const auto deadline = pending_->first_deadline())
      pending_->changed.wait_until(lock, *deadline);
    else
      pending_->changed.wait(lock);
  }
}

}  // namespace

std::unique_ptr<Performer> blocking_performer(std::function<CallReport(const Call&)> call, std::size_t threads) {
  return std::make_unique<BlockingPerformer>(std::move(call), threads);
}

std::unique_ptr<Performer> later_performer(std::function<void(Call, Reply)> call, std::size_t calls_max) {
  return std::make_unique<LaterPerformer>(std::move(call), calls_max);
}

}  // namespace semel
