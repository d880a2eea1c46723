// What a delivery is to a handler: its key and fingerprint, or the reason why it has none. No store is touched.
#pragma once

#include <optional>
#include <semel/delivery.hpp>
#include <semel/document.hpp>
#include <semel/error.hpp>
#include <semel/fingerprint.hpp>
#include <semel/handler.hpp>
#include <semel/key.hpp>
#include <semel/store.hpp>
#include <variant>

namespace semel::protocol {

/// A delivery's body, read once for all handlers.
struct Reading {
  std::optional<Document> document;  ///< nothing where the body is not JSON
  std::optional<Error> problem;      ///< why not
};
Reading read(const Delivery& delivery);

/// The handler is not concerned.
struct NotForUs {};
/// The handler may claim it.
struct Claimable {
  Key key;
  Fingerprint fingerprint;
};
/// It is the handler's, and cannot be processed as it is.
struct Unusable {
  SetAsideReason reason;
  Error error;
};
using Intake = std::variant<NotForUs, Claimable, Unusable>;

Intake intake(const HandlerOptions& handler, const Delivery& delivery, const Reading& reading);

}  // namespace semel::protocol
