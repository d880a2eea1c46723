// Ids and names as people give them to a command. An id may be given by its first digits, and in capital letters.
#pragma once

#include <functional>
#include <semel/result.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/redactor.hpp"

namespace semel::app {

/// Ids that the store has: a page of them after this one, and an empty page at the end.
using NextIds = std::function<Result<std::vector<std::string>>(const std::string& after)>;

/// A whole id as the store writes it, which may be that of nothing; config_unknown_name where it cannot be one.
/// `thing` is what it names in messages: "intent".
Result<std::string> whole_id(std::string_view thing, const std::string& written);

/// config_unknown_name: "intent 5f0c7e: there is none".
Error not_found(std::string_view thing, const std::string& written, std::string_view why = "there is none");

/// The one id that begins like this, with six digits or more; a whole one is not looked for, and may be that of
/// nothing. config_unknown_name where there is none, and where there are several, which the message names.
Result<std::string> find_id(std::string_view thing, const std::string& written, const NextIds& next);

/// What is configured no more may still be in the store; a name that is in neither is a slip: config_unknown_name. An
/// empty one was not given.
Result<void> check_name(std::string_view thing, const std::string& written, std::span<const std::string> configured,
                        const std::function<Result<bool>()>& is_in_store);

/// A slip in what was given is one of usage, although its code is that of a configuration.
int report_given(const Error& error, const Redactor& redactor = {});

}  // namespace semel::app
