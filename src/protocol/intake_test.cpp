#include "protocol/intake.hpp"

#include <gtest/gtest.h>

namespace semel::protocol {
namespace {

Delivery delivery(std::string body, std::string source = "stripe") {
  return {.receipt = Receipt(0),
          .source = std::move(source),
          .body = std::move(body),
          .problem = "",
          .attributes = {},
          .transport_id = "",
          .principal = "",
          .receive_count = {},
          .sent_at = {}};
}

Intake intake_of(const HandlerOptions& handler, const Delivery& d) { return intake(handler, d, read(d)); }

HandlerOptions handler() {
  return {.name = "record-invoice",
          .from = {"stripe"},
          .when = {{"/type", "invoice.paid"}},
          .key = KeyExpression::body("/id")};
}

TEST(Intake, TakesWhatTheConditionsHoldFor) {
  const auto taken = intake_of(handler(), delivery(R"({"type":"invoice.paid","id":"in_1"})"));
  ASSERT_TRUE(std::holds_alternative<Claimable>(taken));
  EXPECT_EQ(std::get<Claimable>(taken).key.bytes(), "in_1");
  EXPECT_FALSE(std::get<Claimable>(taken).fingerprint.empty());
}

TEST(Intake, LeavesOtherSourcesAndOtherTypes) {
  EXPECT_TRUE(std::holds_alternative<NotForUs>(
      intake_of(handler(), delivery(R"({"type":"invoice.paid","id":"1"})", "github"))));
  EXPECT_TRUE(
      std::holds_alternative<NotForUs>(intake_of(handler(), delivery(R"({"type":"invoice.voided","id":"1"})"))));
  EXPECT_TRUE(std::holds_alternative<NotForUs>(intake_of(handler(), delivery(R"({"id":"1"})"))));
}

TEST(Intake, SetsAsideWhatHasNoKey) {
  for (const auto* body : {R"({"type":"invoice.paid"})", R"({"type":"invoice.paid","id":null})",
                           R"({"type":"invoice.paid","id":""})", R"({"type":"invoice.paid","id":1.5})",
                           R"({"type":"invoice.paid","id":[]})", R"({"type":"invoice.paid","id":{}})"}) {
    const auto taken = intake_of(handler(), delivery(body));
    ASSERT_TRUE(std::holds_alternative<Unusable>(taken)) << body;
    EXPECT_EQ(std::get<Unusable>(taken).reason, SetAsideReason::no_key) << body;
    EXPECT_EQ(std::get<Unusable>(taken).error.code, ErrorCode::no_key) << body;
  }
}

TEST(Intake, SetsAsideWhatCannotBeReadRatherThanGuessTheCondition) {
  for (const auto* body : {"", "{", "not json", "{\"type\":\"invoice.paid\",\"type\":\"x\",\"id\":\"1\"}", "\xff"}) {
    const auto taken = intake_of(handler(), delivery(body));
    ASSERT_TRUE(std::holds_alternative<Unusable>(taken)) << body;
    EXPECT_EQ(std::get<Unusable>(taken).reason, SetAsideReason::malformed) << body;
  }
}

TEST(Intake, BodyNeedNotBeJsonWhereNothingReadsIt) {
  auto by_header =
      HandlerOptions{.name = "h", .when = {{"header:x-kind", "paid"}}, .key = KeyExpression::attribute("x-id")};
  auto d = delivery("plain text");
  d.attributes.add("X-Kind", "paid");
  d.attributes.add("X-Id", "7");
  const auto taken = intake_of(by_header, d);
  ASSERT_TRUE(std::holds_alternative<Claimable>(taken));
  EXPECT_EQ(std::get<Claimable>(taken).key.bytes(), "7");
}

TEST(Intake, WhatTheSourceCouldNotReadWholeIsSetAsideEvenWithAKey) {
  auto by_id = HandlerOptions{.name = "h", .key = KeyExpression::transport_id()};
  auto d = delivery("");
  d.transport_id = "file:7";
  d.problem = "line 7 is longer than 16 MiB";
  const auto taken = intake_of(by_id, d);
  ASSERT_TRUE(std::holds_alternative<Unusable>(taken));
  EXPECT_EQ(std::get<Unusable>(taken).error.message, d.problem);
}

TEST(Intake, GuardsWithoutARecordCompareNoFingerprint) {
  for (const auto guard : {Guard::unique, Guard::version, Guard::natural}) {
    auto h = handler();
    h.guard = guard;
    const auto taken = intake_of(h, delivery(R"({"type":"invoice.paid","id":"in_1"})"));
    ASSERT_TRUE(std::holds_alternative<Claimable>(taken));
    EXPECT_TRUE(std::get<Claimable>(taken).fingerprint.empty());
  }
}

}  // namespace
}  // namespace semel::protocol
