// The store contract as a suite: one function for each promise in <semel/store.hpp>, for whoever writes an adapter.
// It needs no test framework; link semel_testing.
//
//   for (const Promise& promise : store_promises()) promise.hold(my_store);   // throws Broken
#pragma once

#include <functional>
#include <memory>
#include <semel/store.hpp>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

namespace semel::testing {

/// A promise that does not hold, said in a sentence.
class Broken : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// One database of the store under test, with nothing in it: no schema, no rows. It goes, with its data, when this
/// does. The suite makes tables of its own in it, in plain SQL. `open` may be called from any thread.
class TestDatabase {
 public:
  virtual ~TestDatabase() = default;

  /// Another handle on this database, as another process would have it. Its lock timeout is a second or less.
  virtual std::unique_ptr<Store> open() = 0;

  /// A handle with settings that could lose an acknowledged commit, either allowed by name or not; null where the
  /// store has no such settings.
  virtual std::unique_ptr<Store> open_unsafe(bool allowed_by_name) = 0;

  /// The table of applied migrations, as SQL names it; it has a column `version`, and no other that needs a value.
  virtual std::string migrations_table() const = 0;

  /// Cuts every open connection, as a network or a restart would. False where there is none to cut.
  virtual bool cut_connections() { return false; }
};

/// How the suite gets at a store whose sessions are SqlSessions.
struct StoreUnderTest {
  std::function<std::unique_ptr<TestDatabase>()> make_database;
};

/// One function of the suite. `number` is the promise's in <semel/store.hpp>, `name` an identifier that says it.
struct Promise {
  int number;
  std::string_view name;
  void (*hold)(const StoreUnderTest& store);
};

/// All of them, by number.
std::span<const Promise> store_promises();

}  // namespace semel::testing
