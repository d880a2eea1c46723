#include "stores/sqlite/binding.hpp"

#include <sqlite3.h>

#include <cmath>
#include <string_view>

#include "base/utf8.hpp"

namespace semel::sqlite {
namespace {

Result<void> check_text(std::string_view text) {
  if (text.find('\0') != text.npos) return fix_call(ErrorCode::bad_value, "text with a NUL in it; bind it as Blob");
  if (!is_valid_utf8(text)) return fix_call(ErrorCode::bad_value, "text that is not UTF-8; bind it as Blob");
  return {};
}

struct Bind {
  sqlite3_stmt* statement;
  int index;

  int operator()(std::nullptr_t) const { return sqlite3_bind_null(statement, index); }
  int operator()(bool value) const { return sqlite3_bind_int(statement, index, value); }
  int operator()(std::int64_t value) const { return sqlite3_bind_int64(statement, index, value); }
  int operator()(double value) const { return sqlite3_bind_double(statement, index, value); }
  int operator()(const Decimal& value) const { return (*this)(value.digits); }
  int operator()(const std::string& text) const {
    return sqlite3_bind_text64(statement, index, text.data(), text.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
  }
  int operator()(const Blob& value) const {
    return sqlite3_bind_blob64(statement, index, value.bytes.data(), value.bytes.size(), SQLITE_TRANSIENT);
  }
};

Result<void> check(const Value& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return check_text(*text);
  if (const auto* decimal = std::get_if<Decimal>(&value)) return check_text(decimal->digits);
  if (const auto* number = std::get_if<double>(&value); number && std::isnan(*number))
    return fix_call(ErrorCode::bad_value, "a number that is not a number (NaN)");
  return {};
}

}  // namespace

Result<void> bind_value(sqlite3_stmt* statement, int index, const Value& value) {
  if (auto checked = check(value); !checked) return checked;
  const int result = std::visit(Bind{statement, index}, value);
  if (result != SQLITE_OK) return fix_call(ErrorCode::bad_value, sqlite3_errstr(result));
  return {};
}

Value read_value(sqlite3_stmt* statement, int column) {
  const auto bytes = [&](const void* start) {
    return std::string(static_cast<const char*>(start ? start : ""),
                       static_cast<std::size_t>(sqlite3_column_bytes(statement, column)));
  };
  switch (sqlite3_column_type(statement, column)) {
    case SQLITE_INTEGER:
      return Value{std::in_place_type<std::int64_t>, sqlite3_column_int64(statement, column)};
    case SQLITE_FLOAT:
      return sqlite3_column_double(statement, column);
    case SQLITE_TEXT:
      return bytes(sqlite3_column_text(statement, column));
    case SQLITE_BLOB:
      return Blob{bytes(sqlite3_column_blob(statement, column))};
    default:
      return nullptr;
  }
}

}  // namespace semel::sqlite
