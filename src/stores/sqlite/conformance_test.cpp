// The SQLite store against the contract of stores.
#include "stores/sqlite/test_database.hpp"
#include "testing/store_conformance_gtest.hpp"

SEMEL_STORE_CONFORMANCE(Sqlite, semel::sqlite::store_under_test);
