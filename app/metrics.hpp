// What is counted and measured, for Prometheus.
#pragma once

#include <memory>
#include <optional>
#include <semel/observer.hpp>
#include <string>
#include <vector>

#include "backlog.hpp"

namespace semel::app {

/// Families:
///   semel_messages_total{handler,decision}   messages by what became of them
///   semel_receive_count                      how often a message had been delivered, where its source says so
///   semel_batch_messages                     messages a transaction
///   semel_claim_seconds, semel_handlers_seconds, semel_commit_seconds   the parts of a transaction
///   semel_troubles_total{code}               troubles that were no message's fault
///   semel_http_refused_total{source,code}    requests answered before any lane saw them
///   semel_http_problems_total{listener,status,problem}   requests answered for no source
///   semel_calls_total{effect,verdict}        outside calls and lookups that have ended
///   semel_call_seconds                       how long they took
///   semel_sends_total{target,confirmed}      attempts to send a publication
///   and of what waits in the store, for all processes, read when it is asked for:
///   semel_intents{state}                     those not settled
///   semel_intents_waiting_for_operator
///   semel_intent_oldest_open_seconds         age of the oldest one without an outcome
///   semel_outbox_waiting, semel_outbox_held, semel_outbox_oldest_seconds
///   semel_backlog_known                      0: the store did not say in time, and these are the figures of before
class Metrics : public Observer {
 public:
  /// Counters of `handlers` are there from the start, at zero.
  explicit Metrics(const std::vector<std::string>& handlers);
  ~Metrics() override;

  void message(const MessageReport& report) override;
  void batch(const BatchReport& report) override;
  void called(const CallReported& report) override;
  void sent(const SendReported& report) override;
  void trouble(const Error& error) override;

  /// A request that no lane saw.
  void refused(std::string_view source, const Error& why);
  /// A request that no source saw. `listener` is its address.
  void problem(std::string_view listener, int status, std::string_view problem);

  /// What waits in the store; nothing where it did not say in time.
  void backlog(const std::optional<BacklogCounts>& counts);

  /// In Prometheus' text format.
  std::string text() const;

 private:
  struct Families;
  std::unique_ptr<Families> families_;
};

}  // namespace semel::app
