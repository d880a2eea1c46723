#include "engine/relay.hpp"

#include <algorithm>

namespace semel::engine {

namespace {

using namespace std::chrono_literals;

constexpr std::size_t take_max = 100;
constexpr std::size_t items_max = 500;
constexpr auto take_interval = 1'000ms;
/// A send begins only where its timeout still fits into the lease, so that no other relay sends beside this one.
constexpr auto lease_beyond_timeout = 30'000ms;

}  // namespace

Relay::Relay(std::unique_ptr<Session> session, const ConsumerOptions& options, AfterCommit& after_commit,
             Doorbell& bell, std::uint64_t seed)
    : session_(std::move(session)), options_(options), after_commit_(after_commit), jitter_(seed) {
  for (const auto& [name, target] : after_commit.outside.targets) {
    if (!target.performer) continue;
    targets_.push_back(name);
    if (performers_.insert(target.performer).second) target.performer->open(bell);
  }
  after_commit_.relay_bell = &bell;
}

Relay::~Relay() {
  for (auto* performer : performers_) performer->close();
  after_commit_.relay_bell = nullptr;
}

Turn Relay::turn() {
  const auto now = options_.clock->now();
  collect();
  if (const auto until = store_away_.until(now)) return {.wake_at = until};
  if (ending_ == Ending::stop)
    for (auto& item : items_)
      if (!item.sending) give_back(item);
  forget_given_back();
  more_ = after_commit_.published.exchange(false) || more_;
  const bool takes = ending_ != Ending::stop && (more_ || now >= take_at_) && items_.size() < items_max;
  const bool writes = takes || !results_.empty();
  if (writes) write();
  begin_sends();
  auto wake_at = ending_ ? std::min(take_at_, patience_until_) : take_at_;
  if (ending_ == Ending::stop) wake_at = patience_until_;
  const auto away = store_away_.until(options_.clock->now());
  return {.worked = writes && more_ && items_.size() < items_max && !away,
          .finished = finished(),
          .wake_at = std::max(wake_at, away.value_or(wake_at))};
}

void Relay::end(Ending ending) {
  ending_ = ending;
  more_ = true;
  patience_until_ = options_.clock->now() + options_.shutdown_deadline * 3 / 4;
}

bool Relay::finished() const {
  if (!ending_) return false;
  if (options_.clock->now() >= patience_until_) return true;
  return items_.empty() && results_.empty() && (ending_ == Ending::stop || !more_);
}

void Relay::collect() {
  bool any = false;
  for (auto* performer : performers_) {
    for (const auto& performed : performer->collect()) {
      const auto item =
          std::find_if(items_.begin(), items_.end(), [&](const Item& one) { return one.message.id == performed.id; });
      if (item == items_.end()) continue;
      count_result(*item, performed.report);
      items_.erase(item);
      any = true;
    }
  }
  if (any) options_.probe->reached(Step::relayed);
}

void Relay::count_result(const Item& item, const CallReport& report) {
  const auto& message = item.message;
  OutboxResult result{.id = message.id, .attempt = message.attempt};
  result.sent = report.verdict == CallVerdict::succeeded;
  if (!result.sent) {
    const auto& options = item.target->options;
    result.due_in = std::max(jitter_.backoff(message.failures + 1, options.delay_first, options.delay_max),
                             report.retry_after.value_or(0ms));
    result.error =
        report.outcome.detail.empty() ? std::string(call_verdict_name(report.verdict)) : report.outcome.detail;
    // A repeat would be turned away again, and what is behind it may depend on it: nobody drops it but an operator.
    result.hold = report.verdict == CallVerdict::failed || report.verdict == CallVerdict::refused;
  }
  options_.observer->sent(
      {.target = message.publication.to, .publication = message.id, .confirmed = result.sent, .detail = result.error});
  results_.push_back(std::move(result));
  if (!results_.back().sent) give_back_behind(message);
}

/// A message has lost its place in the order for now, and with it those behind it.
void Relay::give_back_behind(const OutboxMessage& message) {
  const auto& publication = message.publication;
  if (publication.order_key.empty()) return;
  for (auto& item : items_) {
    const auto& other = item.message.publication;
    if (item.sending || item.message.id == message.id) continue;
    if (other.to == publication.to && other.order_key == publication.order_key) give_back(item);
  }
}

void Relay::give_back(Item& item) {
  results_.push_back({.id = item.message.id, .attempt = item.message.attempt});
  item.given_back = true;
}

void Relay::forget_given_back() {
  std::erase_if(items_, [](const Item& item) { return item.given_back; });
}

void Relay::write() {
  taken_.clear();
  const bool any_sent = std::any_of(results_.begin(), results_.end(), [](const auto& result) { return result.sent; });
  auto done = session_->begin();
  if (done && !results_.empty()) done = session_->outbox().finish(results_);
  if (done) done = take();
  if (done) done = session_->commit();
  if (!done) {
    session_->rollback();
    return store_failed(done.error());
  }
  if (store_away_.recovered()) options_.observer->recovered();
  results_.clear();
  if (any_sent) options_.probe->reached(Step::sent);
  if (!taken_.empty()) options_.probe->reached(Step::relaying);
  for (auto& item : taken_) items_.push_back(std::move(item));
}

Result<void> Relay::take() {
  if (ending_ == Ending::stop || items_.size() >= items_max) return {};
  const auto now = options_.clock->now();
  std::chrono::milliseconds longest = 0ms;
  for (const auto& name : targets_) longest = std::max(longest, after_commit_.outside.targets.at(name).options.timeout);
  const auto lease = longest + lease_beyond_timeout;
  auto found = session_->outbox().take(targets_, take_max, lease);
  if (!found) return std::move(found).error();
  take_at_ = now + take_interval;
  more_ = found->size() == take_max;
  for (auto& message : *found) {
    const auto* target = &after_commit_.outside.targets.at(message.publication.to);
    taken_.push_back({.message = std::move(message), .target = target, .leased_until = now + lease});
  }
  return {};
}

/// In order: of one target and order key the next one begins when the one before it was confirmed.
void Relay::begin_sends() {
  if (ending_ == Ending::stop) return;
  std::map<std::string, std::size_t> sending;
  for (const auto& item : items_) sending[item.message.publication.to] += item.sending;
  std::set<std::pair<std::string, std::string>> busy;
  for (auto& item : items_) {
    const auto& publication = item.message.publication;
    const bool in_turn = publication.order_key.empty() || busy.emplace(publication.to, publication.order_key).second;
    if (item.sending || item.given_back || !in_turn || sending[publication.to] >= item.target->options.sends_max)
      continue;
    if (begin(item)) ++sending[publication.to];
  }
  forget_given_back();
}

bool Relay::begin(Item& item) {
  const auto now = options_.clock->now();
  if (now + item.target->options.timeout > item.leased_until) {
    give_back(item);
    give_back_behind(item.message);
    return false;
  }
  if (item.target->performer->room() == 0) return false;
  const auto& message = item.message;
  item.sending = true;
  item.target->performer->begin({.id = message.id,
                                 .effect = message.publication.to,
                                 .attempt = message.attempt,
                                 .idempotency_key = message.id,
                                 .request = message.publication.body,
                                 .order_key = message.publication.order_key,
                                 .attributes = message.publication.attributes,
                                 .timeout = item.target->options.timeout});
  return true;
}

void Relay::store_failed(const Error& error) {
  options_.observer->trouble(error);
  store_away_.failed(options_.clock->now(), jitter_);
}

}  // namespace semel::engine
