#include "engine/letters.hpp"

#include "base/digest.hpp"
#include "base/encoding.hpp"

namespace semel::engine {

namespace {

std::string derived_id(const Task& task) {
  const auto& delivery = task.in_flight->delivery;
  if (!task.in_flight->letter_id.empty()) return task.in_flight->letter_id;
  if (delivery.transport_id.empty() && !task.key) return {};  // nothing tells it from its like: never merged
  const auto joined = join_fields({task.options().name, delivery.principal, delivery.source, delivery.transport_id,
                                   task.key ? std::string_view(task.key->bytes()) : std::string_view(), delivery.body});
  return hex_encode(sha256(joined)).substr(0, 32);
}

}  // namespace

DeadLetter write_letter(const Task& task, SetAsideReason reason, const Error& why) {
  const auto& delivery = task.in_flight->delivery;
  DeadLetter letter;
  letter.id = derived_id(task);
  letter.reason = reason;
  letter.code = why.code;
  letter.detail = why.message;
  letter.scope = task.scope();
  letter.key = task.key ? task.key->bytes() : std::string();
  letter.fingerprint = task.fingerprint;
  letter.source = delivery.source;
  letter.sender = delivery.sender;
  letter.sender_verified = delivery.sender_verified;
  letter.transport_id = delivery.transport_id;
  letter.body = delivery.body;
  letter.attributes = delivery.attributes;
  letter.attempts = task.failures;
  return letter;
}

class LetterSource::LetterReceiver : public Receiver {
 public:
  explicit LetterReceiver(LetterSource& source) : source_(source) {}

  Result<Batch> receive(std::size_t count_max) override {
    Batch batch;
    for (; count_max > 0 && next_ < source_.letters_.size(); --count_max, ++next_)
      batch.deliveries.push_back(delivery(next_));
    batch.ended = next_ == source_.letters_.size();
    return batch;
  }

  void settle(std::vector<Settlement> settlements) override {
    for (const auto& settlement : settlements)
      if (std::holds_alternative<Done>(settlement.verdict))
        source_.got_through_.push_back(source_.letters_[settlement.receipt.token()].id);
  }

  void stop() override { next_ = source_.letters_.size(); }

 private:
  Delivery delivery(std::size_t index) const {
    const auto& letter = source_.letters_[index];
    return {.receipt = Receipt(index),
            .source = letter.source,
            // Nobody waits for the answer any more: what fails again is set aside again.
            .sender = Sender::message,
            .body = letter.body,
            .problem = "",
            .attributes = letter.attributes,
            .transport_id = letter.transport_id,
            .principal = letter.scope.principal,
            .sender_verified = letter.sender_verified,
            .receive_count = std::nullopt,
            .sent_at = std::nullopt};
  }

  LetterSource& source_;
  std::size_t next_ = 0;
};

LetterSource::LetterSource(std::vector<DeadLetter> letters) : letters_(std::move(letters)) {}

Result<std::unique_ptr<Receiver>> LetterSource::open(Doorbell&) {
  return std::unique_ptr<Receiver>(std::make_unique<LetterReceiver>(*this));
}

}  // namespace semel::engine
