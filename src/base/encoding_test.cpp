#include "base/encoding.hpp"

#include <gtest/gtest.h>

#include <set>

namespace semel {
namespace {

std::string every_byte() {
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
  return bytes;
}

TEST(Hex, EveryByteComesBack) {
  EXPECT_EQ(hex_encode(std::string_view("\x00\x0f\xf0\xff", 4)), "000ff0ff");
  EXPECT_EQ(hex_decode(hex_encode(every_byte())), every_byte());
  EXPECT_EQ(hex_decode("FFfF"), "\xff\xff");
  EXPECT_EQ(hex_decode(""), "");
}

TEST(Hex, WhatIsNotHexGivesNothing) {
  for (const auto* text : {"0", "0g", "g0", " 0", "0x", "00 ", "-1"}) EXPECT_FALSE(hex_decode(text)) << text;
}

TEST(Base64, TheVectorsOfRfc4648HoldInBothDirections) {
  struct Case {
    std::string plain, encoded;
  };
  for (const auto& [plain, encoded] :
       {Case{"", ""}, Case{"f", "Zg=="}, Case{"fo", "Zm8="}, Case{"foo", "Zm9v"}, Case{"foob", "Zm9vYg=="},
        Case{"fooba", "Zm9vYmE="}, Case{"foobar", "Zm9vYmFy"}, Case{"\xfb\xff", "+/8="}}) {
    EXPECT_EQ(base64_encode(plain), encoded);
    EXPECT_EQ(base64_decode(encoded), plain);
  }
}

TEST(Base64, EveryLengthAndByteComesBack) {
  for (std::size_t size = 0; size <= 256; ++size) {
    const auto bytes = every_byte().substr(256 - size);
    EXPECT_EQ(base64_decode(base64_encode(bytes)), bytes);
  }
}

TEST(Base64, WhatOnlyResemblesBase64GivesNothing) {
  for (const auto* text : {"Zg", "Zg=", "Z===", "=", "====", "Zm9v=", "Zm9vZg=", "Zh==", "Zm9=", "Zm 9", "Zm9v\n",
                           "Zm-_", "Zg==Zg==", "Z=g=", "Zm9\xff", "\nZm9v"})
    EXPECT_FALSE(base64_decode(text)) << text;
  EXPECT_FALSE(base64_decode(std::string_view("Zm\0v", 4)));
}

TEST(Fields, TwoListsNeverGiveTheSameBytes) {
  const std::set<std::string> joined{join_fields({}),          join_fields({""}),          join_fields({"", ""}),
                                     join_fields({"a", "bc"}), join_fields({"ab", "c"}),   join_fields({"abc"}),
                                     join_fields({"abc", ""}), join_fields({"", "abc"}),   join_fields({"bc", "a"}),
                                     join_fields({"a,b"}),     join_fields({{"a\0b", 3}}), join_fields({"a", "b"})};
  EXPECT_EQ(joined.size(), 12u);
}

TEST(Fields, WhatWasWrittenIsRead) {
  std::string bytes(1, '\x07');
  append_u32(bytes, 0xFFFEFDFC);
  append_field(bytes, every_byte());
  append_field(bytes, "");
  FieldReader reader(bytes);
  EXPECT_EQ(reader.byte(), 7);
  EXPECT_EQ(reader.u32(), 0xFFFEFDFCu);
  EXPECT_EQ(reader.field(), every_byte());
  EXPECT_FALSE(reader.at_end());
  EXPECT_EQ(reader.field(), "");
  EXPECT_TRUE(reader.at_end());
}

TEST(Fields, AReaderNeverReadsPastTheEnd) {
  EXPECT_FALSE(FieldReader("").byte());
  EXPECT_FALSE(FieldReader("abc").u32());
  EXPECT_FALSE(FieldReader(std::string_view("\0\0\0", 3)).field());
  EXPECT_FALSE(FieldReader(std::string_view("\0\0\0\2a", 5)).field());
  EXPECT_FALSE(FieldReader("\xff\xff\xff\xff and so on").field());
}

}  // namespace
}  // namespace semel
