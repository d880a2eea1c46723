#include "stores/postgres/wire.hpp"

#include <cassert>
#include <charconv>
#include <limits>
#include <memory>

#include "base/encoding.hpp"

namespace semel::postgres {

namespace {

template <class Unsigned>
std::string big_endian(Unsigned value) {
  std::string bytes(sizeof(Unsigned), '\0');
  for (auto byte = bytes.rbegin(); byte != bytes.rend(); ++byte, value = static_cast<Unsigned>(value >> 8))
    *byte = static_cast<char>(value & 0xff);
  return bytes;
}

std::string double_text(double value) {
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  return {text.data(), end};
}

Result<std::string> plain_text(const std::string& text) {
  if (const auto nul = text.find('\0'); nul != text.npos)
    return fix_call(ErrorCode::bad_value, "a text value has a NUL byte at position " + std::to_string(nul) +
                                              ", which PostgreSQL's text cannot hold; pass it as bytes (bytea)");
  return text;
}

/// The value as PostgreSQL reads it in text form; for anything but null.
Result<std::string> value_text(const Value& value) {
  if (const auto* b = std::get_if<bool>(&value)) return std::string(*b ? "t" : "f");
  if (const auto* i = std::get_if<std::int64_t>(&value)) return std::to_string(*i);
  if (const auto* d = std::get_if<double>(&value)) return double_text(*d);
  if (const auto* n = std::get_if<Decimal>(&value)) return plain_text(n->digits);
  if (const auto* s = std::get_if<std::string>(&value)) return plain_text(*s);
  return "\\x" + hex_encode(std::get<Blob>(value).bytes);
}

std::string quoted_element(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted += '"';
}

template <class Number>
Number parsed(std::string_view text) {
  Number number{};
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

/// `sign`: what stands before the first byte.
std::uint64_t from_big_endian(std::string_view bytes, std::uint64_t sign = 0) {
  std::uint64_t value = sign;
  for (const char c : bytes) value = value << 8 | static_cast<unsigned char>(c);
  return value;
}

constexpr auto absent = std::numeric_limits<std::uint32_t>::max();  ///< the size of a null element

Value bytes_value(const char* text) {
  std::size_t size = 0;
  const std::unique_ptr<unsigned char, decltype(&PQfreemem)> bytes(
      PQunescapeBytea(reinterpret_cast<const unsigned char*>(text), &size), &PQfreemem);
  return Blob{bytes ? std::string(reinterpret_cast<const char*>(bytes.get()), size) : std::string()};
}

Value value_of(const PGresult* result, int row, int column) {
  if (PQgetisnull(result, row, column)) return nullptr;
  const char* data = PQgetvalue(result, row, column);
  const std::string_view text(data, static_cast<std::size_t>(PQgetlength(result, row, column)));
  switch (static_cast<Type>(PQftype(result, column))) {
    case Type::boolean:
      return text == "t";
    case Type::int2:
    case Type::int4:
    case Type::int8:
    case Type::oid:
      return parsed<std::int64_t>(text);
    case Type::float4:
    case Type::float8:
      return parsed<double>(text);
    case Type::numeric:
      return Decimal{std::string(text)};
    case Type::bytes:
      return bytes_value(data);
    default:
      return std::string(text);
  }
}

}  // namespace

void Parameters::add_null() {
  types_.push_back(0);
  formats_.push_back(0);
  bytes_.emplace_back();
  null_.push_back(true);
}

void Parameters::add_text(std::string text) {
  types_.push_back(0);
  formats_.push_back(0);
  bytes_.push_back(std::move(text));
  null_.push_back(false);
}

void Parameters::add_binary(Type type, std::string bytes) {
  types_.push_back(static_cast<Oid>(type));
  formats_.push_back(1);
  bytes_.push_back(std::move(bytes));
  null_.push_back(false);
}

Parameters Parameters::first_elements() const {
  constexpr std::size_t type_at = 8, size_at = 20, element_at = 24;
  Parameters elements;
  for (const auto& array : bytes_) {
    const std::string_view bytes(array);
    const auto type = from_big_endian(bytes.substr(type_at, 4));
    const std::uint64_t size = bytes.size() < element_at ? absent : from_big_endian(bytes.substr(size_at, 4));
    const bool null = size == absent;
    elements.add_binary(static_cast<Type>(type), null ? "" : std::string(bytes.substr(element_at, size)));
    elements.null_.back() = null;
  }
  return elements;
}

std::size_t Parameters::size() const {
  std::size_t size = 0;
  for (const auto& bytes : bytes_) size += bytes.size();
  return size;
}

std::vector<const char*> Parameters::values() const {
  std::vector<const char*> values;
  values.reserve(count());
  for (std::size_t i = 0; i < count(); ++i) values.push_back(null_[i] ? nullptr : bytes_[i].c_str());
  return values;
}

std::vector<int> Parameters::lengths() const {
  std::vector<int> lengths;
  lengths.reserve(count());
  for (const auto& bytes : bytes_) lengths.push_back(static_cast<int>(bytes.size()));
  return lengths;
}

Result<Parameters> parameters_of(std::span<const Value> values) {
  Parameters parameters;
  for (const auto& value : values) {
    if (std::holds_alternative<std::nullptr_t>(value)) {
      parameters.add_null();
    } else if (const auto* blob = std::get_if<Blob>(&value)) {
      // Typed, so that bytes for a text column are refused rather than stored as "\x…".
      parameters.add_binary(Type::bytes, blob->bytes);
    } else {
      auto text = value_text(value);
      if (!text) return text.error();
      parameters.add_text(*std::move(text));
    }
  }
  return parameters;
}

Result<std::string> array_text(std::span<const Value> column) {
  std::string array = "{";
  for (const auto& value : column) {
    if (array.size() > 1) array += ',';
    if (std::holds_alternative<std::nullptr_t>(value)) {
      array += "NULL";
      continue;
    }
    const auto text = value_text(value);
    if (!text) return text.error();
    array += quoted_element(*text);
  }
  return array += '}';
}

void ArrayWriter::add(std::string_view bytes) {
  ++count_;
  elements_ += binary_int4(static_cast<std::int32_t>(bytes.size()));
  elements_ += bytes;
}

void ArrayWriter::add_null() {
  ++count_;
  has_null_ = true;
  elements_ += binary_int4(-1);
}

void ArrayWriter::add_to(Parameters& parameters) && {
  constexpr std::int32_t lower_bound = 1;
  std::string array = binary_int4(count_ > 0 ? 1 : 0) + binary_int4(has_null_ ? 1 : 0) +
                      big_endian(static_cast<std::uint32_t>(static_cast<Oid>(element_)));
  if (count_ > 0) array += binary_int4(count_) + binary_int4(lower_bound) + elements_;
  parameters.add_binary(array_, std::move(array));
}

std::string binary_int2(std::int16_t value) { return big_endian(static_cast<std::uint16_t>(value)); }
std::string binary_int4(std::int32_t value) { return big_endian(static_cast<std::uint32_t>(value)); }
std::string binary_int8(std::int64_t value) { return big_endian(static_cast<std::uint64_t>(value)); }
std::string binary_boolean(bool value) { return std::string(1, value ? '\1' : '\0'); }

std::string BinaryRow::bytes(int column) const {
  return {PQgetvalue(result_, row_, column), static_cast<std::size_t>(PQgetlength(result_, row_, column))};
}

std::int64_t BinaryRow::integer(int column) const {
  const auto stored = bytes(column);
  // The sign is in the first byte.
  const bool negative = !stored.empty() && (stored[0] & 0x80);
  return static_cast<std::int64_t>(from_big_endian(stored, negative ? std::numeric_limits<std::uint64_t>::max() : 0));
}

std::chrono::system_clock::time_point BinaryRow::time(int column) const {
  const auto microseconds = integer(column);
  if (microseconds == std::numeric_limits<std::int64_t>::max()) return std::chrono::system_clock::time_point::max();
  constexpr std::chrono::seconds year_2000{946'684'800};  // PostgreSQL counts microseconds from here
  return std::chrono::system_clock::time_point(year_2000 + std::chrono::microseconds(microseconds));
}

std::int64_t rows_affected(const PGresult* result) {
  return parsed<std::int64_t>(PQcmdTuples(const_cast<PGresult*>(result)));
}

Rows rows_of(const PGresult* result) {
  Rows rows;
  const int columns = PQnfields(result);
  for (int c = 0; c < columns; ++c) rows.columns.emplace_back(PQfname(result, c));
  for (int r = 0; r < PQntuples(result); ++r) {
    auto& row = rows.rows.emplace_back();
    for (int c = 0; c < columns; ++c) row.push_back(value_of(result, r, c));
  }
  return rows;
}

}  // namespace semel::postgres
