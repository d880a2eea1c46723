// Bodies of messages: JSON, JSON Pointers and key expressions.
//
//   input = expression LF body
#include "base/json.hpp"

#include <semel/key.hpp>

#include "base/utf8.hpp"
#include "input.hpp"

namespace semel::fuzz {
namespace {

Delivery delivery_of(std::string body) {
  return {.receipt = Receipt(1),
          .source = "fuzz",
          .body = std::move(body),
          .problem = {},
          .attributes = {{"id", "a1"}, {"Idempotency-Key", "k1"}},
          .transport_id = "t1",
          .principal = {},
          .receive_count = {},
          .sent_at = {}};
}

void walk(const json::Node& node, int depth) {
  promise(depth <= json::depth_max, "no tree is deeper than depth_max");
  promise(is_valid_utf8(node.text) && is_valid_utf8(node.name), "all text of a document is UTF-8");
  for (const auto& child : node.children) walk(child, depth + 1);
}

void read_again(const json::Node& root) {
  const auto text = json::compact(root);
  const auto again = json::parse(text);
  promise(again.index() == 0, "what was written without white space can be read");
  promise(json::compact(*std::get<0>(again)) == text, "reading and writing changes nothing");
}

void numbers_agree(const Field& field) {
  const auto integer = field.integer();
  const auto digits = field.integer_digits();
  if (integer) promise(digits == std::to_string(*integer), "an integer's digits are those of its value");
  if (digits) promise(digits->size() <= Field::digits_max + 1, "no more digits than digits_max");
}

}  // namespace

void try_one(Input input) {
  const std::string expression_text(input.line());
  const std::string body(input.rest());
  auto document = Document::parse(body);
  if (document) {
    walk(document->root(), 0);
    read_again(document->root());
    if (const auto field = document->at(expression_text)) {
      promise(!pointer_problem(expression_text), "only a well-formed pointer names a place");
      numbers_agree(*field);
    }
  }
  const auto expression = KeyExpression::parse(expression_text);
  if (!expression) return;
  const auto again = KeyExpression::parse(expression->text());
  promise(again && again->text() == expression->text(), "a key expression's text is that expression");
  const auto delivery = delivery_of(body);
  const auto key = expression->extract(delivery, document ? &*document : nullptr);
  if (!key) return;
  promise(!key->bytes().empty() && key->bytes().size() <= Key::size_max, "a key has 1 to 1,024 bytes");
  promise(key->parts().size() == expression->parts().size(), "a key has the parts of its expression");
  const auto joined = Key::from_parts(key->parts());
  promise(joined && *joined == *key, "a key's parts give that key");
}

}  // namespace semel::fuzz
