#include "sources/http/path_pattern.hpp"

#include <gtest/gtest.h>

namespace semel::http {
namespace {

TEST(PathPattern, ASpellingOfAPathIsMadePlain) {
  const std::pair<const char*, const char*> cases[] = {
      {"/", "/"},           {"/a", "/a"},          {"/a/", "/a"},        {"//a//b", "/a/b"}, {"/%61", "/a"},
      {"/x/../a", "/a"},    {"/x/%2e%2E/a", "/a"}, {"/./a/.", "/a"},     {"/../../a", "/a"}, {"/a%2Fb", "/a%2Fb"},
      {"/a%2fb", "/a%2fb"}, {"/a%", "/a%"},        {"/a%zz", "/a%zz"},   {"/a%4", "/a%4"},   {"/A", "/A"},
      {"*", "*"},           {"/a..", "/a.."},      {"/.well", "/.well"}, {"/%25", "/%"},     {"/a/..", "/"},
  };
  for (const auto& [path, plain] : cases) EXPECT_EQ(plain_path(path), plain) << path;
}

TEST(PathPattern, AStarIsOneSegmentAndTwoAreAllBelow) {
  struct Case {
    const char* pattern;
    const char* path;
    bool matches;
  };
  const Case cases[] = {
      {"/", "/", true},          {"/", "/a", false},         {"/a", "/a", true},          {"/a", "/", false},
      {"/a", "/ab", false},      {"/a", "/a/b", false},      {"/a/*", "/a/b", true},      {"/a/*", "/a", false},
      {"/a/*", "/a/b/c", false}, {"/a/*/c", "/a/b/c", true}, {"/a/*/c", "/a/b/d", false}, {"/a/**", "/a/b/c", true},
      {"/a/**", "/a", false},    {"/**", "/a", true},        {"/**", "/", false},         {"/*", "/a", true},
      {"/a", "*", false},        {"/**", "*", false},
  };
  for (const auto& [pattern, path, matches] : cases)
    EXPECT_EQ(PathPattern::parse(pattern).value().matches(path), matches) << pattern << " " << path;
}

TEST(PathPattern, WhatIsNoneIsRefused) {
  for (const char* text : {"", "a", "/a?b", "/a b", "/a/", "/a//b", "/a/../b", "/%61", "/a*", "/**/b", "/a/**/*"}) {
    const auto parsed = PathPattern::parse(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code, ErrorCode::source_settings_invalid);
  }
}

}  // namespace
}  // namespace semel::http
