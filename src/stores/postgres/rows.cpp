#include "stores/postgres/rows.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace semel::postgres {

namespace {

constexpr std::array all_reasons{SetAsideReason::no_key, SetAsideReason::malformed, SetAsideReason::conflict,
                                 SetAsideReason::rejected, SetAsideReason::exhausted};

ArrayWriter bytes_column() { return {Type::bytes, Type::bytes_array}; }

template <class Items, class Field>
void add_bytes_column(Parameters& parameters, const Items& items, Field field) {
  auto column = bytes_column();
  for (const auto* item : items) column.add(field(*item));
  std::move(column).add_to(parameters);
}

void add_digests(Parameters& parameters, std::span<const RecordDigest> digests) {
  ArrayWriter column(Type::uuid, Type::uuid_array);
  for (const auto& digest : digests) column.add(digest.view());
  std::move(column).add_to(parameters);
}

constexpr std::chrono::seconds two_centuries(200LL * 366 * 24 * 3600);

constexpr std::array stored_states{std::pair(RecordState::completed, 1), std::pair(RecordState::rejected, 2),
                                   std::pair(RecordState::in_progress, 3), std::pair(RecordState::ambiguous, 4)};

int stored_state(RecordState state) {
  return std::ranges::find(stored_states, state, &std::pair<RecordState, int>::first)->second;
}

/// The letters to write: the first of each id, and each one without an id.
std::vector<DeadLetter> merged(std::span<const DeadLetter> letters) {
  std::vector<DeadLetter> distinct;
  std::map<std::string, DeadLetter> by_id;
  for (const auto& letter : letters) {
    if (letter.id.empty()) {
      distinct.push_back(letter);
      distinct.back().times = 1;
      continue;
    }
    const auto [same, first] = by_id.try_emplace(letter.id, letter);
    same->second.times = first ? 1 : same->second.times + 1;
  }
  for (auto& [id, letter] : by_id) distinct.push_back(std::move(letter));
  return distinct;
}

Error damaged(const std::string& what) {
  return {Remedy::ask_operator, Certainty::not_applied, ErrorCode::store_damaged, what};
}

RecordDigest digest_of(std::string_view bytes) {
  RecordDigest digest;
  std::copy_n(bytes.begin(), std::min(bytes.size(), digest.bytes.size()), digest.bytes.begin());
  return digest;
}

}  // namespace

std::int64_t bounded_ms(std::chrono::milliseconds span) {
  return std::clamp<std::chrono::milliseconds>(span, -two_centuries, two_centuries).count();
}

std::int64_t seconds_kept(std::chrono::seconds retention) {
  return std::clamp(retention, std::chrono::seconds(0), two_centuries).count();
}

RecordState record_state(std::int64_t state) {
  const auto* known = std::ranges::find(stored_states, state, &std::pair<RecordState, int>::second);
  return known == stored_states.end() ? RecordState::completed : known->first;
}

Parameters digest_parameters(std::span<const RecordDigest> digests) {
  Parameters parameters;
  add_digests(parameters, digests);
  return parameters;
}

Parameters room_parameters(std::span<const RecordDigest> expired, std::span<const RecordDigest> rejected) {
  Parameters parameters;
  add_digests(parameters, expired);
  add_digests(parameters, rejected);
  return parameters;
}

Parameters record_parameters(std::span<const Record> records) {
  std::vector<std::pair<RecordDigest, const Record*>> pairs;
  for (const auto& record : records) pairs.emplace_back(record_digest(record.scope, record.key), &record);
  // As text: `char` has a sign on some machines, and then a mixed fleet would not agree on the order.
  std::sort(pairs.begin(), pairs.end(), [](const auto& a, const auto& b) { return a.first.view() < b.first.view(); });
  std::vector<RecordDigest> digests;
  std::vector<const Record*> sorted;
  for (const auto& [digest, record] : pairs) digests.push_back(digest), sorted.push_back(record);

  Parameters parameters;
  add_digests(parameters, digests);
  add_bytes_column(parameters, sorted, [](const Record& r) { return std::string_view(r.scope.handler); });
  add_bytes_column(parameters, sorted, [](const Record& r) { return std::string_view(r.scope.principal); });
  add_bytes_column(parameters, sorted, [](const Record& r) { return stored_key(r.key); });
  add_bytes_column(parameters, sorted, [](const Record& r) { return std::string_view(r.fingerprint.bytes()); });
  ArrayWriter states(Type::int2, Type::int2_array);
  for (const auto* r : sorted) states.add(binary_int2(static_cast<std::int16_t>(stored_state(r->state))));
  std::move(states).add_to(parameters);
  auto answers = bytes_column();
  for (const auto* r : sorted) r->answer ? answers.add(encode_answer(*r->answer)) : answers.add_null();
  std::move(answers).add_to(parameters);
  add_bytes_column(parameters, sorted, [](const Record& r) { return std::string_view(r.source); });
  add_bytes_column(parameters, sorted, [](const Record& r) { return std::string_view(r.transport_id); });
  ArrayWriter seconds(Type::int8, Type::int8_array);
  for (const auto* r : sorted) seconds.add(binary_int8(seconds_kept(r->retention)));
  std::move(seconds).add_to(parameters);
  return parameters;
}

