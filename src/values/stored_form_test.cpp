#include "values/stored_form.hpp"

#include <gtest/gtest.h>

#include <set>

#include "base/digest.hpp"
#include "base/encoding.hpp"

namespace semel {
namespace {

using namespace std::string_literals;

Key key(std::string bytes) { return Key::from_bytes(std::move(bytes)).value(); }

const Answer full{.status = 201,
                  .headers = {{"Location", "/charges/1"}, {"ETag", ""}, {"", "\0\xff"s}, {"Location", "again"}},
                  .body = "{\"ok\":\"\0\xff\"}"s};

bool same(const Answer& a, const Answer& b) {
  return a.status == b.status && a.headers.entries() == b.headers.entries() && a.body == b.body;
}

TEST(StoredForm, StartsWithItsVersion) {
  EXPECT_EQ(stored_key(key("k")), "\x01k");
  EXPECT_EQ(encode_answer(full).front(), '\x01');
  EXPECT_EQ(encode_attributes({}), "\x01\0\0\0\0"s);
}

// Rows that are already in somebody's database must stay readable: these bytes never change.
TEST(StoredForm, OfVersion1IsTheseBytes) {
  EXPECT_EQ(hex_encode(encode_answer({.status = 201, .headers = {{"ETag", "x"}}, .body = "ok"})),
            "01000000c9000000010000000445546167000000017800000002"
            "6f6b");
  EXPECT_EQ(hex_encode(encode_attributes({{"a", "b"}})),
            "0100000001000000016100000001"
            "62");
  EXPECT_EQ(record_digest({"pay", "acme"}, key("k")).view(),
            sha256("\x01\0\0\0\3pay\0\0\0\4acme\0\0\0\1k"s).substr(0, 16));
}

TEST(StoredForm, AKeyComesBack) {
  for (const auto& bytes : {"k"s, "\0"s, "\x01"s, "\xff\0\0\0\1a"s, std::string(1024, 'k')})
    EXPECT_EQ(read_key(stored_key(key(bytes)))->bytes(), bytes);
  for (const auto& stored : {""s, "\x01"s, "\x02k"s, "k"s, "\x01"s + std::string(1025, 'k')}) {
    const auto read = read_key(stored);
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().code, ErrorCode::store_damaged);
    EXPECT_EQ(read.error().remedy, Remedy::ask_operator);
  }
}

TEST(StoredForm, AnAnswerComesBackByteForByte) {
  for (const auto& answer : {full, Answer{}, Answer{.status = 204, .headers = {}, .body = {}},
                             Answer{.status = 200, .headers = {}, .body = std::string(1 << 20, '\0')}})
    EXPECT_TRUE(same(decode_answer(encode_answer(answer)).value(), answer));
}

TEST(StoredForm, AttributesComeBackInOrder) {
  for (const auto& attributes : {full.headers, Attributes{}, Attributes{{"a", "1"}, {"A", "2"}, {"a", "1"}}})
    EXPECT_EQ(decode_attributes(encode_attributes(attributes))->entries(), attributes.entries());
}

TEST(StoredForm, BytesCutShortOrTooManyAreAnError) {
  const auto answer = encode_answer(full);
  for (std::size_t size = 0; size < answer.size(); ++size) EXPECT_FALSE(decode_answer(answer.substr(0, size))) << size;
  EXPECT_FALSE(decode_answer(answer + "x"));
  const auto attributes = encode_attributes(full.headers);
  for (std::size_t size = 0; size < attributes.size(); ++size)
    EXPECT_FALSE(decode_attributes(attributes.substr(0, size))) << size;
  EXPECT_FALSE(decode_attributes(attributes + "x"));
}

TEST(StoredForm, DamageToAnyByteIsNeverACrash) {
  const auto answer = encode_answer(full);
  const auto attributes = encode_attributes(full.headers);
  const auto flip_each = [](const std::string& bytes, const auto& decode) {
    int refused = 0;
    for (std::size_t i = 0; i < bytes.size(); ++i)
      for (int bit = 0; bit < 8; ++bit) {
        auto damaged = bytes;
        damaged[i] = static_cast<char>(damaged[i] ^ (1 << bit));
        const auto decoded = decode(damaged);
        if (decoded) continue;
        EXPECT_EQ(decoded.error().code, ErrorCode::store_damaged);
        ++refused;
      }
    return refused;
  };
  // Every bit of the version and of each length is noticed at least; a changed letter cannot be.
  EXPECT_GE(flip_each(answer, decode_answer), 8 + 32 * 10);
  EXPECT_GE(flip_each(attributes, decode_attributes), 8 + 32 * 9);
}

TEST(StoredForm, AnIdIsSixteenBytesAndNothingElseIsOne) {
  const std::string id = "00ff10203040506070809a0b0c0d0e0f";
  EXPECT_EQ(stored_id(id).value().size(), 16u);
  EXPECT_EQ(read_id(stored_id(id).value()), id);
  for (const std::string& none :
       {""s, id + "00", id.substr(2), "0" + id.substr(2), "FF" + id.substr(2), "zz" + id.substr(2)})
    EXPECT_EQ(stored_id(none).error().code, ErrorCode::bad_value) << none;
}

const StoredMessage message{.source = "hooks",
                            .sender = Sender::caller,
                            .sender_verified = true,
                            .transport_id = "t\0id"s,
                            .body = "\0body\xff"s,
                            .attributes = full.headers};
const CallOutcome outcome{.reference = "ch_1\0"s, .answer = full, .detail = "card \xe9"};
const Compensation compensation{.effect = "refund", .request = "\0{}"s};

TEST(StoredForm, AMessageComesBackAsItWas) {
  for (const auto& one : {message, StoredMessage{}}) {
    const auto back = decode_message(encode_message(one)).value();
    EXPECT_EQ(back.source, one.source);
    EXPECT_EQ(back.sender, one.sender);
    EXPECT_EQ(back.sender_verified, one.sender_verified);
    EXPECT_EQ(back.transport_id, one.transport_id);
    EXPECT_EQ(back.body, one.body);
    EXPECT_EQ(back.attributes.entries(), one.attributes.entries());
  }
}

TEST(StoredForm, AnOutcomeComesBackAsItWas) {
  const auto back = decode_outcome(encode_outcome(outcome)).value();
  EXPECT_EQ(back.reference, outcome.reference);
  EXPECT_EQ(back.detail, outcome.detail);
  EXPECT_EQ(back.answer.status, full.status);
  EXPECT_EQ(back.answer.headers.entries(), full.headers.entries());
  EXPECT_EQ(back.answer.body, full.body);
}

TEST(StoredForm, ACompensationComesBackAsItWas) {
  EXPECT_EQ(decode_compensation(encode_compensation(compensation)).value(), compensation);
}

/// However the bytes are cut, lengthened or changed: read, or refused as damaged.
template <class Decode>
void expect_careful(const std::string& bytes, Decode decode) {
  for (std::size_t size = 0; size < bytes.size(); ++size) EXPECT_FALSE(decode(bytes.substr(0, size))) << size;
  EXPECT_FALSE(decode(bytes + "x"));
  for (std::size_t i = 0; i < bytes.size() * 8; ++i) {
    auto changed = bytes;
    changed[i / 8] = static_cast<char>(changed[i / 8] ^ (1 << i % 8));
    const auto read = decode(changed);
    EXPECT_TRUE(read || read.error().code == ErrorCode::store_damaged) << i;
  }
}

TEST(StoredForm, WhatBelongsToAnIntentIsReadWithCare) {
  expect_careful(encode_message(message), decode_message);
  expect_careful(encode_outcome(outcome), decode_outcome);
  expect_careful(encode_compensation(compensation), decode_compensation);
}

TEST(RecordDigest, TellsScopesAndKeysApart) {
  const std::set<RecordDigest> all{
      record_digest({"a", ""}, key("k")),  record_digest({"", "a"}, key("k")),    record_digest({"ak", ""}, key("k")),
      record_digest({"a", "k"}, key("k")), record_digest({"a", ""}, key("kk")),   record_digest({"a", ""}, key("K")),
      record_digest({"a", ""}, key("k ")), record_digest({"a", ""}, key("k\0"s)), record_digest({"A", ""}, key("k")),
  };
  EXPECT_EQ(all.size(), 9u);
}

// Lock keys of 32 bits met each other after about a hundred thousand messages.
TEST(RecordDigest, HasSixteenBytesSoThatManyKeysDoNotMeet) {
  std::set<std::string> all;
  constexpr int count = 200'000;
  for (int i = 0; i < count; ++i) all.insert(std::string(record_digest({"pay", ""}, key(std::to_string(i))).view()));
  EXPECT_EQ(all.size(), static_cast<std::size_t>(count));
  EXPECT_EQ(all.begin()->size(), 16u);
}

}  // namespace
}  // namespace semel
