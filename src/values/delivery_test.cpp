#include <gtest/gtest.h>

#include <semel/delivery.hpp>

namespace semel {
namespace {

TEST(Attributes, NamesCompareWithoutAsciiCaseAndValuesAsTheyAre) {
  const Attributes attributes{{"Content-Type", "Text/Plain "}, {"X-Key", ""}, {"Ä", "upper"}};
  EXPECT_EQ(attributes.find("content-type"), "Text/Plain ");
  EXPECT_EQ(attributes.find("CONTENT-TYPE"), "Text/Plain ");
  EXPECT_EQ(attributes.find("x-key"), "");
  EXPECT_FALSE(attributes.find("ä"));
  EXPECT_FALSE(attributes.find("content-typ"));
  EXPECT_FALSE(attributes.find("content-type "));
  EXPECT_FALSE(attributes.find(""));
}

TEST(Attributes, TheFirstOfANameIsFoundAndAllAreCounted) {
  Attributes attributes{{"k", "1"}};
  attributes.add("K", "2");
  EXPECT_EQ(attributes.find("k"), "1");
  EXPECT_EQ(attributes.count("K"), 2u);
  EXPECT_EQ(attributes.count("other"), 0u);
  EXPECT_EQ(attributes.entries()[1].first, "K");
}

}  // namespace
}  // namespace semel
