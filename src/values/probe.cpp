#include <semel/probe.hpp>

namespace semel {
namespace {

struct NoProbe final : Probe {
  void reached(Step) override {}
};

}  // namespace

std::string_view step_name(Step step) {
  switch (step) {
    case Step::received:
      return "received";
    case Step::begun:
      return "begun";
    case Step::claimed:
      return "claimed";
    case Step::handled:
      return "handled";
    case Step::recorded:
      return "recorded";
    case Step::set_aside:
      return "set_aside";
    case Step::committed:
      return "committed";
    case Step::settled:
      return "settled";
    case Step::rolled_back:
      return "rolled_back";
    case Step::intended:
      return "intended";
    case Step::started:
      return "started";
    case Step::called:
      return "called";
    case Step::reported:
      return "reported";
    case Step::settling:
      return "settling";
    case Step::closed:
      return "closed";
    case Step::relaying:
      return "relaying";
    case Step::relayed:
      return "relayed";
    case Step::sent:
      return "sent";
  }
  return {};
}

Probe& Probe::none() {
  static NoProbe probe;
  return probe;
}

}  // namespace semel
