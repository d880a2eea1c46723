#include "values/stored_form.hpp"

#include <algorithm>

#include "base/digest.hpp"
#include "base/encoding.hpp"

namespace semel {
namespace {

constexpr char version = 1;

Error damaged(std::string_view what) {
  return {Remedy::ask_operator, Certainty::not_applied, ErrorCode::store_damaged,
          "A stored " + std::string(what) + " cannot be read: its bytes are damaged, or a newer release wrote them."};
}

void append_entries(std::string& out, const Attributes& attributes) {
  append_u32(out, static_cast<std::uint32_t>(attributes.entries().size()));
  for (const auto& [name, value] : attributes.entries()) append_field(out, name), append_field(out, value);
}

/// The count is not believed: nothing is reserved for it, and entries that are not there end the reading.
std::optional<Attributes> read_entries(FieldReader& reader) {
  const auto count = reader.u32();
  if (!count) return std::nullopt;
  Attributes attributes;
  for (std::uint32_t i = 0; i < *count; ++i) {
    const auto name = reader.field();
    const auto value = name ? reader.field() : std::nullopt;
    if (!value) return std::nullopt;
    attributes.add(std::string(*name), std::string(*value));
  }
  return attributes;
}

}  // namespace

std::string stored_key(const Key& key) { return version + key.bytes(); }

Result<Key> read_key(std::string_view stored) {
  if (!stored.starts_with(version)) return damaged("key");
  auto key = Key::from_bytes(std::string(stored.substr(1)));
  if (!key) return damaged("key");
  return key;
}

RecordDigest record_digest(const Scope& scope, const Key& key) {
  const auto whole = sha256(version + join_fields({scope.handler, scope.principal, key.bytes()}));
  RecordDigest digest;
  std::copy_n(whole.begin(), digest.bytes.size(), digest.bytes.begin());
  return digest;
}

std::string encode_answer(const Answer& answer) {
  std::string out(1, version);
  append_u32(out, static_cast<std::uint32_t>(answer.status));
  append_entries(out, answer.headers);
  append_field(out, answer.body);
  return out;
}

Result<Answer> decode_answer(std::string_view stored) {
  FieldReader reader(stored);
  if (reader.byte() != version) return damaged("answer");
  const auto status = reader.u32();
  auto headers = status ? read_entries(reader) : std::nullopt;
  const auto body = headers ? reader.field() : std::nullopt;
  if (!body || !reader.at_end()) return damaged("answer");
  return Answer{static_cast<int>(*status), *std::move(headers), std::string(*body)};
}

std::optional<std::string> stored_answer(const RecordUpdate& update) {
  if (update.answer) return encode_answer(*update.answer);
  return update.answer_dropped ? std::optional(std::string()) : std::nullopt;
}

std::string encode_attributes(const Attributes& attributes) {
  std::string out(1, version);
  append_entries(out, attributes);
  return out;
}

Result<Attributes> decode_attributes(std::string_view stored) {
  FieldReader reader(stored);
  if (reader.byte() != version) return damaged("attributes");
  auto attributes = read_entries(reader);
  if (!attributes || !reader.at_end()) return damaged("attributes");
  return *std::move(attributes);
}

Result<std::string> stored_id(std::string_view hex) {
  auto bytes = hex_decode(hex);
  if (!bytes || bytes->size() != 16 || hex_encode(*bytes) != hex)
    return fix_call(ErrorCode::bad_value, "an id of an intent or a publication is 32 lower-case hexadecimal digits");
  return *std::move(bytes);
}

std::string read_id(std::string_view stored) { return hex_encode(stored); }

std::string encode_message(const StoredMessage& message) {
  std::string out(1, version);
  out += message.sender == Sender::caller ? '\1' : '\0';
  out += message.sender_verified ? '\1' : '\0';
  append_field(out, message.source);
  append_field(out, message.transport_id);
  append_entries(out, message.attributes);
  append_field(out, message.body);
  return out;
}

Result<StoredMessage> decode_message(std::string_view stored) {
  FieldReader reader(stored);
  const bool readable = reader.byte() == version;
  const auto sender = reader.byte();
  const auto verified = reader.byte();
  if (!readable || sender.value_or(2) > 1 || verified.value_or(2) > 1) return damaged("message");
  const auto source = reader.field();
  const auto transport_id = source ? reader.field() : std::nullopt;
  auto attributes = transport_id ? read_entries(reader) : std::nullopt;
  const auto body = attributes ? reader.field() : std::nullopt;
  if (!body || !reader.at_end()) return damaged("message");
  return StoredMessage{.source = std::string(*source),
                       .sender = *sender == 1 ? Sender::caller : Sender::message,
                       .sender_verified = *verified == 1,
                       .transport_id = std::string(*transport_id),
                       .body = std::string(*body),
                       .attributes = *std::move(attributes)};
}

std::string encode_outcome(const CallOutcome& outcome) {
  std::string out(1, version);
  append_field(out, outcome.reference);
  append_field(out, outcome.detail);
  append_field(out, encode_answer(outcome.answer));
  return out;
}

Result<CallOutcome> decode_outcome(std::string_view stored) {
  FieldReader reader(stored);
  if (reader.byte() != version) return damaged("outcome");
  const auto reference = reader.field();
  const auto detail = reference ? reader.field() : std::nullopt;
  const auto bytes = detail ? reader.field() : std::nullopt;
  if (!bytes || !reader.at_end()) return damaged("outcome");
  auto answer = decode_answer(*bytes);
  if (!answer) return damaged("outcome");
  return CallOutcome{
      .reference = std::string(*reference), .answer = *std::move(answer), .detail = std::string(*detail)};
}

std::string encode_compensation(const Compensation& compensation) {
  std::string out(1, version);
  append_field(out, compensation.effect);
  append_field(out, compensation.request);
  return out;
}

Result<Compensation> decode_compensation(std::string_view stored) {
  FieldReader reader(stored);
  if (reader.byte() != version) return damaged("compensation");
  const auto effect = reader.field();
  const auto request = effect ? reader.field() : std::nullopt;
  if (!request || !reader.at_end()) return damaged("compensation");
  return Compensation{.effect = std::string(*effect), .request = std::string(*request)};
}

}  // namespace semel
