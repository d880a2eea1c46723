// The one place where what a user's handler throws is caught.
#pragma once

#include <exception>
#include <semel/result.hpp>
#include <string>

namespace semel::engine {

template <class F>
Result<void> guarded(F&& call_handler) {
  try {
    call_handler();
    return {};
  } catch (const Failure& failure) {
    return failure.error();
  } catch (const std::exception& thrown) {
    return fix_call(ErrorCode::handler_failed, std::string("the handler threw: ") + thrown.what());
  } catch (...) {
    return fix_call(ErrorCode::handler_failed, "the handler threw something that is not a std::exception");
  }
}

}  // namespace semel::engine
