#include "sources/file/decoder.hpp"

#include <gtest/gtest.h>

#include "sources/file/gzip_for_tests.hpp"

namespace semel::file {
namespace {

struct Decoded {
  std::string text;
  bool whole;
};

Decoded decode(std::string_view bytes, std::size_t piece) {
  Decoded decoded{.text = {}, .whole = true};
  std::size_t longest = 0;
  Decoder decoder([&](std::string_view text) {
    decoded.text += text;
    longest = std::max(longest, text.size());
  });
  for (; decoded.whole && !bytes.empty(); bytes.remove_prefix(std::min(piece, bytes.size())))
    decoded.whole = decoder.feed(bytes.substr(0, piece)).has_value();
  decoded.whole = decoded.whole && decoder.finish();
  EXPECT_LE(longest, std::max<std::size_t>(65'536, piece));
  return decoded;
}

constexpr std::size_t pieces[] = {1, 2, 7, 100'000};

TEST(Decoder, PlainBytesPassAsTheyAre) {
  for (const auto piece : pieces)
    for (const std::string& text : {std::string(), std::string("a"), std::string("\x1f"), std::string("{}\n{}\n")}) {
      const auto decoded = decode(text, piece);
      EXPECT_EQ(decoded.text, text);
      EXPECT_TRUE(decoded.whole);
    }
}

TEST(Decoder, GzipIsInflatedMemberByMember) {
  for (const auto piece : pieces)
    for (const std::string& padding : {std::string(), std::string(20, '\0')}) {
      const auto decoded = decode(gzip("one\n") + gzip("") + gzip("two\n") + padding, piece);
      EXPECT_EQ(decoded.text, "one\ntwo\n") << piece;
      EXPECT_TRUE(decoded.whole) << piece;
    }
}

TEST(Decoder, MuchFromLittleComesInBoundedPieces) {
  const std::string text(10 << 20, 'x');
  const auto decoded = decode(gzip(text), 100'000);
  EXPECT_EQ(decoded.text.size(), text.size());
  EXPECT_TRUE(decoded.whole);
}

TEST(Decoder, GzipThatEndsTooSoonIsAnErrorWhereverItEnds) {
  const std::string whole = gzip("one\ntwo\n");
  for (std::size_t length = 2; length < whole.size(); ++length)
    for (const auto piece : pieces) {
      EXPECT_FALSE(decode(std::string_view(whole).substr(0, length), piece).whole) << length;
      EXPECT_FALSE(decode(whole + whole.substr(0, length), piece).whole) << length;
    }
}

TEST(Decoder, DamageIsAnErrorAfterWhatCameBefore) {
  const auto garbage_after = decode(gzip("one\n") + "garbage", 100'000);
  EXPECT_EQ(garbage_after.text, "one\n");
  EXPECT_FALSE(garbage_after.whole);
  std::string wrong_sum = gzip("one\n");
  wrong_sum[wrong_sum.size() - 8] ^= 1;
  EXPECT_FALSE(decode(wrong_sum, 100'000).whole);
}

}  // namespace
}  // namespace semel::file
