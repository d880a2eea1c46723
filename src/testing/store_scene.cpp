#include "testing/store_scene.hpp"

namespace semel::testing {
namespace {

Key key_of(std::string bytes) { return must(Key::from_bytes(std::move(bytes)), "making a key"); }

std::vector<Value> one(const std::string& text) { return {Value{std::in_place_type<std::string>, text}}; }

}  // namespace

void require(bool holds, std::string_view sentence) {
  if (!holds) throw Broken(std::string(sentence));
}

Record record_of(std::string key) {
  Record record{.scope = {"h", ""}, .key = key_of(std::move(key))};
  record.fingerprint = Fingerprint::from_bytes("\x01" + std::string(32, 'f'));
  record.answer = Answer{.status = 201, .headers = {{"location", "/1"}}, .body = "done"};
  record.source = "source";
  record.transport_id = "transport-1";
  record.retention = std::chrono::hours(1);
  return record;
}

RecordId id_of(const Record& record) { return {record.scope, record.key}; }
RecordId id_of(std::string key) { return {{"h", ""}, key_of(std::move(key))}; }

Scene::Scene(const StoreUnderTest& store) : database_(store.make_database()), store_(database_->open()) {
  must(store_->migrate(), "migrate");
  const auto session = this->session();
  begin(*session);
  must(session->execute("CREATE TABLE effects (name varchar(100) NOT NULL, amount integer NOT NULL)", {}), "CREATE");
  must(session->execute("CREATE TABLE once (name varchar(100) PRIMARY KEY)", {}), "CREATE TABLE");
  testing::commit(*session);
}

std::unique_ptr<SqlSession> Scene::session() { return open_sql_session(*store_); }

std::int64_t Scene::effects(const std::string& name) {
  const auto store = database_->open();
  const auto session = open_sql_session(*store);
  begin(*session);
  const auto rows = must(session->query("SELECT count(*) FROM effects WHERE name = $1", one(name)), "counting");
  session->rollback();
  return std::get<std::int64_t>(rows.rows.at(0).at(0));
}

std::optional<Record> Scene::find(const RecordId& id) {
  return must(database_->open()->find_record(id), "find_record");
}

void Scene::commit(const Record& record) {
  const auto session = this->session();
  begin(*session);
  must(record_now(*session, record), "record");
  testing::commit(*session);
}

void Scene::commit(const DeadLetter& letter) {
  const auto session = this->session();
  begin(*session);
  must(session->set_aside({&letter, 1}), "set_aside");
  testing::commit(*session);
}

std::unique_ptr<SqlSession> open_sql_session(Store& store) {
  auto session = must(store.open_session(), "open_session");
  auto* sql = dynamic_cast<SqlSession*>(session.get());
  require(sql != nullptr, "the session is no SqlSession");
  session.release();
  return std::unique_ptr<SqlSession>(sql);
}

void begin(Session& session) { must(session.begin(), "begin"); }
void commit(Session& session) { must(session.commit(), "commit"); }

std::optional<Record> claim(Session& session, const RecordId& id) {
  auto found = must(session.claim({&id, 1}), "claim");
  require(found.size() == 1, "claim gave another number of answers than it was asked for");
  return std::move(found.front());
}

Result<void> add_effect(SqlSession& session, const std::string& name) {
  return session.execute("INSERT INTO effects (name, amount) VALUES ($1, 1)", one(name));
}

Result<void> add_once(SqlSession& session, const std::string& name) {
  return session.execute("INSERT INTO once (name) VALUES ($1)", one(name));
}

Result<void> record_now(Session& session, const Record& record) {
  if (auto sent = session.record({&record, 1}); !sent) return sent;
  return session.synchronise();
}

Result<void> apply_blindly(SqlSession& session, const std::string& effect, const Record& record) {
  const auto steps = [&]() -> Result<void> {
    if (auto begun = session.begin(); !begun) return begun;
    if (auto added = add_effect(session, effect); !added) return added;
    if (auto recorded = session.record({&record, 1}); !recorded) return recorded;
    return session.commit();
  };
  auto done = steps();
  if (!done) session.rollback();
  return done;
}

Record open_record_of(std::string key) {
  auto record = record_of(std::move(key));
  record.state = RecordState::in_progress;
  return record;
}

Intent intent_of(const std::string& key, int ordinal) {
  const auto record = id_of(key);
  Intent intent{.id = derive_intent_id(record, std::nullopt, ordinal), .record = record, .effect = "charge"};
  intent.step = ordinal;
  return intent;
}

OutboxMessage message_of(const std::string& key, int ordinal) {
  const auto record = id_of(key);
  return {.id = derive_publication_id(record, "", ordinal),
          .record = record,
          .publication = {.to = "mails", .body = key + "-" + std::to_string(ordinal)}};
}

IntentChange change_of(const Intent& intent, IntentStatus to) {
  return {
      .id = intent.id, .expected_attempt = intent.status.attempt, .expected_states = {intent.status.state}, .to = to};
}

bool change(Session& session, const IntentChange& change) {
  const auto applied = must(session.ledger().change({&change, 1}), "change");
  require(applied.size() == 1, "change gave another number of answers than it got changes");
  return applied.front();
}

std::optional<RecordState> refresh(Session& session, const std::string& key) {
  const RecordUpdate update{.id = id_of(key), .retention = std::chrono::hours(1)};
  const auto states = must(session.ledger().refresh({&update, 1}), "refresh");
  require(states.size() == 1, "refresh gave another number of answers than it got updates");
  return states.front();
}

}  // namespace semel::testing
