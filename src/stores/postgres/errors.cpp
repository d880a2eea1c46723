#include "stores/postgres/errors.hpp"

#include <algorithm>
#include <array>

namespace semel::postgres {

namespace {

struct Meaning {
  std::string_view sqlstate;  ///< the whole code, or the first characters of a family
  Remedy remedy;
  ErrorCode code;
};

// Sorted so that a whole code stands before its family: the first that fits counts.
constexpr std::array meanings{
    Meaning{"08P01", Remedy::fix_call, ErrorCode::bad_statement},  // such as a wrong number of parameters
    Meaning{"08", Remedy::retry_later, ErrorCode::connection_lost},
    Meaning{"21", Remedy::fix_call, ErrorCode::bad_statement},
    Meaning{"22", Remedy::fix_call, ErrorCode::bad_value},
    Meaning{"23", Remedy::fix_call, ErrorCode::constraint_violated},
    Meaning{"25006", Remedy::retry_later, ErrorCode::store_read_only},
    Meaning{"25P03", Remedy::retry_later, ErrorCode::connection_lost},
    Meaning{"25", Remedy::fix_call, ErrorCode::handler_misused},
    Meaning{"26", Remedy::ask_operator, ErrorCode::bad_statement},  // see `hint`
    Meaning{"27", Remedy::fix_call, ErrorCode::constraint_violated},
    Meaning{"28", Remedy::ask_operator, ErrorCode::permission_denied},
    Meaning{"2D", Remedy::fix_call, ErrorCode::handler_misused},
    Meaning{"3B", Remedy::fix_call, ErrorCode::handler_misused},
    Meaning{"3D", Remedy::ask_operator, ErrorCode::store_unreachable},
    Meaning{"40002", Remedy::fix_call, ErrorCode::constraint_violated},
    Meaning{"40", Remedy::reread, ErrorCode::serialization_failure},
    Meaning{"42501", Remedy::ask_operator, ErrorCode::permission_denied},
    Meaning{"42P05", Remedy::ask_operator, ErrorCode::bad_statement},  // see `hint`
    Meaning{"42", Remedy::fix_call, ErrorCode::bad_statement},
    Meaning{"44", Remedy::fix_call, ErrorCode::constraint_violated},
    Meaning{"53100", Remedy::ask_operator, ErrorCode::disk_full},
    Meaning{"53", Remedy::retry_later, ErrorCode::store_unreachable},
    Meaning{"54", Remedy::fix_call, ErrorCode::bad_value},
    Meaning{"55P03", Remedy::retry_later, ErrorCode::lock_timeout},
    Meaning{"55006", Remedy::retry_later, ErrorCode::lock_timeout},
    Meaning{"57014", Remedy::retry_later, ErrorCode::lock_timeout},
    Meaning{"57P04", Remedy::ask_operator, ErrorCode::store_unreachable},
    Meaning{"57P", Remedy::retry_later, ErrorCode::connection_lost},
    Meaning{"57", Remedy::retry_later, ErrorCode::store_unreachable},
    Meaning{"58", Remedy::ask_operator, ErrorCode::store_damaged},
    Meaning{"P0001", Remedy::fix_call, ErrorCode::constraint_violated},  // a trigger's own no
    Meaning{"XX", Remedy::ask_operator, ErrorCode::store_damaged},
};
constexpr Meaning any_other{"", Remedy::fix_call, ErrorCode::bad_statement};

Meaning meaning_of(const Complaint& complaint) {
  if (complaint.is_about_an_outdated_statement()) return {"", Remedy::retry_later, ErrorCode::serialization_failure};
  const auto* found = std::find_if(meanings.begin(), meanings.end(),
                                   [&](const Meaning& m) { return complaint.sqlstate.starts_with(m.sqlstate); });
  return found == meanings.end() ? any_other : *found;
}

std::string_view hint(std::string_view sqlstate) {
  if (sqlstate == "26000" || sqlstate == "42P05")
    return "; a transaction pooler seems to stand before the server: set prepared_statements to false";
  return "";
}

std::string described(const Complaint& complaint) {
  std::string text = "PostgreSQL: " + complaint.message;
  if (!complaint.sqlstate.empty()) text += " (" + complaint.sqlstate + ")";
  return text.append(hint(complaint.sqlstate));
}

std::string on_one_line(std::string_view text) {
  std::string line;
  for (const char c : text) line += c == '\n' || c == '\r' || c == '\t' ? ' ' : c;
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

std::string field(const PGresult* result, int code) {
  const char* text = PQresultErrorField(result, code);
  return text ? text : "";
}

}  // namespace

Complaint Complaint::of(const PGresult* result) {
  const auto severity = field(result, PG_DIAG_SEVERITY_NONLOCALIZED);
  Complaint complaint{.sqlstate = field(result, PG_DIAG_SQLSTATE),
                      .message = on_one_line(field(result, PG_DIAG_MESSAGE_PRIMARY)),
                      .schema = field(result, PG_DIAG_SCHEMA_NAME),
                      .table = field(result, PG_DIAG_TABLE_NAME),
                      .server_function = field(result, PG_DIAG_SOURCE_FUNCTION),
                      .fatal = severity == "FATAL" || severity == "PANIC"};
  if (complaint.message.empty()) complaint.message = on_one_line(PQresultErrorMessage(result));
  return complaint;
}

bool Complaint::is_about_an_outdated_statement() const {
  return sqlstate == "0A000" && server_function == "RevalidateCachedQuery";
}

Error translate(const Complaint& complaint) {
  const auto meaning = meaning_of(complaint);
  return {meaning.remedy, Certainty::not_applied, meaning.code, described(complaint)};
}

Error translate_own(const Complaint& complaint) {
  if (complaint.sqlstate == "42P01" || complaint.sqlstate == "3F000" || complaint.sqlstate == "42703")
    return {Remedy::ask_operator, Certainty::not_applied, ErrorCode::schema_missing,
            described(complaint) + "; Semel's tables are not there: run `semel migrate`"};
  return translate(complaint);
}

Error translate_refusal(std::string_view sqlstate, std::string message) {
  auto error = retry_later(ErrorCode::store_unreachable, on_one_line(message));
  if (sqlstate.empty()) return error;
  // Of a refusal it says that the database takes no connections for now (ALTER DATABASE … ALLOW_CONNECTIONS).
  if (sqlstate == "55000") return error;
  const auto meaning = meaning_of({.sqlstate = std::string(sqlstate)});
  // No message is at fault where nobody may connect.
  error.remedy = meaning.remedy == Remedy::fix_call ? Remedy::ask_operator : meaning.remedy;
  if (meaning.code == ErrorCode::permission_denied) error.code = meaning.code;
  return error;
}

Error lost_connection(const Complaint& complaint, bool commit_sent) {
  const auto why = complaint.message.empty() ? "" : ": " + complaint.message;
  if (commit_sent)
    return {Remedy::retry_later, Certainty::unknown, ErrorCode::commit_unknown,
            "the connection to PostgreSQL was lost before the answer to COMMIT came" + why};
  return retry_later(ErrorCode::connection_lost,
                     "the connection to PostgreSQL was lost; the transaction was rolled back" + why);
}

std::string without_quotations(std::string_view text) {
  const auto first = text.find('"');
  if (first == text.npos) return on_one_line(text);
  const auto last = text.rfind('"');
  return on_one_line(std::string(text.substr(0, first)) + "…" + std::string(text.substr(last + 1)));
}

}  // namespace semel::postgres
