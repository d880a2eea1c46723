#include "net/http_message.hpp"

#include <cassert>
#include <utility>

namespace semel::net {

Responder& Responder::operator=(Responder&& other) noexcept {
  if (this != &other) {
    if (exchange_) exchange_->abandon();
    exchange_ = std::move(other.exchange_);
  }
  return *this;
}

Responder::~Responder() {
  if (exchange_) exchange_->abandon();
}

void Responder::answer(Response response) && {
  assert(exchange_);
  std::exchange(exchange_, nullptr)->answer(std::move(response));
}

}  // namespace semel::net
