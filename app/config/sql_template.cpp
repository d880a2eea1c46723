#include "config/sql_template.hpp"

#include <algorithm>
#include <cctype>
#include <optional>

namespace semel::app {
namespace {

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || static_cast<unsigned char>(c) >= 0x80;
}

/// Reads SQL from left to right, copies what is SQL's own, and replaces parameters.
class Scanner {
 public:
  Scanner(std::string_view text, SqlDialect dialect) : text_(text), dialect_(dialect) {
    template_.written = std::string(text);
  }

  Result<SqlTemplate> scan() {
    while (at_ < text_.size()) {
      if (const auto skipped = skip_own(); !skipped) return skipped.error();
      if (at_ >= text_.size()) break;
      if (const auto taken = take_one(); !taken) return taken.error();
    }
    if (first_word_.empty()) return bad(ErrorCode::config_bad_value, "the statement is empty");
    return std::move(template_);
  }

 private:
  static Error bad(ErrorCode code, std::string message) { return fix_call(code, std::move(message)); }
  std::string_view rest() const { return text_.substr(at_); }
  bool postgres() const { return dialect_ == SqlDialect::postgres; }
  void copy(std::size_t size) {
    template_.sql += text_.substr(at_, size);
    at_ += size;
  }

  /// Copies strings, quoted names and comments that start here, as many as follow each other.
  Result<void> skip_own() {
    for (;;) {
      const auto size = own_size();
      if (!size) return size.error();
      if (*size == 0) return {};
      if (!comment_) {
        if (const auto started = start(""); !started) return started;
      }
      copy(*size);
    }
  }

  /// How much here is a string, a quoted name or a comment; 0 for none.
  Result<std::size_t> own_size() {
    const auto text = rest();
    comment_ = text.starts_with("--") || text.starts_with("/*");
    if (text.starts_with("--")) return std::min(text.size(), text.find('\n'));
    if (text.starts_with("/*")) return block_comment_size(text);
    if (text.empty()) return std::size_t{0};
    if (text[0] == '\'') return quoted_size(text, '\'', postgres() && escapes());
    if (text[0] == '"') return quoted_size(text, '"', false);
    if (!postgres() && text[0] == '`') return quoted_size(text, '`', false);
    if (!postgres() && text[0] == '[') return quoted_size(text, ']', false);
    if (postgres() && text[0] == '$' && !follows_word()) return dollar_size(text);
    return std::size_t{0};
  }

  bool follows_word() const { return at_ > 0 && is_word(text_[at_ - 1]); }
  /// An E'…' string, in which a backslash escapes the quote.
  bool escapes() const { return at_ > 0 && (text_[at_ - 1] | 0x20) == 'e' && !(at_ > 1 && is_word(text_[at_ - 2])); }

  static Result<std::size_t> quoted_size(std::string_view text, char close, bool backslash) {
    for (std::size_t i = 1; i < text.size(); ++i) {
      if (backslash && text[i] == '\\') {
        ++i;
      } else if (text[i] == close) {
        if (i + 1 < text.size() && text[i + 1] == close && close != ']') {
          ++i;
        } else {
          return i + 1;
        }
      }
    }
    return bad(ErrorCode::config_bad_expression, std::string("the SQL ends inside ") + text[0] + "…" + close);
  }

  Result<std::size_t> block_comment_size(std::string_view text) const {
    int depth = 1;
    for (std::size_t i = 2; i + 1 < text.size(); ++i) {
      if (text[i] == '*' && text[i + 1] == '/') {
        if (--depth == 0) return i + 2;
        ++i;
      } else if (postgres() && text[i] == '/' && text[i + 1] == '*') {
        ++depth;
        ++i;
      }
    }
    return bad(ErrorCode::config_bad_expression, "the SQL ends inside a comment");
  }

  /// `$$…$$` or `$tag$…$tag$`.
  static Result<std::size_t> dollar_size(std::string_view text) {
    std::size_t tag = 1;
    while (tag < text.size() && is_word(text[tag])) ++tag;
    if (tag >= text.size() || text[tag] != '$' || std::isdigit(static_cast<unsigned char>(text[1]))) {
      return std::size_t{0};
    }
    const auto end = text.find(text.substr(0, tag + 1), tag + 1);
    if (end == std::string_view::npos) {
      return bad(ErrorCode::config_bad_expression, "the SQL ends inside " + std::string(text.substr(0, tag + 1)) + "…");
    }
    return end + tag + 1;
  }

