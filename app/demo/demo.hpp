// The demo: the night when 41 customers were charged twice, replayed with real processes and a real database.
#pragma once

#include <filesystem>
#include <semel/result.hpp>
#include <string>
#include <vector>

namespace semel::demo {

/// One consumer under one fault.
struct Row {
  std::string consumer;
  std::string fault;
  long long messages;    ///< sent
  long long deliveries;  ///< handed to consumers, again included
  long long effects;     ///< rows in the ledger
  long long duplicates;  ///< rows beyond the first of each payment
  long long lost;        ///< payments without a row
};

struct Options {
  std::filesystem::path program;    ///< this program, to start consumers with
  std::filesystem::path directory;  ///< an empty folder for files
};

/// Every consumer under every fault, in order; takes a few seconds.
Result<std::vector<Row>> run_demo(const Options& options);

}  // namespace semel::demo
