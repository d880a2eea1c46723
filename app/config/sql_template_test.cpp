#include "config/sql_template.hpp"

#include <gtest/gtest.h>

#include "config/answer_template.hpp"

namespace semel::app {
namespace {

std::string parameters_text(const SqlTemplate& sql) {
  std::string text;
  for (const auto& parameter : sql.parameters) text += (text.empty() ? "" : " ") + parameter_text(parameter);
  return text;
}

TEST(SqlTemplate, becomes_numbered_placeholders_and_what_to_bind) {
  struct Case {
    const char* written;
    const char* sql;
    const char* parameters;
  };
  const Case cases[] = {
      {"INSERT INTO t VALUES (:key, :/data/object/amount_paid)", "INSERT INTO t VALUES ($1, $2)",
       ":key :/data/object/amount_paid"},
      {"VALUES (:key,:key,:/a,:key,:/a)", "VALUES ($1,$1,$2,$1,$2)", ":key :/a"},
      {"SELECT :/a::text, :/b ::int", "SELECT $1::text, $2 ::int", ":/a :/b"},
      {"SELECT :{header:X-Shop}, :transport_id, :body", "SELECT $1, $2, $3", ":{header:X-Shop} :transport_id :body"},
      {"SELECT :{/a b/c,d}||:/customer-id", "SELECT $1||$2", ":/a b/c,d :/customer-id"},
      {"SELECT :/a->>'x', :/b--c", "SELECT $1->>'x', $2--c", ":/a :/b"},
      {"SELECT :/a;", "SELECT $1;", ":/a"},
      {"SELECT :/dc:title, :/a~1b, :/x.y, :/@type, :/$ref", "SELECT $1, $2, $3, $4, $5",
       ":/dc:title :/a~1b :/x.y :/@type :/$ref"},
      {"SELECT ':key', \":key\", ':it''s :key' || :key", "SELECT ':key', \":key\", ':it''s :key' || $1", ":key"},
      {"SELECT 1 -- :key\n, :key /* :key */", "SELECT 1 -- :key\n, $1 /* :key */", ":key"},
      {"SELECT now()::timestamptz", "SELECT now()::timestamptz", ""},
      {"SELECT '12:30', x::text", "SELECT '12:30', x::text", ""},
      {"  /* a */ -- b\n INSERT INTO t VALUES (:key)", "  /* a */ -- b\n INSERT INTO t VALUES ($1)", ":key"},
      {"UPDATE größe SET x = :/größe", "UPDATE größe SET x = $1", ":/größe"},
  };
  for (const auto dialect : {SqlDialect::postgres, SqlDialect::sqlite}) {
    for (const auto& c : cases) {
      const auto sql = parse_sql_template(c.written, dialect);
      ASSERT_TRUE(sql) << c.written << ": " << sql.error().message;
      EXPECT_EQ(sql->sql, c.sql);
      EXPECT_EQ(parameters_text(*sql), c.parameters) << c.written;
      EXPECT_EQ(sql->written, c.written);
    }
  }
}

TEST(SqlTemplate, knows_what_each_dialect_quotes) {
  struct Case {
    SqlDialect dialect;
    const char* written;
    const char* sql;
  };
  const Case cases[] = {
      {SqlDialect::postgres, "SELECT $$:key$$, $q$ $$ :key $q$, :key", "SELECT $$:key$$, $q$ $$ :key $q$, $1"},
      {SqlDialect::postgres, R"(SELECT E'it\'s :key', :key)", R"(SELECT E'it\'s :key', $1)"},
      {SqlDialect::postgres, R"(SELECT 'a\', :key)", R"(SELECT 'a\', $1)"},
      {SqlDialect::postgres, "SELECT a[1:2], a[:2], a[lo:hi], a[lo:key], a[f(1):n], a[:hi]",
       "SELECT a[1:2], a[:2], a[lo:hi], a[lo:key], a[f(1):n], a[:hi]"},
      {SqlDialect::postgres, "SELECT ARRAY[:key, :/a]", "SELECT ARRAY[$1, $2]"},
      {SqlDialect::postgres, "SELECT /* /* :key */ :key */ :key", "SELECT /* /* :key */ :key */ $1"},
      {SqlDialect::postgres, "SELECT a$b:: int, :key", "SELECT a$b:: int, $1"},
      {SqlDialect::sqlite, "SELECT [a :key], `b :key`, :key", "SELECT [a :key], `b :key`, $1"},
      {SqlDialect::sqlite, "SELECT /* /* :key */ :key", "SELECT /* /* :key */ $1"},
      {SqlDialect::sqlite, R"(SELECT e'\', :key)", R"(SELECT e'\', $1)"},
  };
  for (const auto& c : cases) {
    const auto sql = parse_sql_template(c.written, c.dialect);
    ASSERT_TRUE(sql) << c.written << ": " << sql.error().message;
    EXPECT_EQ(sql->sql, c.sql);
  }
}

TEST(SqlTemplate, says_what_is_wrong) {
  struct Case {
    const char* written;
    const char* message;
  };
  const Case cases[] = {
      {"SELECT :kee", "\":kee\" is no parameter; did you mean \":key\"?"},
      {"SELECT :amount", "\":amount\" is no parameter; for a member of the body write :/amount"},
      {"SELECT :{amount}",
       "\":{amount}\" is no parameter; write :{/json/pointer}, :{header:Name} or a name such as :{key}"},
      {"SELECT :{header:}",
       "\":{header:}\" is no parameter; write :{/json/pointer}, :{header:Name} or a name such as :{key}"},
      {"SELECT :{/a", "\":{\" has no closing brace"},
      {"SELECT $1", "write :key or :/json/pointer where a value goes, not $1"},
      {"SELECT 'a", "the SQL ends inside '…'"},
      {"SELECT \"a", "the SQL ends inside \"…\""},
      {"SELECT /* a", "the SQL ends inside a comment"},
      {"SELECT $x$ a", "the SQL ends inside $x$…"},
      {"", "the statement is empty"},
      {" -- only a comment", "the statement is empty"},
      {"INSERT INTO a VALUES (1); DELETE FROM a", "one statement only; write each as an item of its own"},
      {"INSERT INTO a VALUES (1); 'x'", "one statement only; write each as an item of its own"},
      {"COMMIT", "COMMIT is not for handlers: the statements commit with the claim, in one transaction"},
      {"/* sly */ rollback", "ROLLBACK is not for handlers: the statements commit with the claim, in one transaction"},
  };
  for (const auto& c : cases) {
    const auto sql = parse_sql_template(c.written, SqlDialect::postgres);
    ASSERT_FALSE(sql) << c.written;
    EXPECT_EQ(sql.error().message, c.message) << c.written;
  }
}

/// A message whose parts live as long as it does.
struct Example {
  Delivery delivery;
  Document document;
  Key key;
  Message message{delivery, &document, key};

