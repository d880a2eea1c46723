// Values into SQLite's parameters and out of its columns.
//
//   nullptr -> NULL    bool -> 0 or 1    int64 -> INTEGER    double -> REAL
//   Decimal -> TEXT (SQLite has no exact number beyond 64 bits; a NUMERIC column would round it)
//   string  -> TEXT, valid UTF-8 without NUL    Blob -> BLOB
#pragma once

#include <semel/result.hpp>
#include <semel/sql.hpp>
#include <span>
#include <string>
#include <vector>

struct sqlite3_stmt;

namespace semel::sqlite {

/// Binds `value` as SQLite's parameter `index` (from 1). Errors: bad_value for text with NUL or that is not UTF-8,
/// and for a double that is not a number, which SQLite would silently store as NULL.
Result<void> bind_value(sqlite3_stmt* statement, int index, const Value& value);

/// INTEGER as int64, REAL as double, TEXT as string, BLOB as Blob, NULL as nullptr.
Value read_value(sqlite3_stmt* statement, int column);

}  // namespace semel::sqlite
