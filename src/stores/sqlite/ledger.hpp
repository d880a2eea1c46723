// Intents and their history as rows: the SQL of migrations/sqlite/0002, in one place.
#pragma once

#include <memory>
#include <optional>
#include <semel/store.hpp>
#include <string_view>
#include <vector>

#include "stores/sqlite/session.hpp"

namespace semel::sqlite {

/// The ledger of the session whose transaction this is.
std::unique_ptr<Ledger> make_ledger(OpenTransaction& transaction);

/// The intents of a record, by its digest, with their history: in the step that removes the record.
Result<void> delete_intents(Connection& connection, std::string_view digest);

Result<std::vector<Intent>> list_intents(Connection& connection, const IntentQuery& query);
Result<std::vector<IntentEvent>> list_events(Connection& connection, const IntentId& id);
Result<IntentCounts> count_intents(Connection& connection);

}  // namespace semel::sqlite
