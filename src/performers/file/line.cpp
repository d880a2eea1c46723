#include "performers/file/line.hpp"

#include "base/encoding.hpp"
#include "base/json.hpp"
#include "base/utf8.hpp"

namespace semel::file {

namespace {

void append_member(std::string& out, std::string_view name, std::string_view text) {
  if (out.back() != '{') out += ',';
  json::append_string(out, name);
  out += ':';
  json::append_string(out, text);
}

void append_list(std::string& out, const Attributes& attributes, std::string_view name) {
  json::append_string(out, name);
  out += ":[";
  for (const auto& [other, value] : attributes.entries()) {
    if (Attributes{{other, ""}}.count(name) == 0) continue;
    if (out.back() != '[') out += ',';
    json::append_string(out, value);
  }
  out += ']';
}

/// A name that occurs more than once has a list, at the place and in the spelling of its first.
void append_attributes(std::string& out, const Attributes& attributes) {
  out += ",\"attributes\":{";
  Attributes listed;
  for (const auto& [name, value] : attributes.entries()) {
    if (attributes.count(name) == 1) {
      append_member(out, name, value);
    } else if (listed.count(name) == 0) {
      listed.add(name, "");
      if (out.back() != '{') out += ',';
      append_list(out, attributes, name);
    }
  }
  out += '}';
}

}  // namespace

Result<std::string> line_of(const Call& call) {
  for (const auto& [name, value] : call.attributes.entries())
    if (!is_valid_utf8(name) || !is_valid_utf8(value))
      return fix_call(ErrorCode::malformed_body, "an attribute of the publication is not UTF-8");
  std::string out = "{";
  append_member(out, "id", call.id);
  append_member(out, "target", call.effect);
  if (!call.order_key.empty()) {
    const bool is_text = is_valid_utf8(call.order_key);
    append_member(out, is_text ? "key" : "key_base64", is_text ? call.order_key : base64_encode(call.order_key));
  }
  append_attributes(out, call.attributes);
  const bool is_text = is_valid_utf8(call.request);
  append_member(out, is_text ? "body" : "body_base64", is_text ? call.request : base64_encode(call.request));
  return out + "}\n";
}

}  // namespace semel::file
