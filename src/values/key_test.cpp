#include <gtest/gtest.h>

#include <semel/key.hpp>
#include <set>

#include "values/delivery_for_test.hpp"

namespace semel {
namespace {

using namespace std::string_literals;

Result<Key> key_of(const KeyExpression& expression, const Delivery& delivery) {
  const auto document = Document::parse(delivery.body);
  return expression.extract(delivery, document ? &*document : nullptr);
}

/// The key at /id of a body whose id is `json`, or the code's name.
std::string id_key(const std::string& json) {
  const auto key = key_of(KeyExpression::body("/id"), delivery_with("{\"id\":" + json + "}"));
  return key ? key->bytes() : code_name(key.error().code);
}

std::string quoted(const std::string& text) { return '"' + text + '"'; }

KeyExpression expression(std::string_view text) { return KeyExpression::parse(text).value(); }

TEST(Key, Has1To1024Bytes) {
  EXPECT_EQ(Key::from_bytes("").error().code, ErrorCode::no_key);
  EXPECT_EQ(Key::from_bytes("\0"s)->bytes(), "\0"s);
  EXPECT_EQ(Key::from_bytes(std::string(1024, 'k'))->bytes().size(), 1024u);
  EXPECT_EQ(Key::from_bytes(std::string(1025, 'k')).error().code, ErrorCode::key_invalid);
}

TEST(Key, TheSizeIsCheckedAlikeWhereverTheKeyComesFrom) {
  for (const std::size_t size : {1u, 1024u, 1025u}) {
    const std::string text(size, 'k');
    auto delivery = delivery_with("{\"id\":" + quoted(text) + "}");
    delivery.attributes.add("Key", text);
    delivery.transport_id = text;
    for (const auto* from : {"/id", "header:Key", "transport-id"}) {
      const auto key = key_of(expression(from), delivery);
      EXPECT_EQ(key.has_value(), size <= 1024) << from << " " << size;
      if (key) {
        EXPECT_EQ(key->bytes(), text) << from;
      } else {
        EXPECT_EQ(key.error().code, ErrorCode::key_invalid) << from;
      }
    }
  }
}

TEST(Key, StringsAndIntegersOfAnySizeAreKeys) {
  struct Case {
    std::string json, key;
  };
  for (const auto& [json, key] : {
           Case{"\"evt_1\"", "evt_1"},
           Case{"\"1\"", "1"},
           Case{"1", "1"},
           Case{"1.0", "1"},
           Case{"1e0", "1"},
           Case{"10e-1", "1"},
           Case{"0", "0"},
           Case{"-0", "0"},
           Case{"-7", "-7"},
           Case{"1E2", "100"},
           Case{"9007199254740993", "9007199254740993"},
           Case{"12345678901234567890", "12345678901234567890"},
           Case{"12345678901234567891", "12345678901234567891"},
           Case{"123456789012345678901234567890", "123456789012345678901234567890"},
           Case{"1e1023", "1" + std::string(1023, '0')},
           Case{"\"null\"", "null"},
           Case{"\"a\\u0000b\"", "a\0b"s},
           Case{"\"\\u0000\"", "\0"s},
       })
    EXPECT_EQ(id_key(json), key) << json;
}

TEST(Key, AnIntegerTooLongForAKeyIsInvalidAndIsNeverWrittenOut) {
  for (const auto* json : {"1e1024", "-1e1023", "1e5000", "1e2147483647"})
    EXPECT_EQ(id_key(json), "SEMEL-0102") << json;
}

// A consumer that hashed what it did not find gave every keyless message one key, and so one answer.
TEST(Key, WhatIsNoKeyNeverBecomesAConstant) {
  for (const auto* json : {"null", "\"\"", "true", "false", "1.5", "1e-1", "-0.5", "{}", "[]", "[1]", "{\"a\":1}"})
    EXPECT_EQ(id_key(json), "SEMEL-0101") << json;
  for (const auto* body : {"{}", "[]", "null", "\"id\"", "not json", ""}) {
    const auto key = key_of(KeyExpression::body("/id"), delivery_with(body));
    ASSERT_FALSE(key) << body;
    EXPECT_EQ(key.error().code, ErrorCode::no_key) << body;
  }
  for (const auto* from : {"header:Key", "transport-id"})
    EXPECT_EQ(key_of(expression(from), delivery_with("{}")).error().code, ErrorCode::no_key) << from;
  auto empty = delivery_with("{}");
  empty.attributes.add("Key", "");
  EXPECT_EQ(key_of(expression("header:Key"), empty).error().code, ErrorCode::no_key);
}

TEST(Key, OfACompositeKeyEveryPartMustBeThere) {
  const auto both = expression("/user + /order");
  for (const auto* body :
       {"{}", R"({"user":"u"})", R"({"order":"o"})", R"({"user":"u","order":null})", R"({"user":null,"order":null})",
        R"({"user":"","order":"o"})", R"({"user":"u","order":1.5})", R"({"user":"u","order":[]})"}) {
    const auto key = key_of(both, delivery_with(body));
    ASSERT_FALSE(key) << body;
    EXPECT_EQ(key.error().code, ErrorCode::no_key) << body;
  }
  EXPECT_TRUE(key_of(both, delivery_with(R"({"user":"u","order":0})")));
}

TEST(Key, TheErrorSaysWhichPartAndWhy) {
  const auto key = key_of(expression("/user + header:Order"), delivery_with(R"({"user":"u"})"));
  EXPECT_NE(key.error().message.find("header:Order"), std::string::npos) << key.error().message;
  EXPECT_NE(key.error().message.find("missing"), std::string::npos) << key.error().message;
}

TEST(Key, CompositeKeysNeverMeetEachOtherOrAKeyOfOnePart) {
  const auto composite = [](const std::string& a, const std::string& b) {
    auto delivery = delivery_with("{}");
    delivery.attributes = {{"a", a}, {"b", b}};
    return key_of(expression("header:a + header:b"), delivery)->bytes();
  };
  const auto single = [](const std::string& a) {
    auto delivery = delivery_with("{}");
    delivery.attributes = {{"a", a}};
    return key_of(expression("header:a"), delivery)->bytes();
  };
  const std::vector<std::string> composites{composite("a", "bc"), composite("ab", "c"),   composite("bc", "a"),
                                            composite("a", "b"),  composite("a\0"s, "b"), composite("a", "\0b"s)};
  std::set<std::string> all(composites.begin(), composites.end());
  // The bytes of a composite key, given as a header by somebody who knows how they are made.
  for (const auto& bytes : composites) all.insert(single(bytes));
  for (const auto& bytes : composites) all.insert(single(single(bytes)));
  all.insert(single("abc"));
  all.insert(single("\xff"));
  EXPECT_EQ(all.size(), 3 * composites.size() + 2);
  EXPECT_EQ(single("a\0bc"s), "a\0bc"s);
}

TEST(Key, GivesBackThePartsItWasMadeOf) {
  for (const auto& parts : std::vector<std::vector<std::string>>{
           {"a"}, {"a", "bc"}, {"ab", "c"}, {"\xff"}, {"\xff", "\0"s}, {"a", "b", "c"}, {"\xff\0\0\0\1a"s}})
    EXPECT_EQ(Key::from_parts(parts)->parts(), parts);
  for (const auto& parts : std::vector<std::vector<std::string>>{{}, {""}, {"a", ""}, {"", "a"}})
    EXPECT_EQ(Key::from_parts(parts).error().code, ErrorCode::no_key);
  EXPECT_EQ(Key::from_parts({std::string(600, 'a'), std::string(600, 'b')}).error().code, ErrorCode::key_invalid);
  EXPECT_EQ(Key::from_bytes("\xff not a list")->parts(), std::vector<std::string>{"\xff not a list"});
}

TEST(Key, IsShownToPeopleWithoutBytesThatHarmATerminal) {
  struct Case {
    std::vector<std::string> parts;
    std::string text;
  };
  for (const auto& [parts, text] : std::vector<Case>{{{"evt_1"}, "evt_1"},
                                                     {{"é €"}, "é €"},
                                                     {{"u1", "o2"}, "u1 + o2"},
                                                     {{"a\0b"s}, R"(a\x00b)"},
                                                     {{"\x1b[2J\x7f"}, R"(\x1b[2J\x7f)"},
                                                     {{R"(a\x00b)"}, R"(a\\x00b)"},
                                                     {{"\xc2\x9b"
                                                       "2J é\xc2\xa0"},
                                                      "\\xc2\\x9b"
                                                      "2J é\xc2\xa0"},
                                                     {{"é\xff"}, R"(\xc3\xa9\xff)"}})
    EXPECT_EQ(Key::from_parts(parts)->text(), text);
}

// Stores whose collations merged such keys dropped the second message.
TEST(Key, IsComparedAsBytes) {
  const std::set<std::string> all{
      id_key("\"bot-a\""),        id_key("\"Bot-A\""),    id_key("\"bot-a \""),   id_key("\" bot-a\""),
      id_key("\"bot-a\\u0000\""), id_key("\"bot-a\\t\""), id_key("\"\xc3\xa9\""), id_key("\"e\xcc\x81\""),
      id_key("\"\\ufeffbot-a\""), id_key("\"01\""),       id_key("\"1\""),        id_key("\"1.0\"")};
  EXPECT_EQ(all.size(), 12u);
}

TEST(Key, TheSameBytesAreOneKeyWhicheverPlaceTheyComeFrom) {
  auto delivery = delivery_with(R"({"id":"k 1","o":{"n":"k 1"}})");
  delivery.attributes.add("Key", "k 1");
  delivery.transport_id = "k 1";
  for (const auto* from : {"/id", "/o/n", "header:Key", "header:KEY", "transport-id"})
    EXPECT_EQ(key_of(expression(from), delivery)->bytes(), "k 1") << from;
}

TEST(Key, AnAttributeThatOccursTwiceIsRefused) {
  auto delivery = delivery_with("{}");
  delivery.attributes = {{"Key", "1"}, {"key", "2"}};
  EXPECT_EQ(key_of(expression("header:Key"), delivery).error().code, ErrorCode::key_invalid);
}

TEST(Key, AnAttributeMayBeAnyBytes) {
  auto delivery = delivery_with("{}");
  delivery.attributes.add("Key", " \x80\0 "s);
  EXPECT_EQ(key_of(expression("header:Key"), delivery)->bytes(), " \x80\0 "s);
}

TEST(KeyExpression, IsWrittenAsItIsRead) {
  for (const auto* text : {"/id", "/", "/a~1b/0", "header:Idempotency-Key", "transport-id", "/user + /order",
                           "header:Tenant + /id + transport-id", "/a+b"}) {
    const auto parsed = KeyExpression::parse(text);
    ASSERT_TRUE(parsed) << text << ": " << parsed.error().message;
    EXPECT_EQ(parsed->text(), text);
  }
  EXPECT_EQ(expression("header:T + /id").parts().size(), 2u);
}

TEST(KeyExpression, WhatIsNoneIsRefusedWithTheKnownForms) {
  for (const auto* text :
       {"", "id", "$.id", "/a~", "header:", "header: Name", "Header:Name", "transport_id", "Transport-ID", "/id + ",
        " + /id", "/id + id", "/a + header:", "transport-id ", "header:A B"}) {
    const auto parsed = KeyExpression::parse(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code, ErrorCode::config_bad_expression) << text;
    EXPECT_NE(parsed.error().message.find("transport-id"), std::string::npos);
  }
}

TEST(KeyExpression, SaysWhetherItNeedsTheBody) {
  EXPECT_TRUE(expression("/id").needs_body());
  EXPECT_TRUE(expression("header:T + /id").needs_body());
  EXPECT_FALSE(expression("header:T + transport-id").needs_body());
}

TEST(KeyExpression, WithNoPartsFindsNoKey) {
  EXPECT_EQ(key_of(KeyExpression(), delivery_with("{}")).error().code, ErrorCode::no_key);
  EXPECT_EQ(key_of(KeyExpression::all_of({}), delivery_with("{}")).error().code, ErrorCode::no_key);
}

}  // namespace
}  // namespace semel
