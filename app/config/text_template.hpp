// Texts and bodies of answers, calls and publications: written once, with places for values.
#pragma once

#include <semel/result.hpp>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "config/parameter.hpp"

namespace semel::app {

/// The pieces one after the other: text as it stands, and parameters as text.
struct TextTemplate {
  std::vector<std::variant<std::string, Parameter>> pieces{};
};

/// A text that is one parameter (`:/id`, `:key`), or one with parameters in braces (`order-:{/id}`).
/// Errors: config_bad_expression.
Result<TextTemplate> parse_text_template(std::string_view text);

/// Throws Failure(field_missing) where a value is not there.
std::string text_for(const TextTemplate& text, const Facts& facts);

/// The same for a URL: every value is percent-encoded. Throws Failure(field_missing) also for a value that would be a
/// step up in the path (`.`, `..`, or nothing).
std::string url_for(const TextTemplate& url, const Facts& facts);

/// `application/x-www-form-urlencoded`. A field whose value is not there is left out.
using FormTemplate = std::vector<std::pair<std::string, TextTemplate>>;
std::string form_for(const FormTemplate& form, const Facts& facts);

/// A parameter inside a JSON string.
struct InText {
  Parameter parameter;
};

/// A body: text as it stands, parameters as JSON, and parameters inside JSON strings.
using BodyTemplate = std::vector<std::variant<std::string, Parameter, InText>>;

/// What is not there is null, and in a string nothing.
std::string body_for(const BodyTemplate& body, const Facts& facts);

/// Everything but RFC 3986's unreserved characters as %XX.
std::string percent_encoded(std::string_view text);

}  // namespace semel::app
