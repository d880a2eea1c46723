#include "sources/http/idempotency_key.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <semel/key.hpp>

namespace semel::http {
namespace {

Result<std::string> key_of(const std::string& value) { return idempotency_key({{"idempotency-key", value}}); }

TEST(IdempotencyKey, QuotedAndBareAreTheSameKey) {
  const std::pair<std::string, std::string> cases[] = {
      {"8e03978e-40d5-43dd-bc93-6894a57f9324", "8e03978e-40d5-43dd-bc93-6894a57f9324"},
      {"\"8e03978e-40d5-43dd-bc93-6894a57f9324\"", "8e03978e-40d5-43dd-bc93-6894a57f9324"},
      {"  \"padded outside\"\t", "padded outside"},
      {"\" padded inside \"", " padded inside "},
      {"\"a\\\"b\\\\c\"", "a\"b\\c"},
      {"\"a,b;c\"", "a,b;c"},
      {"123", "123"},
      {"a+b/c==", "a+b/c=="},
      {"order:7|try", "order:7|try"},
      {"\"k\";a;b=1;c=\"x;y\";*d=?1", "k"},
      {"\"k\"; a=1", "k"},
  };
  for (const auto& [value, key] : cases) {
    const auto parsed = key_of(value);
    ASSERT_TRUE(parsed) << value << ": " << parsed.error().message;
    EXPECT_EQ(*parsed, key) << value;
  }
}

TEST(IdempotencyKey, CaseIsKept) {
  EXPECT_EQ(*key_of("AbC"), "AbC");
  EXPECT_NE(*key_of("\"AbC\""), *key_of("\"abc\""));
}

TEST(IdempotencyKey, MalformedOnesAreRefusedAndNotRepeated) {
  const std::string cases[] = {"",
                               " ",
                               "\"\"",
                               "\"marker",
                               "\"marker\" x",
                               "\"marker\"x",
                               "\"marker\",\"b\"",
                               "marker,b",
                               "marker b",
                               "marker;p=1",
                               "mar\"ker",
                               "\"marker\\n\"",
                               "\"marker\\",
                               "\"marker\x01\"",
                               "\"marker\x7f\"",
                               "marker\xc3\xa9",
                               "\"marker\xc3\xa9\"",
                               "\"marker\";",
                               "\"marker\";A=1",
                               "\"marker\";a=",
                               "\"marker\";a=\"x",
                               "\"marker\";=1",
                               "\"marker\" ;a=1"};
  for (const auto& value : cases) {
    const auto parsed = key_of(value);
    ASSERT_FALSE(parsed) << value;
    EXPECT_EQ(parsed.error().code, ErrorCode::idempotency_key_invalid) << value;
    EXPECT_THAT(parsed.error().message, testing::Not(testing::HasSubstr("marker"))) << value;
  }
}

TEST(IdempotencyKey, MissingIsAnErrorOfItsOwn) {
  const auto parsed = idempotency_key({{"X-Idempotency-Key", "a"}});
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().code, ErrorCode::idempotency_key_missing);
}

TEST(IdempotencyKey, TwoLinesAreRefusedEvenWhereTheyAgree) {
  const auto parsed = idempotency_key({{"Idempotency-Key", "a"}, {"idempotency-key", "a"}});
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().code, ErrorCode::idempotency_key_invalid);
}

TEST(IdempotencyKey, IsAtMostAKeyLong) {
  EXPECT_TRUE(key_of(std::string(Key::size_max, 'k')));
  EXPECT_FALSE(key_of(std::string(Key::size_max + 1, 'k')));
  EXPECT_TRUE(key_of('"' + std::string(Key::size_max, 'k') + '"'));
  EXPECT_FALSE(key_of('"' + std::string(Key::size_max + 1, 'k') + '"'));
}

}  // namespace
}  // namespace semel::http
