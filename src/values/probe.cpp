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
  }
  return {};
}

Probe& Probe::none() {
  static NoProbe probe;
  return probe;
}

}  // namespace semel
