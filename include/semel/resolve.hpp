// How an operator ends what nobody else can: an intent whose outcome is unknown, or contradicted.
#pragma once

#include <chrono>
#include <semel/intent.hpp>
#include <semel/result.hpp>
#include <semel/store.hpp>
#include <string>

namespace semel {

/// What an operator found out about one intent.
struct ResolutionRequest {
  IntentId id;
  Resolution resolution = Resolution::abandoned;
  std::string reference{};  ///< for `happened`: the provider's id of what it did
  std::string by{};         ///< who says so
  std::string why{};        ///< how they know
  /// Of the record, from now on, where nothing of it is open any more.
  std::chrono::seconds retention = std::chrono::hours(24 * 30);
};

/// Writes it down, in one transaction, with who and why in the intent's history. Where the outcome was open it is known
/// now, and whoever runs the handler settles it (or repeats the call that did not happen); a flag is taken off. Says
/// where the intent then stands.
/// Errors: resolution_refused for an intent that is not there or waits for nobody, and for a request that does not say
/// who and why; lost_race where somebody was quicker; what the store fails with.
Result<IntentStatus> resolve(Store& store, const ResolutionRequest& request);

}  // namespace semel
