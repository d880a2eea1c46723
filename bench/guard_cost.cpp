// What a guard costs: messages a second through the whole engine with a guard, divided by the same without one.
//
// Guarded and unguarded runs take turns (A B A B …) on the same store in the same process, so that a slow moment of
// the machine meets both. "Unguarded" is the guard `natural`: the engine, the batches and the effect are the same, only
// the claim and the record are missing. Prints a table in Markdown. With --quick three pairs and fewer messages.

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <functional>
#include <random>
#include <semel/semel.hpp>
#include <semel/stores/postgres.hpp>
#include <semel/stores/sqlite.hpp>
#include <string>
#include <vector>

namespace {

using namespace semel;

/// Delivers bodies that were made before the clock starts.
class MemorySource : public Source {
 public:
  explicit MemorySource(const std::vector<std::string>& bodies) : bodies_(bodies) {}
  const std::string& name() const override { return name_; }
  SourceTraits traits() const override { return {.redelivers = true, .ends = true, .ordered = true}; }
  Result<std::unique_ptr<Receiver>> open(Doorbell&) override {
    return std::unique_ptr<Receiver>(std::make_unique<MemoryReceiver>(*this));
  }

 private:
  class MemoryReceiver : public Receiver {
   public:
    explicit MemoryReceiver(MemorySource& source) : source_(source) {}
    Result<Batch> receive(std::size_t count_max) override {
      Batch batch;
      for (; count_max > 0 && next_ < source_.bodies_.size(); --count_max, ++next_) {
        batch.deliveries.push_back({.receipt = Receipt(next_),
                                    .source = source_.name_,
                                    .body = source_.bodies_[next_],
                                    .problem = "",
                                    .attributes = {},
                                    .transport_id = "",
                                    .principal = "",
                                    .receive_count = {},
                                    .sent_at = {}});
      }
      batch.ended = next_ == source_.bodies_.size();
      return batch;
    }
    void settle(std::vector<Settlement>) override {}
    void stop() override { next_ = source_.bodies_.size(); }

