// What a handler of the configuration file asks for after the commit, as the library's intentions and publications, and
// its settle steps.
#pragma once

#include <semel/consumer.hpp>

#include "config/config.hpp"

namespace semel::app {

/// Throw Failure(field_missing) where a value is not there, handler_misused for a request that cannot be stored.
Intention intention_of(const CallConfig& call, const Facts& facts);
Publication publication_of(const PublishConfig& publish, const Facts& facts);
Compensation compensation_of(const CompensationConfig& compensation, const Facts& facts);

/// What is written with a call's outcome, and intended because of it.
std::optional<Answer> settle_call(const CallConfig& call, const Settled& settled, SettleWork<SqlSession>& work);

/// Every call of a handler, in the order written, each before those that follow it.
std::vector<const CallConfig*> all_calls(const HandlerConfig& handler);

}  // namespace semel::app
