// Intents and their history as rows: the statements on them (migrations/postgres/0002), and what reads them back.
#pragma once

#include <memory>
#include <semel/store.hpp>
#include <string>
#include <vector>

#include "stores/postgres/schema.hpp"
#include "stores/postgres/session.hpp"

namespace semel::postgres {

/// The ledger of the session whose transaction this is. `statements` outlive it.
std::unique_ptr<Ledger> make_ledger(OpenTransaction& transaction, const LedgerStatements& statements);

/// Each in a transaction of its own.
Result<std::vector<Intent>> list_intents(Connection& connection, const LedgerStatements& statements,
                                         const IntentQuery& query);
Result<std::vector<IntentEvent>> list_events(Connection& connection, const LedgerStatements& statements,
                                             const IntentId& id);
Result<IntentCounts> count_intents(Connection& connection, const LedgerStatements& statements);

}  // namespace semel::postgres
