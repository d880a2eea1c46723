#include "sources/file/lines.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace semel::file {
namespace {

using testing::ElementsAre;

/// Cuts `text`, fed in pieces of `piece` bytes; each line as "number:text", too long ones as "number!".
std::vector<std::string> cut(std::string_view text, std::size_t piece, std::size_t max = 100) {
  std::vector<std::string> lines;
  LineCutter cutter(
      max, [&](Line line) { lines.push_back(std::to_string(line.number) + (line.too_long ? "!" : ":") + line.text); });
  for (; !text.empty(); text.remove_prefix(std::min(piece, text.size()))) cutter.feed(text.substr(0, piece));
  cutter.finish();
  return lines;
}

TEST(LineCutter, CutsAtNewlinesHoweverTheBytesArrive) {
  for (const std::size_t piece : {1, 2, 3, 100}) {
    EXPECT_THAT(cut("a\nbc\nd\n", piece), ElementsAre("1:a", "2:bc", "3:d")) << piece;
    EXPECT_THAT(cut("a\nlast without a newline", piece), ElementsAre("1:a", "2:last without a newline")) << piece;
    EXPECT_THAT(cut("", piece), ElementsAre()) << piece;
  }
}

TEST(LineCutter, BlankLinesAreCountedAndLeftOut) {
  EXPECT_THAT(cut("\n \t\r\na\n\n\nb\n \n", 2), ElementsAre("3:a", "6:b"));
}

TEST(LineCutter, BytesAreKeptAsTheyAre) {
  EXPECT_THAT(cut(" a \r\n\xff\n", 2), ElementsAre("1: a \r", "2:\xff"));
  EXPECT_THAT(cut(std::string_view("\0\n", 2), 2), ElementsAre(std::string("1:\0", 3)));
}

TEST(LineCutter, ALineOverTheLimitIsReportedAndTheNextIsWhole) {
  for (const std::size_t piece : {1, 4, 100}) {
    EXPECT_THAT(cut("1234\n12345\n123456789\nok\n", piece, 4), ElementsAre("1:1234", "2!", "3!", "4:ok")) << piece;
    EXPECT_THAT(cut("12345", piece, 4), ElementsAre("1!")) << piece;
  }
}

}  // namespace
}  // namespace semel::file
