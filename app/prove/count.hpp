// How many effects a key has had, asked of whoever keeps them.
#pragma once

#include <memory>
#include <semel/result.hpp>
#include <string>
#include <string_view>

#include "prove/settings.hpp"

namespace semel::prove {

/// `text` with every `{{key}}` replaced. Keys are letters, digits and dashes: they need no quoting anywhere.
std::string with_key(std::string text, std::string_view key);

/// What a shell command prints; an error where it does not end with 0.
Result<std::string> output_of(const std::string& command);

class Counter {
 public:
  virtual ~Counter() = default;
  virtual Result<long long> count(std::string_view key) = 0;
};

std::unique_ptr<Counter> counter_for(const Settings& settings);

}  // namespace semel::prove
