#include "configured_calls.hpp"

namespace semel::app {
namespace {

std::string stored_request(const RequestTemplate& request, const Facts& facts) {
  http::StoredRequest made{.method = request.method, .url = url_for(request.url, facts)};
  for (const auto& [name, value] : request.headers) made.headers.add(name, text_for(value, facts));
  made.body = request.form.empty() ? body_for(request.body, facts) : form_for(request.form, facts);
  return http::encode_request(made).value();
}

void add_calls(const std::vector<CallConfig>& calls, std::vector<const CallConfig*>& all) {
  for (const auto& call : calls) {
    all.push_back(&call);
    add_calls(call.next, all);
  }
}

}  // namespace

Intention intention_of(const CallConfig& call, const Facts& facts) {
  Intention intention{.effect = call.options.name, .request = stored_request(call.request, facts)};
  if (call.reference) intention.reference = text_for(*call.reference, facts);
  return intention;
}

Publication publication_of(const PublishConfig& publish, const Facts& facts) {
  Publication made{.to = publish.to};
  made.body = publish.body ? body_for(*publish.body, facts) : facts.message().delivery().body;
  for (const auto& [name, value] : publish.attributes) made.attributes.add(name, text_for(value, facts));
  if (publish.order_key) made.order_key = text_for(*publish.order_key, facts);
  return made;
}

Compensation compensation_of(const CompensationConfig& compensation, const Facts& facts) {
  return {.effect = compensation.options.name, .request = stored_request(compensation.request, facts)};
}

std::optional<Answer> settle_call(const CallConfig& call, const Settled& settled, SettleWork<SqlSession>& work) {
  const Facts facts(settled);
  const auto& step = call.on_failure && !settled.succeeded() ? *call.on_failure : call.settle;
  for (const auto& sql : step.execute) work.execute(sql.sql, std::span<const Value>(values_for(sql, facts)));
  for (const auto& publish : step.publish) work.publish(publication_of(publish, facts));
  if (settled.succeeded()) {
    for (const auto& next : call.next) work.intend(intention_of(next, facts));
    if (call.compensate) work.compensate_with(compensation_of(*call.compensate, facts));
  }
  if (!step.answer) return std::nullopt;
  return answer_for(*step.answer, facts);
}

std::vector<const CallConfig*> all_calls(const HandlerConfig& handler) {
  std::vector<const CallConfig*> all;
  add_calls(handler.calls, all);
  return all;
}

}  // namespace semel::app
