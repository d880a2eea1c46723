#include "base/json.hpp"

#include <algorithm>
#include <boost/json/basic_parser_impl.hpp>
#include <charconv>
#include <cstdint>

namespace semel::json {
namespace {

bool names_are_distinct(const std::vector<Node>& members) {
  if (members.size() <= 8) {  // most objects: cheaper than to sort
    for (auto one = members.begin(); one != members.end(); ++one)
      if (std::any_of(members.begin(), one, [&](const Node& other) { return other.name == one->name; })) return false;
    return true;
  }
  std::vector<std::string_view> names;
  names.reserve(members.size());
  for (const auto& member : members) names.push_back(member.name);
  std::sort(names.begin(), names.end());
  return std::adjacent_find(names.begin(), names.end()) == names.end();
}

/// What Boost.JSON's parser tells of what it reads, made into a tree.
class TreeBuilder {
 public:
  static constexpr std::size_t max_object_size = static_cast<std::size_t>(-1);
  static constexpr std::size_t max_array_size = static_cast<std::size_t>(-1);
  static constexpr std::size_t max_key_size = static_cast<std::size_t>(-1);
  static constexpr std::size_t max_string_size = static_cast<std::size_t>(-1);
  using Error = boost::system::error_code;
  using View = boost::json::string_view;

  Node root;
  std::string_view fault;  ///< what was refused here, where Boost.JSON itself found nothing wrong

  bool on_document_begin(Error&) { return true; }
  bool on_document_end(Error&) { return true; }
  bool on_array_begin(Error&) { return open(Kind::array); }
  bool on_array_end(std::size_t, Error&) { return close(); }
  bool on_object_begin(Error&) { return open(Kind::object); }
  bool on_object_end(std::size_t, Error& error) {
    return names_are_distinct(open_.back().children) ? close()
                                                     : refuse("a member name occurs twice in one object", error);
  }

  bool on_key_part(View part, std::size_t, Error&) { return gather(part); }
  bool on_key(View part, std::size_t, Error&) {
    gather(part);
    name_ = std::move(gathered_);
    gathered_.clear();
    return true;
  }
  bool on_string_part(View part, std::size_t, Error&) { return gather(part); }
  bool on_string(View part, std::size_t, Error&) {
    gather(part);
    return add_text(Kind::string);
  }
  bool on_number_part(View part, Error&) { return gather(part); }
  bool on_int64(std::int64_t, View part, Error&) { return add_number(part); }
  bool on_uint64(std::uint64_t, View part, Error&) { return add_number(part); }
  bool on_double(double, View part, Error&) { return add_number(part); }

  bool on_bool(bool value, Error&) { return add({.kind = Kind::boolean, .boolean = value}); }
  bool on_null(Error&) { return add({.kind = Kind::null}); }
  bool on_comment_part(View, Error&) { return true; }
  bool on_comment(View, Error&) { return true; }

 private:
  bool refuse(std::string_view why, Error& error) {
    fault = why;
    error = boost::json::error::syntax;
    return false;
  }

  bool gather(View part) {
    gathered_.append(part.data(), part.size());
    return true;
  }

  bool add_number(View part) {
    gather(part);
    return add_text(Kind::number);
  }

  bool add_text(Kind kind) {
    Node node{.kind = kind, .text = std::move(gathered_)};
    gathered_.clear();
    return add(std::move(node));
  }

  bool add(Node node) {
    if (open_.empty()) {
      root = std::move(node);
      return true;
    }
    // A container got its own name when it was opened; `name_` then belongs to none.
    if (node.name.empty()) node.name = std::move(name_);
    name_.clear();
    open_.back().children.push_back(std::move(node));
    return true;
  }

  bool open(Kind kind) {
    open_.push_back({.kind = kind, .name = std::move(name_)});
    name_.clear();
    return true;
  }

  bool close() {
    Node node = std::move(open_.back());
    open_.pop_back();
    return add(std::move(node));
  }

