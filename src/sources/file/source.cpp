// Lines of a file as deliveries. Nothing has to be acknowledged to a file: after a crash the next run reads it from its
// start, and every line that was done is a replay.
#include <semel/sources/file.hpp>

#include "sources/file/reader.hpp"

namespace semel::file {

namespace {

class FileReceiver final : public Receiver {
 public:
  FileReceiver(std::string source, std::shared_ptr<Reader> reader, std::size_t line_bytes_max, Doorbell& bell)
      : source_(std::move(source)), reader_(std::move(reader)), line_bytes_max_(line_bytes_max), bell_(bell) {
    reader_->join(bell_);
  }
  ~FileReceiver() override { reader_->leave(bell_); }

  Result<Batch> receive(std::size_t count_max) override;
  void settle(std::vector<Settlement>) override {}
  void stop() override { stopped_ = true; }

 private:
  Delivery delivery_of(Line line) const;

  const std::string source_;
  const std::shared_ptr<Reader> reader_;
  const std::size_t line_bytes_max_;
  Doorbell& bell_;
  bool stopped_ = false;
};

Result<Batch> FileReceiver::receive(std::size_t count_max) {
  if (stopped_) return Batch{.deliveries = {}, .ended = true};
  Taken taken = reader_->take(count_max);
  if (taken.error) return *std::move(taken.error);
  Batch batch{.deliveries = {}, .ended = taken.ended};
  for (auto& line : taken.lines) batch.deliveries.push_back(delivery_of(std::move(line)));
  return batch;
}

Delivery FileReceiver::delivery_of(Line line) const {
  Delivery delivery{.receipt = Receipt(line.number), .source = source_};
  if (line.too_long)
    delivery.problem =
        "line " + std::to_string(line.number) + " is longer than " + std::to_string(line_bytes_max_) + " bytes";
  delivery.body = std::move(line.text);
  delivery.transport_id = reader_->file_name() + ":" + std::to_string(line.number);
  return delivery;
}

class LineSource final : public Source {
 public:
  LineSource(Options options, Input input)
      : options_(std::move(options)), reader_(std::make_shared<Reader>(std::move(input), options_)) {}

  const std::string& name() const override { return options_.name; }
  SourceTraits traits() const override { return {.redelivers = false, .ends = true, .ordered = true}; }
  Progress progress() const override { return reader_->progress(); }
  Result<std::unique_ptr<Receiver>> open(Doorbell& bell) override {
    return std::unique_ptr<Receiver>(
        std::make_unique<FileReceiver>(options_.name, reader_, options_.line_bytes_max, bell));
  }

 private:
  const Options options_;
  const std::shared_ptr<Reader> reader_;
};

}  // namespace

Result<std::unique_ptr<Source>> open(Options options) {
  auto input = Input::open(options.path);
  if (!input) return std::move(input).error();
  return std::unique_ptr<Source>(std::make_unique<LineSource>(std::move(options), *std::move(input)));
}

}  // namespace semel::file
