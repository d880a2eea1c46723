#include <semel/store.hpp>

namespace semel {

std::string_view reason_name(SetAsideReason reason) {
  switch (reason) {
    case SetAsideReason::no_key:
      return "no_key";
    case SetAsideReason::malformed:
      return "malformed";
    case SetAsideReason::conflict:
      return "conflict";
    case SetAsideReason::rejected:
      return "rejected";
    case SetAsideReason::exhausted:
      return "exhausted";
  }
  return {};
}

}  // namespace semel
