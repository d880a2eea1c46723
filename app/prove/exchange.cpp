#include "prove/exchange.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cstring>

namespace semel::prove {
namespace {

constexpr std::size_t body_kept_max = 1u << 20;
constexpr int look_every_ms = 2;

/// Closing without a linger time sends a reset: what was not read is lost, as behind a proxy that died.
int reset_when_closed(void*, curl_socket_t socket, curlsocktype) {
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(socket, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  return CURL_SOCKOPT_OK;
}

}  // namespace

Exchange::Exchange(Outgoing outgoing, std::chrono::milliseconds patience, Leave leave)
    : outgoing_(std::move(outgoing)),
      deadline_(std::chrono::steady_clock::now() + patience),
      body_to_send_(leave == Leave::half ? outgoing_.body.size() / 2 : outgoing_.body.size()),
      easy_(curl_easy_init()),
      multi_(curl_multi_init()) {
  set_up();
}

Exchange::~Exchange() { curl_multi_remove_handle(multi_.get(), easy_.get()); }

void Exchange::set_up() {
  auto* easy = easy_.get();
  for (const auto& [name, value] : outgoing_.headers)
    headers_.reset(curl_slist_append(headers_.release(), (name + (value.empty() ? ";" : ": " + value)).c_str()));
  headers_.reset(curl_slist_append(headers_.release(), "Expect:"));
  curl_easy_setopt(easy, CURLOPT_URL, outgoing_.url.c_str());
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_PROXY, "");
  curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, 1L);
  curl_easy_setopt(easy, CURLOPT_FORBID_REUSE, 1L);
  curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
  if (!outgoing_.body.empty() || outgoing_.method == "POST") {
    curl_easy_setopt(easy, CURLOPT_POST, 1L);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(outgoing_.body.size()));
    curl_easy_setopt(easy, CURLOPT_READFUNCTION, read_body);
    curl_easy_setopt(easy, CURLOPT_READDATA, this);
  }
  if (outgoing_.method == "HEAD") curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
  curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, outgoing_.method.c_str());
  curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers_.get());
  curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, take_head);
  curl_easy_setopt(easy, CURLOPT_HEADERDATA, this);
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_body);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, this);
  curl_easy_setopt(easy, CURLOPT_SOCKOPTFUNCTION, reset_when_closed);
  curl_multi_add_handle(multi_.get(), easy);
}

std::size_t Exchange::read_body(char* to, std::size_t size, std::size_t count, void* self) {
  auto& exchange = *static_cast<Exchange*>(self);
  const auto left = exchange.body_to_send_ - exchange.body_given_;
  if (left == 0 && exchange.body_to_send_ < exchange.outgoing_.body.size()) return CURL_READFUNC_PAUSE;
  const auto given = std::min(left, size * count);
  std::memcpy(to, exchange.outgoing_.body.data() + exchange.body_given_, given);
  exchange.body_given_ += given;
  return given;
}

std::size_t Exchange::take_head(char*, std::size_t size, std::size_t count, void* self) {
  static_cast<Exchange*>(self)->reply_begun_ = true;
  return size * count;
}

std::size_t Exchange::take_body(char* from, std::size_t size, std::size_t count, void* self) {
  auto& body = static_cast<Exchange*>(self)->reply_.body;
  body.append(from, std::min(size * count, body_kept_max - std::min(body.size(), body_kept_max)));
  return size * count;
}

template <class Condition>
bool Exchange::go_on_until(Condition condition) {
  while (!condition()) {
    if (over_) return false;
    if (std::chrono::steady_clock::now() > deadline_) {
      over_ = true;
      reply_.failure = "no answer in time";
      return false;
    }
    int running = 0;
    curl_multi_perform(multi_.get(), &running);
    int left = 0;
    if (const auto* message = curl_multi_info_read(multi_.get(), &left); message && message->msg == CURLMSG_DONE) {
      over_ = true;
      long status = 0;
      curl_easy_getinfo(easy_.get(), CURLINFO_RESPONSE_CODE, &status);
      if (message->data.result == CURLE_OK)
        reply_.status = static_cast<int>(status);
      else
        reply_.failure = curl_easy_strerror(message->data.result);
    }
    if (!over_ && !condition()) curl_multi_poll(multi_.get(), nullptr, 0, look_every_ms, nullptr);
  }
  return true;
}

bool Exchange::is_out() {
  long head = 0;
  curl_off_t body = 0;
  curl_easy_getinfo(easy_.get(), CURLINFO_REQUEST_SIZE, &head);
  curl_easy_getinfo(easy_.get(), CURLINFO_SIZE_UPLOAD_T, &body);
  return head > 0 && static_cast<std::size_t>(body) >= body_to_send_;
}

bool Exchange::send() {
  return go_on_until([this] { return is_out(); });
}

bool Exchange::wait_for_reply() {
  return go_on_until([this] { return reply_begun_; });
}

Reply Exchange::finish() {
  go_on_until([this] { return over_; });
  return reply_;
}

}  // namespace semel::prove
