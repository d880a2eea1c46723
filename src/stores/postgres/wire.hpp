// Values on their way to and from the server.
//
// Our own statements send and read the binary format (big-endian integers, raw bytes). The user's send text, whose type
// the server infers from where the placeholder stands, and read text.
#pragma once

#include <libpq-fe.h>

#include <chrono>
#include <cstdint>
#include <semel/result.hpp>
#include <semel/sql.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace semel::postgres {

/// Object ids of built-in types; they never change.
enum class Type : Oid {
  inferred = 0,
  boolean = 16,
  bytes = 17,
  int8 = 20,
  int2 = 21,
  int4 = 23,
  text = 25,
  oid = 26,
  float4 = 700,
  float8 = 701,
  numeric = 1700,
  uuid = 2950,
  boolean_array = 1000,
  bytes_array = 1001,
  int2_array = 1005,
  int4_array = 1007,
  text_array = 1009,
  int8_array = 1016,
  uuid_array = 2951,
};

/// The parameters of one command.
class Parameters {
 public:
  void add_null();
  void add_text(std::string text);
  void add_binary(Type type, std::string bytes);

  /// All are arrays, as ArrayWriter writes them: the first element of each, and null for one without any. A server
  /// reads values in half the time of arrays of one.
  Parameters first_elements() const;

  std::size_t count() const { return types_.size(); }
  std::size_t size() const;
  const std::vector<Oid>& types() const { return types_; }
  const std::vector<int>& formats() const { return formats_; }
  std::vector<const char*> values() const;
  std::vector<int> lengths() const;

 private:
  std::vector<Oid> types_;
  std::vector<int> formats_;
  std::vector<std::string> bytes_;
  std::vector<bool> null_;
};

/// A user's values as text parameters. Errors: bad_value for text with a NUL, which PostgreSQL cannot hold and libpq
/// would cut there.
Result<Parameters> parameters_of(std::span<const Value> values);

/// A column of a user's values as one array parameter, in PostgreSQL's text form: {"a","b \"c\"",NULL}.
Result<std::string> array_text(std::span<const Value> column);

/// A one-dimensional array in the binary format.
class ArrayWriter {
 public:
  /// `element` and `array` are a type and the type of its arrays.
  ArrayWriter(Type element, Type array) : element_(element), array_(array) {}
  void add(std::string_view bytes);
  void add_null();
  void add_to(Parameters& parameters) &&;

 private:
  Type element_;
  Type array_;
  std::int32_t count_ = 0;
  bool has_null_ = false;
  std::string elements_;
};

std::string binary_int2(std::int16_t value);
std::string binary_int4(std::int32_t value);
std::string binary_int8(std::int64_t value);
std::string binary_boolean(bool value);

/// One row of a binary result; columns are read by number. The result outlives it.
class BinaryRow {
 public:
  BinaryRow(const PGresult* result, int row) : result_(result), row_(row) {}
  bool is_null(int column) const { return PQgetisnull(result_, row_, column) != 0; }
  std::string bytes(int column) const;
  std::int64_t integer(int column) const;                        ///< int2, int4, int8 and boolean
  std::chrono::system_clock::time_point time(int column) const;  ///< the greatest one for 'infinity'

 private:
  const PGresult* result_;
  int row_;
};

/// How many rows a command changed or read; 0 for commands that do neither.
std::int64_t rows_affected(const PGresult* result);

/// A text result as the user gets it.
Rows rows_of(const PGresult* result);

}  // namespace semel::postgres
