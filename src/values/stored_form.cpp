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

}  // namespace semel
