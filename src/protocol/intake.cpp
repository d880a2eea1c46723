#include "protocol/intake.hpp"

#include <algorithm>

namespace semel::protocol {

namespace {

bool is_pointer(const Condition& condition) { return condition.expression.starts_with("/"); }

bool reads_body(const HandlerOptions& handler) {
  return handler.key.needs_body() || std::any_of(handler.when.begin(), handler.when.end(), is_pointer);
}

bool holds(const Condition& condition, const Delivery& delivery, const Document* document) {
  if (is_pointer(condition)) {
    const auto field = document ? document->at(condition.expression) : std::nullopt;
    return field && field->text() == condition.equals;
  }
  constexpr std::string_view prefix = "header:";
  const auto name = std::string_view(condition.expression).substr(prefix.size());
  return delivery.attributes.find(name) == condition.equals;
}

bool from_its_sources(const HandlerOptions& handler, const Delivery& delivery) {
  return handler.from.empty() ||
         std::find(handler.from.begin(), handler.from.end(), delivery.source) != handler.from.end();
}

}  // namespace

Reading read(const Delivery& delivery) {
  if (!delivery.problem.empty()) return {std::nullopt, fix_call(ErrorCode::malformed_body, delivery.problem)};
  auto document = Document::parse(delivery.body);
  if (!document) return {std::nullopt, std::move(document).error()};
  return {*std::move(document), std::nullopt};
}

Intake intake(const HandlerOptions& handler, const Delivery& delivery, const Reading& reading) {
  if (!from_its_sources(handler, delivery)) return NotForUs{};
  const Document* document = reading.document ? &*reading.document : nullptr;
  // Whether a condition holds cannot be told of a body that cannot be read: it is set aside, never passed over.
  if (!document && (reads_body(handler) || !delivery.problem.empty()))
    return Unusable{SetAsideReason::malformed, *reading.problem};
  for (const auto& condition : handler.when)
    if (!holds(condition, delivery, document)) return NotForUs{};
  auto key = handler.key.extract(delivery, document);
  if (!key) return Unusable{SetAsideReason::no_key, std::move(key).error()};
  auto parts = handler.fingerprint.parts;
  if (parts == FingerprintPolicy::Parts::automatic)
    parts = FingerprintPolicy::resolve(handler.key, delivery, handler.key_is_event_id);
  auto fingerprint =
      handler.guard == Guard::record ? fingerprint_of(handler.fingerprint, parts, delivery, document) : Fingerprint();
  return Claimable{*std::move(key), std::move(fingerprint)};
}

}  // namespace semel::protocol
