#include "config/text_template.hpp"

namespace semel::app {
namespace {

std::string needed(const Parameter& parameter, const Facts& facts) {
  auto text = text_of(parameter, facts);
  if (!text) throw Failure(fix_call(ErrorCode::field_missing, "there is no " + parameter_text(parameter)));
  return *std::move(text);
}

}  // namespace

Result<TextTemplate> parse_text_template(std::string_view text) {
  TextTemplate made;
  // A single parameter may do without braces.
  const bool spaced = text.find(' ') != std::string_view::npos;
  if (text.starts_with(':') && !text.starts_with(":{") && !spaced) {
    const auto found = parameter_at(text);
    if (!found) return found.error();
    if (*found && (*found)->size == text.size()) {
      made.pieces.emplace_back((*found)->parameter);
      return made;
    }
  }
  while (!text.empty()) {
    const auto open = text.find(":{");
    if (open > 0) made.pieces.emplace_back(std::string(text.substr(0, open)));
    if (open == std::string_view::npos) break;
    text.remove_prefix(open);
    const auto found = parameter_at(text);
    if (!found) return found.error();
    made.pieces.emplace_back((*found)->parameter);
    text.remove_prefix((*found)->size);
  }
  return made;
}

std::string text_for(const TextTemplate& text, const Facts& facts) {
  std::string made;
  for (const auto& piece : text.pieces) {
    const auto* parameter = std::get_if<Parameter>(&piece);
    made += parameter ? needed(*parameter, facts) : std::get<std::string>(piece);
  }
  return made;
}

std::string url_for(const TextTemplate& url, const Facts& facts) {
  std::string made;
  for (const auto& piece : url.pieces) {
    const auto* parameter = std::get_if<Parameter>(&piece);
    if (!parameter) {
      made += std::get<std::string>(piece);
      continue;
    }
    const auto value = needed(*parameter, facts);
    if (value.empty() || value == "." || value == "..") {
      throw Failure(fix_call(ErrorCode::field_missing, parameter_text(*parameter) + " is no part of a URL"));
    }
    made += percent_encoded(value);
  }
  return made;
}

std::string form_for(const FormTemplate& form, const Facts& facts) {
  std::string made;
  for (const auto& [name, text] : form) {
    const auto* alone = text.pieces.size() == 1 ? std::get_if<Parameter>(&text.pieces.front()) : nullptr;
    if (alone && !text_of(*alone, facts)) continue;
    made += (made.empty() ? "" : "&") + percent_encoded(name) + "=" + percent_encoded(text_for(text, facts));
  }
  return made;
}

std::string body_for(const BodyTemplate& body, const Facts& facts) {
  std::string made;
  for (const auto& piece : body) {
    if (const auto* text = std::get_if<std::string>(&piece)) {
      made += *text;
    } else if (const auto* parameter = std::get_if<Parameter>(&piece)) {
      made += json_of(*parameter, facts);
    } else {
      const auto quoted = json_string(text_of(std::get<InText>(piece).parameter, facts).value_or(""));
      made += quoted.substr(1, quoted.size() - 2);
    }
  }
  return made;
}

std::string percent_encoded(std::string_view text) {
  static constexpr char digits[] = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool letter = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9');
    if (letter || std::string_view("-._~").find(c) != std::string_view::npos) {
      out += c;
    } else {
      out += {'%', digits[byte >> 4], digits[byte & 15]};
    }
  }
  return out;
}

}  // namespace semel::app
