#include "stores/postgres/statement_kind.hpp"

#include <gtest/gtest.h>

namespace semel::postgres {
namespace {

TEST(UsersStatement, MayNotEndTheEnginesTransactionOrOutliveIt) {
  for (const char* sql : {"COMMIT",
                          "commit and chain",
                          "  \t\n\v\fCommit",
                          ";COMMIT",
                          " ; ; END",
                          "-- a comment\nROLLBACK",
                          "--\r COMMIT",
                          "/* a /* nested */ comment */ COMMIT",
                          "/**/COMMIT",
                          "BEGIN",
                          "START TRANSACTION",
                          "ABORT",
                          "ROLLBACK TO SAVEPOINT a",
                          "SAVEPOINT a",
                          "RELEASE a",
                          "PREPARE TRANSACTION 'x'",
                          "PREPARE p AS SELECT 1",
                          "DEALLOCATE ALL",
                          "DISCARD ALL",
                          "RESET ALL",
                          "LISTEN a",
                          "UNLISTEN *",
                          "LOAD 'a'",
                          "COPY t FROM STDIN",
                          "SET search_path TO a",
                          "SET SESSION lock_timeout = 0",
                          "SET ROLE a",
                          "set transaction isolation level serializable",
                          "SET LOCAL synchronous_commit TO off"})
    EXPECT_TRUE(reason_to_refuse(sql).has_value()) << sql;
}

TEST(UsersStatement, MayBeAnythingElse) {
  for (const char* sql :
       {"INSERT INTO t VALUES ($1)", "UPDATE commit SET a = 1", "/* COMMIT */ DELETE FROM t", "-- COMMIT\nSELECT 1",
        "WITH a AS (SELECT 1) SELECT * FROM a", "SELECT 'COMMIT'", "(SELECT 1)", "SET LOCAL lock_timeout = 1",
        "SET CONSTRAINTS ALL DEFERRED", "LOCK TABLE t", "committed", "CALL p()", "DO $$ BEGIN END $$", "", "/* open",
        "MERGE INTO t USING s ON true WHEN MATCHED THEN DO NOTHING"})
    EXPECT_FALSE(reason_to_refuse(sql).has_value()) << sql;
}

}  // namespace
}  // namespace semel::postgres