  explicit Example(const std::string& body, const std::string& key_bytes = "k\"1")
      : delivery{.receipt = Receipt(1),
                 .source = "s",
                 .body = body,
                 .attributes = {{"X-Shop", "north"}},
                 .transport_id = "file:7",
                 .principal = "ann"},
        document(Document::parse(body).value()),
        key(Key::from_bytes(key_bytes).value()) {}
};

TEST(SqlTemplate, binds_the_values_of_a_message) {
  const Example example(
      R"({"id": 9007199254740993, "name": "O'Brien", "none": null, "list": [1, 2.50], "half": 0.50})");
  const auto sql = parse_sql_template(
      "SELECT :key, :/id, :/name, :/none, :/missing, :/list, :/half, :{header:x-shop}, :{header:Other}, :transport_id, "
      ":principal",
      SqlDialect::postgres);
  ASSERT_TRUE(sql);
  const std::vector<Value> expected = {std::string("k\"1"),
                                       std::int64_t{9007199254740993},
                                       std::string("O'Brien"),
                                       nullptr,
                                       nullptr,
                                       std::string("[1,2.50]"),
                                       Decimal{"0.50"},
                                       std::string("north"),
                                       nullptr,
                                       std::string("file:7"),
                                       std::string("ann")};
  EXPECT_EQ(values_for(*sql, example.message), expected);
}

TEST(AnswerTemplate, writes_values_as_json_whatever_they_hold) {
  const Example example(R"({"id": 12345678901234567890, "name": "a\"b\\c\u0001", "list": [1, {"x": true}]})");
  AnswerTemplate answer;
  answer.body = {std::string("{\"id\":"),  Parameter{Parameter::From::pointer, "/id"},
                 std::string(",\"n\":"),   Parameter{Parameter::From::pointer, "/name"},
                 std::string(",\"l\":"),   Parameter{Parameter::From::pointer, "/list"},
                 std::string(",\"no\":"),  Parameter{Parameter::From::pointer, "/no"},
                 std::string(",\"key\":"), Parameter{Parameter::From::key},
                 std::string("}")};
  EXPECT_EQ(answer_for(answer, example.message).body,
            "{\"id\":12345678901234567890,\"n\":\"a\\\"b\\\\c\\u0001\",\"l\":[1,{\"x\":true}],\"no\":null,"
            "\"key\":\"k\\\"1\"}");
}

}  // namespace
}  // namespace semel::app
