#include "stores/postgres/wire.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace semel::postgres {
namespace {

using namespace std::string_literals;

TEST(PostgresWire, WritesArraysSoThatEveryElementComesBack) {
  const std::vector<Value> column{"plain"s, "with \"quotes\""s, "back\\slash"s,   "NULL"s,
                                  ""s,      "{a,b}"s,           nullptr,          std::int64_t{-7},
                                  true,     Decimal{"1.50"},    Blob{"\x01\xff"}, " space "s};
  EXPECT_EQ(array_text(column).value(),
            R"({"plain","with \"quotes\"","back\\slash","NULL","","{a,b}",NULL,"-7","t","1.50","\\x01ff"," space "})");
  EXPECT_EQ(array_text({}).value(), "{}");
}

TEST(PostgresWire, RefusesTextWithNulRatherThanCutIt) {
  const std::vector<Value> values{"a\0b"s};
  EXPECT_EQ(parameters_of(values).error().code, ErrorCode::bad_value);
  EXPECT_EQ(parameters_of(values).error().remedy, Remedy::fix_call);
  EXPECT_EQ(array_text(values).error().code, ErrorCode::bad_value);
  const std::vector<Value> bytes{Blob{"a\0b"s}};
  EXPECT_TRUE(parameters_of(bytes).has_value());
}

TEST(PostgresWire, WritesBinaryIntegersMostSignificantByteFirst) {
  EXPECT_EQ(binary_int2(-2), "\xff\xfe");
  EXPECT_EQ(binary_int4(258), "\0\0\1\2"s);
  EXPECT_EQ(binary_int8(std::numeric_limits<std::int64_t>::min()), "\x80\0\0\0\0\0\0\0"s);
}

TEST(PostgresWire, WritesBinaryArrays) {
  ArrayWriter array(Type::bytes, Type::bytes_array);
  array.add("ab");
  array.add_null();
  Parameters parameters;
  std::move(array).add_to(parameters);
  const std::string expected =
      "\0\0\0\1"s
      "\0\0\0\1"s
      "\0\0\0\x11"s
      "\0\0\0\2"s
      "\0\0\0\1"s
      "\0\0\0\2"s
      "ab"
      "\xff\xff\xff\xff";
  EXPECT_EQ(std::string(parameters.values()[0], static_cast<std::size_t>(parameters.lengths()[0])), expected);
  EXPECT_EQ(parameters.types()[0], 1001u);
}

TEST(PostgresWire, TakesTheFirstElementOutOfEachArray) {
  Parameters arrays;
  ArrayWriter texts(Type::bytes, Type::bytes_array);
  texts.add("a\0b"s);
  texts.add("c");
  std::move(texts).add_to(arrays);
  ArrayWriter nulls(Type::int4, Type::int4_array);
  nulls.add_null();
  std::move(nulls).add_to(arrays);
  ArrayWriter(Type::uuid, Type::uuid_array).add_to(arrays);
  ArrayWriter blanks(Type::bytes, Type::bytes_array);
  blanks.add("");
  std::move(blanks).add_to(arrays);
  const auto elements = arrays.first_elements();
  ASSERT_EQ(elements.count(), 4u);
  EXPECT_EQ(elements.types(), (std::vector<Oid>{17, 23, 2950, 17}));
  EXPECT_EQ(elements.formats(), (std::vector<int>{1, 1, 1, 1}));
  EXPECT_EQ(std::string(elements.values()[0], static_cast<std::size_t>(elements.lengths()[0])), "a\0b"s);
  EXPECT_EQ(elements.values()[1], nullptr);
  EXPECT_EQ(elements.values()[2], nullptr);
  EXPECT_STREQ(elements.values()[3], "");
  EXPECT_EQ(elements.lengths()[3], 0);
}

}  // namespace
}  // namespace semel::postgres
