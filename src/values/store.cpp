#include <semel/store.hpp>

namespace semel {

bool is_open(RecordState state) { return state == RecordState::in_progress || state == RecordState::ambiguous; }

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
