#include "sql.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>

namespace semel::sim {

/// A value as it is written: a column, a parameter or a literal.
struct SqlTerm {
  enum class Kind { column, parameter, literal } kind = Kind::literal;
  std::string column;
  std::size_t parameter = 0;
  Value literal = nullptr;
};

struct SqlCondition {
  SqlTerm left;
  SqlTerm right;
  bool equal = true;
};

struct SqlStatement {
  enum class Kind { create, insert, update, remove, select, ends_transaction } kind = Kind::select;
  std::string table;
  std::vector<UserTable::Column> new_columns;
  std::vector<std::string> columns;
  std::vector<SqlTerm> values;
  bool adds = false;  ///< UPDATE … SET c = c + v
  bool ignores_conflicts = false;
  bool counts = false;
  std::vector<SqlCondition> where;
};

namespace {

Error bad(std::string message) { return fix_call(ErrorCode::bad_statement, std::move(message)); }

struct Token {
  enum class Kind { word, number, text, parameter, sign, end } kind = Kind::end;
  std::string text;
};

std::string upper(std::string_view text) {
  std::string all(text);
  for (char& c : all) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return all;
}

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

std::vector<Token> tokens_of(std::string_view sql) {
  std::vector<Token> tokens;
  for (std::size_t at = 0; at < sql.size();) {
    const char c = sql[at];
    if (std::isspace(static_cast<unsigned char>(c))) {
      ++at;
    } else if (c == '\'') {
      const auto end = std::min(sql.find('\'', at + 1), sql.size());
      tokens.push_back({Token::Kind::text, std::string(sql.substr(at + 1, end - at - 1))});
      at = end + 1;
    } else if (is_word(c) || c == '$') {
      auto end = at + 1;
      while (end < sql.size() && is_word(sql[end])) ++end;
      const bool digit = std::isdigit(static_cast<unsigned char>(c));
      const auto kind = c == '$' ? Token::Kind::parameter : digit ? Token::Kind::number : Token::Kind::word;
      tokens.push_back({kind, std::string(sql.substr(c == '$' ? at + 1 : at, end - at - (c == '$')))});
      at = end;
    } else {
      const std::size_t size = sql.substr(at, 2) == "<>" ? 2 : 1;
      tokens.push_back({Token::Kind::sign, std::string(sql.substr(at, size))});
      at += size;
    }
  }
  tokens.push_back({});
  return tokens;
}

/// Reads one statement. What does not fit sets `failed`.
class Parser {
 public:
  explicit Parser(std::string_view sql) : tokens_(tokens_of(sql)) {}

  Result<SqlStatement> parse() {
    SqlStatement statement;
    if (accept("CREATE")) {
      create(statement);
    } else if (accept("INSERT")) {
      insert(statement);
    } else if (accept("UPDATE")) {
      update(statement);
    } else if (accept("DELETE")) {
      statement.kind = SqlStatement::Kind::remove;
      expect("FROM");
      statement.table = word();
      where(statement);
    } else if (accept("SELECT")) {
      select(statement);
    } else if (accept("COMMIT") || accept("ROLLBACK") || accept("BEGIN")) {
      statement.kind = SqlStatement::Kind::ends_transaction;
      return statement;
    } else {
      failed_ = true;
    }
    if (failed_ || token().kind != Token::Kind::end) return bad("this SQL is not understood");
    return statement;
  }

 private:
  const Token& token() const { return tokens_[at_]; }
  void next() {
    if (at_ + 1 < tokens_.size()) ++at_;
  }
  bool accept(std::string_view wanted) {
    const auto kind = token().kind;
    if ((kind != Token::Kind::word && kind != Token::Kind::sign) || upper(token().text) != wanted) return false;
    next();
    return true;
  }
  void expect(std::string_view wanted) { failed_ = !accept(wanted) || failed_; }
  std::string word() {
    failed_ = failed_ || token().kind != Token::Kind::word;
    auto text = token().text;
    next();
    return text;
  }

  SqlTerm term() {
    SqlTerm term;
    const Token here = token();
    next();
    switch (here.kind) {
      case Token::Kind::word:
        if (upper(here.text) == "NULL") break;
        term.kind = SqlTerm::Kind::column;
        term.column = here.text;
        break;
      case Token::Kind::number:
        term.literal = Value(std::in_place_type<std::int64_t>, number(here.text));
        break;
      case Token::Kind::text:
        term.literal = Value(std::in_place_type<std::string>, here.text);
        break;
      case Token::Kind::parameter:
        term.kind = SqlTerm::Kind::parameter;
        term.parameter = static_cast<std::size_t>(number(here.text));
        break;
      default:
        failed_ = true;
    }
    return term;
  }
  std::int64_t number(const std::string& digits) {
    std::int64_t value = 0;
    const auto end = std::from_chars(digits.data(), digits.data() + digits.size(), value).ptr;
    failed_ = failed_ || end != digits.data() + digits.size();
    return value;
  }

