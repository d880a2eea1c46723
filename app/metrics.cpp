#include "metrics.hpp"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

namespace semel::app {
namespace {

using Buckets = prometheus::Histogram::BucketBoundaries;

const Buckets seconds_buckets = {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025,
                                 0.05,   0.1,     0.25,   0.5,   1,      2.5,   5,    10};
const Buckets count_buckets = {1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1'000};

double in_seconds(std::chrono::nanoseconds duration) { return std::chrono::duration<double>(duration).count(); }

}  // namespace

struct Metrics::Families {
  prometheus::Registry registry;
  prometheus::Family<prometheus::Counter>& messages = prometheus::BuildCounter()
                                                          .Name("semel_messages_total")
                                                          .Help("Messages by what became of them")
                                                          .Register(registry);
  prometheus::Family<prometheus::Counter>& troubles = prometheus::BuildCounter()
                                                          .Name("semel_troubles_total")
                                                          .Help("Troubles that were no message's fault")
                                                          .Register(registry);
  prometheus::Family<prometheus::Counter>& refusals = prometheus::BuildCounter()
                                                          .Name("semel_http_refused_total")
                                                          .Help("Requests answered before any lane saw them")
                                                          .Register(registry);
  prometheus::Family<prometheus::Counter>& problems = prometheus::BuildCounter()
                                                          .Name("semel_http_problems_total")
                                                          .Help("Requests answered for no source")
                                                          .Register(registry);
  prometheus::Family<prometheus::Counter>& calls = prometheus::BuildCounter()
                                                       .Name("semel_calls_total")
                                                       .Help("Outside calls and lookups that have ended")
                                                       .Register(registry);
  prometheus::Family<prometheus::Counter>& sends =
      prometheus::BuildCounter().Name("semel_sends_total").Help("Attempts to send a publication").Register(registry);
  prometheus::Family<prometheus::Gauge>& intents =
      prometheus::BuildGauge().Name("semel_intents").Help("Calls that are not settled, by state").Register(registry);
  prometheus::Gauge& waiting_for_operator =
      gauge("semel_intents_waiting_for_operator", "Calls about which an operator is asked");
  prometheus::Gauge& oldest_open =
      gauge("semel_intent_oldest_open_seconds", "Age of the oldest call without an outcome");
  prometheus::Gauge& outbox_waiting = gauge("semel_outbox_waiting", "Publications that are not sent");
  prometheus::Gauge& outbox_held = gauge("semel_outbox_held", "Publications about which an operator is asked");
  prometheus::Gauge& outbox_oldest = gauge("semel_outbox_oldest_seconds", "Age of the oldest one that is not sent");
  prometheus::Gauge& backlog_known = gauge("semel_backlog_known", "Whether the store said what waits in it");
  prometheus::Histogram& call = histogram("semel_call_seconds", "Time of an outside call", seconds_buckets);
  prometheus::Histogram& receive_count =
      histogram("semel_receive_count", "How often a message had been delivered", count_buckets);
  prometheus::Histogram& batch_messages = histogram("semel_batch_messages", "Messages a transaction", count_buckets);
  prometheus::Histogram& claim = histogram("semel_claim_seconds", "Time to claim a batch", seconds_buckets);
  prometheus::Histogram& handlers = histogram("semel_handlers_seconds", "Time of a batch's handlers", seconds_buckets);
  prometheus::Histogram& commit =
      histogram("semel_commit_seconds", "Time to record and commit a batch", seconds_buckets);

  prometheus::Histogram& histogram(const std::string& name, const std::string& help, const Buckets& buckets) {
    return prometheus::BuildHistogram().Name(name).Help(help).Register(registry).Add({}, buckets);
  }
  prometheus::Gauge& gauge(const std::string& name, const std::string& help) {
    return prometheus::BuildGauge().Name(name).Help(help).Register(registry).Add({});
  }
  prometheus::Counter& counter(std::string_view handler, Decision decision) {
    return messages.Add({{"handler", std::string(handler)}, {"decision", std::string(decision_name(decision))}});
  }
};

Metrics::Metrics(const std::vector<std::string>& handlers) : families_(std::make_unique<Families>()) {
  families_->counter("", Decision::unmatched);
  for (const auto& handler : handlers) {
    for (const auto decision : all_decisions) {
      if (decision != Decision::unmatched) families_->counter(handler, decision);
    }
  }
}

Metrics::~Metrics() = default;

void Metrics::message(const MessageReport& report) {
  families_->counter(report.handler, report.decision).Increment();
  if (report.delivery.receive_count) families_->receive_count.Observe(*report.delivery.receive_count);
}

void Metrics::batch(const BatchReport& report) {
  families_->batch_messages.Observe(static_cast<double>(report.messages));
  families_->claim.Observe(in_seconds(report.claim));
  families_->handlers.Observe(in_seconds(report.handlers));
  families_->commit.Observe(in_seconds(report.commit));
}

void Metrics::called(const CallReported& report) {
  families_->calls
      .Add({{"effect", std::string(report.effect)}, {"verdict", std::string(call_verdict_name(report.verdict))}})
      .Increment();
  families_->call.Observe(in_seconds(report.duration));
}

void Metrics::sent(const SendReported& report) {
  families_->sends.Add({{"target", std::string(report.target)}, {"confirmed", report.confirmed ? "true" : "false"}})
      .Increment();
}

void Metrics::backlog(const std::optional<BacklogCounts>& counts) {
  families_->backlog_known.Set(counts ? 1 : 0);
  if (!counts) return;
  const auto age = [](const std::optional<std::chrono::milliseconds>& oldest) {
    return oldest ? in_seconds(*oldest) : 0.0;
  };
  for (const auto state : all_intent_states) {
    std::int64_t count = 0;
    for (const auto& [counted, number] : counts->intents.by_state)
      if (counted == state) count += number;
    families_->intents.Add({{"state", std::string(intent_state_name(state))}}).Set(static_cast<double>(count));
  }
  families_->waiting_for_operator.Set(static_cast<double>(counts->intents.waiting_for_operator));
  families_->oldest_open.Set(age(counts->intents.oldest_open));
  families_->outbox_waiting.Set(static_cast<double>(counts->outbox.waiting));
  families_->outbox_held.Set(static_cast<double>(counts->outbox.held));
  families_->outbox_oldest.Set(age(counts->outbox.oldest));
}

void Metrics::trouble(const Error& error) { families_->troubles.Add({{"code", code_name(error.code)}}).Increment(); }

void Metrics::refused(std::string_view source, const Error& why) {
  families_->refusals.Add({{"source", std::string(source)}, {"code", code_name(why.code)}}).Increment();
}

void Metrics::problem(std::string_view listener, int status, std::string_view problem) {
  families_->problems
      .Add({{"listener", std::string(listener)}, {"status", std::to_string(status)}, {"problem", std::string(problem)}})
      .Increment();
}

std::string Metrics::text() const { return prometheus::TextSerializer().Serialize(families_->registry.Collect()); }

}  // namespace semel::app
