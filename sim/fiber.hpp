// A function with a stack of its own, which gives way in the middle of any call and goes on there later. Boost.Context:
// a switch costs nanoseconds, where ucontext asks the kernel twice for its signal mask, and a simulated run has
// thousands.
#pragma once

#include <boost/context/fiber.hpp>
#include <functional>
#include <memory>

namespace semel::sim {

/// One thread runs all fibers. A fiber that is destroyed has returned, or was never resumed.
class Fiber {
 public:
  explicit Fiber(std::function<void()> body);
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Runs it until it gives way or returns. From outside of every fiber.
  void resume();
  /// Back to whoever resumed it. From inside.
  void give_way();
  bool finished() const { return finished_; }

 private:
  boost::context::fiber enter(boost::context::fiber outside);

  std::function<void()> body_;
  boost::context::fiber inside_;   ///< where it goes on
  boost::context::fiber outside_;  ///< where its resumer goes on
  char* stack_ = nullptr;
  bool finished_ = false;

  // For the address sanitizer, which follows stacks.
  void* inner_shadow_ = nullptr;
  const void* outer_bottom_ = nullptr;
  std::size_t outer_size_ = 0;
};

}  // namespace semel::sim
