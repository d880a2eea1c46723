#include <semel/error.hpp>

namespace semel {

std::string code_name(ErrorCode code) {
  auto digits = std::to_string(static_cast<int>(code));
  return "SEMEL-" + std::string(digits.size() < 4 ? 4 - digits.size() : 0, '0') + digits;
}

Error fix_call(ErrorCode code, std::string message) {
  return {Remedy::fix_call, Certainty::not_applied, code, std::move(message)};
}

Error retry_later(ErrorCode code, std::string message) {
  return {Remedy::retry_later, Certainty::not_applied, code, std::move(message)};
}

}  // namespace semel
