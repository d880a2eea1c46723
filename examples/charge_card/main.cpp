// Charges the card of each order in orders.jsonl once, and writes into shop.db what came of it; the tables are in
// shop.sql. However often this program runs or is killed, and whatever the bank answers.
//
//   charge_card http://127.0.0.1:9100
#include <cstdlib>
#include <iomanip>
#include <iostream>
#include <semel/performers/http.hpp>
#include <semel/semel.hpp>
#include <semel/sources/file.hpp>
#include <semel/stores/sqlite.hpp>
#include <sstream>

int main(int argc, char** argv) try {
  if (argc != 2) return std::cerr << "usage: charge_card URL\n", 2;
  const std::string bank_url = argv[1];
  const char* bank_key = std::getenv("BANK_KEY");
  const auto store = semel::sqlite::open({.path = "shop.db"}).value();
  store->migrate().value();
  const auto orders = semel::file::open({.path = "orders.jsonl"}).value();

  semel::http::ProviderProfile bank{.name = "bank"};  // the key goes into the header Idempotency-Key
  bank.policy = {.kind = semel::ProviderPolicy::Kind::idempotent, .key_lifetime = std::chrono::hours(24)};
  bank.answer = {.status = "/status", .succeeded = {"succeeded"}, .failed = {"failed"}};
  const auto performer =
      semel::http::http_performer(
          {.profile = bank, .headers = {{"Authorization", std::string("Bearer ") + (bank_key ? bank_key : "")}}})
          .value();

  semel::Consumer consumer(*store);
  consumer.handle({.name = "charge-card", .key = semel::KeyExpression::body("/id")}, [&](const semel::Message& order,
                                                                                         auto& work) {
    work.execute("INSERT INTO orders (id, cents, state) VALUES ($1, $2, 'open')", order.text("/id"),
                 order.integer("/cents"));
    std::ostringstream body;
    body << R"({"amount":)" << order.integer("/cents") << R"(,"currency":"EUR","reference":)"
         << std::quoted(order.text("/id")) << '}';
    const semel::http::StoredRequest charge{
        .url = bank_url + "/charges", .headers = {{"Content-Type", "application/json"}}, .body = body.str()};
    work.intend(
        {.effect = "charge", .request = semel::http::encode_request(charge).value(), .reference = order.text("/id")});
  });
  consumer.perform({.name = "charge", .provider = "bank", .policy = bank.policy}, *performer);
  consumer.settle("charge", [](const semel::Settled& charge, auto& work) {
    work.execute("UPDATE orders SET state = $1, charge = $2 WHERE id = $3", charge.succeeded() ? "paid" : "failed",
                 charge.outcome().reference, charge.message().text("/id"));
  });
  consumer.consume(*orders);
  const auto done = consumer.run().value();
  std::cout << done.fresh << " orders, " << done.replays << " seen before\n";
} catch (const semel::Failure& failure) {
  std::cerr << failure.what() << '\n';
  return 1;
}
