// The sources of a configuration, opened.
#pragma once

#include <memory>
#include <semel/sources/file.hpp>
#include <semel/sources/http.hpp>
#include <semel/sources/queue.hpp>
#include <semel/store.hpp>
#include <string>
#include <vector>

#include "config/config.hpp"

namespace semel::app {

/// An IP address as it stands before a port: "127.0.0.1", "[::1]".
std::string host_text(const std::string& address);

/// Listeners do not serve before `start`.
class OpenedSources {
 public:
  /// `store` has the queues, and outlives them.
  static Result<OpenedSources> open(const Config& config, Store& store);
  Result<void> start();

  const std::vector<Source*>& all() const { return all_; }
  std::vector<const file::Source*> files() const;
  /// "http://127.0.0.1:8080", one for each listener, with the port that it really has.
  std::vector<std::string> addresses() const;

 private:
  /// `guarded`: for each gateway, the sources of its routes.
  Result<Source*> open_one(const SourceConfig& source, const std::vector<std::vector<Source*>>& guarded, Store& store);

  struct Listening {
    std::string text;  ///< "http://127.0.0.1"
    std::unique_ptr<http::Listener> listener;
  };
  std::vector<Listening> listeners_;
  std::vector<std::unique_ptr<file::Source>> files_;
  std::vector<std::unique_ptr<Source>> queues_;
  std::vector<Source*> all_;
};

}  // namespace semel::app
