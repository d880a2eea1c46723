#include "net/http_client.hpp"

#include <curl/curl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <map>
#include <mutex>
#include <thread>

namespace semel::net {

namespace {

/// How long the thread sleeps at most where nothing happens; it is woken for a new call.
constexpr int idle_milliseconds = 60'000;

struct EasyDeleter {
  void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
};
struct MultiDeleter {
  void operator()(CURLM* multi) const { curl_multi_cleanup(multi); }
};
struct ListDeleter {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using Easy = std::unique_ptr<CURL, EasyDeleter>;
using Multi = std::unique_ptr<CURLM, MultiDeleter>;
using List = std::unique_ptr<curl_slist, ListDeleter>;

template <class T>
void set(CURL* easy, CURLoption option, T value) {
  // Fails only for what this build of libcurl does not have, or without memory; both show in the call's outcome.
  curl_easy_setopt(easy, option, value);
}

/// One call. libcurl holds pointers into it until it is removed.
struct Transfer {
  Transfer(Outgoing wanted, const ClientOptions& options);

  static int about_to_send(void* self, char*, char*, int, int);
  static std::size_t on_header(char* bytes, std::size_t size, std::size_t count, void* self);
  static std::size_t on_body(char* bytes, std::size_t size, std::size_t count, void* self);

  void set_request();
  void set_bounds(const ClientOptions& options);
  bool take_header_line(std::string_view line);
  Returned returned(CURLcode code) const;
  std::string what_failed(CURLcode code) const;

  const Outgoing outgoing;
  const std::size_t header_bytes_max;
  const std::size_t body_bytes_max;
  Easy easy{curl_easy_init()};
  List headers{};
  char problem[CURL_ERROR_SIZE] = "";

