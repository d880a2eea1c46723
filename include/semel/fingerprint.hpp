// Fingerprints: what must not differ between two uses of one key.
#pragma once

#include <semel/delivery.hpp>
#include <semel/document.hpp>
#include <semel/key.hpp>
#include <string>
#include <vector>

namespace semel {

/// A version byte and a SHA-256 digest, or nothing where the handler compares none.
/// Two fingerprints differ only if both are there and their bytes differ.
class Fingerprint {
 public:
  Fingerprint() = default;
  static Fingerprint from_bytes(std::string bytes) { return Fingerprint(std::move(bytes)); }

  const std::string& bytes() const noexcept { return bytes_; }
  bool empty() const noexcept { return bytes_.empty(); }
  bool contradicts(const Fingerprint& other) const { return !empty() && !other.empty() && bytes_ != other.bytes_; }
  bool operator==(const Fingerprint&) const = default;

 private:
  explicit Fingerprint(std::string bytes) : bytes_(std::move(bytes)) {}
  std::string bytes_;
};

/// Which parts of a message count.
struct FingerprintPolicy {
  enum class Parts {
    automatic,  ///< by what the key is: see `resolve`
    none,
    body,     ///< canonical body
    request,  ///< method, path and canonical body
    only,     ///< the body's members that `pointers` name; one that is not there counts as absent
    all_but,  ///< the canonical body without the members that `pointers` name
  };
  Parts parts = Parts::automatic;
  std::vector<std::string> pointers{};

  /// What `automatic` means: `request` for a caller's key; `none` for a transport id, and for a key of a sender
  /// whose signature was verified where `key_is_event_id`; `body` for every other (business) key.
  static Parts resolve(const KeyExpression& key, const Delivery& delivery, bool key_is_event_id);
};

/// The fingerprint of one message. A body that is not JSON (`document` null) counts by its bytes.
Fingerprint fingerprint_of(const FingerprintPolicy& policy, FingerprintPolicy::Parts resolved, const Delivery& delivery,
                           const Document* document);

}  // namespace semel
