// Publications go into a file on a thread of its own: one write and one fsync for all that have come since.
#include <condition_variable>
#include <mutex>
#include <semel/performers/file.hpp>
#include <thread>
#include <vector>

#include "performers/file/appender.hpp"
#include "performers/file/line.hpp"

namespace semel::file {

namespace {

CallReport report_of(CallVerdict verdict, std::string detail) {
  CallReport report{.verdict = verdict};
  report.outcome.answer.status = verdict == CallVerdict::succeeded ? 200 : 0;
  report.outcome.detail = std::move(detail);
  return report;
}

class FilePublisher final : public Performer {
 public:
  explicit FilePublisher(PublisherOptions options) : options_(std::move(options)), file_(options_.path) {}
  ~FilePublisher() override { FilePublisher::close(); }

  Result<void> prepare() { return file_.open(); }
  void open(Doorbell& bell) override;
  void close() override;
  std::size_t room() const override;
  void begin(Call call) override;
  std::vector<Performed> collect() override;

 private:
  void run();
  std::vector<Performed> append(const std::vector<Call>& calls);

  const PublisherOptions options_;
  Appender file_;  ///< the thread's, once it runs
  Doorbell* bell_ = nullptr;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Call> waiting_{};
  std::vector<Performed> ended_{};
  std::size_t under_way_ = 0;  ///< begun and not collected
  bool stopping_ = false;
  std::thread thread_;
};

void FilePublisher::open(Doorbell& bell) {
  bell_ = &bell;
  stopping_ = false;
  thread_ = std::thread([this] { run(); });
}

/// Waits for lines that are being written.
void FilePublisher::close() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
  bell_ = nullptr;
  waiting_.clear();
  ended_.clear();
  under_way_ = 0;
}

std::size_t FilePublisher::room() const {
  const std::lock_guard lock(mutex_);
  return options_.calls_max - std::min(options_.calls_max, under_way_);
}

void FilePublisher::begin(Call call) {
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(call));
    ++under_way_;
  }
  changed_.notify_one();
}

std::vector<Performed> FilePublisher::collect() {
  const std::lock_guard lock(mutex_);
  under_way_ -= ended_.size();
  return std::exchange(ended_, {});
}

void FilePublisher::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
    if (stopping_) return;
    const auto calls = std::exchange(waiting_, {});
    lock.unlock();
    auto performed = append(calls);
    lock.lock();
    for (auto& one : performed) ended_.push_back(std::move(one));
    bell_->ring();
  }
}

std::vector<Performed> FilePublisher::append(const std::vector<Call>& calls) {
  std::vector<Performed> performed;
  std::string lines;
  for (const auto& call : calls) {
    const auto line = line_of(call);
    if (line) lines += *line;
    performed.push_back(
        {call.id, call.attempt,
         line ? report_of(CallVerdict::succeeded, "appended") : report_of(CallVerdict::failed, line.error().message)});
  }
  const auto appended = lines.empty() ? Result<void>{} : file_.append(lines);
  if (appended) return performed;
  const bool certain = appended.error().certainty == Certainty::not_applied;
  for (auto& one : performed)
    if (one.report.verdict == CallVerdict::succeeded)
      one.report = report_of(certain ? CallVerdict::not_done : CallVerdict::unknown, appended.error().message);
  return performed;
}

}  // namespace

Result<std::unique_ptr<Performer>> file_publisher(PublisherOptions options) {
  auto publisher = std::make_unique<FilePublisher>(std::move(options));
  if (const auto prepared = publisher->prepare(); !prepared)
    return fix_call(ErrorCode::config_bad_value, prepared.error().message);
  return std::unique_ptr<Performer>(std::move(publisher));
}

}  // namespace semel::file