Parameters letter_parameters(std::span<const DeadLetter> letters) {
  const auto distinct = merged(letters);
  std::vector<const DeadLetter*> sorted;
  for (const auto& letter : distinct) sorted.push_back(&letter);
  Parameters parameters;
  const auto bytes = [&](auto field) { add_bytes_column(parameters, sorted, field); };
  const auto typed = [&](Type element, Type array, auto encoded) {
    ArrayWriter column(element, array);
    for (const auto* letter : sorted) column.add(encoded(*letter));
    std::move(column).add_to(parameters);
  };
  auto ids = bytes_column();
  for (const auto* l : sorted) l->id.empty() ? ids.add_null() : ids.add(l->id);
  std::move(ids).add_to(parameters);
  typed(Type::text, Type::text_array, [](const DeadLetter& l) { return reason_name(l.reason); });
  typed(Type::int4, Type::int4_array, [](const DeadLetter& l) { return binary_int4(static_cast<int>(l.code)); });
  bytes([](const DeadLetter& l) { return std::string_view(l.detail); });
  bytes([](const DeadLetter& l) { return std::string_view(l.scope.handler); });
  bytes([](const DeadLetter& l) { return std::string_view(l.scope.principal); });
  bytes([](const DeadLetter& l) { return std::string_view(l.key); });
  bytes([](const DeadLetter& l) { return std::string_view(l.fingerprint.bytes()); });
  bytes([](const DeadLetter& l) { return std::string_view(l.recorded_fingerprint.bytes()); });
  bytes([](const DeadLetter& l) { return std::string_view(l.source); });
  typed(Type::boolean, Type::boolean_array,
        [](const DeadLetter& l) { return binary_boolean(l.sender == Sender::caller); });
  typed(Type::boolean, Type::boolean_array, [](const DeadLetter& l) { return binary_boolean(l.sender_verified); });
  bytes([](const DeadLetter& l) { return std::string_view(l.transport_id); });
  bytes([](const DeadLetter& l) { return std::string_view(l.body); });
  bytes([](const DeadLetter& l) { return encode_attributes(l.attributes); });
  typed(Type::int4, Type::int4_array, [](const DeadLetter& l) { return binary_int4(l.attempts); });
  typed(Type::int8, Type::int8_array, [](const DeadLetter& l) { return binary_int8(l.times); });
  return parameters;
}

Result<ReadRecord> read_record(const BinaryRow& row) {
  enum {
    id,
    handler,
    principal,
    key,
    fingerprint,
    state,
    answer,
    source,
    transport_id,
    recorded_at,
    expires_at,
    expired
  };
  auto read_back = read_key(row.bytes(key));
  if (!read_back) return read_back.error();
  std::optional<Answer> kept;
  if (!row.is_null(answer)) {
    auto decoded = decode_answer(row.bytes(answer));
    if (!decoded) return decoded.error();
    kept = *std::move(decoded);
  }
  const bool open = is_open(record_state(row.integer(state)));
  const auto kept_for = open ? std::chrono::seconds(0) : row.time(expires_at) - row.time(recorded_at);
  return ReadRecord{.record = {.scope = {.handler = row.bytes(handler), .principal = row.bytes(principal)},
                               .key = *std::move(read_back),
                               .fingerprint = Fingerprint::from_bytes(row.bytes(fingerprint)),
                               .state = record_state(row.integer(state)),
                               .answer = std::move(kept),
                               .source = row.bytes(source),
                               .transport_id = row.bytes(transport_id),
                               .retention = std::chrono::duration_cast<std::chrono::seconds>(kept_for),
                               .recorded_at = row.time(recorded_at),
                               .expires_at = row.time(expires_at)},
                    .digest = digest_of(row.bytes(id)),
                    .expired = row.integer(expired) != 0};
}

Error digest_collision(const RecordId& id) {
  return damaged("a key of handler '" + id.scope.handler + "' has the same digest as another key that is recorded");
}

Result<DeadLetter> read_letter(const BinaryRow& row) {
  enum {
    id,
    reason,
    code,
    detail,
    handler,
    principal,
    key,
    fingerprint,
    recorded_fingerprint,
    source,
    caller,
    sender_verified,
    transport_id,
    body,
    attributes,
    attempts,
    times,
    set_aside_at,
    resolution
  };
  const auto name = row.bytes(reason);
  const auto* known =
      std::find_if(all_reasons.begin(), all_reasons.end(), [&](SetAsideReason r) { return reason_name(r) == name; });
  if (known == all_reasons.end()) return damaged("a dead letter has the reason '" + name + "', which nobody wrote");
  auto headers = decode_attributes(row.bytes(attributes));
  if (!headers) return headers.error();
  return DeadLetter{.id = row.bytes(id),
                    .reason = *known,
                    .code = static_cast<ErrorCode>(row.integer(code)),
                    .detail = row.bytes(detail),
                    .scope = {.handler = row.bytes(handler), .principal = row.bytes(principal)},
                    .key = row.bytes(key),
                    .fingerprint = Fingerprint::from_bytes(row.bytes(fingerprint)),
                    .recorded_fingerprint = Fingerprint::from_bytes(row.bytes(recorded_fingerprint)),
                    .source = row.bytes(source),
                    .sender = row.integer(caller) != 0 ? Sender::caller : Sender::message,
                    .sender_verified = row.integer(sender_verified) != 0,
                    .transport_id = row.bytes(transport_id),
                    .body = row.bytes(body),
                    .attributes = *std::move(headers),
                    .attempts = static_cast<int>(row.integer(attempts)),
                    .times = row.integer(times),
                    .set_aside_at = row.time(set_aside_at),
                    .resolution = row.bytes(resolution)};
}

}  // namespace semel::postgres
