#include <semel/outbox.hpp>

#include "base/digest.hpp"
#include "base/encoding.hpp"
#include "values/stored_form.hpp"

namespace semel {

std::string derive_publication_id(const RecordId& record, std::string_view parent, int ordinal) {
  return hex_encode(sha256(join_fields({"\x01publication", record_digest(record.scope, record.key).view(), parent,
                                        std::to_string(ordinal)})))
      .substr(0, 32);
}

}  // namespace semel
