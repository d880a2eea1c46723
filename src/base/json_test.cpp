#include "base/json.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace semel::json {
namespace {

using namespace std::string_literals;

std::string problem_of(std::string_view text) {
  const auto parsed = parse(text);
  const auto* problem = std::get_if<Problem>(&parsed);
  return problem ? problem->message : "";
}

std::shared_ptr<const Node> tree(std::string_view text) {
  auto parsed = parse(text);
  const auto* problem = std::get_if<Problem>(&parsed);
  EXPECT_FALSE(problem) << text << ": " << problem->message;
  return problem ? std::make_shared<const Node>() : std::get<0>(parsed);
}

std::string nested(int depth) {
  return std::string(static_cast<std::size_t>(depth), '[') + std::string(static_cast<std::size_t>(depth), ']');
}

TEST(Json, WhatWasWrittenComesBackCompact) {
  for (const auto* text :
       {"null", "true", "false", "0", "-0", "1.0", "1e0", "1E+2", "12345678901234567891", "\"\"", "\"a\"", "[]", "{}",
        "[1,[2,{}],\"x\"]", R"({"b":1,"a":{"":[null]}})", R"(["\u0000"])", R"({"a":"","":"a"})",
        R"([[],[[]],{"a":{}}])", R"({"a":{},"b":1,"c":[1],"d":{"e":2},"f":3})"})
    EXPECT_EQ(compact(*tree(text)), text);
  EXPECT_EQ(compact(*tree(" { \"a\" :\t[ 1 ,\r\n 2 ] } \n")), R"({"a":[1,2]})");
}

TEST(Json, NumberTextIsKeptExactly) {
  const auto root = tree("[12345678901234567890, 1.10, 1e400, -0.0, 0.1234567890123456789012345678901234567890]");
  EXPECT_EQ(root->children[0].text, "12345678901234567890");
  EXPECT_EQ(root->children[1].text, "1.10");
  EXPECT_EQ(root->children[2].text, "1e400");
  EXPECT_EQ(root->children[3].text, "-0.0");
  EXPECT_EQ(root->children[4].text, "0.1234567890123456789012345678901234567890");
}

TEST(Json, EscapesBecomeCharactersAndNulIsOneOfThem) {
  EXPECT_EQ(tree(R"("\u0000")")->text, "\0"s);
  EXPECT_EQ(tree(R"("a\u0000b")")->text, "a\0b"s);
  EXPECT_EQ(tree(R"({"a\u0000b":1})")->children[0].name, "a\0b"s);
  EXPECT_EQ(tree(R"("\ud83d\ude02\u20AC\n\/\"\\")")->text, "😂€\n/\"\\");
  EXPECT_EQ(compact(*tree(R"("a\u0000b\u001f")")), R"("a\u0000b\u001f")");
}

TEST(Json, ALongStringComesWhole) {
  const std::string half(100'000, 'x');
  EXPECT_EQ(tree('"' + half + "\\n" + half + '"')->text, half + "\n" + half);
  EXPECT_EQ(tree("{\"" + half + "\\n" + half + "\":1}")->children[0].name, half + "\n" + half);
}

TEST(Json, WhatIsNotOneTextIsRefused) {
  for (const auto* text : {"",
                           " ",
                           "\n",
                           "nul",
                           "tru",
                           "[",
                           "{",
                           "\"",
                           "[1",
                           "{\"a\"",
                           "{\"a\":",
                           "{\"a\":1",
                           "[1,]",
                           "{\"a\":1,}",
                           "[,1]",
                           "{,}",
                           "{a:1}",
                           "{'a':1}",
                           "{1:1}",
                           "1 2",
                           "{}{}",
                           "[] x",
                           "null,",
                           "01",
                           "+1",
                           ".5",
                           "1.",
                           "1e",
                           "-",
                           "0x1",
                           "NaN",
                           "Infinity",
                           "// c\n1",
                           "/* c */1",
                           "1 // c",
                           "\"\t\"",
                           "\"\n\"",
                           "\"\\x\"",
                           "\"\\u12g4\"",
                           "\"\\u12\"",
                           "'a'",
                           "[1 2]",
                           "{\"a\" 1}",
                           "True",
                           "\v1",
                           "\f1",
                           "\xc2\xa0"
                           "1"})
    EXPECT_NE(problem_of(text), "") << text;
  EXPECT_NE(problem_of("1\0"s), "");
  EXPECT_NE(problem_of("\"a\0b\""s), "");
}

TEST(Json, AByteOrderMarkIsRefused) {
  EXPECT_NE(problem_of("\xef\xbb\xbf{}"), "");
  EXPECT_NE(problem_of("\xff\xfe{\0}\0"s), "");
}

TEST(Json, TextThatIsNotUnicodeIsRefused) {
  for (const auto* inner :
       {"\x80", "\xc3", "\xc3(", "\xc0\xaf", "\xe0\x80\xaf", "\xed\xa0\x80", "\xed\xb0\x80", "\xf4\x90\x80\x80", "\xff",
        "\\ud800", "\\udc00", "\\ud800x", "\\ud800\\n", "\\ud800\\u0041", "\\ud800\\ud800", "\\udc00\\ud800"}) {
    EXPECT_NE(problem_of('"' + std::string(inner) + '"'), "") << inner;
    EXPECT_NE(problem_of("{\"" + std::string(inner) + "\":1}"), "") << inner;
  }
}

TEST(Json, ANameThatOccursTwiceInOneObjectIsRefused) {
  for (const auto* text : {R"({"a":1,"a":1})", R"({"a":1,"b":2,"a":3})", R"([{"x":{"a":1,"a":2}}])", R"({"":1,"":2})",
                           R"({"a":1,"\u0061":2})", R"({"a":{},"a":[]})",
                           R"({"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1,"i":1,"a":1})",
                           R"({"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1,"h":1})"})
    EXPECT_NE(problem_of(text).find("twice"), std::string::npos) << text << ": " << problem_of(text);
  for (const auto* text : {R"({"a":1,"A":2})", R"({"a":{"a":{"a":1}}})", R"([{"a":1},{"a":2}])",
                           R"({"a":1,"a\u0000":2})", "{\"\xc3\xa9\":1,\"e\xcc\x81\":2}"})
    EXPECT_EQ(problem_of(text), "") << text;
}

