// Promises 1, 6, 7 and 8: transactions, what their errors say, and what they leave behind.
#include <array>

#include "testing/store_scene.hpp"

namespace semel::testing {
namespace {

DeadLetter letter_of(std::string id) {
  DeadLetter letter;
  letter.id = std::move(id);
  letter.body = "body";
  return letter;
}

/// One of everything a transaction can hold.
void write_all(SqlSession& session, const std::string& name) {
  const auto record = record_of(name);
  const auto letter = letter_of(name);
  require(!claim(session, id_of(record)), "claim found a record that was never committed");
  must(add_effect(session, name), "execute");
  must(session.record({&record, 1}), "record");
  must(session.set_aside({&letter, 1}), "set_aside");
}

void require_all(Scene& scene, const std::string& name, bool there) {
  const std::string be = there ? " was not there after a commit" : " was left behind by a transaction without commit";
  require(scene.effects(name) == (there ? 1 : 0), "an effect" + be);
  require(scene.find(id_of(name)).has_value() == there, "a record" + be);
  const auto letter = must(scene.database().open()->dead_letter(name), "dead_letter");
  require(letter.has_value() == there, "a dead letter" + be);
}

void commits_all(const StoreUnderTest& store) {
  Scene scene(store);
  const auto session = scene.session();
  begin(*session);
  write_all(*session, "a");
  commit(*session);
  require_all(scene, "a", true);
  begin(*session);
  write_all(*session, "b");
  commit(*session);
  require_all(scene, "b", true);
}

void hides_until_commit(const StoreUnderTest& store) {
  Scene scene(store);
  const auto session = scene.session();
  begin(*session);
  write_all(*session, "a");
  must(session->synchronise(), "synchronise");
  require(!scene.find(id_of("a")), "a record was seen from outside before its commit");
  commit(*session);
  require_all(scene, "a", true);
}

void connects_again(const StoreUnderTest& store) {
  Scene scene(store);
  const auto session = scene.session();
  begin(*session);
  write_all(*session, "a");
  must(session->synchronise(), "synchronise");
  if (scene.database().cut_connections()) {
    const auto error = must_fail(session->commit(), "a commit on a connection that was cut");
    require(error.remedy == Remedy::retry_later || error.remedy == Remedy::reread, "a cut connection may come back");
  }
  session->rollback();
  require_all(scene, "a", false);
  begin(*session);
  write_all(*session, "a");
  commit(*session);
  require_all(scene, "a", true);
}

void writes_go_on_past_a_row_that_is_there(const StoreUnderTest& store) {
  Scene scene(store);
  const auto session = scene.session();
  begin(*session);
  must(add_once(*session, "there"), "execute");
  commit(*session);
  begin(*session);
  for (const std::string name : {"before", "there", "after"})
    must(session->execute("INSERT INTO once (name) VALUES ($1) ON CONFLICT DO NOTHING",
                          std::array{Value{std::in_place_type<std::string>, name}}),
         "ON CONFLICT DO NOTHING");
  commit(*session);
  begin(*session);
  const auto rows = must(session->query("SELECT count(*) FROM once", {}), "query");
  require(std::get<std::int64_t>(rows.rows.at(0).at(0)) == 3, "writes after a row that was there already were dropped");
}

void a_failed_write_of_several_leaves_none(const StoreUnderTest& store) {
  Scene scene(store);
  const auto session = scene.session();
  begin(*session);
  must(add_effect(*session, "a"), "execute");
  must(add_once(*session, "twice"), "execute");
  auto failed = add_once(*session, "twice");
  if (failed) failed = session->synchronise();
  const auto error = must_fail(failed, "a second row under one primary key");
  require(error.code == ErrorCode::constraint_violated, "a violated constraint has the code constraint_violated");
  require(error.remedy == Remedy::fix_call && error.certainty == Certainty::not_applied,
          "a violated constraint is a call to fix, and not applied");
  (void)add_effect(*session, "a");
  must_fail(session->commit(), "commit after an error");
  session->rollback();
  require(scene.effects("a") == 0, "a transaction in which a write failed left an effect behind");
}

void placeholders_in_any_order(const StoreUnderTest& store) {
  Scene scene(store);
  const auto session = scene.session();
  begin(*session);
  const std::array values{Value{std::in_place_type<std::int64_t>, 7}, Value{std::in_place_type<std::string>, "a"}};
  const auto count =
      must(session->execute_counted("INSERT INTO effects (name, amount) VALUES ($2, $1)", values), "$2, $1");
  require(count == 1, "execute_counted gave another count than the rows it changed");
  const auto rows = must(
      session->query("SELECT name, amount FROM effects WHERE amount = $1 AND name = $2 AND name <> 'b' AND $2 = name",
                     values),
      "a placeholder used twice");
  require(rows.rows.size() == 1, "a placeholder that is used twice has one value");
  require(rows.rows[0][0] == values[1] && rows.rows[0][1] == values[0], "what was written is read back with its type");
  require(rows.columns == std::vector<std::string>{"name", "amount"}, "a query names its columns");
}

void a_success_is_durable(const StoreUnderTest& store) {
  Scene scene(store);
  {
    const auto handle = scene.database().open();
    const auto session = open_sql_session(*handle);
    begin(*session);
    write_all(*session, "a");
    commit(*session);
  }
  require_all(scene, "a", true);
}

void a_certain_failure_left_nothing(const StoreUnderTest& store) {
  Scene scene(store);
  const auto session = scene.session();
  begin(*session);
  write_all(*session, "a");
  auto failed = session->execute("INSERT INTO no_such_table VALUES (1)", {});
  if (failed) failed = session->synchronise();
  must_fail(failed, "a write to a table that is not there");
  const auto error = must_fail(session->commit(), "commit after an error");
  require(error.certainty == Certainty::not_applied, "a commit that never reached the store is not applied");
  session->rollback();
  require_all(scene, "a", false);
}

void rollback_undoes_all(const StoreUnderTest& store) {
  Scene scene(store);
  const auto session = scene.session();
  session->rollback();
  begin(*session);
  write_all(*session, "a");
  must(session->synchronise(), "synchronise");
  session->rollback();
  session->rollback();
  require_all(scene, "a", false);
  begin(*session);
  require(!claim(*session, id_of("a")), "claim found a record that was rolled back");
  commit(*session);
}

void a_destroyed_session_leaves_nothing(const StoreUnderTest& store) {
  Scene scene(store);
  {
    const auto session = scene.session();
    begin(*session);
    write_all(*session, "a");
    must(session->synchronise(), "synchronise");
  }
  require_all(scene, "a", false);
  const auto next = scene.session();
  begin(*next);
  write_all(*next, "a");
  commit(*next);
  require_all(scene, "a", true);
}

/// Ways to fail inside a transaction, each with what it is.
struct Mishap {
  const char* what;
  Result<void> (*happen)(SqlSession& session);
};

constexpr std::array mishaps{
    Mishap{"SQL that is none", [](SqlSession& s) { return s.execute("INSERT INTO", {}); }},
    Mishap{"a table that is not there", [](SqlSession& s) { return s.execute("DELETE FROM no_such_table", {}); }},
    Mishap{"a parameter too few", [](SqlSession& s) { return s.execute("DELETE FROM once WHERE name = $1", {}); }},
    Mishap{"a NULL where none may be",
           [](SqlSession& s) { return s.execute("INSERT INTO effects (name, amount) VALUES ('a', NULL)", {}); }},
    Mishap{"a primary key that is there",
           [](SqlSession& s) {
             const auto first = add_once(s, "twice");
             return first ? add_once(s, "twice") : first;
           }},
    Mishap{"a query on a table that is not there",
           [](SqlSession& s) {
             const auto rows = s.query("SELECT * FROM no_such_table", {});
             return rows ? Result<void>() : Result<void>(rows.error());
           }},
    Mishap{"a COMMIT of the handler's own", [](SqlSession& s) { return s.execute("COMMIT", {}); }},
    Mishap{"a ROLLBACK of the handler's own", [](SqlSession& s) { return s.execute("ROLLBACK", {}); }},
    Mishap{"a record that is there", [](SqlSession& s) { return record_now(s, record_of("taken")); }},
};

void usable_after_errors(const StoreUnderTest& store) {
  Scene scene(store);
  scene.commit(record_of("taken"));
  const auto session = scene.session();
  for (const Mishap& mishap : mishaps) {
    const std::string what = mishap.what;
    begin(*session);
    must(add_effect(*session, "lost"), "execute");
    auto failed = mishap.happen(*session);
    if (failed) failed = session->synchronise();
    require(must_fail(failed, what).certainty == Certainty::not_applied,
            what + ": an error before commit is not applied");
    require(!add_effect(*session, "lost") || !session->synchronise(), what + ": a write after it went through");
    must_fail(session->commit(), "commit after " + what);
    session->rollback();
    begin(*session);
    must(add_effect(*session, what), "a write in the transaction after " + what);
    commit(*session);
    require(scene.effects("lost") == 0, what + ": an effect was kept that should have gone");
    require(scene.effects(what) == 1, what + ": the next transaction's effect is not there");
  }
}

void a_failed_write_names_its_mark(const StoreUnderTest& store) {
  Scene scene(store);
  const auto session = scene.session();
  begin(*session);
  Result<void> failed;
  for (std::size_t number = 0; number < 5 && failed; ++number) {
    session->mark(number);
    failed = add_once(*session, number == 3 ? "name-1" : "name-" + std::to_string(number));
  }
  if (failed) failed = session->synchronise();
  must_fail(failed, "a primary key that is there");
  require(session->failed_mark() == 3, "a failed write is not attributed to the mark before it");
  session->rollback();
}

void a_failed_read_names_its_mark(const StoreUnderTest& store) {
  Scene scene(store);
  const auto session = scene.session();
  begin(*session);
  session->mark(0);
  must(add_effect(*session, "a"), "execute");
  session->mark(1);
  must_fail(session->query("SELECT * FROM no_such_table", {}), "a query on a table that is not there");
  require(session->failed_mark() == 1, "a failed query is not attributed to the mark before it");
  session->rollback();
  begin(*session);
  session->mark(4);
  must_fail(session->execute_counted("DELETE FROM no_such_table", {}), "a write to a table that is not there");
  require(session->failed_mark() == 4, "a failed counted write is not attributed to the mark before it");
  session->rollback();
}

void no_failure_has_no_mark(const StoreUnderTest& store) {
  Scene scene(store);
  const auto session = scene.session();
  begin(*session);
  session->mark(7);
  must_fail(session->query("SELECT * FROM no_such_table", {}), "a query on a table that is not there");
  session->rollback();
  begin(*session);
  session->mark(1);
  must(add_effect(*session, "a"), "execute");
  must(session->synchronise(), "synchronise");
  require(!session->failed_mark(), "a transaction in which nothing failed has a failed mark");
  commit(*session);
}

constexpr std::array promises{
    Promise{1, "everything_up_to_commit_is_there_after_it", commits_all},
    Promise{1, "nothing_is_seen_from_outside_before_commit", hides_until_commit},
    Promise{1, "begin_connects_again", connects_again},
    Promise{1, "writes_go_on_past_a_row_that_is_there", writes_go_on_past_a_row_that_is_there},
    Promise{1, "a_failed_write_of_several_leaves_none", a_failed_write_of_several_leaves_none},
    Promise{1, "placeholders_may_come_in_any_order_and_twice", placeholders_in_any_order},
    Promise{6, "a_committed_transaction_is_durable", a_success_is_durable},
    Promise{6, "a_commit_that_cannot_have_happened_is_not_applied", a_certain_failure_left_nothing},
    Promise{7, "rollback_undoes_effects_records_and_letters", rollback_undoes_all},
    Promise{7, "a_destroyed_session_leaves_nothing", a_destroyed_session_leaves_nothing},
    Promise{7, "a_session_is_usable_after_every_kind_of_error", usable_after_errors},
    Promise{8, "a_failed_write_names_its_mark", a_failed_write_names_its_mark},
    Promise{8, "a_failed_read_names_its_mark", a_failed_read_names_its_mark},
    Promise{8, "no_failure_has_no_mark", no_failure_has_no_mark},
};

}  // namespace

std::span<const Promise> transaction_promises() { return promises; }

}  // namespace semel::testing
