#include "values/explain.hpp"

#include <gtest/gtest.h>

#include <semel/error.hpp>
#include <set>
#include <span>
#include <sstream>

#include "base/embedded.hpp"

namespace semel {

namespace errors {
std::span<const EmbeddedFile> embedded_files();
}
namespace header_with_codes {
std::span<const EmbeddedFile> embedded_files();
}

namespace {

/// Read out of the header itself: an enumeration cannot be counted, and a list beside it would be forgotten.
std::set<std::string> codes_in_header() {
  std::istringstream header{std::string(header_with_codes::embedded_files().front().text)};
  std::set<std::string> codes;
  for (std::string line; std::getline(header, line);) {
    const auto value = line.find(" = ");
    if (value != std::string::npos && line.ends_with(','))
      codes.insert(code_name(static_cast<ErrorCode>(std::stoi(line.substr(value + 3)))));
  }
  return codes;
}

TEST(Explain, EveryCodeHasAPageAndEveryPageACode) {
  std::set<std::string> pages;
  for (const auto& page : errors::embedded_files())
    pages.insert(std::string(page.name.substr(0, page.name.size() - std::string_view(".md").size())));
  const auto codes = codes_in_header();
  EXPECT_GE(codes.size(), 48u);
  EXPECT_EQ(pages, codes);
}

TEST(Explain, EveryPageSaysWhatIsCertainAndWhatToDo) {
  for (const auto& page : errors::embedded_files()) {
    const auto code = page.name.substr(0, page.name.size() - 3);
    EXPECT_TRUE(page.text.starts_with("# " + std::string(code) + ": ")) << page.name;
    for (const auto* section : {"\n## What is certain\n", "\n## What to do\n", "\n## Example\n"})
      EXPECT_NE(page.text.find(section), std::string_view::npos) << page.name << section;
  }
}

TEST(Explain, ACodeMayBeGivenInAnySpelling) {
  const auto page = explain("SEMEL-0203");
  ASSERT_TRUE(page);
  EXPECT_TRUE(page->starts_with("# SEMEL-0203: commit unknown"));
  for (const auto* name : {"semel-0203", "Semel-203", "203", "0203"}) EXPECT_EQ(explain(name), page) << name;
}

TEST(Explain, WhatIsNoCodeHasNoPage) {
  for (const auto* name : {"", "SEMEL-", "SEMEL-0104", "SEMEL-02033", "203x", "x203", " 203", "-203", "SEMEL0203", "0",
                           "99999999999999999999", "4294967499"})
    EXPECT_FALSE(explain(name)) << name;
}

}  // namespace
}  // namespace semel
