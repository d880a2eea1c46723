// One delivery of one event, as a source hands it over.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace semel {

/// Headers or message attributes, in the order received. Names compare without regard to ASCII case.
class Attributes {
 public:
  using Entry = std::pair<std::string, std::string>;

  Attributes() = default;
  Attributes(std::initializer_list<Entry> entries) : entries_(entries) {}

  void add(std::string name, std::string value);
  /// The first value under `name`.
  std::optional<std::string_view> find(std::string_view name) const;
  /// How many entries carry `name`.
  std::size_t count(std::string_view name) const;
  const std::vector<Entry>& entries() const noexcept { return entries_; }

 private:
  std::vector<Entry> entries_;
};

/// The right to settle one delivery, once: it moves into the Settlement and cannot be copied.
class Receipt {
 public:
  explicit Receipt(std::uint64_t token) : token_(token) {}
  Receipt(Receipt&&) noexcept = default;
  Receipt& operator=(Receipt&&) noexcept = default;
  Receipt(const Receipt&) = delete;
  Receipt& operator=(const Receipt&) = delete;

  /// What the source that made it knows it by.
  std::uint64_t token() const noexcept { return token_; }

 private:
  std::uint64_t token_;
};

/// Who is at the other end of a delivery.
enum class Sender {
  message,  ///< a message: what cannot be processed is set aside in the store and acknowledged
  caller,   ///< somebody waits for the answer: what cannot be processed is answered with a problem
};

struct Delivery {
  Receipt receipt;
  std::string source;  ///< the source's name
  Sender sender = Sender::message;
  std::string body;  ///< the exact bytes received
  std::string
      problem;  ///< why the source could not read the message whole; empty where it could. Such a message is set aside
  Attributes attributes;
  Attributes credentials{};      ///< headers that hold credentials: for the first attempt, in memory only, never stored
  std::string transport_id;      ///< the transport's own id of the message; empty where it has none
  std::string principal;         ///< on whose behalf a caller asks; part of the scope; empty where there is one tenant
  bool sender_verified = false;  ///< a signature over the body was checked, so the provider vouches for its ids
  std::optional<int> receive_count;  ///< 1 for the first delivery; absent where the source has no count
  std::optional<std::chrono::system_clock::time_point> sent_at;
};

}  // namespace semel
