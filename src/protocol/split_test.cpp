#include "protocol/split.hpp"

#include <gtest/gtest.h>

namespace semel::protocol {
namespace {

TEST(Split, CoversTheBatchInOrderAndIsolatesTheOneAtFault) {
  for (std::size_t size = 2; size <= 40; ++size) {
    for (std::size_t fault = 0; fault <= size; ++fault) {  // `size` itself: not a message of the batch
      const auto parts = split(size, fault);
      std::size_t next = 0;
      bool alone = false;
      for (const auto& part : parts) {
        EXPECT_EQ(part.begin, next);
        EXPECT_LT(part.begin, part.end);
        EXPECT_LT(part.end - part.begin, size);
        alone = alone || part == Range{fault, fault + 1};
        next = part.end;
      }
      EXPECT_EQ(next, size);
      if (fault < size) {
        EXPECT_TRUE(alone) << size << " " << fault;
      }
    }
  }
}

TEST(Split, HalvesWhereNobodyIsKnown) { EXPECT_EQ(split(7, std::nullopt), (std::vector<Range>{{0, 3}, {3, 7}})); }

}  // namespace
}  // namespace semel::protocol
