#include "base/utf8.hpp"

#include <gtest/gtest.h>

#include <string>

namespace semel {
namespace {

TEST(Utf8, WellFormedTextIsValid) {
  for (const std::string text : {"", "a", "\x7f", "é", "€", "\xed\x9f\xbf", "\xee\x80\x80", "\xef\xbf\xbf", "😂",
                                 "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf", "\xef\xbb\xbf"})
    EXPECT_TRUE(is_valid_utf8(text)) << text;
  EXPECT_TRUE(is_valid_utf8(std::string_view("a\0b", 3)));
}

TEST(Utf8, EverythingElseIsNot) {
  for (const std::string text : {
           "\x80",              // a continuation alone
           "\xc3",              // cut short
           "\xe2\x82",          //
           "\xf0\x9f\x98",      //
           "\xc3(",             // continued by something else
           "\xe2(\xac",         //
           "\xe2\x82(",         //
           "\xc0\x80",          // overlong
           "\xc1\xbf",          //
           "\xe0\x9f\xbf",      //
           "\xf0\x8f\xbf\xbf",  //
           "\xed\xa0\x80",      // surrogates
           "\xed\xbf\xbf",      //
           "\xf4\x90\x80\x80",  // beyond U+10FFFF
           "\xf5\x80\x80\x80",  //
           "\xfe",              //
           "\xff",              //
       }) {
    EXPECT_FALSE(is_valid_utf8(text));
    EXPECT_FALSE(is_valid_utf8("ok " + text));
    EXPECT_FALSE(is_valid_utf8(text + " ok"));
  }
}

}  // namespace
}  // namespace semel