  void create(SqlStatement& statement) {
    statement.kind = SqlStatement::Kind::create;
    expect("TABLE");
    statement.table = word();
    expect("(");
    do {
      UserTable::Column column{.name = word()};
      word();  // the type: every value keeps its own
      if (accept("(")) {
        term();
        expect(")");
      }
      if (accept("NOT")) {
        expect("NULL");
        column.not_null = true;
      }
      if (accept("PRIMARY")) {
        expect("KEY");
        column.primary_key = column.not_null = true;
      }
      statement.new_columns.push_back(std::move(column));
    } while (accept(","));
    expect(")");
  }

  void insert(SqlStatement& statement) {
    statement.kind = SqlStatement::Kind::insert;
    expect("INTO");
    statement.table = word();
    if (accept("(")) {
      do statement.columns.push_back(word());
      while (accept(","));
      expect(")");
    }
    expect("VALUES");
    expect("(");
    do statement.values.push_back(term());
    while (accept(","));
    expect(")");
    if (!accept("ON")) return;
    expect("CONFLICT");
    expect("DO");
    expect("NOTHING");
    statement.ignores_conflicts = true;
  }

  void update(SqlStatement& statement) {
    statement.kind = SqlStatement::Kind::update;
    statement.table = word();
    expect("SET");
    statement.columns.push_back(word());
    expect("=");
    statement.values.push_back(term());
    if (accept("+")) {
      statement.adds = true;
      statement.values.back() = term();
    }
    where(statement);
  }

  void select(SqlStatement& statement) {
    if (accept("COUNT")) {
      statement.counts = true;
      expect("(");
      expect("*");
      expect(")");
    } else if (!accept("*")) {
      do statement.columns.push_back(word());
      while (accept(","));
    }
    expect("FROM");
    statement.table = word();
    where(statement);
  }

  void where(SqlStatement& statement) {
    if (!accept("WHERE")) return;
    do {
      SqlCondition condition{.left = term(), .right = {}};
      condition.equal = accept("=");
      if (!condition.equal) expect("<>");
      condition.right = term();
      statement.where.push_back(std::move(condition));
    } while (accept("AND"));
  }

  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  bool failed_ = false;
};

/// Carries one statement out.
class Execution {
 public:
  Execution(Database& database, const Writer& writer, const SqlStatement& statement, std::span<const Value> parameters)
      : database_(database), writer_(writer), statement_(statement), parameters_(parameters) {}

  Result<SqlOutcome> run() {
    if (statement_.kind == SqlStatement::Kind::create) return create();
    const auto found = database_.user_tables.find(statement_.table);
    if (found == database_.user_tables.end()) return bad("there is no table " + statement_.table);
    table_ = &found->second;
    if (auto checked = check(); !checked) return checked.error();
    switch (statement_.kind) {
      case SqlStatement::Kind::insert:
        return insert();
      case SqlStatement::Kind::select:
        return select();
      default:
        return change();
    }
  }

 private:
  using Row = std::vector<Value>;

  Result<SqlOutcome> create() {
    // At once: nobody in this world undoes the making of a table.
    UserTable table{.columns = statement_.new_columns, .rows = {}};
    database_.user_tables.insert_or_assign(statement_.table, std::move(table));
    return SqlOutcome{};
  }

  std::optional<std::size_t> place_of(const std::string& column) const {
    for (std::size_t i = 0; i < table_->columns.size(); ++i)
      if (table_->columns[i].name == column) return i;
    return std::nullopt;
  }

  Result<void> check() const {
    const auto check_term = [&](const SqlTerm& term) -> Result<void> {
      if (term.kind == SqlTerm::Kind::parameter && (term.parameter == 0 || term.parameter > parameters_.size()))
        return bad("a parameter is missing");
      if (term.kind == SqlTerm::Kind::column && !place_of(term.column)) return bad("no column " + term.column);
      return {};
    };
    for (const auto& column : statement_.columns)
      if (!place_of(column)) return bad("no column " + column);
    for (const auto& value : statement_.values)
      if (auto checked = check_term(value); !checked) return checked;
    for (const auto& condition : statement_.where)
      for (const auto* term : {&condition.left, &condition.right})
        if (auto checked = check_term(*term); !checked) return checked;
    return {};
  }

  Value value_of(const SqlTerm& term, const Row& row) const {
    if (term.kind == SqlTerm::Kind::literal) return term.literal;
    if (term.kind == SqlTerm::Kind::parameter) return parameters_[term.parameter - 1];
    return row[*place_of(term.column)];
  }

  bool fits(const Row& row) const {
    return std::all_of(statement_.where.begin(), statement_.where.end(), [&](const SqlCondition& condition) {
      const auto left = value_of(condition.left, row);
      const auto right = value_of(condition.right, row);
      if (std::holds_alternative<std::nullptr_t>(left) || std::holds_alternative<std::nullptr_t>(right)) return false;
      return (left == right) == condition.equal;
    });
  }

