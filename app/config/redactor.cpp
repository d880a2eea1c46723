#include "config/redactor.hpp"

#include <algorithm>
#include <cctype>

namespace semel::app {
namespace {

std::string percent_decoded(std::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto is_digit = [&](std::size_t at) {
      return at < text.size() && std::isxdigit(static_cast<unsigned char>(text[at]));
    };
    if (text[i] == '%' && is_digit(i + 1) && is_digit(i + 2)) {
      decoded += static_cast<char>(std::stoi(std::string(text.substr(i + 1, 2)), nullptr, 16));
      i += 2;
    } else {
      decoded += text[i];
    }
  }
  return decoded;
}

/// "secret" of "postgresql://user:secret@host/…".
std::string_view password_of_authority(std::string_view uri) {
  const auto scheme = uri.find("://");
  if (scheme == std::string_view::npos) return {};
  auto authority = uri.substr(scheme + 3);
  authority = authority.substr(0, authority.find('?'));
  const auto at = authority.rfind('@');
  if (at == std::string_view::npos) return {};
  const auto colon = authority.find(':');
  return colon < at ? authority.substr(colon + 1, at - colon - 1) : std::string_view();
}

/// "secret" of "=secret&…" and of " = 'secret' …".
std::string_view value_after(std::string_view text) {
  const auto skip_spaces = [&] { text.remove_prefix(std::min(text.find_first_not_of(' '), text.size())); };
  skip_spaces();
  if (!text.starts_with('=')) return {};
  text.remove_prefix(1);
  skip_spaces();
  if (!text.starts_with('\'')) return text.substr(0, text.find_first_of("& "));
  text.remove_prefix(1);
  return text.substr(0, text.find('\''));
}

}  // namespace

void Redactor::add(std::string secret) {
  if (secret.empty()) return;
  secrets_.push_back(std::move(secret));
  // The longest first: a secret may begin with another one.
  std::sort(secrets_.begin(), secrets_.end(), [](const auto& a, const auto& b) { return a.size() > b.size(); });
}

void Redactor::add_passwords_of(std::string_view connection) {
  const auto written = password_of_authority(connection);
  add(std::string(written));
  add(percent_decoded(written));
  for (auto at = connection.find("password"); at != std::string_view::npos; at = connection.find("password", at + 1)) {
    const auto value = value_after(connection.substr(at + 8));
    add(std::string(value));
    add(percent_decoded(value));
  }
}

std::string Redactor::clean(std::string text) const {
  for (const auto& secret : secrets_) {
    for (auto at = text.find(secret); at != std::string::npos; at = text.find(secret, at + 3)) {
      text.replace(at, secret.size(), "***");
    }
  }
  return text;
}

}  // namespace semel::app
