#include "engine/outside.hpp"

namespace semel::engine {

namespace {

Error nobody_knows(std::string_view kind, const std::string& name) {
  return fix_call(ErrorCode::effect_unknown, "no " + std::string(kind) + " is named \"" + name + "\"");
}

/// Started at once where that is safe and somebody here goes on with it.
void begin_state(Intent& intent, const EffectOptions& options, const Outside& outside) {
  if (!outside.calls_here || !options.starts_at_once()) return;
  intent.status.state = IntentState::started;
  intent.status.attempt = 1;
  intent.lease = options.lease;
}

Result<Intent> intent_of(const Intention& wish, int ordinal, const Origin& origin, const Outside& outside) {
  const Effect* effect = outside.effect(wish.effect);
  if (!effect) return nobody_knows("effect", wish.effect);
  if (wish.request.size() > Intention::request_size_max)
    return fix_call(ErrorCode::handler_misused, "the request of effect \"" + wish.effect + "\" is longer than 16 MiB");
  if (wish.compensation && !outside.effect(wish.compensation->effect))
    return nobody_knows("effect", wish.compensation->effect);
  std::optional<IntentId> parent;
  if (origin.parent) parent = origin.parent->id;
  Intent intent{.id = derive_intent_id(origin.record, parent, ordinal),
                .record = origin.record,
                .parent = parent,
                .step = (origin.parent ? origin.parent->step : 0) + ordinal,
                .effect = wish.effect};
  intent.provider = effect->options.provider_name();
  intent.reference = wish.reference;
  intent.idempotency_key = wish.idempotency_key.value_or(idempotency_key_of(intent.id));
  intent.request = wish.request;
  intent.compensation = wish.compensation;
  intent.message = origin.message;
  begin_state(intent, effect->options, outside);
  return intent;
}

}  // namespace

const Effect* Outside::effect(const std::string& name) const {
  const auto found = effects.find(name);
  return found == effects.end() ? nullptr : &found->second;
}

Result<void> write_out(const WorkLog& log, const Origin& origin, const Outside& outside, Wanted& wanted) {
  int ordinal = 0;
  for (const auto& wish : log.intentions) {
    auto intent = intent_of(wish, ++ordinal, origin, outside);
    if (!intent) return std::move(intent).error();
    wanted.intents.push_back(*std::move(intent));
    wanted.credentials.push_back(wish.credentials);
  }
  ordinal = 0;
  for (const auto& publication : log.publications) {
    const auto target = outside.targets.find(publication.to);
    if (target == outside.targets.end()) return nobody_knows("target", publication.to);
    const auto parent = origin.parent ? origin.parent->id.hex : std::string();
    wanted.messages.push_back({.id = derive_publication_id(origin.record, parent, ++ordinal),
                               .record = origin.record,
                               .publication = publication,
                               .queued = target->second.performer == nullptr});
  }
  return {};
}

Result<Intent> compensation_of(const Intent& compensated, const Outside& outside) {
  const Effect* effect = outside.effect(compensated.compensation->effect);
  if (!effect) return nobody_knows("effect", compensated.compensation->effect);
  Intent intent{.id = derive_compensation_id(compensated.id),
                .record = compensated.record,
                .compensates = compensated.id,
                .step = compensated.step,
                .effect = compensated.compensation->effect};
  intent.provider = effect->options.provider_name();
  intent.reference = compensated.reference;
  intent.idempotency_key = idempotency_key_of(intent.id);
  intent.request = compensated.compensation->request;
  intent.message = compensated.message;
  begin_state(intent, effect->options, outside);
  return intent;
}

std::optional<Answer> answer_to_keep(const HandlerOptions& options, const Answer& answer) {
  if (!options.keep_answer || answer.body.size() > Answer::body_size_max) return std::nullopt;
  return Answer{answer.status, replayable_headers(answer.headers), answer.body};
}

StoredMessage stored_message(const Delivery& delivery) {
  return {.source = delivery.source,
          .sender = delivery.sender,
          .sender_verified = delivery.sender_verified,
          .transport_id = delivery.transport_id,
          .body = delivery.body,
          .attributes = delivery.attributes};
}

Delivery delivery_of(const Intent& intent) {
  return {.receipt = Receipt(0),
          .source = intent.message.source,
          .sender = intent.message.sender,
          .body = intent.message.body,
          .problem = "",
          .attributes = intent.message.attributes,
          .transport_id = intent.message.transport_id,
          .principal = intent.record.scope.principal,
          .sender_verified = intent.message.sender_verified,
          .receive_count = std::nullopt,
          .sent_at = std::nullopt};
}

}  // namespace semel::engine
