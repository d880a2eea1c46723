#include <gtest/gtest.h>

#include <semel/message.hpp>

#include "values/delivery_for_test.hpp"

namespace semel {
namespace {

using namespace std::string_literals;

Value key_value(std::string bytes) {
  const auto delivery = delivery_with("");
  const auto key = Key::from_bytes(std::move(bytes)).value();
  return Message(delivery, nullptr, key).key_value();
}

class MessageTest : public testing::Test {
 protected:
  Delivery delivery = delivery_with("");
  Document document = Document::parse(R"({"n":null,"t":true,"f":false,"i":-7,"i1":1.0,"big":12345678901234567891,
      "d":12345678901234567890.50,"e":1e400,"s":"text","z":"a\u0000b","a":[1, {"k":2.0}],"o":{"k": "v"}})")
                          .value();
  Key key = Key::from_bytes("k").value();
  Message message{delivery, &document, key};
  Message without{delivery, nullptr, key};
};

TEST_F(MessageTest, AKeyIsTextWhereItCanBe) {
  EXPECT_EQ(key_value("evt_é"), Value("evt_é"s));
  EXPECT_EQ(key_value("a\0b"s), Value(Blob{"a\0b"s}));
  EXPECT_EQ(key_value("\xff"), Value(Blob{"\xff"}));
  EXPECT_EQ(key_value("1"), Value("1"s));
}

TEST_F(MessageTest, ValuesKeepTheirKindAndNumbersTheirDigits) {
  struct Case {
    std::string pointer;
    Value value;
  };
  for (const auto& [pointer, value] : {
           Case{"/n", nullptr},
           Case{"/missing", nullptr},
           Case{"malformed", nullptr},
           Case{"/t", true},
           Case{"/f", false},
           Case{"/i", std::int64_t{-7}},
           Case{"/i1", std::int64_t{1}},
           Case{"/big", Decimal{"12345678901234567891"}},
           Case{"/d", Decimal{"12345678901234567890.50"}},
           Case{"/e", Decimal{"1e400"}},
           Case{"/s", "text"s},
           Case{"/z", "a\0b"s},
           Case{"/a", R"([1,{"k":2.0}])"s},
           Case{"/o", R"({"k":"v"})"s},
       })
    EXPECT_EQ(message.at(pointer), value) << pointer;
  EXPECT_EQ(without.at("/s"), Value(nullptr));
}

TEST_F(MessageTest, AFieldThatIsNeededAndNotThereIsAFailure) {
  EXPECT_EQ(message.text("/s"), "text");
  EXPECT_EQ(message.integer("/i"), -7);
  for (const auto* pointer : {"/n", "/missing", "/i", "/t", "/a"})
    EXPECT_THROW(message.text(pointer), Failure) << pointer;
  for (const auto* pointer : {"/n", "/missing", "/s", "/big", "/d", "/t", "/a"})
    EXPECT_THROW(message.integer(pointer), Failure) << pointer;
  try {
    without.text("/s");
    FAIL() << "text() returned";
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.error().code, ErrorCode::field_missing);
    EXPECT_NE(failure.error().message.find("/s"), std::string::npos);
  }
}

}  // namespace
}  // namespace semel
