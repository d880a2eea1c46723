// The store suite under GoogleTest: one test for each promise, named after it.
//
//   SEMEL_STORE_CONFORMANCE(Sqlite, [] { return StoreUnderTest{...}; });
#pragma once

#include <gtest/gtest.h>

#include <semel/testing/store_conformance.hpp>
#include <string>

namespace semel::testing {

inline std::string promise_test_name(const ::testing::TestParamInfo<Promise>& info) {
  const auto number = std::to_string(info.param.number);
  return (number.size() < 2 ? "P0" : "P") + number + "_" + std::string(info.param.name);
}

inline void PrintTo(const Promise& promise, std::ostream* out) { *out << promise.name; }

inline void expect_kept(const Promise& promise, const StoreUnderTest& store) {
  try {
    promise.hold(store);
  } catch (const std::exception& broken) {
    ADD_FAILURE() << broken.what();
  }
}

}  // namespace semel::testing

#define SEMEL_STORE_CONFORMANCE(name, ...)                                                                   \
  class name##Store : public ::testing::TestWithParam<semel::testing::Promise> {};                           \
  TEST_P(name##Store, keeps) { semel::testing::expect_kept(GetParam(), (__VA_ARGS__)()); }                   \
  INSTANTIATE_TEST_SUITE_P(                                                                                  \
      Promises, name##Store,                                                                                 \
      ::testing::ValuesIn(semel::testing::store_promises().begin(), semel::testing::store_promises().end()), \
      semel::testing::promise_test_name)
