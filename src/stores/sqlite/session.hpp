// A lane's session on SQLite.
#pragma once

#include <memory>
#include <semel/sql.hpp>
#include <semel/stores/sqlite.hpp>

#include "stores/sqlite/connection.hpp"

namespace semel::sqlite {

std::unique_ptr<SqlSession> make_session(const Options& options, std::unique_ptr<Connection> connection);

}  // namespace semel::sqlite
