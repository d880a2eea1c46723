// One HTTP request on a connection of its own, that can be left in the middle.
#pragma once

#include <curl/curl.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace semel::prove {

struct Outgoing {
  std::string method;
  std::string url;
  std::vector<std::pair<std::string, std::string>> headers{};
  std::string body{};
};

/// Status 0 where no whole answer came; `failure` then says why.
struct Reply {
  int status = 0;
  std::string body{};
  std::string failure{};
};

/// Waits in each of its calls, up to `patience` from its beginning. Nothing is sent twice, no redirect is followed.
/// Destroying one that has not been answered resets the connection.
class Exchange {
 public:
  enum class Leave { nothing, half };  ///< of the body

  Exchange(Outgoing outgoing, std::chrono::milliseconds patience, Leave leave = Leave::nothing);
  ~Exchange();
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  /// Until the request is out, or half of its body. False where it cannot be sent.
  bool send();
  /// Until the reply begins. False where none comes.
  bool wait_for_reply();
  /// Until the whole answer is there.
  Reply finish();

 private:
  struct HandleDeleter {
    void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
  };
  struct MultiDeleter {
    void operator()(CURLM* handle) const { curl_multi_cleanup(handle); }
  };
  struct ListDeleter {
    void operator()(curl_slist* list) const { curl_slist_free_all(list); }
  };

  void set_up();
  bool is_out();
  template <class Condition>
  bool go_on_until(Condition condition);
  static std::size_t read_body(char* to, std::size_t size, std::size_t count, void* self);
  static std::size_t take_head(char* from, std::size_t size, std::size_t count, void* self);
  static std::size_t take_body(char* from, std::size_t size, std::size_t count, void* self);

  Outgoing outgoing_;
  std::chrono::steady_clock::time_point deadline_;
  std::size_t body_to_send_;
  std::size_t body_given_ = 0;
  bool reply_begun_ = false;
  bool over_ = false;
  Reply reply_{};
  std::unique_ptr<curl_slist, ListDeleter> headers_;
  std::unique_ptr<CURL, HandleDeleter> easy_;
  std::unique_ptr<CURLM, MultiDeleter> multi_;
};

}  // namespace semel::prove
