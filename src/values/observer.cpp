#include <semel/observer.hpp>

namespace semel {

std::string_view decision_name(Decision decision) {
  switch (decision) {
    case Decision::fresh:
      return "fresh";
    case Decision::replay:
      return "replay";
    case Decision::conflict:
      return "conflict";
    case Decision::rejected:
      return "rejected";
    case Decision::no_key:
      return "no_key";
    case Decision::malformed:
      return "malformed";
    case Decision::exhausted:
      return "exhausted";
    case Decision::handed_back:
      return "handed_back";
    case Decision::unmatched:
      return "unmatched";
    case Decision::in_progress:
      return "in_progress";
    case Decision::ambiguous:
      return "ambiguous";
  }
  return {};
}

Observer& Observer::none() {
  static Observer observer;
  return observer;
}

}  // namespace semel
