// What libFuzzer calls.
#include <cstddef>
#include <cstdint>

#include "input.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(data, data + size);
  semel::fuzz::try_one(semel::fuzz::Input(bytes));
  return 0;
}
