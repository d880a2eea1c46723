// What is counted and measured, for Prometheus.
#pragma once

#include <memory>
#include <semel/observer.hpp>
#include <string>
#include <vector>

namespace semel::app {

/// Families:
///   semel_messages_total{handler,decision}   messages by what became of them
///   semel_receive_count                      how often a message had been delivered, where its source says so
///   semel_batch_messages                     messages a transaction
///   semel_claim_seconds, semel_handlers_seconds, semel_commit_seconds   the parts of a transaction
///   semel_troubles_total{code}               troubles that were no message's fault
///   semel_http_refused_total{source,code}    requests answered before any lane saw them
class Metrics : public Observer {
 public:
  /// Counters of `handlers` are there from the start, at zero.
  explicit Metrics(const std::vector<std::string>& handlers);
  ~Metrics() override;

  void message(const MessageReport& report) override;
  void batch(const BatchReport& report) override;
  void trouble(const Error& error) override;

  /// A request that no lane saw.
  void refused(std::string_view source, const Error& why);

  /// In Prometheus' text format.
  std::string text() const;

 private:
  struct Families;
  std::unique_ptr<Families> families_;
};

}  // namespace semel::app
