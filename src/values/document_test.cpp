#include <gtest/gtest.h>

#include <semel/document.hpp>

namespace semel {
namespace {

using namespace std::string_literals;

Document read(std::string_view text) { return Document::parse(text).value(); }

TEST(Document, ABodyThatCannotBeReadIsMalformedForGood) {
  for (const auto& body : {""s, "{"s, "{}x"s, "\xef\xbb\xbf{}"s, R"({"a":1,"a":2})"s, "\"\\ud800\""s, "\"\xff\""s,
                           "[1e2147483648]"s, std::string(129, '[') + std::string(129, ']')}) {
    const auto document = Document::parse(body);
    ASSERT_FALSE(document) << body;
    EXPECT_EQ(document.error().code, ErrorCode::malformed_body);
    EXPECT_EQ(document.error().remedy, Remedy::fix_call);
    EXPECT_EQ(document.error().certainty, Certainty::not_applied);
  }
}

TEST(Document, OutlivesTheBytesItWasReadFromAndItsCopies) {
  auto bytes = R"({"id":"evt_1"})"s;
  auto first = std::make_unique<Document>(read(bytes));
  const Document second = *first;
  bytes.assign(bytes.size(), 'x');
  first.reset();
  EXPECT_EQ(second.at("/id")->text(), "evt_1");
}

TEST(Field, SaysWhatItIs) {
  const auto document = read(R"({"n":null,"b":true,"i":1.50,"s":"a\u0000b","a":[1, "x"],"o":{"k" : "\u00e9"}})");
  struct Case {
    std::string pointer;
    Field::Kind kind;
    std::string text;
  };
  for (const auto& [pointer, kind, text] : {
           Case{"/n", Field::Kind::null, "null"},
           Case{"/b", Field::Kind::boolean, "true"},
           Case{"/i", Field::Kind::number, "1.50"},
           Case{"/s", Field::Kind::string, "a\0b"s},
           Case{"/a", Field::Kind::array, R"([1,"x"])"},
           Case{"/o", Field::Kind::object, R"({"k":"é"})"},
       }) {
    const auto field = document.at(pointer);
    ASSERT_TRUE(field) << pointer;
    EXPECT_EQ(field->kind(), kind) << pointer;
    EXPECT_EQ(field->text(), text) << pointer;
    EXPECT_EQ(field->boolean(), kind == Field::Kind::boolean) << pointer;
  }
  EXPECT_FALSE(document.at("/missing"));
  EXPECT_FALSE(document.at("i"));
}

TEST(Field, IntegersAreReadByValue) {
  struct Case {
    std::string written;
    std::optional<std::int64_t> integer;
    std::optional<std::string> digits;
  };
  const auto thirty = "123456789012345678901234567890"s;
  for (const auto& [written, integer, digits] : {
           Case{"1", 1, "1"},
           Case{"1.0", 1, "1"},
           Case{"1e0", 1, "1"},
           Case{"10e-1", 1, "1"},
           Case{"-0", 0, "0"},
           Case{"-0.0e7", 0, "0"},
           Case{"1E2", 100, "100"},
           Case{"9223372036854775807", INT64_MAX, "9223372036854775807"},
           Case{"-9223372036854775808", INT64_MIN, "-9223372036854775808"},
           Case{"9223372036854775808", std::nullopt, "9223372036854775808"},
           Case{"-9223372036854775809", std::nullopt, "-9223372036854775809"},
           Case{thirty, std::nullopt, thirty},
           Case{"1e20", std::nullopt, "100000000000000000000"},
           Case{"1e4095", std::nullopt, "1" + std::string(4095, '0')},
           Case{"1e4096", std::nullopt, std::nullopt},
           Case{"1e2147483647", std::nullopt, std::nullopt},
           Case{"1.5", std::nullopt, std::nullopt},
           Case{"1e-1", std::nullopt, std::nullopt},
           Case{"\"1\"", std::nullopt, std::nullopt},
           Case{"null", std::nullopt, std::nullopt},
           Case{"true", std::nullopt, std::nullopt},
       }) {
    const auto document = read(written);
    EXPECT_EQ(document.at("")->integer(), integer) << written;
    EXPECT_EQ(document.at("")->integer_digits(), digits) << written;
  }
}

TEST(Document, AMalformedPointerIsExplained) {
  EXPECT_EQ(pointer_problem("/a~0/b"), std::nullopt);
  EXPECT_TRUE(pointer_problem("a"));
  EXPECT_TRUE(pointer_problem("/a~"));
}

}  // namespace
}  // namespace semel
