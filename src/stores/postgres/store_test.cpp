// Promises of the PostgreSQL store beyond the conformance suite, on a live server.
#include <algorithm>
#include <semel/work.hpp>
#include <thread>

#include "stores/postgres/live_server.hpp"
#include "stores/postgres/rows.hpp"
#include "values/stored_form.hpp"

namespace semel::postgres {
namespace {

class PostgresStore : public LiveServer {
 protected:
  PostgresStore() : store_(migrated()) {
    table_ = in_schema("effects");
    bystander_.run("CREATE TABLE " + table_ + " (id text PRIMARY KEY, cents bigint, note bytea, at timestamptz)");
  }

  /// One whole transaction: claim, an effect, a record.
  Result<void> run_once(SqlSession& session, const std::string& key) {
    const std::vector ids{id(key)};
    const std::vector records{fresh(ids[0])};
    const std::vector<Value> values{key};
    if (auto begun = session.begin(); !begun) return begun;
    const auto found = session.claim(ids);
    if (!found) return found.error();
    if ((*found)[0]) return session.commit();
    session.mark(0);
    if (auto sent = session.execute("INSERT INTO " + table_ + " (id) VALUES ($1)", values); !sent) return sent;
    if (auto sent = session.record(records); !sent) return sent;
    return session.commit();
  }

  std::unique_ptr<Store> store_;
  std::string table_;
};

using SessionOnPostgres = PostgresStore;

TEST_F(PostgresStore, MakesOneEffectOfTwoDeliveries) {
  const auto session = session_of(*store_);
  ASSERT_TRUE(run_once(*session, "k").has_value());
  ASSERT_TRUE(run_once(*session, "k").has_value());
  EXPECT_EQ(count("effects"), "1");
  EXPECT_EQ(count("records"), "1");
  const auto record = store_->find_record(id("k")).value();
  ASSERT_TRUE(record.has_value());
  EXPECT_EQ(record->answer->body, "done");
  EXPECT_EQ(record->retention, std::chrono::hours(1));
}

}  // namespace
}  // namespace semel::postgres