TEST(Json, NestingIsBounded) {
  EXPECT_EQ(problem_of(nested(depth_max)), "");
  EXPECT_NE(problem_of(nested(depth_max + 1)), "");
  EXPECT_NE(problem_of(nested(1'000'000)), "");
  EXPECT_NE(problem_of(std::string(1'000'000, '[')), "");
  std::string objects = "1";
  for (int i = 0; i < depth_max; ++i) objects = "{\"a\":" + objects + "}";
  EXPECT_EQ(compact(*tree(objects)), objects);
  EXPECT_NE(problem_of("[" + objects + "]"), "");
}

TEST(Json, AnExponentIsBoundedAndMagnitudeIsNot) {
  for (const auto* text : {"1e400", "1e-400", "1e2147483647", "-1e-2147483647"})
    EXPECT_EQ(problem_of(text), "") << text;
  for (const auto* text : {"1e2147483648", "1e9223372036854775808", "-1e-99999999999999999999", "[1e99999999999]"})
    EXPECT_NE(problem_of(text), "") << text;
  EXPECT_EQ(problem_of(std::string(100'000, '9')), "");
}

TEST(Json, AProblemSaysWhere) { EXPECT_NE(problem_of("[1,x]").find("at byte 3"), std::string::npos); }

TEST(JsonPointer, TheExamplesOfRfc6901Hold) {
  const auto root =
      tree(R"({"foo":["bar","baz"],"":0,"a/b":1,"c%d":2,"e^f":3,"g|h":4,"i\\j":5,"k\"l":6," ":7,"m~n":8})");
  struct Case {
    std::string pointer, value;
  };
  for (const auto& [pointer, value] :
       {Case{"/foo", R"(["bar","baz"])"}, Case{"/foo/0", "\"bar\""}, Case{"/", "0"}, Case{"/a~1b", "1"},
        Case{"/c%d", "2"}, Case{"/e^f", "3"}, Case{"/g|h", "4"}, Case{"/i\\j", "5"}, Case{"/k\"l", "6"},
        Case{"/ ", "7"}, Case{"/m~0n", "8"}, Case{"", compact(*root)}}) {
    const auto* node = resolve(*root, pointer);
    ASSERT_TRUE(node) << pointer;
    EXPECT_EQ(compact(*node), value) << pointer;
  }
}

TEST(JsonPointer, WhatIsNotThereIsNotFound) {
  const auto root = tree(R"({"a":[1,2,{"b":3}],"s":"text","n":null,"~1":4})");
  for (const auto* pointer : {"/b",
                              "/A",
                              "/a ",
                              "/a/3",
                              "/a/-",
                              "/a/00",
                              "/a/01",
                              "/a/-1",
                              "/a/+1",
                              "/a/1 ",
                              "/a/",
                              "/a/x",
                              "/a/18446744073709551616",
                              "/s/0",
                              "/s/",
                              "/n/x",
                              "/a/2/b/c",
                              "a",
                              "a/b",
                              "/~",
                              "/~2",
                              "/a~"})
    EXPECT_FALSE(resolve(*root, pointer)) << pointer;
  EXPECT_TRUE(resolve(*root, "/n"));
  EXPECT_TRUE(resolve(*root, "/a/2/b"));
  // ~01 is ~1, not /: the order of unescaping that RFC 6901 warns of.
  EXPECT_EQ(resolve(*root, "/~01")->text, "4");
}

TEST(JsonPointer, AMalformedOneIsExplained) {
  for (const auto* pointer : {"", "/", "/a", "/a/b", "//", "/~0", "/~1~0", "/é", "/ "})
    EXPECT_EQ(pointer_problem(pointer), "") << pointer;
  for (const auto* pointer : {"a", "$.a", "#/a", "/~", "/~2", "/a~", "/a~/b", "~0"})
    EXPECT_NE(pointer_problem(pointer), "") << pointer;
}

}  // namespace
}  // namespace semel::json
