#include "stores/postgres/errors.hpp"

#include <gtest/gtest.h>

namespace semel::postgres {
namespace {

struct Case {
  std::string sqlstate;
  Remedy remedy;
  ErrorCode code;
};

const Case cases[] = {
    {"08006", Remedy::retry_later, ErrorCode::connection_lost},
    {"08P01", Remedy::fix_call, ErrorCode::bad_statement},
    {"0A000", Remedy::fix_call, ErrorCode::bad_statement},
    {"21000", Remedy::fix_call, ErrorCode::bad_statement},
    {"22001", Remedy::fix_call, ErrorCode::bad_value},
    {"22021", Remedy::fix_call, ErrorCode::bad_value},
    {"22P02", Remedy::fix_call, ErrorCode::bad_value},
    {"22P05", Remedy::fix_call, ErrorCode::bad_value},
    {"23502", Remedy::fix_call, ErrorCode::constraint_violated},
    {"23505", Remedy::fix_call, ErrorCode::constraint_violated},
    {"23P01", Remedy::fix_call, ErrorCode::constraint_violated},
    {"25006", Remedy::retry_later, ErrorCode::store_read_only},
    {"25P02", Remedy::fix_call, ErrorCode::handler_misused},
    {"25P03", Remedy::retry_later, ErrorCode::connection_lost},
    {"26000", Remedy::ask_operator, ErrorCode::bad_statement},
    {"28000", Remedy::ask_operator, ErrorCode::permission_denied},
    {"28P01", Remedy::ask_operator, ErrorCode::permission_denied},
    {"2D000", Remedy::fix_call, ErrorCode::handler_misused},
    {"3D000", Remedy::ask_operator, ErrorCode::store_unreachable},
    {"40001", Remedy::reread, ErrorCode::serialization_failure},
    {"40P01", Remedy::reread, ErrorCode::serialization_failure},
    {"40002", Remedy::fix_call, ErrorCode::constraint_violated},
    {"42501", Remedy::ask_operator, ErrorCode::permission_denied},
    {"42601", Remedy::fix_call, ErrorCode::bad_statement},
    {"42P01", Remedy::fix_call, ErrorCode::bad_statement},
    {"42P05", Remedy::ask_operator, ErrorCode::bad_statement},
    {"44000", Remedy::fix_call, ErrorCode::constraint_violated},
    {"53100", Remedy::ask_operator, ErrorCode::disk_full},
    {"53200", Remedy::retry_later, ErrorCode::store_unreachable},
    {"53300", Remedy::retry_later, ErrorCode::store_unreachable},
    {"54000", Remedy::fix_call, ErrorCode::bad_value},
    {"55006", Remedy::retry_later, ErrorCode::lock_timeout},
    {"55P03", Remedy::retry_later, ErrorCode::lock_timeout},
    {"57014", Remedy::retry_later, ErrorCode::lock_timeout},
    {"57P01", Remedy::retry_later, ErrorCode::connection_lost},
    {"57P02", Remedy::retry_later, ErrorCode::connection_lost},
    {"57P03", Remedy::retry_later, ErrorCode::connection_lost},
    {"57P04", Remedy::ask_operator, ErrorCode::store_unreachable},
    {"58030", Remedy::ask_operator, ErrorCode::store_damaged},
    {"P0001", Remedy::fix_call, ErrorCode::constraint_violated},
    {"XX000", Remedy::ask_operator, ErrorCode::store_damaged},
    {"XX001", Remedy::ask_operator, ErrorCode::store_damaged},
    {"ZZ999", Remedy::fix_call, ErrorCode::bad_statement},
};

TEST(PostgresErrors, GiveEachSqlstateItsMeaning) {
  for (const auto& c : cases) {
    const auto error = translate({.sqlstate = c.sqlstate, .message = "what happened"});
    EXPECT_EQ(error.remedy, c.remedy) << c.sqlstate;
    EXPECT_EQ(error.code, c.code) << c.sqlstate;
    EXPECT_EQ(error.certainty, Certainty::not_applied) << c.sqlstate;
    EXPECT_NE(error.message.find("what happened"), std::string::npos) << c.sqlstate;
    EXPECT_NE(error.message.find(c.sqlstate), std::string::npos) << c.sqlstate;
  }
}

TEST(PostgresErrors, PrepareAnewWhatAChangedTableInvalidated) {
  const auto error = translate({.sqlstate = "0A000", .message = "m", .server_function = "RevalidateCachedQuery"});
  EXPECT_EQ(error.remedy, Remedy::retry_later);
}

TEST(PostgresErrors, SayThatTheSchemaIsMissingWhereOurOwnTablesAre) {
  for (const std::string sqlstate : {"42P01", "3F000", "42703"}) {
    const auto error = translate_own({.sqlstate = sqlstate, .message = "no such thing"});
    EXPECT_EQ(error.code, ErrorCode::schema_missing);
    EXPECT_NE(error.message.find("semel migrate"), std::string::npos);
  }
}

TEST(PostgresErrors, CallALostConnectionUnknownOnlyOnceCommitWasSent) {
  EXPECT_EQ(lost_connection({}, false).certainty, Certainty::not_applied);
  EXPECT_EQ(lost_connection({}, false).code, ErrorCode::connection_lost);
  EXPECT_EQ(lost_connection({}, true).certainty, Certainty::unknown);
  EXPECT_EQ(lost_connection({}, true).code, ErrorCode::commit_unknown);
}

TEST(PostgresErrors, TellARefusedPasswordFromAServerThatIsAway) {
  EXPECT_EQ(translate_refusal("28P01", "no").code, ErrorCode::permission_denied);
  EXPECT_EQ(translate_refusal("28P01", "no").remedy, Remedy::ask_operator);
  EXPECT_EQ(translate_refusal("3D000", "no").remedy, Remedy::ask_operator);
  EXPECT_EQ(translate_refusal("3D000", "no").code, ErrorCode::store_unreachable);
  EXPECT_EQ(translate_refusal("57P03", "no").remedy, Remedy::retry_later);
  EXPECT_EQ(translate_refusal("57P03", "no").code, ErrorCode::store_unreachable);
  EXPECT_EQ(translate_refusal("55000", "no").remedy, Remedy::retry_later);
  EXPECT_EQ(translate_refusal("55000", "no").code, ErrorCode::store_unreachable);
  EXPECT_EQ(translate_refusal("22023", "no").remedy, Remedy::ask_operator) << "no message is at fault";
  EXPECT_EQ(translate_refusal("", "no\n\tmore").message, "no  more");
}

TEST(PostgresErrors, QuoteNothingOfAConnectionString) {
  EXPECT_EQ(without_quotations("invalid port number: \"secret\""), "invalid port number: …");
  EXPECT_EQ(without_quotations("missing \"=\" after \"se\"cret\" in connection info string\n"),
            "missing … in connection info string");
  EXPECT_EQ(without_quotations("plain"), "plain");
}

}  // namespace
}  // namespace semel::postgres
