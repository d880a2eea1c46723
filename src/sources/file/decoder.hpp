// Plain bytes or gzip (RFC 1952), told apart by the first two.
#pragma once

#include <functional>
#include <memory>
#include <semel/result.hpp>
#include <string>
#include <string_view>

namespace semel::file {

class Decoder {
 public:
  using Sink = std::function<void(std::string_view)>;

  explicit Decoder(Sink sink);
  ~Decoder();

  /// Passes on what `bytes` stand for, in pieces of bounded size. Errors: source_unreadable for damaged gzip; what came
  /// before the damage has been passed on.
  Result<void> feed(std::string_view bytes);
  /// Errors: source_unreadable where a gzip stream is not at its end.
  Result<void> finish();

 private:
  struct Gunzip;

  Result<void> decide();

  const Sink sink_;
  std::string head_;  ///< until the first two bytes are there
  bool decided_ = false;
  std::unique_ptr<Gunzip> gunzip_;
};

}  // namespace semel::file
