// Publications as webhooks, signed as https://www.standardwebhooks.com asks: the receiving end is in sources/http.
#include <algorithm>
#include <map>
#include <semel/performers/http.hpp>

#include "base/digest.hpp"
#include "base/encoding.hpp"
#include "performers/http/compose.hpp"
#include "performers/http/judge.hpp"

namespace semel::http {

namespace {

constexpr std::string_view secret_prefix = "whsec_";

/// What an attribute of that name would say of another message, or is said here.
constexpr std::string_view left_out[] = {
    "Host",    "Content-Length", "Transfer-Encoding", "Connection", "Keep-Alive",        "Expect",           "TE",
    "Trailer", "Upgrade",        "Idempotency-Key",   "webhook-id", "webhook-timestamp", "webhook-signature"};

std::optional<std::string> key_of(std::string_view secret) {
  if (secret.starts_with(secret_prefix)) secret.remove_prefix(secret_prefix.size());
  auto key = base64_decode(secret);
  return key && !key->empty() ? key : std::nullopt;
}

class WebhookPublisher final : public Performer {
 public:
  explicit WebhookPublisher(WebhookOptions options) : options_(std::move(options)) {}

  Result<void> prepare();
  void open(Doorbell& bell) override;
  void close() override;
  std::size_t room() const override {
    return options_.calls_max - std::min(options_.calls_max, sent_.size() + ended_.size());
  }
  void begin(Call call) override;
  std::vector<Performed> collect() override;

 private:
  net::Outgoing compose(const Call& call) const;
  std::string signatures(const std::string& signed_text) const;
  void end(std::string id, int attempt, CallReport report);

  const WebhookOptions options_;
  std::vector<std::string> keys_{};
  std::unique_ptr<net::HttpClient> client_;
  Doorbell* bell_ = nullptr;
  std::string problem_{};
  std::uint64_t next_token_ = 1;
  struct Sent {
    std::string id;
    int attempt;
  };
  std::map<std::uint64_t, Sent> sent_{};
  std::vector<Performed> ended_{};
};

net::ClientOptions client_options(const WebhookOptions& options) {
  return {.ca_file = options.ca_file, .proxy = options.proxy, .connect_timeout = options.connect_timeout};
}

Result<void> WebhookPublisher::prepare() {
  const auto refuse = [](const std::string& problem) { return fix_call(ErrorCode::config_bad_value, problem); };
  if (auto problem = net::outgoing_problem({.url = options_.url, .headers = options_.headers}); !problem.empty())
    return refuse(problem);
  for (const auto name : left_out)
    if (options_.headers.count(name) > 0) return refuse("the header " + std::string(name) + " is set by the publisher");
  for (const auto& secret : options_.secrets) {
    auto key = key_of(secret);
    if (!key) return refuse("a signing secret is not base64 (after whsec_, where it begins so)");
    keys_.push_back(*std::move(key));
  }
  Doorbell bell;
  auto client = net::http_client(client_options(options_), bell);
  return client ? Result<void>{} : Result<void>(client.error());
}

void WebhookPublisher::open(Doorbell& bell) {
  bell_ = &bell;
  auto client = net::http_client(client_options(options_), bell);
  if (client)
    client_ = *std::move(client);
  else
    problem_ = client.error().message;
}

void WebhookPublisher::close() {
  client_.reset();
  sent_.clear();
  ended_.clear();
  problem_.clear();
  bell_ = nullptr;
}

std::string WebhookPublisher::signatures(const std::string& signed_text) const {
  std::string all;
  for (const auto& key : keys_) {
    if (!all.empty()) all += ' ';
    all += "v1," + base64_encode(hmac_sha256(key, signed_text));
  }
  return all;
}

net::Outgoing WebhookPublisher::compose(const Call& call) const {
  net::Outgoing outgoing{.url = options_.url, .body = call.request, .timeout = call.timeout};
  for (const auto& [name, value] : call.attributes.entries()) {
    const Attributes one{{name, ""}};
    const auto is = [&](std::string_view known) { return one.count(known) > 0; };
    if (std::none_of(std::begin(left_out), std::end(left_out), is)) outgoing.headers.add(name, value);
  }
  add_headers(outgoing.headers, options_.headers);
  if (outgoing.headers.count("Content-Type") == 0) {
    const bool is_json = std::holds_alternative<std::shared_ptr<const json::Node>>(json::parse(call.request));
    outgoing.headers.add("Content-Type", is_json ? "application/json" : "application/octet-stream");
  }
  outgoing.headers.add("Idempotency-Key", call.id);
  outgoing.headers.add("webhook-id", call.id);
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto stamp = std::to_string(std::chrono::floor<std::chrono::seconds>(now).count());
  outgoing.headers.add("webhook-timestamp", stamp);
  if (!keys_.empty()) outgoing.headers.add("webhook-signature", signatures(call.id + "." + stamp + "." + call.request));
  return outgoing;
}

void WebhookPublisher::begin(Call call) {
  if (!client_) return end(call.id, call.attempt, report_of(CallVerdict::not_done, problem_));
  auto outgoing = compose(call);
  if (auto problem = net::outgoing_problem(outgoing); !problem.empty())
    return end(call.id, call.attempt, report_of(CallVerdict::failed, std::move(problem)));
  outgoing.token = next_token_++;
  sent_[outgoing.token] = {std::move(call.id), call.attempt};
  client_->begin(std::move(outgoing));
}

void WebhookPublisher::end(std::string id, int attempt, CallReport report) {
  ended_.push_back({std::move(id), attempt, std::move(report)});
  bell_->ring();
}

std::vector<Performed> WebhookPublisher::collect() {
  for (const auto& returned : client_ ? client_->collect() : std::vector<net::Returned>{}) {
    auto sent = std::move(sent_.extract(returned.token).mapped());
    auto report = judge_status(returned, std::chrono::system_clock::now());
    // A publication is sent again until it is confirmed, or an operator is asked: there is nothing in between.
    if (report.verdict == CallVerdict::refused) report.verdict = CallVerdict::failed;
    if (report.verdict == CallVerdict::unfinished) report.verdict = CallVerdict::not_done;
    ended_.push_back({std::move(sent.id), sent.attempt, std::move(report)});
  }
  return std::exchange(ended_, {});
}

}  // namespace

Result<std::unique_ptr<Performer>> webhook_publisher(WebhookOptions options) {
  auto publisher = std::make_unique<WebhookPublisher>(std::move(options));
  if (auto prepared = publisher->prepare(); !prepared) return std::move(prepared).error();
  return std::unique_ptr<Performer>(std::move(publisher));
}

}  // namespace semel::http
