// What a user's statement must not be, read from its first words.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace semel::postgres {

/// Says why `sql` must not run inside the engine's transaction: it would end the transaction, outlive it in the
/// session, or leave the request-and-answer protocol. Nothing where it may run.
///
/// This is the hard line of defence. A COMMIT that is sent has committed the effects without their record by the time
/// its answer tells. The rest holds by itself: the extended protocol takes one statement at a time, and inside a
/// transaction block the server refuses a COMMIT in functions, procedures and DO.
std::optional<std::string> reason_to_refuse(std::string_view sql);

}  // namespace semel::postgres
