#include "mutants.hpp"

#include <algorithm>
#include <array>

namespace semel::sim {
namespace {

constexpr std::array mutants{
    MutantTraits{Mutant::acknowledge_before_commit, "acknowledge-before-commit", "nothing acknowledged is lost", 1'000},
    MutantTraits{Mutant::claim_in_its_own_transaction, "claim-in-its-own-transaction", "at least one effect", 1'000},
    MutantTraits{Mutant::check_instead_of_claim, "check-instead-of-claim", "at most one effect", 1'000},
    MutantTraits{Mutant::no_fence_on_completion, "no-fence-on-completion", "an outcome is settled once", 1'000},
    MutantTraits{Mutant::lease_by_local_clock, "lease-by-local-clock", "nobody is asked without need", 1'000},
    MutantTraits{Mutant::outbox_by_cursor, "outbox-by-cursor", "every publication arrives", 2'000},
    MutantTraits{Mutant::fingerprint_skipped_while_open, "fingerprint-skipped-while-open", "another body is a conflict",
                 1'000},
    MutantTraits{Mutant::retry_of_an_unknown_outcome, "retry-of-an-unknown-outcome", "at most one charge", 1'000},
    MutantTraits{Mutant::purge_of_an_unfinished_intent, "purge-of-an-unfinished-intent", "no intent is forgotten",
                 1'000},
    MutantTraits{Mutant::commit_repeated_blindly, "commit-repeated-blindly", "at most one effect", 1'000},
    MutantTraits{Mutant::lookup_trusted_too_early, "lookup-trusted-too-early", "at most one charge", 2'000},
    MutantTraits{Mutant::repeat_after_key_lifetime, "repeat-after-key-lifetime", "at most one charge", 2'000},
    MutantTraits{Mutant::key_made_per_attempt, "key-made-per-attempt", "at most one charge", 1'000},
    MutantTraits{Mutant::answer_not_stored, "answer-not-stored", "the first answer is replayed", 1'000},
    MutantTraits{Mutant::order_key_ignored, "order-key-ignored", "publications keep their order", 1'000},
    MutantTraits{Mutant::publication_gone_before_confirmation, "publication-gone-before-confirmation",
                 "every publication arrives", 1'000},
    MutantTraits{Mutant::record_purged_too_early, "record-purged-too-early", "at most one effect", 1'000},
    MutantTraits{Mutant::late_outcome_dropped, "late-outcome-dropped", "what was heard is kept", 2'000},
    MutantTraits{Mutant::start_not_durable, "start-not-durable", "at most one charge", 1'000},
    MutantTraits{Mutant::settled_outside_its_transaction, "settled-outside-its-transaction",
                 "an outcome is settled once", 1'000},
};

}  // namespace

std::span<const MutantTraits> all_mutants() { return mutants; }

const MutantTraits& traits_of(Mutant mutant) {
  return *std::find_if(mutants.begin(), mutants.end(), [&](const auto& one) { return one.mutant == mutant; });
}

std::optional<Mutant> mutant_named(std::string_view name) {
  const auto found = std::find_if(mutants.begin(), mutants.end(), [&](const auto& one) { return one.name == name; });
  return found == mutants.end() ? std::nullopt : std::optional(found->mutant);
}

}  // namespace semel::sim
