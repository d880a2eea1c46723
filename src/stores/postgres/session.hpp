// A lane's session on a PostgreSQL server.
#pragma once

#include <memory>
#include <semel/stores/postgres.hpp>

#include "stores/postgres/schema.hpp"

namespace semel::postgres {

/// Connects at the first `begin`. `options` and `statements` outlive it.
std::unique_ptr<SqlSession> make_session(const Options& options, const Statements& statements);

}  // namespace semel::postgres