  std::vector<Node> open_;  ///< from the root to where the parser stands
  std::string name_;        ///< of the member whose value comes next
  std::string gathered_;    ///< of a string, name or number that comes in parts
};

/// One reference token with ~1 and ~0 undone.
std::string unescape(std::string_view token) {
  std::string out;
  out.reserve(token.size());
  for (std::size_t i = 0; i < token.size(); ++i) out += token[i] == '~' ? (token[++i] == '1' ? '/' : '~') : token[i];
  return out;
}

const Node* member(const Node& object, std::string_view name) {
  const auto found =
      std::find_if(object.children.begin(), object.children.end(), [&](const Node& node) { return node.name == name; });
  return found == object.children.end() ? nullptr : &*found;
}

/// "-" (past the end) and leading zeros name nothing.
const Node* element(const Node& array, std::string_view token) {
  if (token.empty() || (token.size() > 1 && token.front() == '0')) return nullptr;
  std::size_t index = 0;
  const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), index);
  if (error != std::errc{} || end != token.data() + token.size() || index >= array.children.size()) return nullptr;
  return &array.children[index];
}

void append_compact(std::string& out, const Node& node) {
  switch (node.kind) {
    case Kind::null:
      out += "null";
      break;
    case Kind::boolean:
      out += node.boolean ? "true" : "false";
      break;
    case Kind::number:
      out += node.text;
      break;
    case Kind::string:
      append_string(out, node.text);
      break;
    case Kind::array:
    case Kind::object: {
      const bool object = node.kind == Kind::object;
      out += object ? '{' : '[';
      for (const auto& child : node.children) {
        if (&child != &node.children.front()) out += ',';
        if (object) append_string(out, child.name), out += ':';
        append_compact(out, child);
      }
      out += object ? '}' : ']';
    }
  }
}

}  // namespace

std::variant<std::shared_ptr<const Node>, Problem> parse(std::string_view text) {
  boost::json::parse_options options;
  options.max_depth = depth_max;
  boost::json::basic_parser<TreeBuilder> parser(options);
  boost::system::error_code error;
  const auto used = parser.write_some(false, text.data(), text.size(), error);
  if (!error && used < text.size()) error = boost::json::error::extra_data;
  const auto fault = parser.handler().fault;
  if (error)
    return Problem{(fault.empty() ? error.message() : std::string(fault)) + " (at byte " + std::to_string(used) + ")"};
  return std::make_shared<const Node>(std::move(parser.handler().root));
}

std::string_view pointer_problem(std::string_view pointer) {
  if (pointer.empty()) return {};
  if (pointer.front() != '/') return "it must be empty or begin with \"/\"";
  for (std::size_t i = 0; i < pointer.size(); ++i)
    if (pointer[i] == '~' && (i + 1 == pointer.size() || (pointer[i + 1] != '0' && pointer[i + 1] != '1')))
      return "\"~\" must be written as \"~0\"";
  return {};
}

const Node* resolve(const Node& root, std::string_view pointer) {
  if (!pointer_problem(pointer).empty()) return nullptr;
  const Node* node = &root;
  while (node && !pointer.empty()) {
    pointer.remove_prefix(1);
    const auto token = pointer.substr(0, pointer.find('/'));
    pointer.remove_prefix(token.size());
    if (node->kind == Kind::object)
      node = member(*node, unescape(token));
    else if (node->kind == Kind::array)
      node = element(*node, token);
    else
      node = nullptr;
  }
  return node;
}

std::string compact(const Node& node) {
  std::string out;
  append_compact(out, node);
  return out;
}

void append_string(std::string& out, std::string_view text) {
  static constexpr std::string_view hex = "0123456789abcdef";
  out += '"';
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      (out += '\\') += c;
    } else if (code >= 0x20) {
      out += c;
    } else if (code >= 8 && code <= 13 && code != 11) {
      (out += '\\') += "btn?fr"[code - 8];
    } else {
      ((out += "\\u00") += hex[code >> 4]) += hex[code & 15];
    }
  }
  out += '"';
}

}  // namespace semel::json
