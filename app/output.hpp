// What every command says in the same way: errors, tables, JSON, and the exit code.
//
//   0 done   1 failure (the world: a store, a file, a port)   2 usage   3 configuration   4 an operator is asked
#pragma once

#include <boost/json/value.hpp>
#include <chrono>
#include <semel/error.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.hpp"

namespace semel::app {

enum ExitCode : int { done = 0, failure = 1, usage = 2, configuration = 3, waits_for_operator = 4 };

/// "semel: SEMEL-0201: …" on standard error, cleaned of secrets. Returns the exit code that belongs to the error.
int report(const Error& error, const Redactor& redactor = {});
/// One line for each mistake.
int report(const std::vector<Mistake>& mistakes, const std::string& file);
/// A note that is no error.
void note(std::string_view text);

/// JSON on standard output, with a line end.
void print_json(const boost::json::value& value);

/// Columns as wide as their widest cell; the first row is the head.
std::string table(const std::vector<std::vector<std::string>>& rows);

/// "2026-11-30T17:42:08Z".
std::string time_text(std::chrono::system_clock::time_point time);
/// "30d", "12h", "90s": the largest unit without a rest.
std::string duration_text(std::chrono::seconds duration);
/// Bytes for people: as they are where they are printable, else with escapes; never a line end or control character.
std::string printable(std::string_view bytes);
/// `{name: text}`, or `{name_base64: …}` where the bytes are no text.
void put_bytes(boost::json::object& object, std::string_view name, std::string_view bytes);
/// A key: one part as text, several as a list; bytes that are no text are escaped.
boost::json::value key_json(const Key& key);
/// Headers as an object's list, with the values of those that carry credentials left out.
boost::json::array attributes_json(const Attributes& attributes);
std::string attribute_text(const Attributes::Entry& entry);

}  // namespace semel::app
