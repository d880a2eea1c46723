// A delivery for tests of values.
#pragma once

#include <semel/delivery.hpp>
#include <string>

namespace semel {

inline Delivery delivery_with(std::string body) {
  Delivery delivery{.receipt = Receipt(1)};
  delivery.source = "test";
  delivery.body = std::move(body);
  return delivery;
}

}  // namespace semel
