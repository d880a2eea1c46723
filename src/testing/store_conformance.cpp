#include <semel/testing/store_conformance.hpp>

#include <algorithm>
#include <vector>

#include "testing/store_scene.hpp"

namespace semel::testing {

std::span<const Promise> store_promises() {
  static const auto all = [] {
    std::vector<Promise> promises;
    for (const auto part : {transaction_promises(), claim_promises(), record_promises(), dead_letter_promises(),
                            operator_promises(), ledger_promises(), outbox_promises(), queue_promises()})
      promises.insert(promises.end(), part.begin(), part.end());
    std::ranges::stable_sort(promises, {}, &Promise::number);
    return promises;
  }();
  return all;
}

}  // namespace semel::testing
