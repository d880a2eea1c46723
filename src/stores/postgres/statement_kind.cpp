#include "stores/postgres/statement_kind.hpp"

#include <algorithm>
#include <array>
#include <cctype>

namespace semel::postgres {

namespace {

constexpr std::array<std::string_view, 9> end_or_split_transaction{
    "abort", "begin", "commit", "end", "prepare", "release", "rollback", "savepoint", "start"};
constexpr std::array<std::string_view, 6> outlive_transaction{"deallocate", "discard", "listen",
                                                              "load",       "reset",   "unlisten"};

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/// Reads the words of a statement, past white space, comments and empty statements.
class Words {
 public:
  explicit Words(std::string_view sql) : rest_(sql) {}

  /// The next word in lower case; empty where something else comes.
  std::string next() {
    skip();
    std::string word;
    for (; !rest_.empty() && (std::isalnum(static_cast<unsigned char>(rest_[0])) || rest_[0] == '_');
         rest_.remove_prefix(1))
      word += static_cast<char>(std::tolower(static_cast<unsigned char>(rest_[0])));
    return word;
  }

 private:
  void skip() {
    for (;;) {
      if (!rest_.empty() && (is_space(rest_[0]) || rest_[0] == ';'))
        rest_.remove_prefix(1);
      else if (rest_.starts_with("--"))
        rest_.remove_prefix(std::min(rest_.find_first_of("\r\n"), rest_.size()));
      else if (rest_.starts_with("/*"))
        skip_comment();
      else
        return;
    }
  }

  /// PostgreSQL's block comments nest.
  void skip_comment() {
    int depth = 0;
    do {
      const bool opens = rest_.starts_with("/*");
      const bool closes = rest_.starts_with("*/");
      depth += opens ? 1 : closes ? -1 : 0;
      rest_.remove_prefix(opens || closes ? 2 : 1);
    } while (depth > 0 && !rest_.empty());
  }

  std::string_view rest_;
};

template <class Words>
bool is_among(const Words& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

std::string in_capitals(std::string word) {
  for (char& c : word) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return word;
}

}  // namespace

std::optional<std::string> reason_to_refuse(std::string_view sql) {
  Words words(sql);
  const auto first = words.next();
  if (is_among(end_or_split_transaction, first))
    return in_capitals(first) + " is not for a handler: the engine commits the effect together with its record";
  if (is_among(outlive_transaction, first))
    return in_capitals(first) + " would outlive the transaction in a session that other messages use";
  if (first == "copy") return "COPY needs a protocol of its own; use INSERT … SELECT unnest";
  if (first != "set") return std::nullopt;
  const auto second = words.next();
  if (second == "constraints") return std::nullopt;
  if (second != "local") return "SET would outlive the transaction in a session that other messages use; use SET LOCAL";
  if (words.next() == "synchronous_commit") return "the record's durability is not a handler's to change";
  return std::nullopt;
}

}  // namespace semel::postgres
