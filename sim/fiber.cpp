#include "fiber.hpp"

#include <cassert>
#include <vector>

#include "stack_switch.hpp"

namespace semel::sim {
namespace {

/// Stacks of fibers that have ended, for the next ones: a run makes a dozen.
struct Stacks {
  std::vector<char*> free;
  ~Stacks() {
    for (char* stack : free) delete[] stack;
  }
  char* take() {
    if (free.empty()) return new char[stack_size];
    char* stack = free.back();
    free.pop_back();
    return stack;
  }
};
thread_local Stacks stacks;

/// Hands a stack out that the Fiber owns.
struct Lent {
  char* stack;
  boost::context::stack_context allocate() {
    boost::context::stack_context context;
    context.size = stack_size;
    context.sp = stack + stack_size;
    return context;
  }
  void deallocate(boost::context::stack_context&) noexcept {}
};

}  // namespace

Fiber::Fiber(std::function<void()> body) : body_(std::move(body)), stack_(stacks.take()) {
  inside_ = boost::context::fiber(std::allocator_arg, Lent{stack_},
                                  [this](boost::context::fiber&& outside) { return enter(std::move(outside)); });
}

Fiber::~Fiber() {
  assert(finished_ || !inside_);
  stacks.free.push_back(stack_);
}

boost::context::fiber Fiber::enter(boost::context::fiber outside) {
  arrive(nullptr, &outer_bottom_, &outer_size_);
  outside_ = std::move(outside);
  body_();
  finished_ = true;
  leave(nullptr, outer_bottom_, outer_size_);
  return std::move(outside_);
}

void Fiber::resume() {
  assert(!finished_);
  void* shadow = nullptr;
  leave(&shadow, stack_, stack_size);
  auto back = std::move(inside_).resume();
  arrive(shadow, nullptr, nullptr);
  inside_ = std::move(back);
}

void Fiber::give_way() {
  leave(&inner_shadow_, outer_bottom_, outer_size_);
  auto outside = std::move(outside_).resume();
  arrive(inner_shadow_, &outer_bottom_, &outer_size_);
  outside_ = std::move(outside);
}

}  // namespace semel::sim