  bool sent = false;       ///< from here on bytes of the request may have left
  bool head_came = false;  ///< whole, of the final answer
  bool cut = false;
  int status = 0;
  std::size_t header_bytes = 0;
  Attributes received{};
  std::string body{};
};

Transfer::Transfer(Outgoing wanted, const ClientOptions& options)
    : outgoing(std::move(wanted)), header_bytes_max(options.header_bytes_max), body_bytes_max(options.body_bytes_max) {
  if (!easy) throw std::bad_alloc();
  set_request();
  set_bounds(options);
}

void Transfer::set_request() {
  CURL* const handle = easy.get();
  const auto add_line = [this](const std::string& line) {
    curl_slist* const longer = curl_slist_append(headers.get(), line.c_str());
    if (!longer) throw std::bad_alloc();
    static_cast<void>(headers.release());
    headers.reset(longer);
  };
  // A field without a value needs the semicolon, or libcurl takes it for a wish to leave the field out.
  for (const auto& [name, value] : outgoing.headers.entries())
    add_line(value.empty() ? name + ";" : name + ": " + value);
  // Else libcurl waits for a 100 before a long body, and sends the request again after a 417.
  if (outgoing.headers.count("Expect") == 0) add_line("Expect:");
  const bool has_body =
      !outgoing.body.empty() || outgoing.method == "POST" || outgoing.method == "PUT" || outgoing.method == "PATCH";
  if (has_body && outgoing.headers.count("Content-Type") == 0) add_line("Content-Type:");  // else it is called a form
  set(handle, CURLOPT_URL, outgoing.url.c_str());
  if (outgoing.method == "HEAD")
    set(handle, CURLOPT_NOBODY, 1L);
  else if (has_body) {
    set(handle, CURLOPT_POST, 1L);
    set(handle, CURLOPT_POSTFIELDS, outgoing.body.data());
    set(handle, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(outgoing.body.size()));
  }
  set(handle, CURLOPT_CUSTOMREQUEST, outgoing.method.c_str());
  set(handle, CURLOPT_HTTPHEADER, headers.get());
  set(handle, CURLOPT_PREREQFUNCTION, &Transfer::about_to_send);
  set(handle, CURLOPT_PREREQDATA, static_cast<void*>(this));
  set(handle, CURLOPT_HEADERFUNCTION, &Transfer::on_header);
  set(handle, CURLOPT_HEADERDATA, static_cast<void*>(this));
  set(handle, CURLOPT_WRITEFUNCTION, &Transfer::on_body);
  set(handle, CURLOPT_WRITEDATA, static_cast<void*>(this));
  set(handle, CURLOPT_ERRORBUFFER, static_cast<char*>(problem));
  set(handle, CURLOPT_PRIVATE, static_cast<void*>(this));
}

void Transfer::set_bounds(const ClientOptions& options) {
  CURL* const handle = easy.get();
  set(handle, CURLOPT_PROTOCOLS_STR, "http,https");
  set(handle, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  set(handle, CURLOPT_FOLLOWLOCATION, 0L);
  set(handle, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  set(handle, CURLOPT_SSL_VERIFYPEER, 1L);
  set(handle, CURLOPT_SSL_VERIFYHOST, 2L);
  set(handle, CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  if (options.ca_file) {
    set(handle, CURLOPT_CAINFO, options.ca_file->c_str());
    set(handle, CURLOPT_CAPATH, static_cast<const char*>(nullptr));
  }
  if (options.proxy) set(handle, CURLOPT_PROXY, options.proxy->c_str());
  set(handle, CURLOPT_NOSIGNAL, 1L);
  // A name that does not resolve in time holds nobody up.
  set(handle, CURLOPT_QUICK_EXIT, 1L);
  set(handle, CURLOPT_TIMEOUT_MS, std::max(1L, static_cast<long>(outgoing.timeout.count())));
  set(handle, CURLOPT_CONNECTTIMEOUT_MS, std::max(1L, static_cast<long>(options.connect_timeout.count())));
  set(handle, CURLOPT_MAXAGE_CONN, static_cast<long>(options.kept_at_most.count()));
  set(handle, CURLOPT_FRESH_CONNECT, outgoing.fresh_connection ? 1L : 0L);
}

/// libcurl asks before it sends the request: once, unless it means to send it again. It must not.
/// https://curl.se/libcurl/c/CURLOPT_PREREQFUNCTION.html
int Transfer::about_to_send(void* self, char*, char*, int, int) {
  auto& transfer = *static_cast<Transfer*>(self);
  if (transfer.sent) return CURL_PREREQFUNC_ABORT;
  transfer.sent = true;
  return CURL_PREREQFUNC_OK;
}

std::size_t Transfer::on_header(char* bytes, std::size_t size, std::size_t count, void* self) {
  return static_cast<Transfer*>(self)->take_header_line({bytes, size * count}) ? size * count : 0;
}

/// False where the header is longer than it may be.
bool Transfer::take_header_line(std::string_view line) {
  header_bytes += line.size();
  if (header_bytes > header_bytes_max) {
    cut = true;
    return false;
  }
  while (line.ends_with('\n') || line.ends_with('\r')) line.remove_suffix(1);
  if (head_came) return true;  // a trailer
  if (line.starts_with("HTTP/")) {
    long code = 0;
    curl_easy_getinfo(easy.get(), CURLINFO_RESPONSE_CODE, &code);
    status = static_cast<int>(code);
    received = {};
    return true;
  }
  if (line.empty()) {
    head_came = status >= 200;  // below, the answer is still to come
    return true;
  }
  const auto colon = line.find(':');
  if (colon == line.npos) return true;
  auto value = line.substr(colon + 1);
  while (value.starts_with(' ') || value.starts_with('\t')) value.remove_prefix(1);
  while (value.ends_with(' ') || value.ends_with('\t')) value.remove_suffix(1);
  received.add(std::string(line.substr(0, colon)), std::string(value));
  return true;
}

std::size_t Transfer::on_body(char* bytes, std::size_t size, std::size_t count, void* self) {
  auto& transfer = *static_cast<Transfer*>(self);
  const std::size_t length = size * count;
  const std::size_t taken = std::min(length, transfer.body_bytes_max - transfer.body.size());
  transfer.body.append(bytes, taken);
  if (taken == length) return length;
  transfer.cut = true;
  return 0;  // nobody reads the rest
}

std::string Transfer::what_failed(CURLcode code) const {
  if (code == CURLE_ABORTED_BY_CALLBACK) return "the connection ended before an answer; the request was not sent again";
  return problem[0] != '\0' ? problem : curl_easy_strerror(code);
}

Returned Transfer::returned(CURLcode code) const {
  Returned made{.token = outgoing.token};
  if (code != CURLE_OK) made.detail = what_failed(code);
  if (head_came) {
    made.reach = Returned::Reach::answered;
    made.status = status;
    made.headers = received;
    made.body = body;
    made.cut = cut || code != CURLE_OK;
    return made;
  }
  made.reach = sent ? Returned::Reach::unknown : Returned::Reach::not_sent;
  if (code == CURLE_OK) made.detail = "the answer has no head";
  return made;
}

class CurlClient final : public HttpClient {
 public:
  CurlClient(ClientOptions options, Doorbell& bell);
  ~CurlClient() override;

  void begin(Outgoing outgoing) override;
  std::vector<Returned> collect() override;

 private:
  void run();
  bool take_new();
  void begin_transfer(Outgoing outgoing);
  void end_transfers();
  void hand_over(Returned returned);

  const ClientOptions options_;
  Doorbell& bell_;
  Multi multi_{curl_multi_init()};
  std::map<Transfer*, std::unique_ptr<Transfer>> transfers_{};  ///< the thread's own

  std::mutex mutex_;
  std::vector<Outgoing> wanted_{};
  std::vector<Returned> returned_{};
  bool stopping_ = false;
  std::thread thread_;
};

CurlClient::CurlClient(ClientOptions options, Doorbell& bell) : options_(std::move(options)), bell_(bell) {
  if (!multi_) throw std::bad_alloc();
  curl_multi_setopt(multi_.get(), CURLMOPT_MAXCONNECTS, static_cast<long>(options_.kept_connections_max));
  thread_ = std::thread([this] { run(); });
}

CurlClient::~CurlClient() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  curl_multi_wakeup(multi_.get());
  thread_.join();
  for (const auto& [transfer, owned] : transfers_) curl_multi_remove_handle(multi_.get(), transfer->easy.get());
}

void CurlClient::begin(Outgoing outgoing) {
  {
    const std::lock_guard lock(mutex_);
    wanted_.push_back(std::move(outgoing));
  }
  curl_multi_wakeup(multi_.get());
}

std::vector<Returned> CurlClient::collect() {
  const std::lock_guard lock(mutex_);
  return std::exchange(returned_, {});
}

void CurlClient::run() {
  // OpenSSL writes to sockets whose other side may be gone; without this the program would die of it.
  sigset_t broken_pipe;
  sigemptyset(&broken_pipe);
  sigaddset(&broken_pipe, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &broken_pipe, nullptr);
  while (take_new()) {
    int running = 0;
    curl_multi_perform(multi_.get(), &running);
    end_transfers();
    curl_multi_poll(multi_.get(), nullptr, 0, idle_milliseconds, nullptr);
  }
}

/// False where it is time to stop.
bool CurlClient::take_new() {
  std::vector<Outgoing> wanted;
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return false;
    wanted.swap(wanted_);
  }
  for (auto& outgoing : wanted) begin_transfer(std::move(outgoing));
  return true;
}

void CurlClient::begin_transfer(Outgoing outgoing) {
  const auto token = outgoing.token;
  if (auto problem = outgoing_problem(outgoing); !problem.empty())
    return hand_over({.token = token, .reach = Returned::Reach::not_sent, .detail = std::move(problem)});
  auto transfer = std::make_unique<Transfer>(std::move(outgoing), options_);
  Transfer* const place = transfer.get();
  if (const auto code = curl_multi_add_handle(multi_.get(), place->easy.get()); code != CURLM_OK)
    return hand_over({.token = token, .reach = Returned::Reach::not_sent, .detail = curl_multi_strerror(code)});
  transfers_.emplace(place, std::move(transfer));
}

void CurlClient::end_transfers() {
  int left = 0;
  while (CURLMsg* const message = curl_multi_info_read(multi_.get(), &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    const CURLcode code = message->data.result;
    void* place = nullptr;
    curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &place);
    curl_multi_remove_handle(multi_.get(), message->easy_handle);
    const auto ended = transfers_.extract(static_cast<Transfer*>(place));
    hand_over(ended.mapped()->returned(code));
  }
}

void CurlClient::hand_over(Returned returned) {
  {
    const std::lock_guard lock(mutex_);
    returned_.push_back(std::move(returned));
  }
  bell_.ring();
}

bool is_token(std::string_view text) {
  constexpr std::string_view marks = "!#$%&'*+-.^_`|~";
  return !text.empty() && std::all_of(text.begin(), text.end(), [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || marks.find(c) != marks.npos;
  });
}

bool is_field_value(std::string_view text) {
  return std::none_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte < 0x20 && c != '\t') || byte == 0x7f;
  });
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

}  // namespace

std::string outgoing_problem(const Outgoing& outgoing) {
  if (!is_token(outgoing.method)) return "the method is no HTTP method";
  const std::string start = lower(std::string_view(outgoing.url).substr(0, 8));
  if (!start.starts_with("http://") && start != "https://") return "the URL begins with neither http:// nor https://";
  for (const char c : outgoing.url)
    if (static_cast<unsigned char>(c) <= 0x20 || c == 0x7f) return "the URL holds a blank or a control character";
  for (const auto& [name, value] : outgoing.headers.entries()) {
    if (!is_token(name)) return "a header's name is not well formed";
    if (!is_field_value(value)) return "the header " + name + " holds a control character";
    const std::string known = lower(name);
    if (known == "content-length" || known == "transfer-encoding" || known == "connection")
      return "the header " + name + " frames the message and is not for the caller to set";
  }
  return {};
}

Result<std::unique_ptr<HttpClient>> http_client(ClientOptions options, Doorbell& bell) {
  static std::once_flag once;
  std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
  if (options.ca_file && access(options.ca_file->c_str(), R_OK) != 0)
    return fix_call(ErrorCode::config_bad_value, "cannot read the CA file " + *options.ca_file);
  return std::unique_ptr<HttpClient>(std::make_unique<CurlClient>(std::move(options), bell));
}

}  // namespace semel::net
