#include "base/canonical_json.hpp"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace semel::json {
namespace {

std::shared_ptr<const Node> tree(std::string_view text) {
  auto parsed = parse(text);
  const auto* problem = std::get_if<Problem>(&parsed);
  EXPECT_FALSE(problem) << text << ": " << problem->message;
  return problem ? std::make_shared<const Node>() : std::get<0>(parsed);
}

std::string canonical_of(std::string_view text) { return canonical(*tree(text)); }

// Its sample data, with our numbers where it has doubles.
TEST(CanonicalJson, TheSamplesOfRfc8785HoldButForNumbers) {
  struct Case {
    std::string written, canonical;
  };
  for (const auto& [written, expected] : {
           Case{R"({"numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
                    "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
                    "literals": [null, true, false]})",
                R"({"literals":[null,true,false],"numbers":[33333333333333329e-8,1e30,45e-1,2e-3,1e-27],)"
                R"("string":"€$\u000f\nA'B\"\\\\\"/"})"},
           Case{R"({"\u20ac": "Euro Sign", "\r": "Carriage Return", "\ufb33": "Hebrew Letter Dalet With Dagesh",
                    "1": "One", "\ud83d\ude00": "Emoji: Grinning Face", "\u0080": "Control",
                    "\u00f6": "Latin Small Letter O With Diaeresis"})",
                "{\"\\r\":\"Carriage Return\",\"1\":\"One\",\"\xc2\x80\":\"Control\",\"ö\":\"Latin Small Letter O With "
                "Diaeresis\",\"€\":\"Euro Sign\",\"😀\":\"Emoji: Grinning Face\",\"\xef\xac\xb3\":\"Hebrew Letter Dalet "
                "With Dagesh\"}"},
           Case{
               R"({"1": {"f": {"f": "hi","F": 5} ,"\n": 56.0}, "10": { }, "": "empty",
                    "a": { }, "111": [ { } ], "A": { }})",
               R"({"":"empty","1":{"\n":56,"f":{"F":5,"f":"hi"}},"10":{},"111":[{}],"A":{},"a":{}})"},
           Case{R"({"peach": 1, "péché": 2, "pêche": 3, "sin": 4})", R"({"peach":1,"péché":2,"pêche":3,"sin":4})"},
           Case{"[56, {\"d\": true, \"10\": null, \"1\": [ ]}]", R"([56,{"1":[],"10":null,"d":true}])"},
           Case{R"({"Unnormalized Unicode":"A\u030a"})", "{\"Unnormalized Unicode\":\"A\xcc\x8a\"}"},
       })
    EXPECT_EQ(canonical_of(written), expected);
}

TEST(CanonicalJson, NamesAreSortedByUtf16Units) {
  // U+E000 and U+FFFF come after every character beyond them; a name comes before its own extensions.
  EXPECT_EQ(canonical_of("{\"\xee\x80\x80\":1,\"\xf0\x90\x80\x80\":2,\"\xef\xbf\xbf\":3,\"\xf4\x8f\xbf\xbf\":4,"
                         "\"\xed\x9f\xbf\":5,\"aa\":6,\"a\":7,\"a\\u0000\":8}"),
            "{\"a\":7,\"a\\u0000\":8,\"aa\":6,\"\xed\x9f\xbf\":5,\"\xf0\x90\x80\x80\":2,\"\xf4\x8f\xbf\xbf\":4,"
            "\"\xee\x80\x80\":1,\"\xef\xbf\xbf\":3}");
}

TEST(CanonicalJson, StringsHaveTheEscapesOfRfc8785AndNoOthers) {
  EXPECT_EQ(canonical_of(R"("\u0000\u0001\b\t\n\u000b\f\r\u001f\u0020\"\\\/\u007f\u2028\u00e9")"),
            "\"\\u0000\\u0001\\b\\t\\n\\u000b\\f\\r\\u001f \\\"\\\\/\x7f\xe2\x80\xa8\xc3\xa9\"");
}

TEST(CanonicalJson, NumbersAreEqualByExactValueOnly) {
  struct Case {
    std::string canonical;
    std::vector<std::string> notations;
  };
  std::set<std::string> all;
  const std::vector<Case> cases{
      {"1", {"1", "1.0", "1e0", "10e-1", "1E+0"}},
      {"1e2", {"100", "1E2", "100.0", "1e+2"}},
      {"0", {"0", "-0", "0.0", "-0.0e5", "0e9"}},
      {"-1", {"-1", "-1.0"}},
      {"1234567890123456789e1", {"12345678901234567890"}},
      {"12345678901234567891", {"12345678901234567891"}},
      {"9007199254740993", {"9007199254740993", "9007199254740993.0"}},
      {"9007199254740992", {"9007199254740992"}},
      {"1e400", {"1e400", "10e399"}},
      {"1e-400", {"1e-400"}},
      {"1e2147483647", {"1e2147483647"}},
      {"1e-1", {"0.1", "1e-1"}},
      {"10000000000000000055511151231257827e-35", {"0.10000000000000000055511151231257827"}},
  };
  for (const auto& [expected, notations] : cases) {
    all.insert(expected);
    for (const auto& notation : notations) EXPECT_EQ(canonical_of(notation), expected) << notation;
  }
  EXPECT_EQ(all.size(), cases.size());
}

TEST(CanonicalJson, KindsStayApart) {
  std::set<std::string> all;
  const auto texts = {"null",      "false",      "true",       "0",       "1",         "\"\"",         "\"0\"",
                      "\"1\"",     "\"null\"",   "[]",         "{}",      "[[]]",      "[{}]",         "[null]",
                      "[1,2]",     "[2,1]",      "[[1],2]",    "[[1,2]]", "{\"a\":1}", "{\"a\":null}", "{\"\":null}",
                      "[\"a\",1]", "{\"a\":{}}", "{\"a\":[]}", "\"a\"",   "\"A\"",     "\"a \"",       "\"\\u0000\""};
  for (const auto* text : texts) all.insert(canonical_of(text));
  EXPECT_EQ(all.size(), texts.size());
}

TEST(CanonicalJson, LeavesOutWhatItIsToldTo) {
  const auto root = tree(R"({"c":[1,2,{"d":3,"e":4}],"a":1,"b":{"x":1}})");
  struct Case {
    std::vector<std::string> pointers;
    std::string canonical;
  };
  for (const auto& [pointers, expected] : std::vector<Case>{
           {{}, R"({"a":1,"b":{"x":1},"c":[1,2,{"d":3,"e":4}]})"},
           {{"/a"}, R"({"b":{"x":1},"c":[1,2,{"d":3,"e":4}]})"},
           {{"/b/x", "/c/2/e"}, R"({"a":1,"b":{},"c":[1,2,{"d":3}]})"},
           {{"/c/0", "/c/1", "/c/2"}, R"({"a":1,"b":{"x":1},"c":[]})"},
           {{"/c", "/c/0"}, R"({"a":1,"b":{"x":1}})"},
           {{"/a", "/b", "/c"}, "{}"},
           {{""}, ""},
       }) {
    std::vector<const Node*> left_out;
    for (const auto& pointer : pointers) left_out.push_back(resolve(*root, pointer));
    EXPECT_EQ(canonical_without(*root, left_out), expected);
  }
}

}  // namespace
}  // namespace semel::json
