#include "prove/count.hpp"

#include <libpq-fe.h>
#include <sqlite3.h>

#include <array>
#include <charconv>
#include <cstdio>

#include "output.hpp"
#include "prove/exchange.hpp"

namespace semel::prove {
namespace {

constexpr std::chrono::milliseconds patience{10'000};

Error cannot_count(const std::string& why) {
  return retry_later(ErrorCode::source_unreadable, "the effects cannot be counted: " + why);
}

Result<long long> number_in(std::string text) {
  constexpr std::string_view spaces = " \t\r\n";
  text.erase(0, std::min(text.find_first_not_of(spaces), text.size()));
  text.erase(text.find_last_not_of(spaces) + 1);
  long long number = 0;
  const auto* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error == std::errc() && rest == end && number >= 0) return number;
  return cannot_count("\"" + app::printable(text.substr(0, 80)) + "\" is no number");
}

class SqliteCounter : public Counter {
 public:
  SqliteCounter(std::string path, std::string sql) : path_(std::move(path)), sql_(std::move(sql)) {}

  /// Opened each time, so that a target which makes its file anew is seen.
  Result<long long> count(std::string_view key) override {
    sqlite3* opened = nullptr;
    const int code = sqlite3_open_v2(path_.c_str(), &opened, SQLITE_OPEN_READONLY, nullptr);
    const std::unique_ptr<sqlite3, decltype(&sqlite3_close)> database(opened, sqlite3_close);
    if (code != SQLITE_OK) return cannot_count(path_ + ": " + sqlite3_errstr(code));
    sqlite3_busy_timeout(opened, static_cast<int>(patience.count()));
    sqlite3_stmt* prepared = nullptr;
    sqlite3_prepare_v2(opened, with_key(sql_, key).c_str(), -1, &prepared, nullptr);
    const std::unique_ptr<sqlite3_stmt, decltype(&sqlite3_finalize)> statement(prepared, sqlite3_finalize);
    if (!prepared || sqlite3_step(prepared) != SQLITE_ROW) return cannot_count(sqlite3_errmsg(opened));
    const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(prepared, 0));
    return number_in(text ? text : "");
  }

 private:
  std::string path_;
  std::string sql_;
};

class PostgresCounter : public Counter {
 public:
  PostgresCounter(std::string uri, std::string sql) : uri_(std::move(uri)), sql_(std::move(sql)) {}

  Result<long long> count(std::string_view key) override {
    if (!connection_ || PQstatus(connection_.get()) != CONNECTION_OK) connection_.reset(PQconnectdb(uri_.c_str()));
    if (PQstatus(connection_.get()) != CONNECTION_OK) return cannot_count(PQerrorMessage(connection_.get()));
    const std::unique_ptr<PGresult, decltype(&PQclear)> result(PQexec(connection_.get(), with_key(sql_, key).c_str()),
                                                               PQclear);
    if (PQresultStatus(result.get()) != PGRES_TUPLES_OK) return cannot_count(PQerrorMessage(connection_.get()));
    if (PQntuples(result.get()) < 1 || PQnfields(result.get()) < 1) return cannot_count("the statement returns no row");
    return number_in(PQgetvalue(result.get(), 0, 0));
  }

 private:
  std::string uri_;
  std::string sql_;
  std::unique_ptr<PGconn, decltype(&PQfinish)> connection_{nullptr, PQfinish};
};

class HttpCounter : public Counter {
 public:
  explicit HttpCounter(std::string url) : url_(std::move(url)) {}

  Result<long long> count(std::string_view key) override {
    const auto reply = Exchange({.method = "GET", .url = with_key(url_, key)}, patience).finish();
    if (reply.status == 200) return number_in(reply.body);
    return cannot_count(reply.status == 0 ? reply.failure : "status " + std::to_string(reply.status));
  }

 private:
  std::string url_;
};

class CommandCounter : public Counter {
 public:
  explicit CommandCounter(std::string command) : command_(std::move(command)) {}

  Result<long long> count(std::string_view key) override {
    const auto output = output_of(with_key(command_, key));
    if (!output) return cannot_count(output.error().message);
    return number_in(*output);
  }

 private:
  std::string command_;
};

}  // namespace

std::string with_key(std::string text, std::string_view key) {
  constexpr std::string_view place = "{{key}}";
  for (auto at = text.find(place); at != std::string::npos; at = text.find(place, at + key.size()))
    text.replace(at, place.size(), key);
  return text;
}

Result<std::string> output_of(const std::string& command) {
  const auto failed = [&] { return fix_call(ErrorCode::source_unreadable, "the command failed: " + command); };
  FILE* pipe = ::popen(command.c_str(), "re");
  if (!pipe) return failed();
  std::string output;
  std::array<char, 4096> buffer;
  while (const auto count = std::fread(buffer.data(), 1, buffer.size(), pipe)) output.append(buffer.data(), count);
  if (::pclose(pipe) != 0) return failed();
  return output;
}

std::unique_ptr<Counter> counter_for(const Settings& settings) {
  if (const auto* http = std::get_if<HttpCount>(&settings.effects)) return std::make_unique<HttpCounter>(http->url);
  if (const auto* command = std::get_if<CommandCount>(&settings.effects))
    return std::make_unique<CommandCounter>(command->command);
  const auto& sql = std::get<SqlCount>(settings.effects);
  if (const auto* sqlite = std::get_if<sqlite::Options>(&sql.database))
    return std::make_unique<SqliteCounter>(sqlite->path, sql.sql);
  return std::make_unique<PostgresCounter>(std::get<postgres::Options>(sql.database).connection, sql.sql);
}

}  // namespace semel::prove