   private:
    MemorySource& source_;
    std::size_t next_ = 0;
  };
  const std::vector<std::string>& bodies_;
  std::string name_ = "memory";
};

std::vector<std::string> make_bodies(std::size_t count, std::mt19937_64& random) {
  std::vector<std::string> bodies;
  for (std::size_t i = 0; i < count; ++i)
    bodies.push_back(fmt::format(R"({{"id":"{:016x}{:016x}","cents":{}}})", random(), random(), random() % 100'000));
  return bodies;
}

/// A store, and how its effect is written.
struct Contender {
  std::string name;
  std::string insert_one;
  std::string insert_set;
  std::function<double(Guard, bool set_based, std::size_t batch_max, const std::vector<std::string>&)>
      messages_per_second;
};

template <class StoreT>
double measure(StoreT& store, const Contender& contender, Guard guard, bool set_based, std::size_t batch_max,
               const std::vector<std::string>& bodies) {
  Consumer consumer(store, {.batch_max = batch_max, .lanes_per_source = 1});
  HandlerOptions options{.name = "bench", .key = KeyExpression::body("/id"), .guard = guard};
  if (set_based) {
    consumer.handle_batch(options, [&](std::span<const Message> messages, BatchWork<SqlSession>& work) {
      std::vector<std::vector<Value>> columns(2);
      for (const auto& message : messages) {
        columns[0].push_back(message.at("/id"));
        columns[1].push_back(message.at("/cents"));
      }
      work.execute_set(contender.insert_set, columns);
    });
  } else {
    consumer.handle(options, [&](const Message& message, Work<SqlSession>& work) {
      work.execute(contender.insert_one, message.text("/id"), message.integer("/cents"));
    });
  }
  MemorySource source(bodies);
  consumer.consume(source);
  const auto start = std::chrono::steady_clock::now();
  const auto summary = consumer.run().value();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  if (summary.fresh != bodies.size())
    throw std::runtime_error(fmt::format("only {} of {} fresh", summary.fresh, bodies.size()));
  return static_cast<double>(bodies.size()) / took.count();
}

void run_sql(Store& store, std::string_view sql) {
  auto session = store.open_session().value();
  session->begin().value();
  dynamic_cast<SqlSession&>(*session).execute(sql, {}).value();
  session->commit().value();
}

Contender sqlite_contender(const std::filesystem::path& folder) {
  Contender contender{"SQLite",
                      "INSERT INTO effects (ref, cents) VALUES ($1, $2)",
                      "INSERT INTO effects (ref, cents) VALUES ($1, $2)",
                      {}};
  contender.messages_per_second = [=](Guard guard, bool set_based, std::size_t batch_max, const auto& bodies) {
    const auto path = folder / "bench.db";
    for (const auto* suffix : {"", "-wal", "-shm"}) std::filesystem::remove(path.string() + suffix);
    auto store = sqlite::open({.path = path.string()}).value();
    store->migrate().value();
    run_sql(*store, "CREATE TABLE effects (id INTEGER PRIMARY KEY, ref TEXT, cents INTEGER)");
    return measure(*store, contender, guard, set_based, batch_max, bodies);
  };
  return contender;
}

Contender postgres_contender(const std::string& connection) {
  Contender contender{"PostgreSQL",
                      "INSERT INTO effects (ref, cents) VALUES ($1, $2)",
                      "INSERT INTO effects (ref, cents) SELECT * FROM unnest($1::text[], $2::bigint[])",
                      {}};
  contender.messages_per_second = [=](Guard guard, bool set_based, std::size_t batch_max, const auto& bodies) {
    auto store = postgres::open({.connection = connection}).value();
    store->migrate().value();
    run_sql(*store, "DROP TABLE IF EXISTS effects");
    run_sql(*store,
            "CREATE TABLE effects (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, ref text, cents bigint)");
    run_sql(*store, "TRUNCATE semel.records");
    return measure(*store, contender, guard, set_based, batch_max, bodies);
  };
  return contender;
}

struct Ratio {
  double median, min, max, guarded, unguarded;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

Ratio compare(const Contender& contender, bool set_based, std::size_t batch_max, std::size_t messages, int pairs) {
  std::mt19937_64 random(1);
  std::vector<double> ratios, guarded, unguarded;
  for (int pair = -1; pair < pairs; ++pair) {  // the first pair warms up
    const auto bodies = make_bodies(messages, random);
    const auto a = contender.messages_per_second(Guard::record, set_based, batch_max, bodies);
    const auto b = contender.messages_per_second(Guard::natural, set_based, batch_max, bodies);
    if (pair < 0) continue;
    guarded.push_back(a);
    unguarded.push_back(b);
    ratios.push_back(a / b);
  }
  const auto [low, high] = std::minmax_element(ratios.begin(), ratios.end());
  return {median(ratios), *low, *high, median(guarded), median(unguarded)};
}

void print_machine() {
  utsname machine{};
  uname(&machine);
  fmt::print(
      "Machine: {} {}, {} cores. One lane; durable settings (SQLite synchronous=FULL in WAL mode, PostgreSQL "
      "defaults); "
      "random 32-character keys.\n\n",
      machine.sysname, machine.machine, sysconf(_SC_NPROCESSORS_ONLN));
}

}  // namespace

int main(int argc, char** argv) {
  const bool quick = argc > 1 && std::strcmp(argv[1], "--quick") == 0;
  const auto folder = std::filesystem::temp_directory_path() / fmt::format("semel-bench-{}", getpid());
  std::filesystem::create_directories(folder);
  std::vector<Contender> contenders{sqlite_contender(folder)};
  if (const char* connection = std::getenv("SEMEL_TEST_POSTGRES")) contenders.push_back(postgres_contender(connection));
  const std::pair<std::size_t, std::size_t> batches[] = {{1, 400}, {10, 3'000}, {100, 20'000}, {1'000, 40'000}};
  const int pairs = quick ? 3 : 7;

  print_machine();
  fmt::print(
      "| store | handler | batch limit | guarded ÷ unguarded: median (min to max) | guarded/s | unguarded/s "
      "|\n|---|---|---|---|---|---|\n");
  for (const auto& contender : contenders) {
    for (const bool set_based : {false, true}) {
      for (const auto& [batch_max, messages] : batches) {
        const auto ratio = compare(contender, set_based, batch_max, quick ? messages / 4 : messages, pairs);
        fmt::print("| {} | {} | {} | {:.2f} ({:.2f} to {:.2f}) | {:.0f} | {:.0f} |\n", contender.name,
                   set_based ? "batch" : "per message", batch_max, ratio.median, ratio.min, ratio.max, ratio.guarded,
                   ratio.unguarded);
        std::fflush(stdout);
      }
    }
  }
  std::filesystem::remove_all(folder);
}
