// Takes orders over HTTP, each with an Idempotency-Key, and records them in PostgreSQL. Ends on SIGTERM or SIGINT.
//
//   orders postgresql:///shop 8080
//   curl -i 127.0.0.1:8080/orders -H 'Idempotency-Key: order-1' -d '{"item":"tea","quantity":2}'
#include <csignal>
#include <iostream>
#include <semel/semel.hpp>
#include <semel/sources/http.hpp>
#include <semel/stores/postgres.hpp>
#include <thread>

namespace {

semel::Outcome record_order(const semel::Message& order, semel::Work<semel::SqlSession>& work) {
  const auto quantity = order.integer("/quantity");
  if (quantity < 1) return semel::Rejection{"nothing was ordered", {.status = 422, .body = "order at least one\n"}};
  const auto rows = work.query("INSERT INTO orders (item, quantity) VALUES ($1, $2) RETURNING id::text",
                               order.text("/item"), quantity);
  const auto id = std::get<std::string>(rows.rows.at(0).at(0));
  return semel::Answer{.status = 201, .headers = {{"Location", "/orders/" + id}}, .body = "order " + id + "\n"};
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 3) return std::cerr << "usage: orders CONNECTION PORT\n", 2;
  sigset_t signals;  // blocked before any thread is made, so that only the one below gets them
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  const auto store = semel::postgres::open({.connection = argv[1]}).value();
  store->migrate().value();
  const auto listener = semel::http::listen({.port = static_cast<unsigned short>(std::stoi(argv[2]))}).value();
  semel::Source* const orders =
      listener
          ->add(semel::http::Requests{
              .name = "orders", .path = "/orders", .principal = {.from = semel::http::Principal::From::none}})
          .value();

  semel::Consumer consumer(*store);
  consumer.handle({.name = "record-order", .key = semel::KeyExpression::attribute("Idempotency-Key")}, record_order);
  consumer.consume(*orders);
  listener->start().value();
  std::cout << "listening on port " << listener->port() << std::endl;

  std::thread([&] {
    int signal = 0;
    sigwait(&signals, &signal);
    consumer.stop();
  }).detach();
  std::cout << consumer.run().value().fresh << " orders recorded\n";
} catch (const semel::Failure& failure) {
  std::cerr << failure.what() << '\n';
  return 1;
}
