// answer: { status: 200, headers: { Location: /x }, body: { ok: true, id: ":/id" } }
#include <algorithm>
#include <cctype>

#include "config/sections.hpp"

namespace semel::app {
namespace {

bool is_number(const std::string& text) {
  const auto json = Document::parse(text);
  return json && json->at("")->kind() == Field::Kind::number;
}

/// Writes YAML as JSON, piece by piece.
class BodyWriter {
 public:
  BodyWriter(Reading& reading, BodyTemplate& body) : reading_(reading), body_(body) {}

  void write(const Place& place) {
    if (place.node.IsMap()) {
      write_members(place);
    } else if (place.node.IsSequence()) {
      add("[");
      for (std::size_t i = 0; i < place.node.size(); ++i) {
        if (i > 0) add(",");
        write({place.node[i], place.path + "[" + std::to_string(i) + "]"});
      }
      add("]");
    } else {
      write_scalar(place);
    }
  }

  void add(std::string text) {
    if (!body_.empty() && body_.back().index() == 0) {
      std::get<std::string>(body_.back()) += text;
    } else {
      body_.emplace_back(std::move(text));
    }
  }

 private:
  void write_members(const Place& place) {
    Fields fields(reading_, place);
    add("{");
    bool first = true;
    for (const auto& [name, value] : fields.take_all()) {
      if (!first) add(",");
      first = false;
      add(json_string(name) + ":");
      write(value);
    }
    add("}");
  }

  void write_scalar(const Place& place) {
    if (place.node.IsNull()) return add("null");
    const auto& text = place.node.Scalar();
    const bool quoted = place.node.Tag() == "!";
    if (!quoted && (text == "true" || text == "false" || is_number(text))) return add(text);
    const auto made = parse_text_template(text);
    if (!made) return reading_.mistake(made.error().code, place, made.error().message);
    const auto& pieces = made->pieces;
    const auto* alone = pieces.size() == 1 ? std::get_if<Parameter>(&pieces.front()) : nullptr;
    if (alone) {
      body_.emplace_back(*alone);
      return;
    }
    add("\"");
    for (const auto& piece : pieces) {
      if (const auto* parameter = std::get_if<Parameter>(&piece)) {
        body_.emplace_back(InText{*parameter});
      } else {
        const auto json = json_string(std::get<std::string>(piece));
        add(json.substr(1, json.size() - 2));
      }
    }
    add("\"");
  }

  Reading& reading_;
  BodyTemplate& body_;
};

void read_headers(Reading& reading, const Place& place, AnswerTemplate& answer) {
  Fields fields(reading, place);
  for (const auto& [name, value_place] : fields.take_all()) {
    const auto value = reading.verbatim(value_place);
    if (!value) continue;
    if (is_header(reading, name, value_place)) answer.headers.add(name, *value);
  }
}

}  // namespace

bool is_header(Reading& reading, const std::string& name, const Place& place) {
  const auto is_token = [](unsigned char c) {
    return std::isalnum(c) || std::string_view("!#$%&'*+-.^_`|~").find(static_cast<char>(c)) != std::string_view::npos;
  };
  const auto& value = place.node.IsScalar() ? place.node.Scalar() : std::string();
  const bool printable = std::none_of(value.begin(), value.end(),
                                      [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
  if (!name.empty() && std::all_of(name.begin(), name.end(), is_token) && printable) return true;
  reading.mistake(ErrorCode::config_bad_value, place, "is no HTTP header");
  return false;
}

std::string read_body(Reading& reading, const Place& place, BodyTemplate& body) {
  BodyWriter writer(reading, body);
  const bool plain_text = place.node.IsScalar() && !place.node.Scalar().starts_with(':');
  if (plain_text) {
    writer.add(place.node.Scalar());
  } else {
    writer.write(place);
  }
  return plain_text ? "text/plain; charset=utf-8" : "application/json";
}

AnswerTemplate read_answer(Reading& reading, const Place& place) {
  AnswerTemplate answer;
  Fields fields(reading, place);
  if (!fields) return answer;
  if (const auto status = fields.take("status")) {
    answer.status = static_cast<int>(reading.integer(*status, 200, 599).value_or(200));
  }
  if (const auto headers = fields.take("headers")) read_headers(reading, *headers, answer);
  if (const auto body = fields.take("body")) {
    auto content_type = read_body(reading, *body, answer.body);
    if (!answer.headers.find("Content-Type")) answer.headers.add("Content-Type", std::move(content_type));
  }
  fields.finish();
  return answer;
}

}  // namespace semel::app
