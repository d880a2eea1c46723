#include "base/decimal.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace semel {
namespace {

std::string shown(const std::optional<ExactDecimal>& number) {
  if (!number) return "none";
  return (number->negative ? "-" : "") + number->digits + "e" + std::to_string(number->exponent);
}

TEST(ExactDecimal, EveryNotationOfAValueIsOneNumber) {
  struct Case {
    std::string number;
    std::vector<std::string> notations;
  };
  for (const auto& [number, notations] : std::vector<Case>{
           {"1e0", {"1", "1.0", "1e0", "1E+0", "1e-0", "10e-1", "0.1e1", "100e-2", "0.001e3", "1.000"}},
           {"1e2", {"100", "1E2", "1e+2", "1e02", "100.00", "0.1e3", "1000e-1"}},
           {"0e0", {"0", "-0", "0.0", "-0.0", "0e0", "0e5", "0E-400", "-0e999", "0.000e7"}},
           {"-15e-1", {"-1.5", "-15e-1", "-0.15e1", "-1.50", "-150e-2"}},
           {"1234567890123456789e1", {"12345678901234567890", "1.2345678901234567890e19"}},
           {"12345678901234567891e0", {"12345678901234567891", "12345678901234567891.0"}},
           {"1e400", {"1e400", "10e399", "0.1e401"}},
           {"1e-400", {"1e-400", "10e-401"}},
           {"1e9223372036854775807", {"1e9223372036854775807", "1e09223372036854775807"}},
           {"1e-9223372036854775808", {"1e-9223372036854775808"}},
       })
    for (const auto& notation : notations) EXPECT_EQ(shown(exact_decimal(notation)), number) << notation;
}

TEST(ExactDecimal, AnExponentBeyond64BitsIsNoNumber) {
  for (const auto* text : {"1e9223372036854775808", "10e9223372036854775807", "1e-9223372036854775809",
                           "0.1e-9223372036854775808", "1e99999999999999999999999999", "0e9223372036854775808"})
    EXPECT_FALSE(exact_decimal(text)) << text;
}

TEST(ExactDecimal, WhatJsonDoesNotCallANumberIsNone) {
  for (const auto* text :
       {"",      "-",     "+1", "01", "-01",  "00",    ".5",  "1.",  "1.e5",     "1e",  "1e+",  "1e-", "1e+-5",
        "1e--5", "1e5.5", "1 ", " 1", "0x10", "1_000", "1,5", "NaN", "Infinity", "--1", "1e 5", "1-",  "١"})
    EXPECT_FALSE(exact_decimal(text)) << text;
}

TEST(ExactDecimal, TellsIntegersFromFractions) {
  for (const auto* text : {"1", "1.0", "10e-1", "1e400", "0", "-3"})
    EXPECT_TRUE(exact_decimal(text)->is_integer()) << text;
  for (const auto* text : {"0.5", "1e-1", "-1.5", "1e-400"}) EXPECT_FALSE(exact_decimal(text)->is_integer()) << text;
}

}  // namespace
}  // namespace semel
