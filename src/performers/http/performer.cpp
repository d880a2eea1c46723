// The performer: each call is a flight of one request, and of questions after it where the answer asks for them.
#include <map>
#include <semel/performers/http.hpp>

#include "performers/http/compose.hpp"
#include "performers/http/judge.hpp"

namespace semel::http {

namespace {

using SteadyTime = std::chrono::steady_clock::time_point;

constexpr int pages_max = 100;
/// What a question after the call is given at least.
constexpr std::chrono::milliseconds patience_min{1'000};

struct Flight {
  Call call;
  StoredRequest request;
  Body asked;
  SteadyTime deadline;
  /// The lookup that is under way; null while the call itself is.
  const Lookup* lookup = nullptr;
  std::string id{};  ///< what is looked up by id
  int page = 1;
  net::Outgoing question{};  ///< of the first page
  /// What is said where a question after a call finds nothing.
  std::optional<CallReport> otherwise{};
};

class HttpPerformer final : public Performer {
 public:
  explicit HttpPerformer(PerformerOptions options) : options_(std::move(options)) {}

  Result<void> prepare() const;
  void open(Doorbell& bell) override;
  void close() override;
  std::size_t room() const override { return options_.calls_max - std::min(options_.calls_max, under_way()); }
  void begin(Call call) override {
    begin_flight(std::move(call));
    if (!ended_.empty()) bell_->ring();  // it ended before it left
  }
  std::vector<Performed> collect() override;

 private:
  void begin_flight(Call call);
  std::size_t under_way() const { return flights_.size() + ended_.size(); }
  void begin_call(Flight flight);
  void begin_lookup(Flight flight);
  void send(Flight flight, net::Outgoing outgoing);
  void end(const Flight& flight, CallReport report);
  void take_answer(Flight flight, const net::Returned& returned);
  void take_page(Flight flight, const net::Returned& returned);
  Attributes own_headers(const Call& call) const;

  const PerformerOptions options_;
  std::unique_ptr<net::HttpClient> client_;
  Doorbell* bell_ = nullptr;
  std::string problem_{};  ///< why nothing can be sent
  std::uint64_t next_token_ = 1;
  std::map<std::uint64_t, Flight> flights_{};
  std::vector<Performed> ended_{};
};

net::ClientOptions client_options(const PerformerOptions& options) {
  return {.ca_file = options.ca_file,
          .proxy = options.proxy,
          .connect_timeout = options.connect_timeout,
          .body_bytes_max = options.response_bytes_max};
}

Result<void> HttpPerformer::prepare() const {
  const auto refuse = [](const std::string& problem) { return fix_call(ErrorCode::config_bad_value, problem); };
  const auto& key = options_.profile.key;
  if (key.in == KeyCarrier::In::header && options_.headers.count(key.name) > 0)
    return refuse("the header " + key.name + " carries the idempotency key, which is the intent's");
  const auto problem = net::outgoing_problem({.url = "http://any/", .headers = options_.headers});
  if (!problem.empty()) return refuse(problem);
  for (const auto& rule : options_.profile.rules)
    if (const auto wrong = json::pointer_problem(rule.pointer); !wrong.empty())
      return refuse("\"" + rule.pointer + "\" is no JSON Pointer: " + std::string(wrong));
  // Else no element would count, and what was done would be taken for not done.
  const auto& lookup = options_.profile.by_reference;
  if (lookup && lookup->is_list && lookup->shape.reference.empty())
    return refuse("a lookup whose answer is a list needs the place of the reference in its elements");
  Doorbell bell;
  auto client = net::http_client(client_options(options_), bell);
  return client ? Result<void>{} : Result<void>(client.error());
}

void HttpPerformer::open(Doorbell& bell) {
  bell_ = &bell;
  auto client = net::http_client(client_options(options_), bell);
  if (client)
    client_ = *std::move(client);
  else
    problem_ = client.error().message;  // a CA file that has gone since
}

void HttpPerformer::close() {
  client_.reset();
  flights_.clear();
  ended_.clear();
  problem_.clear();
  bell_ = nullptr;
}

void HttpPerformer::begin_flight(Call call) {
  auto decoded = decode_request(call.request);
  const std::string problem = decoded ? "" : decoded.error().message;
  StoredRequest request = decoded ? *std::move(decoded) : StoredRequest{};
  Body asked(request.body, request.headers.find("Content-Type").value_or(""));
  Flight flight{.call = std::move(call), .request = std::move(request), .asked = std::move(asked), .deadline = {}};
  flight.deadline = std::chrono::steady_clock::now() + flight.call.timeout;
  if (!client_) return end(flight, report_of(CallVerdict::not_done, problem_));
  if (!problem.empty()) return end(flight, report_of(CallVerdict::refused, problem));
  if (!flight.call.look_up) return begin_call(std::move(flight));
  flight.lookup = options_.profile.by_reference ? &*options_.profile.by_reference : nullptr;
  if (!flight.lookup) return end(flight, report_of(CallVerdict::unknown, "the provider cannot be asked by reference"));
  begin_lookup(std::move(flight));
}

Attributes HttpPerformer::own_headers(const Call& call) const {
  Attributes headers = options_.headers;
  add_headers(headers, call.credentials);
  return headers;
}

void HttpPerformer::begin_call(Flight flight) {
  StoredRequest request = flight.request;
  add_headers(request.headers, own_headers(flight.call));
  auto outgoing = compose_call(request, options_.profile.key, flight.call.idempotency_key);
  if (!outgoing) return end(flight, report_of(CallVerdict::refused, outgoing.error().message));
  if (auto problem = net::outgoing_problem(*outgoing); !problem.empty())
    return end(flight, report_of(CallVerdict::refused, problem));
  outgoing->fresh_connection = options_.profile.policy.kind != ProviderPolicy::Kind::idempotent;
  send(std::move(flight), *std::move(outgoing));
}

void HttpPerformer::begin_lookup(Flight flight) {
  const auto unable = [&](std::string why) {
    end(flight, flight.otherwise.value_or(report_of(CallVerdict::unknown, "not looked up: " + std::move(why))));
  };
  if (flight.lookup->is_list && flight.call.reference.empty()) return unable("the intent has no reference");
  const Question question{.request = flight.request,
                          .asked = flight.asked,
                          .reference = flight.call.reference,
                          .key = flight.call.idempotency_key,
                          .id = flight.id,
                          .now = std::chrono::system_clock::now()};
  auto outgoing = compose_lookup(*flight.lookup, question);
  if (!outgoing) return unable(outgoing.error().message);
  add_headers(outgoing->headers, own_headers(flight.call));
  flight.question = *outgoing;
  send(std::move(flight), *std::move(outgoing));
}

void HttpPerformer::send(Flight flight, net::Outgoing outgoing) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(flight.deadline - std::chrono::steady_clock::now());
  outgoing.timeout = flight.lookup ? std::max(left, patience_min) : flight.call.timeout;
  outgoing.token = next_token_++;
  const auto token = outgoing.token;
  flights_.emplace(token, std::move(flight));
  client_->begin(std::move(outgoing));
}

void HttpPerformer::end(const Flight& flight, CallReport report) {
  ended_.push_back({flight.call.id, flight.call.attempt, std::move(report)});
}

std::vector<Performed> HttpPerformer::collect() {
  for (const auto& returned : client_ ? client_->collect() : std::vector<net::Returned>{}) {
    auto flight = std::move(flights_.extract(returned.token).mapped());
    if (flight.lookup)
      take_page(std::move(flight), returned);
    else
      take_answer(std::move(flight), returned);
  }
  return std::exchange(ended_, {});
}

void HttpPerformer::take_answer(Flight flight, const net::Returned& returned) {
  const Asked asked{flight.asked, flight.call.reference, options_.response_bytes_max};
  auto judgement = judge_answer(options_.profile, asked, returned, std::chrono::system_clock::now());
  if (judgement.ask == Judgement::Ask::nothing) return end(flight, std::move(judgement.report));
  const auto& lookup = judgement.ask == Judgement::Ask::by_id ? options_.profile.by_id : options_.profile.by_reference;
  flight.lookup = &*lookup;
  flight.id = judgement.id;
  flight.otherwise = std::move(judgement.report);
  begin_lookup(std::move(flight));
}

void HttpPerformer::take_page(Flight flight, const net::Returned& returned) {
  const Asked asked{flight.asked, flight.call.reference};
  auto page = judge_page(*flight.lookup, asked, returned, flight.page, std::chrono::system_clock::now());
  const bool time_left = std::chrono::steady_clock::now() < flight.deadline;
  if (page.next && flight.page < pages_max && time_left) {
    ++flight.page;
    auto outgoing = flight.question;
    outgoing.url = with_query(outgoing.url, flight.lookup->page_field, *page.next);
    return send(std::move(flight), std::move(outgoing));
  }
  if (page.next) page.report = report_of(CallVerdict::unknown, "not looked up: the provider's list is too long");
  if (page.found || !flight.otherwise) return end(flight, std::move(page.report));
  // The question came after a call: that nothing is shown yet says less than the call's own answer.
  flight.otherwise->outcome.detail += "; " + page.report.outcome.detail;
  end(flight, *std::move(flight.otherwise));
}

}  // namespace

Result<std::unique_ptr<Performer>> http_performer(PerformerOptions options) {
  auto performer = std::make_unique<HttpPerformer>(std::move(options));
  if (auto prepared = performer->prepare(); !prepared) return std::move(prepared).error();
  return std::unique_ptr<Performer>(std::move(performer));
}

}  // namespace semel::http
