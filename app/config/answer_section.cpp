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
  BodyWriter(Reading& reading, AnswerTemplate& answer) : reading_(reading), answer_(answer) {}

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
    auto& pieces = answer_.body;
    if (!pieces.empty() && pieces.back().index() == 0) {
      std::get<std::string>(pieces.back()) += text;
    } else {
      pieces.emplace_back(std::move(text));
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
    const bool spaced = text.find(' ') != std::string::npos && !text.starts_with(":{");
    if (!text.starts_with(':') || spaced) return add(json_string(text));
    const auto found = parameter_at(text);
    if (!found) return reading_.mistake(found.error().code, place, found.error().message);
    if (!*found || (*found)->size != text.size()) return add(json_string(text));
    answer_.body.emplace_back((*found)->parameter);
  }

  Reading& reading_;
  AnswerTemplate& answer_;
};

bool is_token(const std::string& name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) || std::string_view("!#$%&'*+-.^_`|~").find(static_cast<char>(c)) != std::string_view::npos;
  });
}

void read_headers(Reading& reading, const Place& place, AnswerTemplate& answer) {
  Fields fields(reading, place);
  for (const auto& [name, value_place] : fields.take_all()) {
    const auto value = reading.verbatim(value_place);
    if (!value) continue;
    const bool printable = std::none_of(value->begin(), value->end(),
                                        [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
    if (!is_token(name) || !printable) {
      reading.mistake(ErrorCode::config_bad_value, value_place, "is no HTTP header");
      continue;
    }
    answer.headers.add(name, *value);
  }
}

}  // namespace

AnswerTemplate read_answer(Reading& reading, const Place& place) {
  AnswerTemplate answer;
  Fields fields(reading, place);
  if (!fields) return answer;
  if (const auto status = fields.take("status")) {
    answer.status = static_cast<int>(reading.integer(*status, 200, 599).value_or(200));
  }
  if (const auto headers = fields.take("headers")) read_headers(reading, *headers, answer);
  if (const auto body = fields.take("body")) {
    BodyWriter writer(reading, answer);
    const bool plain_text = body->node.IsScalar() && !body->node.Scalar().starts_with(':');
    if (plain_text) {
      writer.add(body->node.Scalar());
    } else {
      writer.write(*body);
    }
    if (!answer.headers.find("Content-Type")) {
      answer.headers.add("Content-Type", plain_text ? "text/plain; charset=utf-8" : "application/json");
    }
  }
  fields.finish();
  return answer;
}

}  // namespace semel::app
