#include "performers/http/select.hpp"

#include <algorithm>

#include "base/decimal.hpp"
#include "base/encoding.hpp"

namespace semel::http {

namespace {

std::string unescape(std::string_view token) {
  std::string out;
  for (std::size_t i = 0; i < token.size(); ++i) {
    const bool escaped = token[i] == '~' && i + 1 < token.size();
    out += escaped ? (token[++i] == '1' ? '/' : '~') : token[i];
  }
  return out;
}

void select_below(const json::Node& node, std::string_view pointer, std::vector<const json::Node*>& found) {
  if (pointer.empty()) return found.push_back(&node);
  if (!pointer.starts_with('/')) return;
  const auto end = pointer.find('/', 1);
  const auto token = pointer.substr(1, end == pointer.npos ? end : end - 1);
  const auto rest = end == pointer.npos ? std::string_view{} : pointer.substr(end);
  if (token == "*") {
    for (const auto& child : node.children) select_below(child, rest, found);
  } else if (node.kind == json::Kind::object) {
    const std::string name = unescape(token);
    for (const auto& child : node.children)
      if (child.name == name) select_below(child, rest, found);
  } else if (const auto* element = json::resolve(node, "/" + std::string(token))) {
    select_below(*element, rest, found);
  }
}

/// %41 and + as a form has them; nothing where it is none.
std::optional<std::string> form_decode(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i] == '+' ? ' ' : text[i];
      continue;
    }
    const auto byte = hex_decode(text.substr(i + 1, 2));
    if (!byte || byte->size() != 1) return std::nullopt;
    out += *byte;
    i += 2;
  }
  return out;
}

std::shared_ptr<const json::Node> read_form(std::string_view bytes) {
  auto root = std::make_shared<json::Node>();
  root->kind = json::Kind::object;
  while (!bytes.empty()) {
    const auto end = bytes.find('&');
    const auto field = bytes.substr(0, end);
    bytes.remove_prefix(end == bytes.npos ? bytes.size() : end + 1);
    const auto equals = field.find('=');
    if (equals == field.npos) return nullptr;
    auto name = form_decode(field.substr(0, equals));
    auto value = form_decode(field.substr(equals + 1));
    if (!name || !value) return nullptr;
    root->children.push_back({.kind = json::Kind::string, .name = *std::move(name), .text = *std::move(value)});
  }
  return root;
}

}  // namespace

std::vector<const json::Node*> select(const json::Node& root, std::string_view pointer) {
  std::vector<const json::Node*> found;
  select_below(root, pointer, found);
  return found;
}

const json::Node* select_first(const json::Node& root, std::string_view pointer) {
  const auto found = select(root, pointer);
  return found.empty() ? nullptr : found.front();
}

std::optional<std::string> text_of(const json::Node* node) {
  if (!node) return std::nullopt;
  if (node->kind == json::Kind::string || node->kind == json::Kind::number) return node->text;
  if (node->kind == json::Kind::boolean) return node->boolean ? "true" : "false";
  return std::nullopt;
}

Body::Body(std::string_view bytes, std::string_view content_type) {
  if (bytes.empty()) return;
  if (content_type.find("x-www-form-urlencoded") == content_type.npos) {
    auto parsed = json::parse(bytes);
    if (auto* tree = std::get_if<0>(&parsed)) root_ = std::move(*tree);
    if (root_ || !content_type.empty()) return;
  }
  root_ = read_form(bytes);
}

std::optional<std::string> Body::text(std::string_view pointer) const {
  return root_ ? text_of(select_first(*root_, pointer)) : std::nullopt;
}

bool same(Comparison::As as, std::string_view one, std::string_view other) {
  if (as == Comparison::As::decimal) {
    const auto first = exact_decimal(one);
    const auto second = exact_decimal(other);
    if (first && second) return *first == *second;
  }
  if (as != Comparison::As::text_without_case) return one == other;
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return std::equal(one.begin(), one.end(), other.begin(), other.end(),
                    [&](char a, char b) { return lower(a) == lower(b); });
}

std::string url_encode(std::string_view text) {
  static constexpr std::string_view hex = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                       c == '.' || c == '_' || c == '~';
    const auto byte = static_cast<unsigned char>(c);
    if (plain)
      out += c;
    else
      ((out += '%') += hex[byte >> 4]) += hex[byte & 15];
  }
  return out;
}

}  // namespace semel::http
