// Records each payment of payments.jsonl once, in payments.db, however often this program runs or is killed.
#include <iostream>
#include <semel/semel.hpp>
#include <semel/sources/file.hpp>
#include <semel/stores/sqlite.hpp>

int main() try {
  const auto store = semel::sqlite::open({.path = "payments.db"}).value();
  store->migrate().value();
  const auto payments = semel::file::open({.path = "payments.jsonl"}).value();

  semel::Consumer consumer(*store);
  consumer.handle({.name = "record-payment", .key = semel::KeyExpression::body("/id")},
                  [](const semel::Message& payment, auto& work) {
                    work.execute("CREATE TABLE IF NOT EXISTS payments (id TEXT, cents INTEGER)");
                    work.execute("INSERT INTO payments VALUES ($1, $2)", payment.text("/id"),
                                 payment.integer("/cents"));
                  });
  consumer.consume(*payments);

  const auto done = consumer.run().value();
  std::cout << done.fresh << " recorded, " << done.replays << " seen before, " << done.set_aside << " set aside\n";
} catch (const semel::Failure& failure) {
  std::cerr << failure.what() << '\n';
  return 1;
}
