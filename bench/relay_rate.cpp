// What a second relay is worth: publications a second out of one PostgreSQL with two consumers that relay, divided by
// the same with one. The takes of an outbox go one after the other (order within a key needs that); the sends and their
// confirmations go side by side. Runs take turns (A B A B …). Prints a table in Markdown. --quick: three pairs.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <semel/semel.hpp>
#include <semel/stores/postgres.hpp>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace semel;

struct Setting {
  int messages;
  int keys;  ///< order keys; 0: no order
};

class Bench {
 public:
  explicit Bench(std::string connection) : connection_(std::move(connection)) {
    schema_ = "relay_rate_" + std::to_string(getpid());
    store_ = open();
    store_->migrate().value();
  }
  ~Bench() {
    auto session = store_->open_session().value();
    session->begin().value();
    dynamic_cast<SqlSession&>(*session).execute("DROP SCHEMA " + schema_ + " CASCADE", {}).value();
    session->commit().value();
  }

  /// Publications a second, from the first take to the empty outbox.
  double run(int relays, const Setting& setting) {
    fill(setting);
    std::vector<std::thread> threads;
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < relays; ++i) threads.emplace_back([this] { relay(); });
    for (auto& thread : threads) thread.join();
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    const auto left = store_->outbox_counts().value().waiting;
    if (left != 0) throw std::runtime_error(fmt::format("{} publications are still there", left));
    return setting.messages / time.count();
  }

 private:
  std::unique_ptr<postgres::Store> open() const {
    return postgres::open({.connection = connection_, .schema = schema_}).value();
  }

  void fill(const Setting& setting) {
    auto session = store_->open_session().value();
    session->begin().value();
    std::vector<OutboxMessage> messages;
    const RecordId record{{"bench", ""}, Key::from_bytes("k" + std::to_string(++round_)).value()};
    for (int i = 0; i < setting.messages; ++i) {
      const auto order_key = setting.keys == 0 ? std::string() : "key " + std::to_string(i % setting.keys);
      messages.push_back({.id = derive_publication_id(record, "", i),
                          .record = record,
                          .publication = {.to = "events", .body = R"({"paid":1})", .order_key = order_key}});
    }
    session->outbox().publish(messages).value();
    session->commit().value();
  }

  void relay() const {
    const auto store = open();
    const auto performer =
        later_performer([](const Call&, Reply reply) { std::move(reply).report({.verdict = CallVerdict::succeeded}); });
    Consumer consumer(*store);
    consumer.handle({.name = "none", .key = KeyExpression::transport_id()}, [](const Message&, auto&) {});
    consumer.publish_to({.name = "events", .sends_max = 256}, *performer);
    consumer.run().value();
  }

  std::string connection_;
  std::string schema_;
  std::unique_ptr<postgres::Store> store_;
  int round_ = 0;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void measure(Bench& bench, const Setting& setting, int pairs) {
  std::vector<double> ratios;
  std::vector<double> one;
  std::vector<double> two;
  bench.run(1, setting);  // warm
  for (int i = 0; i < pairs; ++i) {
    one.push_back(bench.run(1, setting));
    two.push_back(bench.run(2, setting));
    ratios.push_back(two.back() / one.back());
  }
  const auto [lowest, highest] = std::minmax_element(ratios.begin(), ratios.end());
  fmt::print("| {} | {:.2f} ({:.2f} to {:.2f}) | {:.0f} | {:.0f} |\n",
             setting.keys == 0 ? "none" : std::to_string(setting.keys) + " keys", median(ratios), *lowest, *highest,
             median(two), median(one));
}

}  // namespace

int main(int argc, char** argv) {
  const bool quick = argc > 1 && std::strcmp(argv[1], "--quick") == 0;
  const char* connection = std::getenv("SEMEL_TEST_POSTGRES");
  if (!connection) {
    fmt::print(stderr, "SEMEL_TEST_POSTGRES is not set: run this under script/with-postgres\n");
    return 1;
  }
  Bench bench(connection);
  fmt::print("| order | two relays ÷ one: median (min to max) | two: publications/s | one: publications/s |\n");
  fmt::print("|---|---|---|---|\n");
  const int messages = quick ? 5'000 : 20'000;
  for (const int keys : {0, 100, 1'000}) measure(bench, {messages, keys}, quick ? 3 : 7);
}
