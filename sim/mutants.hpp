// Planted bugs: each breaks one rule of the protocol, at a port of the engine or in what it is told, so that the
// product's code knows nothing of them. The simulation must find every one.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace semel::sim {

enum class Mutant {
  acknowledge_before_commit,
  claim_in_its_own_transaction,
  check_instead_of_claim,
  no_fence_on_completion,
  lease_by_local_clock,
  outbox_by_cursor,
  fingerprint_skipped_while_open,
  retry_of_an_unknown_outcome,
  purge_of_an_unfinished_intent,
  commit_repeated_blindly,
  lookup_trusted_too_early,
  repeat_after_key_lifetime,
  key_made_per_attempt,
  answer_not_stored,
  order_key_ignored,
  publication_gone_before_confirmation,
  record_purged_too_early,
  late_outcome_dropped,
  start_not_durable,
  settled_outside_its_transaction,
};

struct MutantTraits {
  Mutant mutant;
  std::string_view name;
  std::string_view breaks;  ///< the promise, in a few words
  std::uint64_t seeds_max;  ///< it is found within so many seeds
};

std::span<const MutantTraits> all_mutants();
const MutantTraits& traits_of(Mutant mutant);
std::optional<Mutant> mutant_named(std::string_view name);

}  // namespace semel::sim
