// The bytes of a fingerprint: the version 01, then SHA-256 over what counts, every field length-prefixed:
//
//   what kind of content ("json", "bytes", "only" or "all_but"), [method, path], then
//   json     canonical body
//   bytes    the body
//   only     for each pointer in byte order: the pointer, and the canonical value, or nothing where there is none
//   all_but  the canonical body without the members named
#include <algorithm>
#include <semel/fingerprint.hpp>

#include "base/canonical_json.hpp"
#include "base/digest.hpp"
#include "base/encoding.hpp"
#include "base/json.hpp"

namespace semel {
namespace {

using Parts = FingerprintPolicy::Parts;
constexpr char version = 1;

void append_request_line(std::string& out, const Attributes& attributes) {
  for (const auto name : {":method", ":path"}) append_field(out, attributes.find(name).value_or(""));
}

/// A member that is null and one that is not there differ: no canonical value is empty.
void append_only(std::string& out, const json::Node& root, std::vector<std::string> pointers) {
  std::sort(pointers.begin(), pointers.end());
  for (const auto& pointer : pointers) {
    const auto* node = json::resolve(root, pointer);
    append_field(out, pointer);
    append_field(out, node ? json::canonical(*node) : "");
  }
}

void append_all_but(std::string& out, const json::Node& root, const std::vector<std::string>& pointers) {
  std::vector<const json::Node*> left_out;
  for (const auto& pointer : pointers)
    if (const auto* node = json::resolve(root, pointer)) left_out.push_back(node);
  append_field(out, json::canonical_without(root, left_out));
}

std::string_view content_name(Parts parts, const Document* document) {
  if (!document) return "bytes";
  return parts == Parts::only ? "only" : parts == Parts::all_but ? "all_but" : "json";
}

std::string what_counts(const FingerprintPolicy& policy, Parts parts, const Delivery& delivery,
                        const Document* document) {
  std::string out;
  append_field(out, content_name(parts, document));
  if (parts == Parts::request) append_request_line(out, delivery.attributes);
  if (!document)
    append_field(out, delivery.body);
  else if (parts == Parts::only)
    append_only(out, document->root(), policy.pointers);
  else if (parts == Parts::all_but)
    append_all_but(out, document->root(), policy.pointers);
  else
    append_field(out, document->canonical());
  return out;
}

bool any_part_from(const KeyExpression& key, KeyExpression::From from) {
  return std::any_of(key.parts().begin(), key.parts().end(), [&](const auto& part) { return part.from == from; });
}

}  // namespace

Parts FingerprintPolicy::resolve(const KeyExpression& key, const Delivery& delivery, bool key_is_event_id) {
  if (key_is_event_id && delivery.sender_verified) return Parts::none;
  if (any_part_from(key, KeyExpression::From::transport_id)) return Parts::none;
  const bool callers_key = delivery.sender == Sender::caller && any_part_from(key, KeyExpression::From::attribute);
  return callers_key ? Parts::request : Parts::body;
}

Fingerprint fingerprint_of(const FingerprintPolicy& policy, Parts resolved, const Delivery& delivery,
                           const Document* document) {
  if (resolved == Parts::none) return {};
  return Fingerprint::from_bytes(version + sha256(what_counts(policy, resolved, delivery, document)));
}

}  // namespace semel
