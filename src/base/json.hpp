// JSON (RFC 8259) read strictly into a tree that keeps what other trees lose: the numbers as they were written.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace semel::json {

enum class Kind { null, boolean, number, string, array, object };

/// At most `depth_max` deep, so that recursion over a tree is bounded.
struct Node {
  Kind kind = Kind::null;
  bool boolean = false;
  std::string name{};            ///< of the member, where the parent is an object
  std::string text{};            ///< a string's characters (UTF-8), or a number as it was written
  std::vector<Node> children{};  ///< elements, or members; in the order written
};

/// How deeply arrays and objects may be nested.
inline constexpr int depth_max = 128;

struct Problem {
  std::string message;
};

/// Reads `text` whole. A Problem for anything but one JSON text in UTF-8, for a member name that occurs twice in one
/// object, an unpaired surrogate, an exponent beyond 31 bits, or nesting deeper than `depth_max`.
std::variant<std::shared_ptr<const Node>, Problem> parse(std::string_view text);

/// The node a JSON Pointer (RFC 6901) names; null where it is not there or the pointer is malformed.
const Node* resolve(const Node& root, std::string_view pointer);

/// Says what is wrong with a JSON Pointer; empty where it is well formed.
std::string_view pointer_problem(std::string_view pointer);

/// Without white space; members in the order written, numbers as written.
std::string compact(const Node& node);

/// Appends `text` as a JSON string, with the escapes of RFC 8785 and no others.
void append_string(std::string& out, std::string_view text);

}  // namespace semel::json