  Result<void> take_one() {
    const auto text = rest();
    if (text.starts_with("::")) return copy(2), Result<void>();
    if (text[0] == ':') return take_colon();
    if (text[0] == '$' && text.size() > 1 && std::isdigit(static_cast<unsigned char>(text[1])) && !follows_word()) {
      return bad(ErrorCode::config_bad_expression, "write :key or :/json/pointer where a value goes, not $1");
    }
    if (text[0] == ';') return ended_ = true, copy(1), Result<void>();
    if (is_word(text[0])) return take_word();
    if (text[0] == '[') ++brackets_;
    if (text[0] == ']' && brackets_ > 0) --brackets_;
    if (!std::isspace(static_cast<unsigned char>(text[0]))) {
      if (const auto started = start(""); !started) return started;
    }
    return copy(1), Result<void>();
  }

  Result<void> take_word() {
    std::size_t size = 0;
    while (size < rest().size() && (is_word(rest()[size]) || rest()[size] == '$')) ++size;
    // A word that sticks to a quote is its prefix (E'…', B'…').
    const auto started = start(rest().substr(0, size));
    if (!started) return started;
    return copy(size), Result<void>();
  }

  /// Notes that the statement goes on, and with what it begins.
  Result<void> start(std::string_view word) {
    if (ended_) return bad(ErrorCode::config_bad_value, "one statement only; write each as an item of its own");
    if (!first_word_.empty()) return {};
    first_word_ = word.empty() ? "(" : std::string(word);
    std::transform(first_word_.begin(), first_word_.end(), first_word_.begin(),
                   [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    static constexpr std::string_view refused[] = {"BEGIN",     "COMMIT",  "END",     "ROLLBACK", "ABORT",
                                                   "SAVEPOINT", "RELEASE", "PREPARE", "START"};
    if (std::find(std::begin(refused), std::end(refused), first_word_) != std::end(refused)) {
      return bad(ErrorCode::config_bad_value,
                 first_word_ + " is not for handlers: the statements commit with the claim, in one transaction");
    }
    return {};
  }

  Result<void> take_colon() {
    if (slices()) return copy(1), Result<void>();
    const auto found = parameter_at(rest());
    if (!found) {
      if (brackets_ > 0) return copy(1), Result<void>();
      return found.error();
    }
    if (!*found) return copy(1), Result<void>();
    if (const auto started = start(""); !started) return started;
    template_.sql += "$" + std::to_string(number_of((*found)->parameter));
    at_ += (*found)->size;
    return {};
  }

  /// `a[1:n]`: a colon in brackets after an operand.
  bool slices() const {
    if (brackets_ == 0) return false;
    auto before = at_;
    while (before > 0 && std::isspace(static_cast<unsigned char>(text_[before - 1]))) --before;
    return before > 0 && (is_word(text_[before - 1]) || text_[before - 1] == ')' || text_[before - 1] == ']');
  }

  std::size_t number_of(const Parameter& parameter) {
    auto& all = template_.parameters;
    auto found = std::find(all.begin(), all.end(), parameter);
    if (found == all.end()) found = all.insert(all.end(), parameter);
    return static_cast<std::size_t>(found - all.begin()) + 1;
  }

  std::string_view text_;
  SqlDialect dialect_;
  std::size_t at_ = 0;
  int brackets_ = 0;
  bool comment_ = false;
  bool ended_ = false;
  std::string first_word_;
  SqlTemplate template_;
};

}  // namespace

Result<SqlTemplate> parse_sql_template(std::string_view text, SqlDialect dialect) {
  return Scanner(text, dialect).scan();
}

std::vector<Value> values_for(const SqlTemplate& sql, const Facts& facts) {
  std::vector<Value> values;
  values.reserve(sql.parameters.size());
  for (const auto& parameter : sql.parameters) values.push_back(value_of(parameter, facts));
  return values;
}

}  // namespace semel::app
