// Rows of the store's queue table as deliveries. A message is leased when it is received and ends when it is settled; a
// consumer that dies in between lets its lease run out, and the message comes again.
#include <map>
#include <semel/sources/queue.hpp>

namespace semel::queue {

namespace {

class QueueReceiver final : public Receiver {
 public:
  QueueReceiver(Store& store, const Options& options) : store_(store), options_(options) {}

  Result<Batch> receive(std::size_t count_max) override;
  void settle(std::vector<Settlement> settlements) override;
  void stop() override { stopped_ = true; }

 private:
  struct Taken {
    std::string id;
    int receive_count;
  };

  Delivery deliver(QueuedMessage message);

  Store& store_;
  const Options& options_;
  std::map<std::uint64_t, Taken> taken_;  ///< by receipt
  std::uint64_t last_token_ = 0;
  bool stopped_ = false;
};

Result<Batch> QueueReceiver::receive(std::size_t count_max) {
  if (stopped_) return Batch{.deliveries = {}, .ended = true};
  auto messages = store_.take_queued(options_.queue, count_max, options_.lease);
  if (!messages) return std::move(messages).error();
  Batch batch;
  for (auto& message : *messages) batch.deliveries.push_back(deliver(std::move(message)));
  return batch;
}

Delivery QueueReceiver::deliver(QueuedMessage message) {
  const auto token = ++last_token_;
  taken_.emplace(token, Taken{message.id, message.receive_count});
  Delivery delivery{.receipt = Receipt(token), .source = options_.name};
  delivery.body = std::move(message.body);
  delivery.attributes = std::move(message.attributes);
  delivery.transport_id = std::move(message.id);
  delivery.receive_count = message.receive_count;
  delivery.sent_at = message.sent_at;
  return delivery;
}

void QueueReceiver::settle(std::vector<Settlement> settlements) {
  std::vector<QueueEnd> ends;
  for (const auto& settlement : settlements) {
    const auto taken = taken_.extract(settlement.receipt.token());
    if (!taken) continue;
    QueueEnd end{.id = taken.mapped().id, .receive_count = taken.mapped().receive_count};
    if (const auto* back = std::get_if<HandedBack>(&settlement.verdict)) end.due_in = back->delay;
    ends.push_back(std::move(end));
  }
  // A failure is no failed effect: the lease runs out, and the next delivery is a replay.
  (void)store_.end_queued(options_.queue, ends);
}

class QueueSource final : public Source {
 public:
  QueueSource(Store& store, Options options) : store_(store), options_(std::move(options)) {}

  const std::string& name() const override { return options_.name; }
  SourceTraits traits() const override {
    return {.redelivers = true, .ordered = true, .poll_every = options_.poll_every};
  }
  Result<std::unique_ptr<Receiver>> open(Doorbell&) override {
    return std::unique_ptr<Receiver>(std::make_unique<QueueReceiver>(store_, options_));
  }

 private:
  Store& store_;
  const Options options_;
};

Error invalid(std::string message) { return fix_call(ErrorCode::source_settings_invalid, std::move(message)); }

}  // namespace

Result<std::unique_ptr<Source>> open(Store& store, Options options) {
  if (options.queue.empty()) options.queue = options.name;
  if (options.queue.empty() || options.queue.size() > 128) return invalid("a queue's name has 1 to 128 bytes");
  if (options.lease.count() <= 0 || options.poll_every.count() <= 0)
    return invalid("queue \"" + options.queue + "\": lease and poll_every must be positive");
  return std::unique_ptr<Source>(std::make_unique<QueueSource>(store, std::move(options)));
}

}  // namespace semel::queue
