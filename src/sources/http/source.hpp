// One path of a listener as a source.
#pragma once

#include <functional>
#include <memory>
#include <semel/source.hpp>

#include "sources/http/intake.hpp"
#include "sources/http/route.hpp"

namespace semel::http {

class PathSource final : public semel::Source {
 public:
  using OnRefused = std::function<void(std::string_view source, const Error& why)>;

  PathSource(Route route, std::size_t queued_max, OnRefused on_refused);

  const std::string& name() const override { return route_.name(); }
  SourceTraits traits() const override { return {.redelivers = true}; }
  Result<std::unique_ptr<Receiver>> open(Doorbell& bell) override;

  const Route& route() const { return route_; }
  /// Takes a whole request in, or answers why not. The server's thread.
  void serve(net::Request request, net::Responder responder);

 private:
  void tell_refused(const Error& why) const;

  const Route route_;
  const OnRefused on_refused_;
  /// Receivers hold it too, so that one which outlives the listener by a mistake answers into nothing.
  const std::shared_ptr<Intake> intake_;
};

}  // namespace semel::http