  Result<void> check_row(const Row& row) const {
    for (std::size_t i = 0; i < row.size(); ++i)
      if (table_->columns[i].not_null && std::holds_alternative<std::nullptr_t>(row[i]))
        return fix_call(ErrorCode::constraint_violated, "NULL in column " + table_->columns[i].name);
    return {};
  }

  /// Whether a row has this primary key, once nobody else can change that any more.
  Result<bool> is_taken(const Row& row) const {
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (!table_->columns[i].primary_key) continue;
      for (;;) {
        Writer other;
        bool taken = false;
        for (const auto& [number, slot] : table_->rows.slots()) {
          const auto* there = table_->rows.seen(slot, writer_);
          taken = taken || (there && (*there)[i] == row[i]);
          if (slot.writer && slot.writer != writer_ && slot.next && (*slot.next)[i] == row[i]) other = slot.writer;
        }
        if (!other) {
          if (taken) return true;
          break;
        }
        if (auto waited = writer_->wait_for(other); !waited) return waited.error();
      }
    }
    return false;
  }

  Result<SqlOutcome> insert() {
    Row row(table_->columns.size(), nullptr);
    const auto& columns = statement_.columns;
    if (statement_.values.size() != (columns.empty() ? row.size() : columns.size())) return bad("values do not fit");
    for (std::size_t i = 0; i < statement_.values.size(); ++i)
      row[columns.empty() ? i : *place_of(columns[i])] = value_of(statement_.values[i], row);
    if (auto checked = check_row(row); !checked) return checked.error();
    const auto taken = is_taken(row);
    if (!taken) return taken.error();
    if (*taken && statement_.ignores_conflicts) return SqlOutcome{};
    if (*taken) return fix_call(ErrorCode::constraint_violated, "the primary key is there already");
    auto slot = table_->rows.lock(database_.next_number(), writer_);
    if (!slot) return slot.error();
    **slot = std::move(row);
    return SqlOutcome{.rows = {}, .changed = 1};
  }

  Result<SqlOutcome> select() const {
    SqlOutcome outcome;
    std::vector<std::size_t> places;
    for (const auto& column : statement_.columns) places.push_back(*place_of(column));
    for (std::size_t i = 0; i < table_->columns.size() && statement_.columns.empty(); ++i) places.push_back(i);
    for (const auto place : places) outcome.rows.columns.push_back(table_->columns[place].name);
    std::int64_t count = 0;
    table_->rows.each(writer_, [&](std::int64_t, const Row& row) {
      if (!fits(row)) return;
      ++count;
      if (statement_.counts) return;
      auto& given = outcome.rows.rows.emplace_back();
      for (const auto place : places) given.push_back(row[place]);
    });
    if (statement_.counts)
      outcome.rows = {.columns = {"count"}, .rows = {{Value(std::in_place_type<std::int64_t>, count)}}};
    return outcome;
  }

  /// UPDATE and DELETE.
  Result<SqlOutcome> change() {
    std::vector<std::int64_t> numbers;
    table_->rows.each(writer_, [&](std::int64_t number, const Row& row) {
      if (fits(row)) numbers.push_back(number);
    });
    SqlOutcome outcome;
    for (const auto number : numbers) {
      auto slot = table_->rows.lock_seen(number, writer_);
      if (!slot) return slot.error();
      if (!*slot || !fits(***slot)) continue;
      ++outcome.changed;
      if (statement_.kind == SqlStatement::Kind::remove) {
        (*slot)->reset();
        continue;
      }
      auto& row = ***slot;
      auto& cell = row[*place_of(statement_.columns.front())];
      const auto value = value_of(statement_.values.front(), row);
      if (statement_.adds && std::holds_alternative<std::int64_t>(cell) && std::holds_alternative<std::int64_t>(value))
        cell = Value(std::in_place_type<std::int64_t>, std::get<std::int64_t>(cell) + std::get<std::int64_t>(value));
      else
        cell = value;
      if (auto checked = check_row(row); !checked) return checked.error();
    }
    return outcome;
  }

  Database& database_;
  const Writer& writer_;
  const SqlStatement& statement_;
  std::span<const Value> parameters_;
  UserTable* table_ = nullptr;
};

}  // namespace

Result<SqlOutcome> run_sql(Database& database, const Writer& writer, std::string_view sql,
                           std::span<const Value> parameters) {
  auto known = database.statements.find(sql);
  if (known == database.statements.end()) {
    auto parsed = Parser(sql).parse();
    if (!parsed) return std::move(parsed).error();
    auto shared = std::make_shared<const SqlStatement>(*std::move(parsed));
    known = database.statements.emplace(std::string(sql), std::move(shared)).first;
  }
  const auto statement = known->second;
  if (statement->kind == SqlStatement::Kind::ends_transaction)
    return fix_call(ErrorCode::handler_misused, "a handler does not end its transaction");
  return Execution(database, writer, *statement, parameters).run();
}

}  // namespace semel::sim
