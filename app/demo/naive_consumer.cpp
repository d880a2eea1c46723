#include "demo/naive_consumer.hpp"

#include <fstream>
#include <semel/document.hpp>
#include <semel/stores/sqlite.hpp>
#include <semel/work.hpp>
#include <vector>

#include "demo/ledger.hpp"
#include "demo/step_gate.hpp"

namespace semel::demo {

namespace {

struct Payment {
  std::string id;
  long long cents;
};

std::vector<Payment> read_payments(const std::string& path) {
  std::vector<Payment> payments;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const auto document = Document::parse(line).value();
    payments.push_back({document.at("/payment_id").value().text(), document.at("/cents").value().integer().value()});
  }
  return payments;
}

bool was_done(SqlSession& session, const Payment& payment) {
  session.begin().value();
  const Value id[] = {to_value(payment.id)};
  const bool found = !session.query("SELECT 1 FROM done WHERE payment_id = $1", id).value().rows.empty();
  session.commit().value();
  return found;
}

void remember_done(SqlSession& session, const Payment& payment) {
  session.begin().value();
  const Value id[] = {to_value(payment.id)};
  session.execute("INSERT INTO done (payment_id) VALUES ($1) ON CONFLICT DO NOTHING", id).value();
  session.commit().value();
}

}  // namespace

int run_naive_consumer(const NaiveConsumer& consumer) {
  auto store = sqlite::open({.path = consumer.database}).value();
  auto opened = store->open_session().value();
  auto& session = static_cast<SqlSession&>(*opened);
  session.begin().value();
  session.execute("CREATE TABLE IF NOT EXISTS done (payment_id TEXT PRIMARY KEY)", {}).value();
  session.commit().value();
  auto ledger = LedgerClient::connect(consumer.ledger_socket).value();

  std::vector<Payment> due;
  for (const auto& payment : read_payments(consumer.messages))
    if (consumer.version == 1 || !was_done(session, payment)) due.push_back(payment);
  reach_step("looked-up");
  for (const auto& payment : due) ledger.charge(payment.id, payment.cents).value();
  reach_step("charged");
  for (const auto& payment : due) remember_done(session, payment);
  reach_step("recorded");
  return 0;
}

}  // namespace semel::demo
